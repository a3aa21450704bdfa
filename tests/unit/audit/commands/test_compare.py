"""Tests which records `skidway audit compare` reads, and from which time on it can be sure that no
record has expired."""

from __future__ import annotations

import pytest

from skidway.audit.commands.compare import LAST_TIME, STAMPED_EARLIER_MS, certain_after, reach
from skidway.audit.comparison.matching import NO_TIME
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
        (listed(20), listed(30, 9_000), 5_000),  # all expired records are older than --since
        (listed(20), listed(20, 9_000), 9_000 + STAMPED_EARLIER_MS),  # later ones may have expired
        (listed(40), listed(-1), None),  # the partition TP is empty by now
    ],
)
def test_expired_records_are_not_missed(
    first: ListedOffset, begin: ListedOffset, expected: int | None
) -> None:
    """Some of the expired records may be newer than the time in --since. Then `skidway audit
    compare` compares only lines that are newer than the oldest record that is left. The command
    does not call older lines missing."""
    found = reach(
        {TP: first, OTHER: listed(0)},
        {TP: begin, OTHER: listed(7, 6_000)},
        {TP: listed(40), OTHER: listed(9)},
        5_000,
    )
    assert (found.since_ms, found.is_whole) == (expected, False)
    assert found.ranges == {TP: (begin.offset if begin.offset >= 0 else 40, 40), OTHER: (7, 9)}


def test_all_records_are_read_without_a_time() -> None:
    """Without --since, `skidway audit compare` reads all records that the topic still has.
    `is_whole` is true only if no record of the topic has expired."""
    for offset, is_whole in ((0, True), (3, False)):
        first = {TP: listed(offset)}
        found = reach(first, first, {TP: listed(9)}, None)
        assert (found.ranges, found.is_whole, found.since_ms) == ({TP: (offset, 9)}, is_whole, None)


@pytest.mark.parametrize(
    ("expired", "firsts", "expected"),
    [
        ((0, 0), {TP: 1_000, OTHER: 2_000}, NO_TIME),  # nothing has expired
        ((7, 0), {TP: 3_000, OTHER: 2_000}, 3_000),
        ((7, 5), {TP: 3_000, OTHER: 4_000}, 4_000),
        ((7, 9), {TP: 3_000}, LAST_TIME),  # the partition OTHER is empty by now
    ],
)
def test_the_time_since_which_no_record_has_expired(
    expired: tuple[int, int], firsts: dict[TopicPartition, int], expected: int
) -> None:
    """`certain_after` returns a time since which no record of the topic has expired. For each
    partition whose oldest records have expired, it takes the time of the first record that is
    left. It returns the latest of these times. A topic with one partition needs no such time,
    because its records are in order."""
    first = {TP: listed(expired[0]), OTHER: listed(expired[1])}
    found = reach(first, first, {TP: listed(9), OTHER: listed(9)}, None)
    assert certain_after(found, firsts) == expected
    alone = reach({TP: listed(7)}, {TP: listed(7)}, {TP: listed(9)}, None)
    assert certain_after(alone, {TP: 3_000}) == NO_TIME
