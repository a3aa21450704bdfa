"""A reload reads the records of some hours again, in one or several loads. The tests check which
hours one load handles together. They also check that a reload is refused if it does not find the
same records as the original loads."""

from __future__ import annotations

import pytest

from skidway.loader.reloading.hours import (
    Content,
    HourContent,
    ReloadRefused,
    check_same,
    contents,
    first_group,
)
from skidway.loader.state import layout
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import MARKS, REJECTS, ROWS, DataFile
from support.promises import promise

SEVEN, EIGHT = "2026-01-31T07", "2026-01-31T08"


def file(hour: int, rows: int, checksum: int = 0, kind: str = ROWS, number: int = 0) -> DataFile:
    path = f"logs/dt=2026-01-31/hour={hour:02}/part-{number}-0-{checksum}.parquet"
    return DataFile(kind, path, "", 1, rows, checksum, 0)


def hour(rows: tuple[int, int], everything: tuple[int, int]) -> dict[str, HourContent]:
    return {SEVEN: HourContent(Content(*rows), Content(*everything))}


def test_the_content_of_an_hour_is_that_of_its_rows_and_rejects() -> None:
    """The content of an hour is the number of records in the hour's files of rows and rejects, and
    the sum of these files' checksums (modulo 2^64). Other files do not count."""
    most = (1 << 63) - 1
    files = [file(7, 3, most), file(7, 2, 2, REJECTS), file(8, 1, 5), file(8, 9, 9, MARKS)]
    found = contents(files)
    assert found == {
        **hour((3, most), (5, -(1 << 63) + 1)),
        EIGHT: HourContent(Content(1, 5), Content(1, 5)),
    }
    assert found[SEVEN].rejects == Content(2, 2)


def test_a_group_has_whole_hours() -> None:
    """A reload handles whole hours in groups. A group of several hours has at most the given number
    of records. A single hour with more records is a group of its own."""
    files = {
        each.path: LiveFile(each, 1, None)
        for each in (file(9, 5), file(7, 4, 1), file(7, 4, 2), file(8, 2))
    }
    found = [
        {layout.hour_of(path)[-2:] for path in first_group(files, size)} for size in (1, 9, 10, 15)
    ]
    assert found == [{"07"}, {"07"}, {"07", "08"}, {"07", "08", "09"}]
    assert len(first_group(files, 1)) == 2
    assert first_group({}, 10) == {}


@promise("5 reload")
@pytest.mark.parametrize(
    ("new", "words"),
    [
        (hour((3, 8), (4, 9)), "the log has 4 records, and 5 were committed"),
        (hour((3, 8), (5, 8)), "5 records, but they are not the 5 that were committed"),
        ({}, "the log has 0 records, and 5 were committed"),
        (hour((2, 8), (5, 9)), "1 of 3 records that are rows would become rejects"),
    ],
)
def test_other_records_are_refused(new: dict[str, HourContent], words: str) -> None:
    """A reload is refused if the log has more, fewer or other records of an hour than the original
    loads committed, or if fewer of the records would become rows. The error names the hour."""
    with pytest.raises(ReloadRefused, match=words) as refused:
        check_same("logs", hour((3, 8), (5, 9)), new, may_reject=False)
    assert refused.value.hours == {SEVEN}
    assert f"logs, hour {SEVEN}: " in str(refused.value)


@promise("5 reload")
def test_every_hour_with_other_records_is_named() -> None:
    """If several hours have other records than the manifests say, the error of a reload has a
    sentence for each of these hours. This also holds for an hour that had no files before."""
    new = {EIGHT: HourContent(Content(1, 1), Content(1, 1))}
    with pytest.raises(ReloadRefused) as refused:
        check_same("logs", hour((3, 8), (5, 9)), new, may_reject=True)
    assert refused.value.hours == {SEVEN, EIGHT}
    assert len(refused.value.sentences) == 2


def test_the_same_records_are_accepted() -> None:
    """If the log has the same records as during the original loads, a reload may turn rejected
    records into rows. It may turn rows into rejected records only if the operator allows this."""
    old = hour((3, 8), (5, 9))
    check_same("logs", old, hour((5, 9), (5, 9)), may_reject=False)
    check_same("logs", old, hour((0, 0), (5, 9)), may_reject=True)
