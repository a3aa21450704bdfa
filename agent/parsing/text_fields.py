"""Makes the fields of rows from the texts that a parser has cut out of lines: converts the texts to
the types of the schema's fields, and finds the event time in the texts.

If a field is a number or a boolean in the schema, the text is converted, and the line is rejected
if the text cannot be converted. In a field that is not a string and may be null, an empty text
becomes null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing import unread_times
from skidway.agent.parsing.derived import TIME_FIELDS
from skidway.agent.parsing.parser import (
    NO_TIME,
    SCHEMA,
    TIME_MARK,
    Int64s,
    Parsed,
    Reject,
    has_time_mark,
)
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec.arrow import avro_name
from skidway.schemas.codec.conform import checked_cast

_CONVERTIBLE = (types.is_integer, types.is_floating, types.is_boolean)


@dataclass(frozen=True, slots=True)
class TextTimes:
    """The names of the texts that have a line's event time, and the time's format, which is None if
    lines have no time. keeps_unreadable: whether a line whose time cannot be read becomes a row
    without an event time, instead of a reject. is_padded: whether these texts may have blanks
    around them, which are no part of the time.
    """

    fields: tuple[str, ...] = ()
    format: TimeFormat | None = None
    keeps_unreadable: bool = False
    is_padded: bool = False


class TextFields:
    """The fields of a schema that are filled with texts. Raises ConfigurationRefused if the texts
    cannot fill the schema.
    """

    def __init__(
        self,
        schema: pa.Schema,
        names: Sequence[str],
        has_default: frozenset[str],
        times: TextTimes,
        *,
        source: str,
    ) -> None:
        """names: the names of the groups or columns whose texts the parser cuts out of a line.
        has_default: the schema's fields with a default, which need no text. source: what error
        messages call a text, such as "group of parser.pattern".
        """
        unknown = [name for name in times.fields if name not in names]
        if unknown:
            raise ConfigurationRefused(
                f"timestamp.fields names {unknown[0]!r}, which is no {source}"
            )
        if times.keeps_unreadable and TIME_MARK in names:
            raise ConfigurationRefused(
                f"{TIME_MARK!r} is a {source}, but on_error: read_time fills this field itself"
            )
        self._times = times
        self._from_texts = [field for field in schema if field.name in names]
        self._time_field = time_field(schema, names) if times.format is not None else None
        for field in self._from_texts:
            check_type(field)
        self._has_mark = times.keeps_unreadable and has_time_mark(schema)
        filled = {field.name for field in self._from_texts} | has_default
        if self._time_field is not None:
            filled.add(self._time_field.name)
        missing = [field.name for field in schema if field.name not in filled]
        if missing:
            raise ConfigurationRefused(
                f"the schema's field {missing[0]!r} is no {source} and has no default"
            )
        if not self._from_texts:
            raise ConfigurationRefused(f"no field of the schema is a {source}")

    def rows(
        self,
        found: Mapping[str, pa.StringArray],
        good: np.ndarray,
        now_ms: int,
        rejects: list[Reject],
    ) -> Parsed:
        """Makes rows of texts.

        found: the texts of each field, one for each line. good: which lines have texts, because the
        parser could cut them. rejects: a reject for each of the other lines; the result also
        contains these rejects.
        """
        columns = []
        for field in self._from_texts:
            column, unfit = converted(found[field.name], field)
            if unfit is not None:
                bad = np.flatnonzero(unfit & good)
                detail = f"field {field.name}: not a value of {avro_name(field.type)}"
                rejects += [Reject(int(row), SCHEMA, detail) for row in bad]
                good = good & ~unfit
            columns.append(column)
        event_ms = np.full(len(good), NO_TIME)
        if self._times.format is not None:
            event_ms, good = self._moments(found, good, now_ms, rejects)
        names = [field.name for field in self._from_texts]
        if self._time_field is not None:
            names.append(self._time_field.name)
            columns.append(moments(event_ms, self._time_field, now_ms))
        if self._has_mark:
            names.append(TIME_MARK)
            columns.append(pa.array(event_ms == NO_TIME))
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        if good.all():
            return Parsed(np.arange(len(good)), batch, event_ms, rejects)
        rows = np.flatnonzero(good)
        return Parsed(rows, batch.take(pa.array(rows)), event_ms[rows], rejects)

    def _moments(
        self,
        found: Mapping[str, pa.StringArray],
        good: np.ndarray,
        now_ms: int,
        rejects: list[Reject],
    ) -> tuple[Int64s, np.ndarray]:
        assert self._times.format is not None
        pieces = [found[name] for name in self._times.fields]
        joined = _joined(pieces)
        event_ms, parsed = self._times.format.parse(joined, now_ms)
        if self._times.is_padded and not parsed.all():
            bad = np.flatnonzero(~parsed)
            joined = _joined([pc.utf8_trim_whitespace(piece) for piece in pieces])
            event_ms[bad], parsed[bad] = self._times.format.parse(
                joined.take(pa.array(bad)), now_ms
            )
        if self._times.keeps_unreadable:
            return np.where(parsed, event_ms, NO_TIME), good
        bad = np.flatnonzero(good & ~parsed)
        rejects += unread_times.rejects(self._times.format, self._times.fields, joined, bad, now_ms)
        return event_ms, good & parsed


def _joined(pieces: Sequence[pa.StringArray]) -> pa.StringArray:
    return pc.binary_join_element_wise(*pieces, " ") if len(pieces) > 1 else pieces[0]


def time_field(schema: pa.Schema, names: Sequence[str]) -> pa.Field | None:
    """Returns the schema's field for the parsed time; None if there is none. names: the names of
    the texts that are cut out of a line. A field with one of these names takes such a text, and so
    is not the field for the parsed time.
    """
    for name in TIME_FIELDS:
        at = schema.get_field_index(name)
        if name not in names and at >= 0 and types.is_timestamp(schema.field(at).type):
            return schema.field(at)
    return None


def check_type(field: pa.Field) -> None:
    """Raises ConfigurationRefused if no text can be converted to the field's type."""
    if types.is_string(field.type) or any(kind(field.type) for kind in _CONVERTIBLE):
        return
    raise ConfigurationRefused(
        f"a text cannot fill the schema's field {field.name!r} of type "
        f"{avro_name(field.type)}; the parser fills strings, numbers and booleans"
    )


def converted(column: pa.StringArray, field: pa.Field) -> tuple[pa.Array, np.ndarray | None]:
    """Returns the column in the field's type, and a mask of the rows that cannot be converted. In
    these rows, the column is null. The mask is None if all rows can be converted.
    """
    if types.is_string(field.type):
        return column, None
    if field.nullable:
        column = pc.if_else(pc.equal(column, ""), None, column)
    numbers, unfit = checked_cast(column, field.type)
    if types.is_floating(field.type) and pc.any(pc.is_inf(numbers)).as_py():
        # Arrow makes infinity of digits that are too large for the type. A text may also say `inf`.
        large = pc.and_(pc.is_inf(numbers), pc.match_substring_regex(column, "[0-9]"))
        large = np.asarray(large.fill_null(False))
        numbers = pc.if_else(pa.array(large), None, numbers)
        unfit = large if unfit is None else unfit | large
    return numbers, unfit


def moments(event_ms: Int64s, field: pa.Field, now_ms: int) -> pa.Array:
    """Returns event times in the field's type. For a line without an event time (NO_TIME), returns
    `now_ms`, the moment of reading."""
    event_ms = np.where(event_ms == NO_TIME, np.int64(now_ms), event_ms)
    return pa.array(event_ms, pa.timestamp("ms", "UTC")).cast(field.type, safe=False)
