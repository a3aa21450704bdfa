"""Reserves TCP ports of the loopback interface for programs under test.

The process of the test run reserves each port until the run ends. So if a test has assigned a port
to a program, no other program on the machine and no other test run can get this port.
"""

from __future__ import annotations

import resource

from skidway.ports import Reservation

OPEN_FILES = 16_384
"""The limit of open files for the test run's process. Each reserved port is an open file, and a run
reserves hundreds of ports."""

_reservation = Reservation()


def free_port() -> int:
    """Returns a free TCP port of the loopback interface for one program of this test run."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < min(hard, OPEN_FILES):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, OPEN_FILES), hard))
    return _reservation.take()
