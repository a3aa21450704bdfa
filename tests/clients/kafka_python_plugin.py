"""Lets kafka-python's own integration tests run from its source distribution.

The distribution lacks `test/__init__.py` and `test/service.py`. If the environment variable
KAFKA_URI names a running broker, the tests need only one thing from `test/service.py`: an object
for the broker, with a method `stop`. This module is a pytest plugin that supplies both modules. It
assumes that pytest's root directory is the unpacked distribution.
"""

from __future__ import annotations

import sys
import types

import pytest


class ExternalService:
    """A broker that this plugin did not start and does not stop."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """Does nothing: the broker runs."""

    def stop(self) -> None:
        """Does nothing: whoever started the broker stops it."""


class SpawnedService:
    """In kafka-python's own module, this class starts a broker. Here every test uses the running
    broker, so this class refuses to start one."""

    def __init__(self, *arguments: object) -> None:
        raise RuntimeError("these tests run against one broker that is there already")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Makes `import test` import kafka-python's package `test` instead of the standard
    library's."""
    package = types.ModuleType("test")
    package.__path__ = [str(early_config.rootpath / "test")]
    service = types.ModuleType("test.service")
    service.ExternalService = ExternalService  # type: ignore[attr-defined]
    service.SpawnedService = SpawnedService  # type: ignore[attr-defined]
    sys.modules["test"], sys.modules["test.service"] = package, service
