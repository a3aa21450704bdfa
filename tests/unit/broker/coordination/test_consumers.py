from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.coordination import consumers
from skidway.broker.coordination.consumers import Committed
from skidway.broker.coordination.documents import DocumentRefused


def test_an_offset_alone_is_a_bare_number() -> None:
    """A committed offset without metadata is written to ZooKeeper as a number alone, as Kafka 0.8
    wrote it."""
    assert consumers.offset_document(Committed(42)) == b"42"


@given(st.integers(0, (1 << 63) - 1), st.text(max_size=50), st.integers(-1, (1 << 31) - 1))
def test_there_and_back(offset: int, metadata: str, epoch: int) -> None:
    """The offset, metadata and leader epoch of a commit are read as they were written. The time of
    the commit is the time at which its ZooKeeper node was written."""
    data = consumers.offset_document(Committed(offset, metadata, epoch, 5))
    assert consumers.read_offset("p", data, 9) == Committed(offset, metadata, epoch, 9)


@pytest.mark.parametrize("data", [b"", b"-1", b"x", b"1 x", b"1 {", b'1 {"leader_epoch":"x"}'])
def test_what_is_no_offset_is_refused(data: bytes) -> None:
    """If the ZooKeeper node of a committed offset does not contain an offset, the broker refuses to
    read it, and the error names the node's path."""
    with pytest.raises(DocumentRefused, match="/some/path"):
        consumers.read_offset("/some/path", data, 0)


@pytest.mark.parametrize(("name", "number"), [("0", 0), ("17", 17), ("x", None), ("-1", None)])
def test_partitions_are_numbers(name: str, number: int | None) -> None:
    """A group has a node in ZooKeeper for each topic. Each child of this node whose name is a
    partition's number contains a committed offset. The broker skips children with other names."""
    assert consumers.partition_number(name) == number
