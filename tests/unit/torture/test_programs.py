"""How the torture run starts the programs."""

import os
import subprocess
import sys

from torture.programs import SHIFTED_CLOCK


def test_a_program_with_a_shifted_clock_can_sleep() -> None:
    """Every program whose clock is shifted, and every library in it, sleeps without time.sleep,
    because that call fails under libfaketime."""
    script = "import time; print(time.sleep.__module__)"
    env = os.environ | {"PYTHONPATH": str(SHIFTED_CLOCK)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "sitecustomize"
