"""Lets kafka-python's own integration tests run from its source distribution.

The distribution lacks `test/__init__.py` and `test/service.py`. Of the latter its tests need, for
a broker that runs already (KAFKA_URI), only that there is something to stop. A plugin of pytest,
which finds the unpacked distribution as its root directory.
"""

from __future__ import annotations

import sys
import types

import pytest


class ExternalService:
    """A broker that somebody else starts and stops."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """Nothing: it runs."""

    def stop(self) -> None:
        """Nothing: who started it stops it."""


class SpawnedService:
    """A broker that the tests would start: none of those that run do."""

    def __init__(self, *arguments: object) -> None:
        raise RuntimeError("these tests run against one broker that is there already")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Put their package `test` in the place of the standard library's."""
    package = types.ModuleType("test")
    package.__path__ = [str(early_config.rootpath / "test")]
    service = types.ModuleType("test.service")
    service.ExternalService = ExternalService  # type: ignore[attr-defined]
    service.SpawnedService = SpawnedService  # type: ignore[attr-defined]
    sys.modules["test"], sys.modules["test.service"] = package, service
