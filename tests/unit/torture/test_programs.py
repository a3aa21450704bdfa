"""A torture run (a test of all programs under several faults at the same time) can start programs
with a shifted clock, and these programs work."""

import os
import subprocess
import sys

from torture.programs import SHIFTED_CLOCK


def test_a_program_with_a_shifted_clock_can_sleep() -> None:
    """The original time.sleep can fail under libfaketime. So in a program whose clock libfaketime
    shifts, the torture run replaces time.sleep by another function, for the program and all its
    libraries."""
    script = "import time; print(time.sleep.__module__)"
    env = os.environ | {"PYTHONPATH": str(SHIFTED_CLOCK)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "sitecustomize"
