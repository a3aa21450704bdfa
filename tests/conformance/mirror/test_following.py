"""A mirror has the source's bytes at the source's offsets, whatever happens to either side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mirroring import Pair, pair

pytestmark = pytest.mark.conformance


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    yield from pair(tmp_path, zookeeper)


def test_every_byte_and_every_offset(clusters: Pair) -> None:
    """Topics there already and made later, all partitions: the same files."""
    clusters.source.create("logs", 2)
    clusters.source.produce("logs", 50)
    clusters.source.produce("logs", 20, 1, size=5000)
    clusters.mirrored("logs")
    clusters.same("logs", 2)
