"""Lets kafka-python's own integration tests run from its source distribution.

The distribution lacks `test/__init__.py` and `test/service.py`. If the environment variable
KAFKA_URI names a running broker, the tests need only one thing from `test/service.py`: an object
for the broker, with a method `stop`. This module is a pytest plugin that supplies both modules. It
assumes that pytest's root directory is the unpacked distribution.

Some of these tests wait only a few seconds for an answer, which is too short on a busy machine. The
plugin makes these waits longer, and consumers ask for metadata more often. A wait still ends as
soon as the answer is there.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

LONGER = 10
METADATA_AGE_MS = 5_000
"""On a busy machine, a consumer of 3.0.12 has kept an assignment without partitions, made before it
knew the topic, until it asked for the metadata again: after five minutes, by default."""

POLL_MS = 2_000
"""A shorter poll of these tests is one of many in a loop, or expects no record."""


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


@pytest.hookimpl
def pytest_collection_finish() -> None:
    """Makes the waits for acknowledgements and records longer."""
    from kafka import KafkaConsumer
    from kafka.producer.future import FutureRecordMetadata

    KafkaConsumer.DEFAULT_CONFIG["metadata_max_age_ms"] = METADATA_AGE_MS
    _lengthen(FutureRecordMetadata, "get", "timeout", 0)
    _lengthen(KafkaConsumer, "poll", "timeout_ms", POLL_MS)


def _lengthen(owner: type, method: str, option: str, least: float) -> None:
    original: Callable[..., Any] = getattr(owner, method)

    def longer(self: Any, *positional: Any, **named: Any) -> Any:
        limit = named.get(option)
        if limit is not None and limit >= least:
            named[option] = limit * LONGER
        return original(self, *positional, **named)

    setattr(owner, method, longer)
