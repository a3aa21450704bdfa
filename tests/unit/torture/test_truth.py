"""A torture run tests all programs under several faults at the same time. Afterwards torture.truth
says what is wrong: lines that were lost or doubled, and buckets with a wrong verdict.

The audit's report lists buckets (short spans of time of one topic), each with a verdict.
torture.truth compares these verdicts with the lines that were written and the rows that arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from torture.hosts import Line
from torture.lake import Row
from torture.truth import Arrived, Truth, compared, named_by_recount

SIZE = 5_000
APP, GONE = "dc1.app", "dc1.gone"
MINUTES_10 = 600_000


def _lines(*numbers: int, time_ms: int = 7_000, topic: str = APP, fits: bool = True) -> list[Line]:
    return [Line(topic, "host1", number, time_ms, fits=fits) for number in numbers]


def _rows(*numbers: int) -> list[Row]:
    return [Row(number, is_whole=True, is_copy=False) for number in numbers]


def _bucket(
    verdict: str, *reasons: str, bucket: int = 5_000, topic: str = APP, topic_id: str = "0"
) -> dict[str, Any]:
    cluster, name = topic.split(".", 1)
    document = {"cluster": cluster, "topic": name, "topic_id": topic_id, "bucket": bucket}
    return document | {"verdict": verdict, "reasons": list(reasons)}


def _found(
    rows: Sequence[int], *verdicts: dict[str, Any], rejects: Sequence[int] = (), **more: Any
) -> Truth:
    lines = _lines(1, 2, 3)
    return compared(lines, Arrived({APP: _rows(*rows)}, {APP: rejects}, verdicts, **more), SIZE)


def test_each_line_once_and_complete_is_good() -> None:
    """A torture run is good if each line arrived exactly once, in a bucket that the audit calls
    complete. These lines count as proven."""
    found = _found([1, 2, 3], _bucket("complete"))
    assert found.is_good
    assert (found.lines, found.rows, found.complete, found.proven) == (3, 3, 1, 3)
    assert (found.unhealed, found.false_alarms, found.beside) == ({}, {}, {})


def test_a_marked_hour_must_have_each_line_once() -> None:
    """If an hour has the file `_SUCCESS` but lacks a line or has a line twice, this file is
    reported as false, whatever the audit says about the bucket. Lines that are missing because a
    Parquet file was deleted do not make `_SUCCESS` false, because a recount shows that they are
    missing."""
    for rows in ([1, 2], [1, 1, 2, 3]):
        found = _found(rows, _bucket("lost"), marked={(APP, 0)})
        assert (found.marked, found.false_marks) == (1, {(APP, 0)})
        assert not found.is_good
    assert not _found([1, 2, 3], _bucket("complete"), marked={(APP, 0)}).false_marks
    gone = {"gone": {3}, "recounted": {(APP, 5_000)}}
    assert not _found([1, 2], _bucket("complete"), marked={(APP, 0)}, **gone).false_marks
    assert not _found([1, 2], _bucket("lost"), marked={(APP, 3_600_000)}).false_marks


def test_what_is_missing_or_double_in_a_complete_bucket_is_a_false_complete() -> None:
    """If a line of a bucket is missing or doubled, the verdict "complete" on this bucket is
    reported as false. A missing line counts as lost even if the audit's report does not list its
    bucket."""
    found = _found([1, 1, 2], _bucket("complete"))
    assert (found.doubled, found.lost, found.false_complete) == ([1], [3], {(APP, 5_000)})
    assert not found.is_good
    assert _found([1, 2], _bucket("lost", bucket=0)).lost == [3]


def test_nothing_is_good_where_nothing_was_judged() -> None:
    """A torture run is not good if the audit's report is empty, or calls no bucket complete."""
    assert not _found([1, 2, 3]).is_good
    assert not _found([1, 2, 3], _bucket("unknown", "a message is missing")).is_good


def test_a_row_that_no_line_is() -> None:
    """Four kinds of mistakes are reported: a row that has only a part of its line, a row of a line
    that nobody wrote, a row in the output of another topic, and a valid line among the rejects."""
    verdicts = [_bucket("complete")]
    assert _found([1, 2, 3, 9], *verdicts).invented == [9]
    torn = {APP: [*_rows(1, 2), Row(3, is_whole=False, is_copy=False)]}
    assert compared(_lines(1, 2, 3), Arrived(torn, {}, verdicts), SIZE).torn == [3]
    elsewhere = {APP: _rows(1, 2), "dc1.web": _rows(3)}
    found = compared(_lines(1, 2, 3), Arrived(elsewhere, {}, verdicts), SIZE)
    assert (found.invented, found.lost) == ([3], [3])
    assert _found([1, 2], *verdicts, rejects=[3]).torn == [3]


def test_what_is_declared_is_counted_apart() -> None:
    """A missing or doubled line counts as declared (the audit admits the fault) if the audit calls
    the line's bucket lost or unknown. If the audit calls the bucket open or incomplete, a doubled
    line counts as declared, but a missing line does not."""
    for verdict in ("lost", "unknown"):
        found = _found([1, 1], _bucket(verdict, "bytes 1 to 2 are lost"))
        assert (found.declared, found.lost, found.doubled, found.missing) == (3, [], [], [])
        assert found.false_alarms == {}
    for verdict in ("open", "incomplete"):
        found = _found([1, 1, 2], _bucket(verdict))
        assert (found.declared, found.lost, found.doubled, found.missing) == (1, [], [], [3])


def test_where_nothing_was_counted_the_next_bucket_speaks_for_a_while() -> None:
    """The audit's report does not list a bucket that lost all its lines. The report shows this loss
    in the later bucket in which the agent declared the loss. So a line whose bucket is not in the
    report gets the verdict of the next bucket in the report, if this next bucket is less than ten
    minutes later and its verdict is "lost" or "unknown"."""
    for word, bucket, lost in (
        ("lost", 90_000, []),
        ("complete", 90_000, [3]),
        ("open", 90_000, [3]),
        ("lost", 5_000 + MINUTES_10, [3]),
    ):
        assert _found([1, 2], _bucket(word, bucket=bucket)).lost == lost


def test_no_other_bucket_speaks_for_one_that_is_listed() -> None:
    """If a line's bucket is in the audit's report, the verdict on this bucket applies to the line.
    A loss that the report shows in a later bucket, or in a bucket of the topic's rejects, does not
    apply to the line."""
    later = [_bucket("lost", bucket=90_000), _bucket("lost", bucket=9_000, topic=f"{APP}.rejected")]
    assert _found([1, 2], _bucket("complete"), *later).lost == [3]


def test_a_line_that_does_not_fit_is_set_apart_by_the_time_of_its_reading() -> None:
    """A line that does not match the pattern in the agent's settings goes to the rejects. The event
    time of its reject is the time at which the agent read the line. So the line may arrive, or be
    declared lost, in a bucket of the rejects that is less than ten minutes later than the bucket in
    which it was written, but in none that is earlier."""
    lines = _lines(4, fits=False)
    rejected = f"{APP}.rejected"

    def found(rejects: list[int], word: str, at: int) -> Truth:
        verdicts = [_bucket("complete"), _bucket(word, bucket=at, topic=rejected)]
        return compared(lines, Arrived({APP: []}, {APP: rejects}, verdicts), SIZE)

    assert found([4], "complete", 10_000).is_good
    assert found([], "complete", 10_000).lost == [4]
    assert found([], "lost", 10_000).declared == 1
    assert found([], "lost", MINUTES_10).declared == 1
    assert found([], "lost", 5_000 + MINUTES_10).lost == [4]
    assert found([], "lost", 0).lost == [4]
    assert found([4, 4], "complete", 10_000).doubled == [4]


def test_a_line_of_another_datacenter_is_another() -> None:
    """Topics of the same name in two datacenters are judged separately."""
    lines = [*_lines(1), *_lines(2, topic="dc2.app")]
    verdicts = [_bucket("lost"), _bucket("complete", topic="dc2.app")]
    found = compared(lines, Arrived({}, {}, verdicts), SIZE)
    assert (found.lost, found.declared) == ([2], 1)


def test_what_is_gone_with_a_file_has_to_be_named_by_a_recount() -> None:
    """If lines are missing because a Parquet file was deleted, they count as declared only if a
    recount found a difference in their bucket, or called a file of their hour damaged or missing.
    In a bucket that is called complete, a doubled line never counts as declared."""
    hour = 1_769_853_600_000
    document = {
        "topics": [
            {"topic": APP, "differences": [{"bucket": 5_000}], "faults": []},
            {"topic": "dc1.web.rejected", "differences": [], "faults": [{"hour": "2026-01-31T10"}]},
            {"topic": "dc1.cut", "differences": [], "faults": [{"hour": None}]},
        ]
    }
    named = named_by_recount(document, SIZE)
    assert named == {(APP, 5_000)} | {("dc1.web", hour + 5_000 * x) for x in range(720)}
    complete = _bucket("complete")
    found = _found([1, 1], complete, recounted=named, gone={2, 3})
    assert (found.declared, found.lost, found.doubled) == (2, [], [1])
    assert _found([1, 2], complete, recounted=named).lost == [3]
    assert _found([1, 2], complete, gone={3}).lost == [3]


@pytest.mark.parametrize("copies", [0, 1, 2])
def test_a_copied_line_may_be_there_as_one_of_the_copy(copies: int) -> None:
    """If a log file was copied, each of its lines must arrive exactly once from the original file,
    and may arrive any number of times from the copy."""
    copied = [Row(3, is_whole=True, is_copy=True)] * copies
    for rows, lost in (([1, 2, 3], []), ([1, 2], [3])):
        arrived = Arrived({APP: [*_rows(*rows), *copied]}, {}, [_bucket("complete")])
        assert compared(_lines(1, 2, 3), arrived, SIZE).lost == lost


def test_of_a_topic_made_again_the_gravest_word_counts() -> None:
    """If a topic was deleted and created again, the verdicts on the old and on the new topic both
    apply to a line, and the graver one counts. If the report does not list the line's bucket for
    the old topic, the verdict on the next listed bucket of the old topic applies."""
    lines = _lines(1, 2, topic=GONE)
    new = _bucket("complete", topic=GONE, topic_id="1")
    for word in ("lost", "incomplete"):
        former = _bucket(word, bucket=90_000, topic=GONE)
        found = compared(lines, Arrived({GONE: _rows(1)}, {}, [former, new]), SIZE)
        assert (found.declared, found.lost, found.missing) == (1, [], [])
    former = _bucket("lost", bucket=0, topic=GONE)
    assert compared(lines, Arrived({GONE: _rows(1)}, {}, [former, new]), SIZE).lost == [2]


def test_alarms_and_buckets_that_do_not_heal_have_their_reasons() -> None:
    """If all lines of a bucket have arrived, but the audit does not call the bucket complete, the
    result lists the bucket with the first reason of its verdict. If the verdict on its records or
    on its rejects is "open" or "incomplete", the bucket is in the list `unhealed`. A bucket with
    the verdict "lost" or "unknown" is in the list `beside` if the audit gives the same reason for
    another bucket, in which lines are really missing or doubled. If there is no such other bucket,
    it is in the list `false_alarms`."""
    lines = [*_lines(1), *_lines(2, time_ms=12_000), *_lines(3, time_ms=17_000)]
    verdicts = [
        _bucket("lost", "a", "b"),
        _bucket("lost", "b", bucket=10_000),
        _bucket("unknown", "c", bucket=15_000),
        _bucket("complete", bucket=20_000),
        _bucket("incomplete", "short", bucket=20_000, topic=f"{APP}.rejected"),
    ]
    found = compared(lines, Arrived({APP: _rows(2, 3)}, {}, verdicts), SIZE)
    assert found.beside == {(APP, 10_000): "b"}
    assert found.false_alarms == {(APP, 15_000): "c"}
    assert found.unhealed == {(APP, 20_000): "short"}
