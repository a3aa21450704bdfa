"""Reads repaired records from the files with which `skidway agent replay` sends them again. Each
line of such a file is a JSON object. The object contains a repaired record, and the origin of the
rejected record:

    {"topic": "nginx", "line": "text", "host": "web1", "path": "/var/log/a.log",
     "agent": 5, "file": 7, "first": 4096, ...}

"line" is text. "line_base64" is the record's bytes, in the encoding of the source; UTF-16 begins
with a byte order mark. If a line of the file has both members, somebody may have edited "line": if
its UTF-8 bytes are not those of "line_base64", the parser takes "line". agent, file and first are
the origin of the rejected record. If that record was itself replayed, original_agent, original_file
and original_first are the origin of the record that was rejected first. Other members are ignored.
`skidway rejected export` makes such lines, and `skidway agent replay` makes files of them. These
files have "line_base64" only.
"""

from __future__ import annotations

import base64
import json
from dataclasses import field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.added_fields import AddedFields
from skidway.agent.parsing.byte_order import UTF_16, UTF_16LE, in_order
from skidway.agent.parsing.parser import NO_MATCH, Parsed, Parser, Reject, in_places
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

ORIGIN: Final = ("agent", "file", "first")
FIELDS: Final = ("original_agent", "original_file", "original_first")
"""The schema's fields for the origin of the record that was rejected first. In a record that was
never rejected, these fields are null.
"""

_NUMBERS_END: Final = 1 << 63
_DETAIL: Final = "the line is no line of a replay: skidway agent replay makes such lines"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A repaired record with its origins: a line of a replay's file, as a value. key: the origin
    (agent, file, first byte) of the rejected record. original: the origin of the record that was
    rejected first. is_text: whether the record's bytes come from the member "line"; then they are
    UTF-8, even if the source has another encoding.
    """

    topic: str
    line: bytes
    host: str
    path: str
    key: tuple[int, int, int]
    original: tuple[int, int, int]
    is_text: bool = field(default=False, compare=False)

    def line_in(self, encoding: str) -> bytes | None:
        """Returns the record's bytes in the encoding of its source, without a byte order mark.
        Returns None if this encoding does not have all characters of the text.
        """
        if not self.is_text:
            return in_order(self.line, encoding)
        text, codec = self.line.decode(), UTF_16LE if encoding == UTF_16 else encoding
        try:
            line = text.encode(codec)
            return line if line.decode(codec) == text else None
        except UnicodeError:
            return None

    def text(self) -> bytes:
        """Returns the repaired record, with its origins, as one line of a replay's file."""
        document: dict[str, Any] = {
            "topic": self.topic,
            "line_base64": base64.b64encode(self.line).decode(),
            "host": self.host,
            "path": self.path,
            **dict(zip(ORIGIN, self.key, strict=True)),
            **dict(zip(FIELDS, self.original, strict=True)),
        }
        return json.dumps(document).encode()


def read(line: bytes) -> Envelope | None:
    """Reads a line of a replay's file. Returns None if the line is not JSON, or if one of its
    members is missing or has a wrong value."""
    try:
        document = json.loads(line)
        topic, host, path = (_text(document[name]) for name in ("topic", "host", "path"))
        key = _numbers(document[name] for name in ORIGIN)
        originals = [document.get(name) for name in FIELDS]
        original = key if None in originals else _numbers(originals)
        line, is_text = _line_of(document)
        return Envelope(topic, line, host, path, key, original, is_text)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class ReplayParser:
    """Parses repaired records with the parser of their source, and adds to each row the origin of
    the record that was rejected first. Fields that come from a path are taken from the rejected
    record's path.
    """

    def __init__(self, inner: Parser, schema: pa.Schema, added: AddedFields, encoding: str) -> None:
        self._inner, self._added, self._encoding = inner, added, encoding
        self._fields = [(at, f) for at, f in enumerate(map(_of(schema), FIELDS)) if f is not None]
        for _, own in self._fields:
            if not types.is_int64(own.type) or not own.nullable:
                raise ConfigurationRefused(
                    f"replay: the schema's field {own.name!r} takes a number of the original "
                    'origin; it must be of the type ["null", "long"]'
                )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the repaired records that the lines contain."""
        good, envelopes, raw = [], [], []
        rejects = []
        for row, each in enumerate(map(read, lines.to_pylist())):
            line = None if each is None else each.line_in(self._encoding)
            if each is None or line is None:
                rejects.append(Reject(row, NO_MATCH, _DETAIL))
            else:
                good.append(row)
                envelopes.append(each)
                raw.append(line)
        texts = pa.array(raw, pa.binary())
        parsed = self._inner.parse(texts, now_ms)
        rows = [envelopes[row] for row in parsed.rows.tolist()]
        batch = self._added.add(parsed.batch, [each.path for each in rows], np.arange(len(rows)))
        for at, own in self._fields:
            column = pa.array([each.original[at] for each in rows], pa.int64())
            batch = batch.append_column(own.name, column)
        parsed = in_places(replace(parsed, batch=batch), np.array(good, np.int64))
        return replace(parsed, rejects=rejects + parsed.rejects)


def without_fields(schema: pa.Schema) -> pa.Schema:
    """Returns the schema without FIELDS (the fields for the origin of the record that was rejected
    first)."""
    return pa.schema([field for field in schema if field.name not in FIELDS])


def _of(schema: pa.Schema) -> Any:
    def field(name: str) -> pa.Field | None:
        at = schema.get_field_index(name)
        return None if at < 0 else schema.field(at)

    return field


def _line_of(document: dict[str, Any]) -> tuple[bytes, bool]:
    """Returns the repaired line, and whether it comes from the member "line" (as UTF-8), not from
    "line_base64"."""
    coded = document.get("line_base64")
    raw = None if coded is None else base64.b64decode(_text(coded), validate=True)
    line = _text(document["line"]).encode() if raw is None or "line" in document else raw
    return line, line != raw


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(value)
    return value


def _numbers(values: Any) -> tuple[int, int, int]:
    agent, file, first = values
    for number in (agent, file, first):
        if type(number) is not int or not 0 <= number < _NUMBERS_END:
            raise ValueError(number)
    return agent, file, first
