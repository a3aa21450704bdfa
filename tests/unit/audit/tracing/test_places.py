"""Tests the texts with which a person names a line."""

from __future__ import annotations

import pytest

from skidway.audit.tracing.places import FilePlace, RecordPlace, file_place, record_place, row_place
from skidway.errors import UsageError


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("web7:/var/log/app.log:81920", FilePlace(81920, "web7", "/var/log/app.log")),
        ("web7:C:odd:name:5", FilePlace(5, "web7", "C:odd:name")),
        ("web7:4611686018427387904:0", FilePlace(0, "web7", file=4611686018427387904)),
    ],
)
def test_a_byte_of_a_file(text: str, place: FilePlace) -> None:
    """A line may be named by the position of one of its bytes, HOST:FILE:BYTE. FILE is a path or a
    file id. The path may have colons."""
    assert file_place(text) == place


@pytest.mark.parametrize("text", ["web7", "web7:/a", ":/a:5", "web7:/a:x", "web7::5"])
def test_no_byte_of_a_file(text: str) -> None:
    """A text that does not have the form HOST:FILE:BYTE is refused."""
    with pytest.raises(UsageError, match="is not HOST:FILE:BYTE"):
        file_place(text)


def test_the_columns_of_a_row() -> None:
    """A person can name a line by the columns that the loader has added to the line's row. The
    columns may be given as text or as JSON. Three groups of columns identify the line: the file id
    and the first byte; the host, the path and the first byte; the partition and the offset."""
    by_origin = FilePlace(9, None, None, 3, 7)
    assert row_place("_agent=7, _file_id=3,_offset=9", None) == by_origin
    assert row_place('{"_agent": 7, "_file_id": 3, "_offset": 9, "x": null}', None) == by_origin
    assert row_place("_host=a,_file=/b,_offset=9", None) == FilePlace(9, "a", "/b")
    assert row_place("_partition=1,_kafka_offset=5", "t") == RecordPlace("t", 1, 5)


@pytest.mark.parametrize("text", ["", "x", "{", "[]", "_file_id=a,_offset=1", "_offset=5"])
def test_columns_that_name_no_line(text: str) -> None:
    """A person may name a line by columns of its row. Columns that do not identify exactly one line
    are refused."""
    with pytest.raises(UsageError):
        row_place(text, "t")


def test_a_record_needs_all_three() -> None:
    """A person who names a line by its record must give all three of the record's topic, partition
    and offset."""
    assert record_place("t", 0, 5) == RecordPlace("t", 0, 5)
    for some in ((None, 0, 5), ("t", None, 5), ("t", 0, None), ("t", -1, 5)):
        with pytest.raises(UsageError):
            record_place(*some)
