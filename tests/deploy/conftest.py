"""The fleet of hosts for the deployment tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support import hosts
from support.fleet import Fleet, make_versions
from support.fleet_inventory import HOSTS


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three hosts without any of our programs, and a control node with Skidway's wheels (Python
    packages).

    If the environment variable SKIDWAY_HOSTS is set, the tests use hosts that already run. The
    wheels then exist from an earlier test run, and are not built again.
    """
    if "SKIDWAY_HOSTS" not in os.environ:
        make_versions()
    with hosts.running(HOSTS) as run:
        yield Fleet(run)
