"""A load may replace files only by files with the same records."""

from __future__ import annotations

import pytest

from skidway.loader.rewriting.proof import (
    Content,
    OtherRecords,
    check_same,
    content,
    rows_by_hour,
)
from skidway.loader.state.manifest import MARKS, REJECTS, ROWS, DataFile
from support.promises import promise

MOST = (1 << 63) - 1


def file(hour: int, rows: int, checksum: int, kind: str = ROWS) -> DataFile:
    path = f"logs/dt=2026-01-31/hour={hour:02}/part-0-0-{checksum}.parquet"
    return DataFile(kind, path, "", 1, rows, checksum, 0)


FILES = [file(7, 3, MOST), file(7, 2, 2, REJECTS), file(8, 1, 5), file(8, 9, 9, MARKS)]


def test_the_content_of_files_is_that_of_their_rows_and_rejects() -> None:
    """The content of files is their number of records and the sum of their checksums (modulo 2^64).
    Files of the loader's tables do not count."""
    assert content(FILES) == Content(6, -(1 << 63) + 6)
    assert content(FILES, REJECTS) == Content(2, 2)
    assert rows_by_hour(FILES) == {"2026-01-31T07": (3, MOST), "2026-01-31T08": (1, 5)}


@promise("5 reload")
@pytest.mark.parametrize(
    ("new", "words"),
    [
        ([file(7, 4, 8)], "logs: 4 records, and 5 were committed"),
        ([file(7, 6, 8)], "logs: 6 records, and 5 were committed"),
        ([file(7, 5, 9)], "logs: 5 records, but they are not the 5 that were committed"),
        ([], "logs: 0 records, and 5 were committed"),
    ],
)
def test_other_records_are_refused(new: list[DataFile], words: str) -> None:
    """Files are not replaced by files with more, fewer or other records."""
    old = [file(7, 2, 3), file(8, 3, 5, REJECTS)]
    check_same("logs:", old, [file(7, 4, 10), file(8, 1, -2)])
    with pytest.raises(OtherRecords) as refused:
        check_same("logs:", old, new)
    assert str(refused.value) == words
