"""Tests how the dashboard's pages write durations, numbers, times and tables."""

from __future__ import annotations

import csv
import io

import pytest

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.rejects import Rejected
from skidway.audit.collector.pages.table import Cell, Column, Table, csv_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.6, "1 min"),
        (65, "1 min 5 s"),
        (3_600, "1 h"),
        (187_200, "2 d 4 h"),
        (-3, "0 s"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float, text: str) -> None:
    """A duration is shown with at most two units, so that it can be read at a glance, and is never
    negative."""
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1 k"),
        (12_345, "12.3 k"),
        (999_700, "1 M"),
        (10**19, "1e+04 P"),
    ],
)
def test_counts_of_narrow_cells_are_short(count: int, text: str) -> None:
    """A count is shortened so that it fits into a cell of the grid, however great it is."""
    assert words.short(count) == text


def test_times_of_today_have_no_day() -> None:
    """A time of another day is shown with its day, so that nobody mistakes it for a time of
    today."""
    assert words.near(3_600_000, 7_200_000) == "01:00"
    assert words.near(3_601_000, 90_000_000) == "1970-01-01 01:00:01"


def test_shares_are_never_shown_as_nothing_if_there_is_something() -> None:
    """One reject in a million records is not shown as 0 %."""
    assert [words.share(*x) for x in ((0, 9), (1, 10**6), (1, 3))] == ["0 %", "< 0.01 %", "33.3 %"]


def test_csv_has_the_values_of_all_rows_and_no_formulas() -> None:
    """A table as CSV has all rows, including rows that the page leaves out, with their values. A
    host name that begins like a formula is written so that a spreadsheet treats it as text."""
    columns = (Column("host", "Host"), Column("lag", "Lag"))
    names = ("=cmd|' /C calc'!A0", "-1", 'a"b,c', "plain")
    rows = tuple((Cell(name), Cell("1 min", -60)) for name in names)
    table = Table("t", "c", columns, rows, shown_max=1)
    assert (len(table.shown), table.more) == (1, 3)
    found = list(csv.reader(io.StringIO(csv_text(table))))
    assert found[0] == ["host", "lag"]
    assert [x[0] for x in found[1:]] == ["'=cmd|' /C calc'!A0", "'-1", 'a"b,c', "plain"]
    assert {x[1] for x in found[1:]} == {"-60"}, "numbers stay numbers"


def test_programs_read_values_and_statuses() -> None:
    """A table as JSON has the value of each cell (or its text, if it has no value), and the cell's
    status, if it has one."""
    table = Table(
        "t", "c", (Column("a", "A"), Column("b", "B")), ((Cell("x", 5, status="lost"), Cell()),)
    )
    assert table.records() == [{"a": 5, "a_status": "lost", "b": None}]


@pytest.mark.parametrize(("rejected", "rest", "share"), [(0, 0, 0), (5, -5, 0), (5, 15, 0.25)])
def test_negative_counts_have_a_share_of_rejects(rejected: int, rest: int, share: float) -> None:
    """A count may be negative, so the count of rejects and the count of the other records may add
    up to 0 although there are rejects. The share of rejects is then shown as 0."""
    found = Rejected("dc1.logs", "", rejected, 0, rest, is_warned=False, example=None)
    assert found.share == share
