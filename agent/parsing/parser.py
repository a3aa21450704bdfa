"""The interface of parsers. A parser turns each line into either a row or a reject."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.framing import Int64s as Int64s
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

NO_TIME: Final = np.int64(-(1 << 63))
"""This value in `Parsed.event_ms` says that the line has no event time. The record then gets the
time at which the line was read.
"""

NO_MATCH: Final = "no-match"
NOT_JSON: Final = "not-json"
SCHEMA: Final = "schema"
ENCODING: Final = "encoding"
TOO_LONG: Final = "too-long"
TIMESTAMP: Final = "timestamp"
ZONE: Final = "zone"
NUL_BYTES: Final = "nul-bytes"
REASONS: Final = (NO_MATCH, NOT_JSON, SCHEMA, ENCODING, TOO_LONG, TIMESTAMP, ZONE, NUL_BYTES)

DETAIL_CHARACTERS_MAX: Final = 500

TIME_MARK: Final = "timestamp_replaced"
"""With `timestamp.on_error: read_time`, a boolean field of this name is true in each record whose
time is missing or could not be read.
"""

EXTRA: Final = "_extra"
"""The name of the field for members and keys that have no field of their own or do not fit it
(`skidway.schemas.inference.naming` has the same name, which parsers do not import)."""


@dataclass(frozen=True, slots=True)
class Reject:
    """A line from which no row can be made. row: the line's index among the parsed lines. reason:
    one of REASONS, or of left_out.LEFT_OUT if the line is left out. detail: a sentence about the
    error in the line.
    """

    row: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The rows and rejects that a parser has made of lines.

    rows: for each row of `batch` the index of its line, in rising order. event_ms: for each row of
    `batch` the event time of its line; NO_TIME if the line has none. rejects: the other lines, in
    any order. coloured: from how many lines codes for terminals were taken. fieldless: for each
    name of a member or key for which the schema has no field, the number of rows that lack it (see
    module fieldless).
    """

    rows: Int64s
    batch: pa.RecordBatch
    event_ms: Int64s
    rejects: list[Reject]
    coloured: int = 0
    fieldless: Mapping[str, int] = field(default_factory=dict)


class Parser(Protocol):
    """Makes rows of lines, for one source."""

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses lines. Each line becomes either a row or a reject."""
        ...


def has_time_mark(schema: pa.Schema) -> bool:
    """Whether the schema has the field TIME_MARK, which marks records whose time could not be read.
    Raises ConfigurationRefused if the field is not a boolean.
    """
    at = int(schema.get_field_index(TIME_MARK))
    if at >= 0 and not types.is_boolean(schema.field(at).type):
        raise ConfigurationRefused(
            f"on_error: read_time fills the schema's field {TIME_MARK!r}, which must be a boolean"
        )
    return at >= 0


def in_places(parsed: Parsed, places: Int64s) -> Parsed:
    """Takes the result of parsing only some of the lines. In this result, these lines are numbered
    from 0. Returns the same result, but with the number that each line has among all lines. places:
    for each parsed line, its number among all lines.
    """
    rejects = [Reject(int(places[r.row]), r.reason, r.detail) for r in parsed.rejects]
    return replace(parsed, rows=places[parsed.rows], rejects=rejects)
