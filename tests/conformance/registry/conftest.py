"""A registry process that only one test uses. Its data is in the ZooKeeper of the test run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.brokers import skidway_broker
from support.processes import running
from support.registry import Registry

__all__ = ["registry", "skidway_broker"]


@pytest.fixture
def registry(zookeeper: str, tmp_path: Path) -> Iterator[Registry]:
    """A registry that runs during the test."""
    made = Registry(zookeeper, tmp_path)
    with running(made.program, made.ready):
        yield made
