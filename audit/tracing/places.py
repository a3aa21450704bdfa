"""Parses the text with which a person names a line: HOST:FILE:BYTE, a topic with partition and
offset, or the columns of a row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.errors import UsageError
from skidway.row_columns import (
    AGENT,
    FILE,
    FILE_ID,
    HOST,
    KAFKA_OFFSET,
    OFFSET,
    PARTITION,
    RowColumn,
)

ID_END: Final = 1 << 63
FORMS: Final = (
    "name a line as HOST:FILE:BYTE, by --topic, --partition and --offset, or by --row with the"
    " columns of a row"
)


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A byte of a file. The file is named by host and path, or by its file id. If it is named by
    its file id, host and agent may be None."""

    byte: int
    host: str | None = None
    path: str | None = None
    file: int | None = None
    agent: int | None = None


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The topic, partition and offset of a record. topic: the name that the topic has in the
    cluster with the record.
    """

    topic: str
    partition: int
    offset: int


Place = FilePlace | RecordPlace


def file_place(text: str) -> FilePlace:
    """Parses HOST:FILE:BYTE. FILE is a path or a file id; a path may contain colons. Raises
    UsageError."""
    host, _, rest = text.partition(":")
    file, _, byte = rest.rpartition(":")
    if not host or not file or not byte.isdigit():
        raise UsageError(f"{text!r} is not HOST:FILE:BYTE, such as web7:/var/log/app.log:81920.")
    if file.isdigit():
        return FilePlace(_number("BYTE", byte), host, file=_number("FILE", file))
    return FilePlace(_number("BYTE", byte), host, path=file)


def record_place(topic: str | None, partition: int | None, offset: int | None) -> RecordPlace:
    """Checks the three values with which a person names a record, and returns them as one value.
    Raises UsageError if one of them is None or negative."""
    if topic is None or partition is None or offset is None:
        raise UsageError(f"{FORMS[0].upper()}{FORMS[1:]}.")
    if partition < 0 or offset < 0:
        raise UsageError("--partition and --offset must be 0 or more.")
    return RecordPlace(topic, partition, offset)


def row_place(text: str, topic: str | None) -> Place:
    """Parses the columns of a row: `_file_id=7,_offset=0`, or a JSON object. Uses only the columns
    that the loader adds to each row (their names begin with `_`), and ignores all others. Raises
    UsageError."""
    row = _json(text) if text.lstrip().startswith("{") else _pairs(text)

    def number(column: RowColumn) -> int:
        return _number(column.name, row[column.name])

    if {FILE_ID.name, OFFSET.name} <= row.keys():
        agent = number(AGENT) if AGENT.name in row else None
        host, path = row.get(HOST.name), row.get(FILE.name)
        return FilePlace(number(OFFSET), host, path, number(FILE_ID), agent)
    if {HOST.name, FILE.name, OFFSET.name} <= row.keys():
        return FilePlace(number(OFFSET), row[HOST.name], row[FILE.name])
    if {PARTITION.name, KAFKA_OFFSET.name} <= row.keys() and topic is not None:
        return RecordPlace(topic, number(PARTITION), number(KAFKA_OFFSET))
    raise UsageError(
        "--row needs _file_id and _offset, or _host, _file and _offset, or _partition and"
        " _kafka_offset with --topic."
    )


def _json(text: str) -> Mapping[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--row is no JSON object: {error}.") from error
    return row if isinstance(row, dict) else {}


def _pairs(text: str) -> Mapping[str, Any]:
    pairs = [each.partition("=") for each in text.split(",")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _number(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name}: {value!r} is no number.") from error
    if not 0 <= number < ID_END:
        raise UsageError(f"{name}: {value} must lie in 0 .. 2^63-1.")
    return number
