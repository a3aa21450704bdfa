"""Makes the pytest parameters that run a test for each stock client, and the records that the
clients send. Many tests of stock clients use this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from support.stock_clients import CLIENTS, StockClient

COUNT = 200
FIRST_MS = 1_700_000_000_000


def each_client(*commands: str) -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test once for every stock client that has all of the given
    commands."""
    able = [each for each in CLIENTS.values() if not set(commands) & each.lacks.keys()]
    params = [pytest.param(each, id=each.name, marks=[*_marks(each)]) for each in able]
    return pytest.mark.parametrize("client", params)


def each_codec() -> pytest.MarkDecorator:
    """Returns a pytest mark that runs a test with every stock client, once for each compression
    codec that the client has."""
    params = [
        pytest.param(each, codec, id=f"{each.name}-{codec}", marks=[*_marks(each)])
        for each in CLIENTS.values()
        for codec in each.codecs
    ]
    return pytest.mark.parametrize(("client", "codec"), params)


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
