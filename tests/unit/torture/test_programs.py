"""The torture run starts the programs in such a way that they work with a shifted clock."""

import os
import subprocess
import sys

from torture.programs import SHIFTED_CLOCK


def test_a_program_with_a_shifted_clock_can_sleep() -> None:
    """The original time.sleep fails under libfaketime, which shifts the clock of a program. So in a
    program with a shifted clock, another function takes the place of time.sleep, for the program
    and all its libraries."""
    script = "import time; print(time.sleep.__module__)"
    env = os.environ | {"PYTHONPATH": str(SHIFTED_CLOCK)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "sitecustomize"
