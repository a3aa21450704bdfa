"""Converts records of a `_schemas` topic to lines of text, and back.

Each key has a kind (`keytype`). For each kind, this table shows the other fields of the key, and
the meaning of the value:

    SCHEMA          subject, version      the version; null if it was deleted permanently
    CONFIG, MODE    subject (null: all)   the setting; null if it was reset
    DELETE_SUBJECT  subject               every version up to the value's `version` was soft-deleted
    CLEAR_SUBJECT   subject               its soft-deleted versions were deleted permanently
    NOOP            -                     nothing; our dumps add `maxId`, the highest id ever used
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.errors import SkidwayError
from skidway.text_file import MARK

LINE_CHARACTERS_MAX: Final = 16 << 20
_BEFORE_KEY: Final = ("CreateTime:", "LogAppendTime:", "NoTimestampType:", "Partition:", "Offset:")
_BEFORE_KEY_ALONE: Final = ("NO_TIMESTAMP", "NO_HEADERS")
_CONSOLE_NOISE: Final = "Processed a total of"


class DumpRefused(SkidwayError):
    """Raised if a dump cannot be read or restored. The message says why, and names the line, record
    or version."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the topic: key and value as JSON documents. If the record is a tombstone, the
    value is None."""

    key: Mapping[str, Any]
    value: Mapping[str, Any] | None

    @property
    def kind(self) -> str:
        """Returns the key's `keytype`."""
        return str(self.key.get("keytype"))


def line(record: Record) -> str:
    """Returns the record as one line of a dump, without the line end."""
    return _text({"key": record.key, "value": record.value})


def key_text(record: Record) -> str:
    """Returns the key as a `_schemas` topic stores it: as JSON text."""
    return _text(record.key)


def value_text(record: Record) -> str | None:
    """Returns the value as a `_schemas` topic stores it: as JSON text; None for a tombstone."""
    return None if record.value is None else _text(record.value)


def console_line(record: Record) -> str:
    """Returns the record as kafka-console-consumer prints it and kafka-console-producer reads
    it."""
    return f"{key_text(record)}\t{value_text(record) or 'null'}"


def read_lines(lines: Iterable[str]) -> Iterator[Record]:
    """Yields the records in the lines of a file. Raises `DumpRefused`, with the number of the line,
    if a line is no record."""
    for number, text in enumerate(lines, 1):
        where = f"Line {number}"
        text = text.removeprefix(MARK) if number == 1 else text
        if len(text) > LINE_CHARACTERS_MAX:
            raise DumpRefused(f"{where} is longer than {LINE_CHARACTERS_MAX} characters.")
        stripped = text.strip()
        if stripped and not stripped.startswith(_CONSOLE_NOISE):
            yield _read_line(stripped, where)


def record(key: str | bytes | None, value: str | bytes | None, where: str) -> Record:
    """Returns the record with this key and value, which come from a topic or from the console
    consumer's output. If they are no record of a `_schemas` topic, raises `DumpRefused` with a
    message that begins with `where`."""
    if key is None:
        raise DumpRefused(f"{where} has no key: print keys too (print.key=true).")
    return _record(_json(key, where, "key"), _json_or_none(value, where), where)


def _read_line(text: str, where: str) -> Record:
    if "\t" in text:
        return record(*_columns(text, where), where)
    document = _json(text, where, "line")
    if not isinstance(document, dict) or "key" not in document:
        raise DumpRefused(f"{where} has no key: print keys too (print.key=true).")
    # in the output of `kcat -J`, the key `payload` has the value
    value = document.get("value", document.get("payload"))
    key = _inner(document["key"], where, "key")
    return _record(key, _inner(value, where, "value"), where)


def _columns(text: str, where: str) -> tuple[str, str]:
    """Returns key and value from a line of kafka-console-consumer's output. Ignores the columns
    that kafka-console-consumer may print before the key."""
    parts = text.split("\t")
    while parts and (parts[0].startswith(_BEFORE_KEY) or parts[0] in _BEFORE_KEY_ALONE):
        parts.pop(0)
    if len(parts) != 2:
        raise DumpRefused(f"{where} is not a key and a value with a tab between them.")
    return parts[0], parts[1]


def _inner(value: Any, where: str, what: str) -> Any:
    return _json_or_none(value, where) if isinstance(value, str) else value


def _json_or_none(value: str | bytes | None, where: str) -> Any:
    return None if value is None or value in ("", b"") else _json(value, where, "value")


def _json(text: str | bytes, where: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise DumpRefused(
            f"{where}: its {what} is no JSON, so this is no dump of a schema registry."
        ) from None


def _record(key: Any, value: Any, where: str) -> Record:
    if not isinstance(key, dict) or "keytype" not in key:
        raise DumpRefused(f"{where}: its key has no keytype, so this is no dump of a registry.")
    if value is not None and not isinstance(value, dict):
        raise DumpRefused(f"{where}: its value is no JSON object.")
    return Record(key, value)


def _text(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
