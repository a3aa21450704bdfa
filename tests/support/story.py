"""Makes the pytest parameters that run a test for each stock client, and the records that the
clients send. Many tests of stock clients use this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from support.processes import eventually
from support.stock_clients import CLIENTS, Driver, StockClient

QUICK = ("confluent-kafka", "kafka-python")
"""The clients that are tested wherever Python is: one with OpenSSL by itself, one with Python's."""
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
COUNT = 200
FIRST_MS = 1_700_000_000_000


def each_client(*commands: str) -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test once for every stock client that has all of the given
    commands."""
    able = [each for each in CLIENTS.values() if not set(commands) & each.lacks.keys()]
    params = [pytest.param(each, id=each.name, marks=[*_marks(each)]) for each in able]
    return pytest.mark.parametrize("client", params)


def each_quickly() -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test with every stock client; all but QUICK are foreign."""
    params = [
        pytest.param(each, id=each.name, marks=_unless_quick(each)) for each in CLIENTS.values()
    ]
    return pytest.mark.parametrize("client", params)


def each_login() -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test with every stock client, once for each mechanism by
    which it can log in; all but QUICK are foreign."""
    params = [
        pytest.param(each, name, id=f"{each.name}-{name}", marks=_unless_quick(each))
        for each in CLIENTS.values()
        for name in MECHANISMS
        if name not in each.lacks
    ]
    return pytest.mark.parametrize(("client", "mechanism"), params)


def _unless_quick(client: StockClient) -> list[pytest.MarkDecorator]:
    return [] if client.name in QUICK else [pytest.mark.foreign]


def each_codec() -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test with every stock client, once for each compression
    codec that the client has."""
    params = [
        pytest.param(each, codec, id=f"{each.name}-{codec}", marks=[*_marks(each)])
        for each in CLIENTS.values()
        for codec in each.codecs
    ]
    return pytest.mark.parametrize(("client", "codec"), params)


def write_and_read(driver: Driver, topic: str) -> None:
    """Lets a client write into a topic with one partition, which has the group's name, too, and
    read that by itself and as a member of a group."""
    lacks = driver.client.lacks
    sent = records("story", timed="timestamps" not in lacks)
    driver.ask("produce", topic=topic, codec="gzip", acks=-1, idempotent=True, records=sent)
    values = [each["value"] for each in sent]
    if "assign" not in lacks:
        found = driver.ask("consume", topic=topic, partition=0, offset=0, count=COUNT)
        assert [each["value"] for each in found["records"]] == values
    driver.ask("join", group=topic, topic=topic)
    read: list[str] = []

    def all_read() -> bool:
        read.extend(each["value"] for each in driver.ask("poll", wait_ms=3000)["records"])
        return len(read) >= COUNT

    eventually(all_read)
    assert read == values
    driver.ask("leave")


def records(
    label: str, numbers: Iterable[int] = range(COUNT), *, partition: int = 0, timed: bool = True
) -> list[dict[str, Any]]:
    """Returns records whose times are one second apart. Each record has a key, a header and a value
    that can be compressed."""
    return [
        {
            "partition": partition,
            "timestamp": FIRST_MS + 1_000 * number if timed else None,
            "key": f"key-{number}",
            "value": f"{label}-{number}-" + "x" * 100,
            "headers": {"story": label},
        }
        for number in numbers
    ]


def _marks(client: StockClient) -> Iterator[pytest.MarkDecorator]:
    if client.foreign:
        yield pytest.mark.foreign
    if client.name.startswith("java"):
        yield pytest.mark.java
