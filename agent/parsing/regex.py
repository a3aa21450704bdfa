r"""Parses lines with a regular expression (RE2). The expression must match the whole line, and its
named groups are the fields.

Groups are strings. If a group's field is a number or a boolean in the schema, the parser converts
the string, and rejects the line if the string cannot be converted. If a group took no part in the
match, its string is empty. In a field that is not a string and may be null, an empty string becomes
null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing import delimited
from skidway.agent.parsing import (
    lines as line_columns,
)
from skidway.agent.parsing.delimited import Found
from skidway.agent.parsing.derived import TIME_FIELDS
from skidway.agent.parsing.parser import (
    ENCODING,
    NO_MATCH,
    NO_TIME,
    SCHEMA,
    TIME_MARK,
    TIMESTAMP,
    Int64s,
    Parsed,
    Reject,
    has_time_mark,
)
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused

_CONVERTIBLE = (types.is_integer, types.is_floating, types.is_boolean)


def groups_of(pattern: str) -> list[str]:
    """The named groups of a pattern, in order. Raises ConfigurationRefused if RE2 refuses the
    pattern, or if the groups have no names or equal names."""
    nothing = pa.array([], pa.string())
    try:
        pc.extract_regex(nothing, pattern)  # unanchored, so that RE2's error does not quote anchors
        extracted = pc.extract_regex(nothing, anchored(pattern))
    except pa.ArrowInvalid as error:
        raise ConfigurationRefused(f"parser.pattern {pattern!r}: {_sentence(error)}") from error
    names = [field.name for field in extracted.type]
    if not names:
        raise ConfigurationRefused(
            f"parser.pattern {pattern!r} has no named group such as (?P<message>.*)"
        )
    if len(set(names)) < len(names):
        raise ConfigurationRefused(f"parser.pattern {pattern!r} has two groups of the same name")
    return names


def anchored(pattern: str) -> str:
    """The same pattern, extended so that it matches whole lines only."""
    return rf"\A(?:{pattern})\z"


class RegexParser:
    """One compiled expression. Raises ConfigurationRefused if the schema and the groups do not fit
    together.
    """

    def __init__(
        self,
        pattern: str,
        schema: pa.Schema,
        has_default: frozenset[str],
        time_fields: Sequence[str] = (),
        time_format: TimeFormat | None = None,
        *,
        is_multiline: bool = False,
        keeps_unreadable: bool = False,
    ) -> None:
        """is_multiline: whether a record may have several lines; `.` then matches line ends.
        keeps_unreadable: whether a line whose time cannot be read becomes a row without an event
        time, and is not rejected.
        """
        self._pattern = anchored(f"(?s){pattern}" if is_multiline else pattern)
        self._delimited = delimited.compiled(pattern, dot_all=is_multiline)
        groups = groups_of(pattern)
        unknown = [name for name in time_fields if name not in groups]
        if unknown:
            raise ConfigurationRefused(
                f"timestamp.fields names {unknown[0]!r}, which is no group of parser.pattern"
            )
        if keeps_unreadable and TIME_MARK in groups:
            raise ConfigurationRefused(
                f"parser.pattern has a group {TIME_MARK!r}, which on_error: read_time fills itself"
            )
        self._time_fields, self._time_format = list(time_fields), time_format
        self._groups = [field for field in schema if field.name in groups]
        self._time_field = _time_field(schema, groups) if time_format is not None else None
        for field in self._groups:
            _check_type(field)
        self._keeps_unreadable = keeps_unreadable
        self._has_mark = keeps_unreadable and has_time_mark(schema)
        filled = {field.name for field in self._groups} | has_default
        if self._time_field is not None:
            filled.add(self._time_field.name)
        missing = [field.name for field in schema if field.name not in filled]
        if missing:
            raise ConfigurationRefused(
                f"the schema's field {missing[0]!r} is no group of parser.pattern "
                "and has no default"
            )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines that match and whose groups can be converted."""
        strings, not_utf8 = line_columns.text(lines)
        rejects = [Reject(int(row), ENCODING, "the line is not UTF-8") for row in not_utf8]
        found = self._find(strings)
        matched = found.matched
        if not matched.all():
            unmatched = np.flatnonzero(~matched & np.asarray(strings.is_valid()))
            rejects += [Reject(int(row), NO_MATCH, _NO_MATCH_DETAIL) for row in unmatched]
        return self._rows(found.columns, matched, now_ms, rejects)

    def _find(self, lines: pa.StringArray) -> Found:
        if self._delimited is not None and len(lines):
            return self._delimited.find(lines)
        found = pc.extract_regex(lines, self._pattern)
        columns = {field.name: found.field(field.name) for field in found.type}
        return Found(columns, np.asarray(found.is_valid()))

    def _rows(
        self,
        found: Mapping[str, pa.StringArray],
        good: np.ndarray,
        now_ms: int,
        rejects: list[Reject],
    ) -> Parsed:
        columns = []
        for field in self._groups:
            column, unfit = _converted(found[field.name], field)
            if unfit is not None:
                bad = np.flatnonzero(unfit & good)
                detail = f"field {field.name}: not a value of {field.type}"
                rejects += [Reject(int(row), SCHEMA, detail) for row in bad]
                good = good & ~unfit
            columns.append(column)
        event_ms = np.full(len(good), NO_TIME)
        if self._time_format is not None:
            event_ms, good = self._times(found, good, now_ms, rejects)
        names = [field.name for field in self._groups]
        if self._time_field is not None:
            names.append(self._time_field.name)
            columns.append(_moments(event_ms, self._time_field, now_ms))
        if self._has_mark:
            names.append(TIME_MARK)
            columns.append(pa.array(event_ms == NO_TIME))
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        if good.all():
            return Parsed(np.arange(len(good)), batch, event_ms, rejects)
        rows = np.flatnonzero(good)
        return Parsed(rows, batch.take(pa.array(rows)), event_ms[rows], rejects)

    def _times(
        self,
        found: Mapping[str, pa.StringArray],
        good: np.ndarray,
        now_ms: int,
        rejects: list[Reject],
    ) -> tuple[Int64s, np.ndarray]:
        assert self._time_format is not None
        pieces = [found[name] for name in self._time_fields]
        joined = pc.binary_join_element_wise(*pieces, " ") if len(pieces) > 1 else pieces[0]
        event_ms, parsed = self._time_format.parse(joined, now_ms)
        if self._keeps_unreadable:
            return np.where(parsed, event_ms, NO_TIME), good
        bad = np.flatnonzero(good & ~parsed)
        detail = f"{' '.join(self._time_fields)}: not a time of timestamp.format"
        rejects += [Reject(int(row), TIMESTAMP, detail) for row in bad]
        return event_ms, good & parsed


_NO_MATCH_DETAIL = "the line does not match parser.pattern"


def _time_field(schema: pa.Schema, groups: Sequence[str]) -> pa.Field | None:
    for name in TIME_FIELDS:
        at = schema.get_field_index(name)
        if name not in groups and at >= 0 and types.is_timestamp(schema.field(at).type):
            return schema.field(at)
    return None


def _check_type(field: pa.Field) -> None:
    if types.is_string(field.type) or any(kind(field.type) for kind in _CONVERTIBLE):
        return
    raise ConfigurationRefused(
        f"a group cannot fill the schema's field {field.name!r} of type {field.type}; "
        "groups are strings, numbers or booleans"
    )


def _converted(column: pa.StringArray, field: pa.Field) -> tuple[pa.Array, np.ndarray | None]:
    """Returns the column in the field's type, and the rows that cannot be converted. These rows are
    null in the column.
    """
    if types.is_string(field.type):
        return column, None
    if field.nullable:
        column = pc.if_else(pc.equal(column, ""), None, column)
    try:
        return column.cast(field.type), None
    except pa.ArrowInvalid:
        unfit = np.zeros(len(column), np.bool_)
        _mark_unfit(column, field.type, 0, unfit)
        return pc.if_else(pa.array(unfit), None, column).cast(field.type), unfit


def _mark_unfit(column: pa.Array, target: pa.DataType, start: int, unfit: np.ndarray) -> None:
    """Marks the values that cannot be converted. Halves the column repeatedly, so that it finds a
    few unfit values among many with few casts.
    """
    try:
        column.cast(target)
    except pa.ArrowInvalid:
        half = len(column) // 2
        if half == 0:
            unfit[start] = True
            return
        _mark_unfit(column.slice(0, half), target, start, unfit)
        _mark_unfit(column.slice(half), target, start + half, unfit)


def _moments(event_ms: Int64s, field: pa.Field, now_ms: int) -> pa.Array:
    event_ms = np.where(event_ms == NO_TIME, np.int64(now_ms), event_ms)
    return pa.array(event_ms, pa.timestamp("ms", "UTC")).cast(field.type, safe=False)


def _sentence(error: pa.ArrowInvalid) -> str:
    text = str(error)
    if "unnamed groups" in text:
        return "a group without a name; write (?:...) for a group that is no field"
    return text
