"""Tests which sampled lines count as equal to their rows, which count as different, and which
cannot be compared. A sample is an agent's message with the content sums of some lines. A content
sum is a hash of a record's event time, length and datum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from skidway.audit.sampling import comparison
from skidway.audit.sampling.comparison import compare
from skidway.audit.sampling.wanted import Found, Wanted
from skidway.audit.topic.sample import Sample, SamplePart
from support.audit_senders import LOGS
from support.promises import promise

PART = SamplePart(LOGS, 1, 0, 0, (0, 10, 20), (b"00000000", b"11111111", b"22222222"))
SAMPLE = Sample(0, 7, "web1", 0, 86_400_000, 1, 1, 3, "/log/a", 0, 30, b"r", parts=(PART,))
WANTED = Wanted(SAMPLE, PART)


def found(at: int, content: bytes | None = None, **others: Any) -> Found:
    right = dict(zip(PART.firsts, PART.sums, strict=True)).get(at, b"")
    content = right if content is None and "obstacle" not in others else content
    return Found(at, 10, 0, 0, at // 10, f"file row {at}", content, **others)


ALL = [found(0), found(10), found(20)]


@promise("6 content")
def test_rows_are_equal_or_differ() -> None:
    """Each row is compared with the content sum of its line (a hash of event time, length and
    datum), which is in the agent's sample. If a line has two rows, this is a difference, even if
    both rows have the right content. If the sample has no line at a row's position, this is a
    difference, too: the agent has found no line that begins there."""
    good = compare(WANTED, ALL, [], {})
    assert (good.rows, good.equal, good.differing) == (3, 3, [])
    assert good.lines == {(7, 3, 0), (7, 3, 10), (7, 3, 20)}
    other = compare(WANTED, [found(0), found(10, b"other"), found(20)], [], {})
    assert [(x.found.first, x.words) for x in other.differing] == [(10, comparison.OTHER_CONTENT)]
    twice = compare(WANTED, [*ALL, found(20)], [], {})
    assert [x.found.first for x in twice.differing] == [20]
    one_bad = compare(WANTED, [*ALL, found(20, b"other")], [], {})
    assert [x.words for x in one_bad.differing] == [comparison.OTHER_CONTENT]
    surplus = compare(WANTED, [*ALL, found(25, b"x")], [], {})
    assert [(x.found.first, x.words) for x in surplus.differing] == [(25, comparison.NO_LINE)]


REJECT = found(10, b"", is_reject=True)
LACKING = found(10, obstacle="no column x")
CHANGED = found(10, b"other")


@promise("6 content")
@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([REJECT, CHANGED], comparison.OTHER_CONTENT),
        ([CHANGED, REJECT], comparison.OTHER_CONTENT),
        ([LACKING, CHANGED], comparison.OTHER_CONTENT),
        ([CHANGED, LACKING], comparison.OTHER_CONTENT),
        ([LACKING, found(10)], comparison.SEVERAL),
        ([LACKING, LACKING], comparison.SEVERAL),
        ([REJECT, found(10), found(10)], comparison.SEVERAL),
    ],
)
def test_no_row_hides_another_row_of_its_line(rows: list[Found], words: str) -> None:
    """A row with other content than its line is a difference, even if another row of the line is a
    reject or cannot be compared. Two rows of one line are a difference, too."""
    result = compare(WANTED, [found(0), *rows, found(20)], [], {})
    (differing,) = result.differing
    assert differing.words.startswith(words)
    assert (differing.found.first, result.equal, result.uncompared) == (10, 2, {})
    if words == comparison.OTHER_CONTENT:
        assert differing.found == CHANGED


def test_a_line_with_a_row_and_a_reject_is_not_equal() -> None:
    """If a line has both a row with the right content and a rejected record, the line does not
    count as equal to its row, nor as different from it."""
    for rows in ([REJECT, found(10)], [found(10), REJECT], [REJECT, LACKING]):
        result = compare(WANTED, [found(0), *rows, found(20)], [], {})
        assert (result.equal, result.differing) == (2, [])
        assert dict(result.uncompared) == {comparison.REJECTED: 1}


@promise("6 content")
def test_the_event_time_of_a_line_is_proven_by_its_sum_only() -> None:
    """A sample gives only the least and the greatest event time of its lines. A row certainly has
    the event time of its line in two cases: if the row has the line's content sum, which includes
    the event time, or if all lines of the sample have the same time. If the row's event time is
    between the two times of the sample, a difference counts in the bucket of the row's event time.
    If it is not, the difference counts in the bucket of the nearer of the two times. (A row for
    which there is no line always counts in the bucket of its own time.)"""
    part = replace(PART, least_ms=100, greatest_ms=900)
    wide, narrow = (Wanted(SAMPLE, x) for x in (part, replace(part, greatest_ms=100)))
    moved = replace(CHANGED, time_ms=5_000)
    twice = [replace(found(0), time_ms=200)] * 2
    surplus = replace(found(25, b"x"), time_ms=7_000)
    lacking = [replace(LACKING, time_ms=300)] * 2
    for wanted, rows, time_ms, is_proven in (
        (wide, [moved], 900, False),
        (wide, twice, 200, True),
        (wide, lacking, 300, False),
        (wide, [surplus], 7_000, False),
        (narrow, [moved], 100, True),
        (narrow, [surplus], 7_000, False),
    ):
        (differing,) = compare(wanted, rows, [], {}).differing
        assert (differing.time_ms, differing.is_time_proven) == (time_ms, is_proven)


@promise("6 content")
def test_host_and_path_of_a_row_are_compared() -> None:
    """A row with another host or path than the sample is a difference, even if its content is
    right. A second row of the same line, in which everything is right, does not change this. If a
    Parquet file has no columns for host and path, its rows are compared by their content only."""
    rows = [found(at, host="web1", path="/log/a") for at in (0, 10, 20)]
    assert compare(WANTED, rows, [], {}).equal == 3
    for wrong in ({"host": "web2"}, {"path": "/log/a.1"}, {"host": ""}, {"path": ""}):
        row = found(10, **({"host": "web1", "path": "/log/a"} | wrong))
        result = compare(WANTED, [rows[0], row, rows[2]], [], {})
        assert [x.words for x in result.differing] == [comparison.OTHER_FILE]
        twice = compare(WANTED, [*rows, row], [], {})
        assert [x.words for x in twice.differing] == [comparison.OTHER_FILE]
    other = compare(WANTED, [rows[0], found(10, b"x", host="web2", path="/"), rows[2]], [], {})
    assert [x.words for x in other.differing] == [comparison.OTHER_CONTENT]


@promise("6 content")
def test_records_are_compared_if_there_is_no_row() -> None:
    """If a line has no row, its record is compared with the line's content sum (a hash). If the
    topic is loaded beyond the record's offset, the missing row is a difference. If there is a row,
    only the row is compared, and the record does not matter."""
    fresh = compare(WANTED, [], [found(0), found(10, b"other"), found(20)], {})
    assert (fresh.records, fresh.equal) == (3, 2)
    assert [x.words for x in fresh.differing] == [comparison.OTHER_RECORD]
    passed = compare(WANTED, [found(0), found(20)], [found(10)], {0: 2})
    assert [(x.is_row, x.words) for x in passed.differing] == [(True, comparison.NO_ROW)]
    behind = compare(WANTED, [found(0), found(20)], [found(10)], {0: 1})
    assert (behind.equal, behind.differing) == (3, [])
    both = compare(WANTED, [found(0, b"bad"), found(10), found(20)], [found(0)], {0: 3})
    assert [x.words for x in both.differing] == [comparison.OTHER_CONTENT]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (found(10, obstacle="no column x"), "no column x"),
        (found(10, b"", is_reject=True), comparison.REJECTED),
        (None, comparison.NOT_FOUND),
    ],
)
def test_what_cannot_be_compared_is_counted_by_its_reason(row: Found | None, reason: str) -> None:
    """A line whose row is compared counts as equal or different. Three kinds of lines count as
    neither: lines whose row cannot be converted back to the record's values, lines that the loader
    rejected, and lines for which neither a row nor a record was found."""
    rows = [found(0), found(20)] + ([] if row is None else [row])
    result = compare(WANTED, rows, [], {})
    assert dict(result.uncompared) == {reason: 1}
    assert (result.equal, result.differing) == (2, [])
    assert (7, 3, 10) not in result.lines
