"""Fixtures for queries of topics that are in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.memory_query import Queried, queries


@pytest.fixture
def queried() -> Iterator[Queried]:
    """Yields an object that has the topic `logs` with two partitions, and that makes queries of
    this topic."""
    with queries() as made:
        yield made
