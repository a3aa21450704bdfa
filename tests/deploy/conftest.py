"""The fleet of the deployment story."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from support import hosts
from support.fleet import Fleet, make_versions
from support.fleet_inventory import HOSTS


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """Three hosts without anything of ours, and wheels on the control node.

    If an earlier run has kept the hosts, the wheels exist already and are not made again.
    """
    if "SKIDWAY_HOSTS" not in os.environ:
        make_versions()
    with hosts.running(HOSTS) as run:
        yield Fleet(run)
