"""Parses lines that are one JSON object each. The members of the object fill the fields of the
schema.

A member is found by the name of its field, or by one of the field's aliases. If the schema has a
field `_extra` (a map of strings), this field takes the members that have no field of their own, by
place (see module fieldless). If the schema has no such field, these members are left out, and
counted by name. If a value does not have the type of its field, and this field may be null,
`_extra` takes the value, and the field becomes null. If the field may not be null, or if there is
no field `_extra`, the line is rejected. In `_extra`, strings stay as they are, and other values are
written as JSON. If the object has no member for a field, the field gets its default, or null if it
has no default. If this field may not be null, the press rejects the line when it encodes the row.
Values must have the field's type: the parser turns no string into a number, and no fraction into an
integer. The value of a date or time is a number, as Avro stores it, or a text (see module
json_times). Numbers that JSON does not have (NaN, Infinity) are refused, and so are numbers that
are too large for a double (1e400).

The parser decodes each line separately, so that the result for a line never depends on other lines.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, compress
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing import misfits, unread_times
from skidway.agent.parsing.aliases import Aliases, renamed
from skidway.agent.parsing.fieldless import known_members
from skidway.agent.parsing.json_columns import MISSING, column
from skidway.agent.parsing.json_times import strings_of
from skidway.agent.parsing.parser import (
    ENCODING,
    EXTRA,
    NO_TIME,
    NOT_JSON,
    SCHEMA,
    TIME_MARK,
    Int64s,
    Parsed,
    Reject,
    has_time_mark,
)
from skidway.agent.parsing.time_members import member, path_of
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec.arrow import avro_name

DEPTH_MAX = 200
"""In a line, objects and arrays may be nested at most this deep."""


class JsonParser:
    """Fills the schema's fields with members of JSON objects. defaults: the defaults of those
    fields that have a default.
    """

    def __init__(
        self,
        schema: pa.Schema,
        defaults: dict[str, Any],
        time_fields: Sequence[str] = (),
        time_format: TimeFormat | None = None,
        *,
        keeps_unreadable: bool = False,
        aliases: Aliases | None = None,
        removed: Collection[str] = (),
    ) -> None:
        """keeps_unreadable: whether a line whose time cannot be read becomes a row without an event
        time, instead of a reject. aliases: other names of members; None if fields have no other
        names. removed: members that need no field, because a rule of the setting `shape` removes
        them.
        """
        self._time_paths = [path_of(name, schema, removed, aliases) for name in time_fields]
        self._aliases = aliases
        self._keeps_unreadable = keeps_unreadable
        self._has_mark = keeps_unreadable and has_time_mark(schema)
        if self._has_mark:
            schema = schema.remove(schema.get_field_index(TIME_MARK))
        self._extra = extra_field(schema)
        if self._extra is not None:
            schema = schema.remove(schema.get_field_index(EXTRA))
        self._fields = [(field, defaults.get(field.name, MISSING)) for field in schema]
        self._known = known_members(schema, removed)
        self._time_fields, self._time_format = list(time_fields), time_format
        for field in schema:
            if types.is_decimal(field.type) or types.is_binary(field.type):
                raise ConfigurationRefused(
                    f"a json parser cannot fill the schema's field {field.name!r} "
                    f"of type {avro_name(field.type)}"
                )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines that are JSON objects and whose members fit the schema, and
        rejects of the others. A missing member or a null fits every field here: the press rejects a
        row with a null in a field that may not be null."""
        strings, not_utf8 = line_columns.text(lines)
        rejects = [Reject(int(row), ENCODING, "the line is not UTF-8") for row in not_utf8]
        rows, objects = _objects(strings, rejects)
        if self._aliases is not None:
            objects = [renamed(each, self._aliases) for each in objects]
        good = np.ones(len(rows), np.bool_)
        extra = self._outer(objects)
        found, members, odd = {}, 0, set[str]()
        for field, default in self._fields:
            values = _members(objects, field.name, default)
            known = None if default in (None, MISSING) else values.count(default)
            found[field.name], unfit = column(values, field, now_ms, odd)
            members += len(values) - (found[field.name].null_count if known is None else known)
            for index in unfit:
                if self._extra is not None and field.nullable:
                    extra[index][field.name] = objects[index][field.name]
                elif good[index]:
                    detail = misfits.detail(objects[index].get(field.name), field, now_ms)
                    rejects.append(Reject(rows[index], SCHEMA, detail))
                    good[index] = False
        event_ms = self._times(objects, rows, good, now_ms, rejects)
        fieldless: Mapping[str, int] = {}
        # Every member of the line that is counted here has a field. Most lines have no others.
        if odd or members != sum(map(len, objects)):
            fieldless = self._fieldless(objects, extra, good, odd)
        if self._extra is not None:
            found[EXTRA] = _texts_of(extra, self._extra)
        if self._has_mark:
            found[TIME_MARK] = pa.array(event_ms == NO_TIME)
        batch = pa.RecordBatch.from_pydict(found)
        if good.all():
            return Parsed(np.asarray(rows, np.int64), batch, event_ms, rejects, fieldless=fieldless)
        kept = np.flatnonzero(good)
        taken = batch.take(pa.array(kept))
        return Parsed(
            np.asarray(rows, np.int64)[kept], taken, event_ms[kept], rejects, fieldless=fieldless
        )

    def _outer(self, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns, for each object, its own members that have no field. Returns an empty list if
        the schema has no field EXTRA, which could take them."""
        if self._extra is None:
            return []
        names = self._known.names
        return [{name: each[name] for name in each.keys() - names} for each in objects]

    def _fieldless(
        self,
        objects: list[dict[str, Any]],
        extra: list[dict[str, Any]],
        good: np.ndarray,
        odd: set[str],
    ) -> Counter[str]:
        """Adds to `extra`, by place, the members of records inside the objects that have no field.
        Returns, for each name of a member that `extra` does not take, the number of the good
        objects with such members. odd: the fields that contain records with such members.
        """
        names, found = self._known.names, Counter[str]()
        if self._extra is None:
            counted = list(compress(objects, good.tolist()))
            lost_names = set[str]().union(*counted) - names
            if len(lost_names) <= _FEW_NAMES:  # then a look for each name is faster
                found.update({name: sum(name in each for each in counted) for name in lost_names})
            else:
                found.update(chain.from_iterable(counted))
                found = Counter({name: found[name] for name in lost_names})
        for index in np.flatnonzero(good).tolist() if odd else ():
            own, lost = extra[index] if extra else {}, set[str]()
            for name, place, value in self._known.inside(objects[index], own):
                if self._extra is None or own.setdefault(place, value) is not value:
                    lost.add(name)  # nothing takes it, or another member has this place as its name
            # A member of the line that is counted already may have the same name as a lost one.
            found.update(lost if self._extra is not None else lost - objects[index].keys())
        return found

    def _times(
        self,
        objects: list[dict[str, Any]],
        rows: list[int],
        good: np.ndarray,
        now_ms: int,
        rejects: list[Reject],
    ) -> Int64s:
        """Returns the event times of the lines; NO_TIME for a line without a readable time. Rejects
        each line whose time does not fit the format, unless such lines are kept."""
        if self._time_format is None:
            return np.full(len(objects), NO_TIME)
        texts = [_joined([member(o, path) for path in self._time_paths]) for o in objects]
        strings = strings_of(texts)
        event_ms, parsed = self._time_format.parse(strings, now_ms)
        if self._keeps_unreadable:
            return np.where(parsed, event_ms, NO_TIME)
        unread = np.flatnonzero(good & ~parsed & np.asarray(strings.is_valid()))
        for each in unread_times.rejects(
            self._time_format, self._time_fields, strings, unread, now_ms
        ):
            rejects.append(Reject(rows[each.row], each.reason, each.detail))
        good[unread] = False
        return np.where(parsed, event_ms, NO_TIME)


_FEW_NAMES: Final = 5


def _objects(
    strings: pa.StringArray, rejects: list[Reject]
) -> tuple[list[int], list[dict[str, Any]]]:
    """Returns the row numbers and the decoded values of the texts that are JSON objects. A text is
    None if its line is already rejected.
    """
    rows: list[int] = []
    objects: list[dict[str, Any]] = []
    scan = _DECODER.scan_once  # `scan_once` takes half the time of `decode`
    texts = strings.to_pylist()
    for row, (text, is_odd) in enumerate(zip(texts, _is_odd(strings), strict=True)):
        if text is None:
            continue
        try:
            value, end = (None, -1) if is_odd else scan(text, 0)
        except (StopIteration, ValueError):
            end = -1
        if end != len(text):
            try:
                value = _decoded(text)
            except ValueError as error:
                why = str(error).replace(": line 1 column ", ": column ")
                rejects.append(Reject(row, NOT_JSON, f"the line is not JSON: {why}"[:200]))
                continue
        if type(value) is dict:
            rows.append(row)
            objects.append(value)
        else:
            rejects.append(Reject(row, NOT_JSON, "the line is JSON, but no object"))
    return rows, objects


def _members(objects: list[dict[str, Any]], name: str, default: Any) -> list[Any]:
    return [each.get(name, default) for each in objects]


def _is_odd(strings: pa.StringArray) -> list[bool | None]:
    brackets = pc.add(pc.count_substring(strings, "["), pc.count_substring(strings, "{"))
    may_be_infinite = pc.match_substring_regex(strings, _MAY_BE_INFINITE)
    is_odd: list[bool | None] = pc.or_(may_be_infinite, pc.greater(brackets, DEPTH_MAX)).to_pylist()
    return is_odd


def _decoded(text: str) -> Any:
    """Returns the value of a JSON text, which may have blanks around it. Raises ValueError."""
    return _EXACT_DECODER.decode(text) if _is_shallow(text) else _too_deep()


def _is_shallow(text: str) -> bool:
    """Whether objects and arrays in the text are nested at most DEPTH_MAX deep. Down to this depth,
    the decoder can recurse even if the caller's stack is already deep.
    """
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return True
    depth = deepest = 0
    # Brackets inside strings are counted like other brackets. So a line with many brackets in its
    # strings may be rejected, but no line can overflow the stack.
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest <= DEPTH_MAX


def _too_deep() -> NoReturn:
    raise ValueError(f"it is nested deeper than {DEPTH_MAX}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


_DECODER: Any = json.JSONDecoder(parse_constant=_refuse_constant)
_EXACT_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_MAY_BE_INFINITE = r"[eE]\+?[0-9]{3}|[0-9]{200}"
"""Each line with a number that is too large for a double matches this pattern. `_finite` refuses
such numbers, but makes the decoder slower. So only the lines that match are decoded with `_finite`.
"""


def _joined(values: list[Any]) -> str | None:
    """Returns the members that form a time, joined to one text; None if a member is missing or
    null."""
    if any(value is None for value in values):
        return None
    return " ".join(value if type(value) is str else json.dumps(value) for value in values)


def extra_field(schema: pa.Schema) -> pa.Field | None:
    """Returns the schema's field EXTRA, which takes values that fit no other field; None if the
    schema has no such field. Raises ConfigurationRefused if the field is no map of strings.
    """
    at = schema.get_field_index(EXTRA)
    if at < 0:
        return None
    kind = schema.field(at).type
    if not (types.is_map(kind) and types.is_string(kind.item_type)):
        raise ConfigurationRefused(f"the schema's field {EXTRA!r} must be a map of strings")
    return schema.field(at)


def _texts_of(extra: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    return pa.array(
        [[(_clean(name), _text_of(each[name])) for name in sorted(each)] for each in extra],
        field.type,
    )


def _text_of(value: Any) -> str:
    return _clean(value if type(value) is str else json.dumps(value, ensure_ascii=False))


def _clean(text: str) -> str:
    """Returns the text with `?` in place of unpaired surrogates, which JSON can escape but UTF-8
    cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
