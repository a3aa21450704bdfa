"""The torture's oracle: each of its five numbers is told from the others."""

from __future__ import annotations

from typing import Any

from torture.hosts import Line
from torture.truth import Truth, compared, named_by_recount

SIZE = 5_000


def _lines(*numbers: int, time_ms: int = 7_000) -> list[Line]:
    return [Line("dc1.app", "host1", number, time_ms) for number in numbers]


def _bucket(verdict: str, *reasons: str, bucket: int = 5_000, topic: str = "app") -> dict[str, Any]:
    document = {"cluster": "dc1", "topic": topic, "bucket": bucket, "verdict": verdict}
    return document | {"reasons": list(reasons), "topic_id": "0"}


def _found(rows: list[int], verdict: dict[str, Any], rejects: tuple[int, ...] = ()) -> Truth:
    return compared(_lines(1, 2, 3), rows, rejects, [verdict], SIZE)


def test_each_line_once_and_complete_is_good() -> None:
    """As a row or as a reject."""
    found = _found([1, 3], _bucket("complete"), (2,))
    assert found.is_good
    assert (found.lines, found.rows, found.rejects, found.complete) == (3, 2, 1, 1)
    assert (found.unhealed, found.false_alarms) == ({}, {})


def test_what_is_missing_or_double_in_a_complete_bucket_is_a_false_complete() -> None:
    """Also where the line is in a bucket of which nobody says anything."""
    found = _found([1, 1, 2], _bucket("complete"))
    assert (found.doubled, found.lost, found.false_complete) == ([1], [3], {("dc1.app", 5_000)})
    assert not found.is_good
    assert _found([1, 2], _bucket("complete", bucket=0)).lost == [3]
    assert _found([1, 2], _bucket("lost", bucket=0)).lost == [3]
    assert _found([1, 2, 3, 9], _bucket("complete")).invented == [9]


def test_what_is_declared_is_counted_apart() -> None:
    """A bucket that is not complete hides nothing."""
    found = _found([1, 1], _bucket("lost", "bytes 1 to 2 are lost"))
    assert found.is_good
    assert (found.declared, found.false_alarms) == (3, {})


def test_where_nothing_was_counted_the_next_bucket_speaks() -> None:
    """A loss is listed where it was declared, behind the buckets of which no line is left."""
    assert _found([1, 2], _bucket("lost", bucket=90_000)).is_good
    assert _found([1, 2], _bucket("complete", bucket=90_000)).lost == [3]


def test_of_a_topic_made_again_the_gravest_word_counts() -> None:
    """A loss of the former one may be of a bucket that only the new one has."""
    former = _bucket("lost", bucket=90_000)
    new = _bucket("complete") | {"topic_id": "1"}
    assert compared(_lines(1, 2), [1], [], [former, new], SIZE).is_good
    former["bucket"] = 0
    assert compared(_lines(1, 2), [1], [], [former, new], SIZE).lost == [2]


def test_a_copied_line_may_be_there_as_one_of_the_copy() -> None:
    """So often as it was copied, and need not be; it may not be missing."""
    verdicts, copied = [_bucket("complete")], {1: 1, 2: 1, 3: 1}
    assert compared(_lines(1, 2), [1, 1, 2], [], verdicts, SIZE, copied=copied).is_good
    found = compared(_lines(1, 2, 3), [1, 1, 1, 3], [], verdicts, SIZE, copied=copied)
    assert (found.doubled, found.lost) == ([1], [2])


def test_an_alarm_beside_a_loss_is_told_apart() -> None:
    """A loss is of a span of buckets, of which some may have all their lines."""
    lines = [*_lines(1), *_lines(2, time_ms=12_000), *_lines(3, time_ms=17_000)]
    verdicts = [
        _bucket("lost", "a", "b"),
        _bucket("lost", "b", bucket=10_000),
        _bucket("unknown", "c", bucket=15_000),
    ]
    found = compared(lines, [2, 3], [], verdicts, SIZE)
    assert found.beside == {("dc1.app", 10_000): "b"}
    assert found.false_alarms == {("dc1.app", 15_000): "c"}


def test_alarms_and_buckets_that_do_not_heal_have_their_reasons() -> None:
    """The gravest word on a bucket counts, that of its rejects with it."""
    found = _found([1, 2, 3], _bucket("unknown", "a message is missing"))
    assert found.false_alarms == {("dc1.app", 5_000): "a message is missing"}
    verdicts = [_bucket("complete"), _bucket("incomplete", "short", topic="app.rejected")]
    found = compared(_lines(1), [1], [], verdicts, SIZE)
    assert found.unhealed == {("dc1.app", 5_000): "short"}


def test_a_line_of_another_datacenter_is_another() -> None:
    """Topics of two clusters may have one name."""
    lines = [*_lines(1), Line("dc2.app", "host3", 2, 7_000)]
    verdicts = [_bucket("lost"), _bucket("complete") | {"cluster": "dc2"}]
    found = compared(lines, [], [], verdicts, SIZE)
    assert (found.lost, found.declared) == ([2], 1)


def test_what_a_recount_names_is_declared() -> None:
    """The buckets of its differences, and all those of the hours of its faults."""
    hour = 1_769_853_600_000
    difference = {"bucket": 5_000}
    document = {
        "topics": [
            {"topic": "dc1.app", "differences": [difference], "faults": []},
            {"topic": "dc1.web.rejected", "differences": [], "faults": [{"hour": "2026-01-31T10"}]},
            {"topic": "dc1.cut", "differences": [], "faults": [{"hour": None}]},
        ]
    }
    named = named_by_recount(document, SIZE)
    assert named == {("dc1.app", 5_000)} | {("dc1.web", hour + 5_000 * x) for x in range(720)}
    found = compared(_lines(1, 2), [1], [], [_bucket("complete")], SIZE, recounted=named)
    assert (found.is_good, found.declared) == (True, 1)
