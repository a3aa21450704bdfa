"""Tests how the CPU time and the memory of a measured program are counted."""

from __future__ import annotations

import subprocess
import sys

from bench.machine import Family
from support.processes import eventually

CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"


def test_all_processes_of_a_program_count() -> None:
    """The CPU time of a program includes the CPU time of the processes that it started, even if
    they have ended. The memory of a program includes only processes that still run."""
    with subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True) as process:
        try:
            family = Family(process)
            eventually(lambda: family.cpu_seconds() > 0.2)
            process.kill()
            process.wait()
            eventually(lambda: family.resident_mb() > 0, what="the child goes on")
        finally:
            family.kill()
    eventually(lambda: family.resident_mb() == 0)
    assert family.cpu_seconds() > 0.2
