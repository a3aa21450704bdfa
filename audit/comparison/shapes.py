"""The shapes of records: in which fields shippers write host, path, offset and line.

The names come from the shippers' documentation, for records that are JSON:

    filebeat    log.file.path, log.offset (where the line starts), message, host.name
                (Filebeat Reference, "Log file content fields"; Elastic Common Schema)
    vector      file, offset (with `offset_key: offset`), message, host (Vector, source `file`)
    fluent-bit  path (with `Path_Key path`), log; no offset, because the documentation of
                `Offset_Key` does not say which byte of the line it means (Fluent Bit, input `tail`)
    rsyslog     path, offset, message, host: rsyslog has no shape of its own, so docs/audit.md has a
                template with these names for imfile's metadata (`addMetadata="on"`)
    text        the value is the line, and nothing else

Every name can be replaced, because a configuration may rename or nest fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple


class Shipped(NamedTuple):
    """The contents of a record. host, path, offset: the line's host and file, and the position of
    its first byte; None for a value that the record does not have. text: the line without its
    terminator.
    """

    host: str | None
    path: str | None
    offset: int | None
    text: bytes


POSITION_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Shape:
    """The names of the fields of a record. A name with dots leads to a nested field; None stands
    for a field that records of this shape do not have. text: None if the record's whole value is
    the line."""

    text: str | None = None
    path: str | None = None
    offset: str | None = None
    host: str | None = None

    def shipped(self, value: bytes | None) -> Shipped | None:
        """Returns the contents of a record's value; None if the value does not have this shape."""
        if value is None:
            return None
        if self.text is None:
            return Shipped(None, None, None, without_end(value))
        try:
            document = json.loads(value)
        except (ValueError, RecursionError):
            return None
        text, offset = found(document, self.text), found(document, self.offset)
        if not isinstance(text, str):
            return None
        return Shipped(
            _text(found(document, self.host)),
            _text(found(document, self.path)),
            _number(offset),
            without_end(text.encode("utf-8", "surrogatepass")),
        )

    def with_names(self, names: Mapping[str, str | None]) -> Shape:
        """Returns a copy of this shape with these names, by field (text, path, offset, host). None
        keeps the field's present name, and an empty name removes the field."""
        given = {field: name or None for field, name in names.items() if name is not None}
        return replace(self, **given)


SHAPES: Final[Mapping[str, Shape]] = {
    "filebeat": Shape("message", "log.file.path", "log.offset", "host.name"),
    "vector": Shape("message", "file", "offset", "host"),
    "fluent-bit": Shape("log", "path"),
    "rsyslog": Shape("message", "path", "offset", "host"),
    "text": Shape(),
}


def without_end(line: bytes) -> bytes:
    """Returns a line without its line feed and carriage return. All shippers remove the line feed,
    but only some remove the carriage return, so both are left out of the comparison."""
    return line.rstrip(b"\r\n")


def found(document: Any, name: str | None) -> Any:
    """Returns the value of the field with this name, or None if the document has no such field. A
    name with dots leads to a nested field, or is itself a key of the document.
    """
    if name is None or not isinstance(document, dict):
        return None
    if name in document:
        return document[name]
    first, _, rest = name.partition(".")
    return found(document.get(first), rest) if rest else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    """Returns the value as a position in a file, or None if the value cannot be a position. A text
    that contains a number is accepted, because templates of shippers write numbers as text."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        number = int(value)
    except ValueError:
        return None
    return number if 0 <= number <= POSITION_MAX else None
