"""Tests which records `skidway audit compare` reads, and since when it knows all records."""

from __future__ import annotations

import pytest

from skidway.audit.commands.compare import STAMPED_EARLIER_MS, reach
from skidway.kafka.client import ListedOffset
from skidway.kafka.types import TopicPartition

TP, OTHER = TopicPartition("app", 0), TopicPartition("app", 1)


def listed(offset: int, timestamp: int = -1) -> ListedOffset:
    return ListedOffset(offset, timestamp, -1)


@pytest.mark.parametrize(
    ("first", "begin", "expected"),
    [
        (listed(0), listed(0, 9_000), 5_000),  # nothing has expired
        (listed(0), listed(30, 9_000), 5_000),
        (listed(20), listed(30, 9_000), 5_000),  # only older records have expired
        (listed(20), listed(20, 9_000), 9_000 + STAMPED_EARLIER_MS),  # perhaps newer ones, too
        (listed(40), listed(-1), None),  # all have
    ],
)
def test_expired_records_are_not_missed(
    first: ListedOffset, begin: ListedOffset, expected: int | None
) -> None:
    """If records have expired that may be newer than the asked time, all records are known only
    since the oldest record that is left. Lines that are older are not called missing."""
    found = reach(
        {TP: first, OTHER: listed(0)},
        {TP: begin, OTHER: listed(7, 6_000)},
        {TP: listed(40), OTHER: listed(9)},
        5_000,
    )
    assert (found.since_ms, found.is_whole) == (expected, False)
    assert found.ranges == {TP: (begin.offset if begin.offset >= 0 else 40, 40), OTHER: (7, 9)}


def test_all_records_are_read_without_a_time() -> None:
    """Without --since, all offsets are read. They are all that the topic ever had only if no record
    has expired."""
    for offset, is_whole in ((0, True), (3, False)):
        first = {TP: listed(offset)}
        found = reach(first, first, {TP: listed(9)}, None)
        assert (found.ranges, found.is_whole, found.since_ms) == ({TP: (offset, 9)}, is_whole, None)
