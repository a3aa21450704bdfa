"""Parses lines of key=value pairs (logfmt). `key_values` cuts the lines.

A key belongs to the schema's field of the same name, or to the field that has the key among its
aliases. As in `json_lines`, the last value counts if a line has a key twice. If a line has no key
for a field, the field gets its default or null; if the field has no default and cannot be null, the
line is rejected. The field EXTRA (a map of strings) takes the keys that have no field. EXTRA also
takes a value that does not have the type of its field, if the field may be null. If a field may be
null and is no string, an empty value becomes null.

If a line lacks a key of the event time, the line has no event time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing import unread_times
from skidway.agent.parsing.aliases import Aliases
from skidway.agent.parsing.fieldless import AGAIN
from skidway.agent.parsing.framing import Booleans, Int64s
from skidway.agent.parsing.json_lines import extra_field
from skidway.agent.parsing.key_values import Pairs, pairs_of
from skidway.agent.parsing.parser import (
    ENCODING,
    EXTRA,
    NO_MATCH,
    NO_TIME,
    SCHEMA,
    TIME_MARK,
    Parsed,
    Reject,
    has_time_mark,
)
from skidway.agent.parsing.text_fields import TextTimes, check_type, converted, moments, time_field
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec.arrow import avro_name

_NOBODY: Final = -1


class LogfmtParser:
    """Fills the schema's fields with the values of pairs. defaults: the defaults of those fields
    that have a default. Raises ConfigurationRefused if texts cannot fill the schema.
    """

    def __init__(
        self,
        schema: pa.Schema,
        defaults: Mapping[str, Any],
        times: TextTimes,
        *,
        aliases: Aliases | None = None,
        removed: Collection[str] = (),
    ) -> None:
        """aliases: other names of keys; None if fields have no other names. removed: keys that need
        no field, because a rule of the setting `shape` removes them.
        """
        self._defaults, self._times = defaults, times
        self._names = {} if aliases is None else dict(aliases.names)
        self._removed = removed
        self._has_mark = times.keeps_unreadable and has_time_mark(schema)
        self._extra = extra_field(schema)
        self._time_field = time_field(schema, ()) if times.format is not None else None
        others = {TIME_MARK} if self._has_mark else set()
        others |= {each.name for each in (self._extra, self._time_field) if each is not None}
        self._fields = []
        for field in schema:
            if field.name in others or (field.name in defaults and not _is_text(field)):
                continue
            check_type(field)
            self._fields.append(field)
        if not self._fields and self._extra is None:
            raise ConfigurationRefused("the schema has no field that a key could fill")

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines that can be cut into pairs whose values fit the schema, and
        rejects of the others."""
        strings, not_utf8 = line_columns.text(lines)
        rejects = [Reject(int(row), ENCODING, "the line is not UTF-8") for row in not_utf8]
        pairs = pairs_of(strings)
        good = np.array(strings.is_valid())
        good[list(pairs.faults)] = False
        rejects += [Reject(row, NO_MATCH, detail) for row, detail in pairs.faults.items()]
        index = _Index(pairs, len(strings), self._names)
        columns = [self._column(field, index, good, rejects) for field in self._fields]
        event_ms = self._event_ms(index, good, now_ms, rejects)
        names = [field.name for field in self._fields]
        if self._time_field is not None:
            names.append(self._time_field.name)
            columns.append(moments(event_ms, self._time_field, now_ms))
        if self._extra is not None:
            names.append(EXTRA)
            columns.append(index.others(self._extra.type))
        if self._has_mark:
            names.append(TIME_MARK)
            columns.append(pa.array(event_ms == NO_TIME))
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        rows = np.flatnonzero(good)
        fieldless = index.fieldless(good, self._removed)
        taken = batch.take(pa.array(rows))
        return Parsed(rows, taken, event_ms[rows], rejects, fieldless=fieldless)

    def _column(
        self, field: pa.Field, index: _Index, good: Booleans, rejects: list[Reject]
    ) -> pa.Array:
        """Returns the values of a field, one for each line. If a line must be rejected because the
        field's value is missing or does not fit, changes `good` and adds to `rejects`.
        """
        texts, missing = index.take(field.name)
        column, unfit = converted(texts, field)
        if unfit is not None and unfit.any():
            if field.nullable and self._extra is not None:
                index.give_back(field.name, unfit)
            else:
                detail = f"field {field.name}: not a value of {avro_name(field.type)}"
                _reject(np.flatnonzero(unfit & good), SCHEMA, detail, good, rejects)
        default = self._defaults.get(field.name)
        if default is not None and missing.any():
            column = pc.if_else(pa.array(missing), pa.scalar(default, field.type), column)
        elif not field.nullable:
            empty = missing & good
            detail = f"field {field.name}: the line has no such key"
            _reject(np.flatnonzero(empty), SCHEMA, detail, good, rejects)
        return column

    def _event_ms(
        self, index: _Index, good: Booleans, now_ms: int, rejects: list[Reject]
    ) -> Int64s:
        form = self._times.format
        if form is None:
            return np.full(len(good), NO_TIME)
        pieces = [index.texts(name) for name in self._times.fields]
        joined = pc.binary_join_element_wise(*pieces, " ") if len(pieces) > 1 else pieces[0]
        event_ms, is_time = form.parse(joined, now_ms)
        if not self._times.keeps_unreadable:
            unreadable = good & ~is_time & np.asarray(joined.is_valid())
            rows = np.flatnonzero(unreadable)
            rejects += unread_times.rejects(form, self._times.fields, joined, rows, now_ms)
            good &= ~unreadable
        for name in self._times.fields:
            index.use(name, is_time)
        return np.where(is_time, event_ms, NO_TIME)


def _is_text(field: pa.Field) -> bool:
    kinds = (types.is_string, types.is_integer, types.is_floating, types.is_boolean)
    return any(kind(field.type) for kind in kinds)


def _reject(rows: Int64s, reason: str, detail: str, good: Booleans, rejects: list[Reject]) -> None:
    rejects += [Reject(row, reason, detail) for row in rows.tolist()]
    good[rows] = False


class _Index:
    """Finds the pairs of lines by key, and remembers which pairs belong to no field yet. (A field
    *takes* a pair if its value comes from the pair.)"""

    def __init__(self, pairs: Pairs, count: int, aliases: Mapping[str, str]) -> None:
        self._pairs, self._count = pairs, count
        encoded = pairs.keys.dictionary_encode()
        self._codes = np.asarray(encoded.indices)
        self._code = {key: code for code, key in enumerate(encoded.dictionary.to_pylist())}
        self._aliases: dict[str, list[str]] = {}
        for alias, name in aliases.items():
            self._aliases.setdefault(name, []).append(alias)
        self._is_free = np.ones(len(self._codes), np.bool_)
        self._again: list[Int64s] = []

    def take(self, name: str) -> tuple[pa.StringArray, Booleans]:
        """Returns the texts of a field, one for each line, and which lines have no text for it. If
        a line has both the field's name and one of its aliases as keys, the field takes the pair
        with the name, and the other pair belongs to no field.
        """
        at = self._places(name)
        missing = at == _NOBODY
        self._is_free[at[~missing]] = False
        for key in (name, *self._aliases.get(name, ())):
            self._note_again(np.flatnonzero(self._codes == self._code.get(key, _NOBODY)))
        return self._pairs.values.take(pa.array(at, mask=missing)), missing

    def texts(self, name: str) -> pa.StringArray:
        """Returns the texts of a key or field, one for each line. Unlike `take`, does not note the
        pairs as taken."""
        at = self._places(name)
        return self._pairs.values.take(pa.array(at, mask=at == _NOBODY))

    def use(self, name: str, lines: Booleans) -> None:
        """Notes that in the given lines the event time comes from the pair of a key or field."""
        at = self._places(name)[lines]
        self._is_free[at[at != _NOBODY]] = False

    def give_back(self, name: str, lines: Booleans) -> None:
        """Notes that in the given lines the field `name` does not take its pair after all, because
        the pair's value does not fit the field's type."""
        self._is_free[self._places(name)[lines]] = True

    def others(self, kind: pa.DataType) -> pa.Array:
        """Takes the pairs that no field has taken. Returns them as a map for each line, sorted by
        key."""
        free = np.flatnonzero(self._is_free)
        self._is_free[free] = False
        keys = sorted(self._code)
        rank = np.empty(len(keys), np.int64)
        rank[[self._code[key] for key in keys]] = np.arange(len(keys))
        place = self._pairs.line[free] * len(keys) + rank[self._codes[free]]
        order = np.argsort(place, kind="stable")
        place, free = place[order], free[order]
        is_last = np.append(place[1:] != place[:-1], np.ones(min(len(place), 1), np.bool_))
        taken = free[is_last]
        self._again.append(free[~is_last])
        offsets = np.searchsorted(self._pairs.line[taken], np.arange(self._count + 1))
        at = pa.array(taken)
        return pa.MapArray.from_arrays(
            pa.array(offsets, pa.int32()), self._pairs.keys.take(at), self._pairs.values.take(at)
        ).cast(kind)

    def fieldless(self, good: Booleans, removed: Collection[str]) -> dict[str, int]:
        """Returns, for each key of a pair that nothing has taken, the number of the good lines with
        such pairs. Leaves out the keys `removed`."""
        free = np.flatnonzero(self._is_free)
        again = np.concatenate((free[:0], *self._again))
        return {
            name.format(key): count
            for name, pairs in (("{}", free), (AGAIN, again))
            for key, count in self._lines_of(pairs, good)
            if key not in removed
        }

    def _lines_of(self, pairs: Int64s, good: Booleans) -> Iterable[tuple[str, int]]:
        pairs = pairs[good[self._pairs.line[pairs]]]
        if not len(pairs):
            return
        keys = list(self._code)
        of_lines = np.sort(self._pairs.line[pairs] * len(keys) + self._codes[pairs], kind="stable")
        of_lines = of_lines[np.append(True, of_lines[1:] != of_lines[:-1])]
        counts = np.bincount(of_lines % len(keys), minlength=len(keys))
        yield from ((keys[code], int(counts[code])) for code in np.flatnonzero(counts).tolist())

    def _note_again(self, pairs: Int64s) -> None:
        """Notes the pairs of one key, without the last of each line: only the last counts."""
        line = self._pairs.line[pairs]
        again = pairs[:-1][line[1:] == line[:-1]]
        self._is_free[again] = False
        self._again.append(again)

    def _places(self, name: str) -> Int64s:
        at = np.full(self._count, _NOBODY, np.int64)
        for key in (*self._aliases.get(name, ()), name):
            if key in self._code:
                found = np.flatnonzero(self._codes == self._code[key])
                at[self._pairs.line[found]] = found  # of equal keys, the last counts
        return at
