"""Reads repaired records from the files with which they are sent again (replayed). Each line of
such a file is a JSON object. It contains a repaired record, and the origin of the rejected record:

    {"topic": "nginx", "line": "text", "host": "web1", "path": "/var/log/a.log",
     "agent": 5, "file": 7, "first": 4096, ...}

"line_base64" stands for "line" if the record is not UTF-8. agent, file and first are the origin of
the rejected record. The rejected record may itself have been a replayed one, which was rejected
again. Then original_agent, original_file and original_first are the origin of the record that was
rejected first. This module ignores other members. `skidway rejected export` makes such lines, and
`skidway agent replay` makes files of them.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.added_fields import AddedFields
from skidway.agent.parsing.parser import NO_MATCH, Parsed, Parser, Reject, in_places
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
    """A repaired record. key: the origin (agent, file, first byte) of the rejected record.
    original: the origin of the record that was rejected first.
    """

    topic: str
    line: bytes
    host: str
    path: str
    key: tuple[int, int, int]
    original: tuple[int, int, int]

    def text(self) -> bytes:
        """The envelope as one line of a replay's file. Equal envelopes give the same bytes."""
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
    """Reads a line of a replay's file; None if the line has not the form of such a line."""
    try:
        document = json.loads(line)
        topic, host, path = (_text(document[name]) for name in ("topic", "host", "path"))
        key = _numbers(document[name] for name in ORIGIN)
        originals = [document.get(name) for name in FIELDS]
        original = key if None in originals else _numbers(originals)
        return Envelope(topic, _line_of(document), host, path, key, original)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


class ReplayParser:
    """Hands repaired records to the parser of their source, and adds the origin of the record that
    was rejected first. Fields that come from a path are found in the path of the rejected record.
    """

    def __init__(self, inner: Parser, schema: pa.Schema, added: AddedFields) -> None:
        self._inner, self._added = inner, added
        self._fields = [(at, f) for at, f in enumerate(map(_of(schema), FIELDS)) if f is not None]
        for _, field in self._fields:
            if not types.is_int64(field.type) or not field.nullable:
                raise ConfigurationRefused(
                    f"replay: the schema's field {field.name!r} takes a number of the original "
                    'origin; it must be of the type ["null", "long"]'
                )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the records in envelopes."""
        found = [read(line) for line in lines.to_pylist()]
        good = [row for row, each in enumerate(found) if each is not None]
        rejects = [Reject(row, NO_MATCH, _DETAIL) for row, each in enumerate(found) if each is None]
        envelopes = [each for each in found if each is not None]
        texts = pa.array([each.line for each in envelopes], pa.binary())
        parsed = self._inner.parse(texts, now_ms)
        rows = [envelopes[row] for row in parsed.rows.tolist()]
        batch = self._added.add(parsed.batch, [each.path for each in rows], np.arange(len(rows)))
        for at, field in self._fields:
            column = pa.array([each.original[at] for each in rows], pa.int64())
            batch = batch.append_column(field.name, column)
        parsed = in_places(
            Parsed(parsed.rows, batch, parsed.event_ms, parsed.rejects), np.array(good, np.int64)
        )
        return Parsed(parsed.rows, parsed.batch, parsed.event_ms, rejects + parsed.rejects)


def without_fields(schema: pa.Schema) -> pa.Schema:
    """The schema without FIELDS."""
    return pa.schema([field for field in schema if field.name not in FIELDS])


def _of(schema: pa.Schema) -> Any:
    def field(name: str) -> pa.Field | None:
        at = schema.get_field_index(name)
        return None if at < 0 else schema.field(at)

    return field


def _line_of(document: dict[str, Any]) -> bytes:
    if "line" in document:
        return _text(document["line"]).encode()
    return base64.b64decode(_text(document["line_base64"]), validate=True)


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
