"""The torture run starts the programs in such a way that they work with a shifted clock."""

import os
import subprocess
import sys

from torture.programs import SHIFTED_CLOCK


def test_a_program_with_a_shifted_clock_can_sleep() -> None:
    """A program whose clock is shifted, with all its libraries, sleeps in another way than with the
    original time.sleep, because this function fails under libfaketime."""
    script = "import time; print(time.sleep.__module__)"
    env = os.environ | {"PYTHONPATH": str(SHIFTED_CLOCK)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "sitecustomize"
