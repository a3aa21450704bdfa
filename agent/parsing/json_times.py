"""Turns the dates and times that JSON lines write as texts into the numbers of Avro's types, also
inside records, arrays and maps.

    date                          2026-11-21
    time-millis, time-micros      08:15:01.123456
    timestamp-millis, ...         2026-11-21T08:15:01.123456Z, as `timestamp.format: rfc3339`
    local-timestamp-millis, ...   2026-11-21T08:15:01.123456, without a zone

Digits that are finer than the type's unit are left out. A text of another form fits no such type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing.timestamps import TimeFormat

UNFIT: Final = object()
"""Stands for a text that is no date or time of the type."""

_RFC3339: Final = TimeFormat("rfc3339")
_DIGITS: Final = {"ms": 3, "us": 6, "ns": 9}
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d+))?", re.ASCII)
_FINE: Final = re.compile(r"[.,]\d{3}(\d+)", re.ASCII)
_EPOCH: Final = date(1970, 1, 1)


def is_time(kind: pa.DataType) -> bool:
    """Whether the type is a date, a time of day or a timestamp."""
    return bool(types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind))


@cache
def holds_times(kind: pa.DataType) -> bool:
    """Whether the type is a date or time, or contains one."""
    return is_time(kind) or any(map(holds_times, _inner(kind).values()))


def with_numbers(values: list[Any], kind: pa.DataType, now_ms: int) -> list[Any]:
    """Returns the values of a field, with a number, or UNFIT, in place of each text where the type
    has a date or time. kind: the field's type, for which `holds_times` is true. Changes no object
    inside the values; may change the list."""
    if is_time(kind):
        places = [index for index, value in enumerate(values) if type(value) is str]
        numbers = _numbers([values[index] for index in places], kind, now_ms)
        if len(numbers) == len(values):
            return numbers
        for index, number in zip(places, numbers, strict=True):
            values[index] = number
        return values
    texts: dict[pa.DataType, dict[str, Any]] = {}
    for value in values:
        _gather(value, kind, texts)
    if not texts:
        return values
    for own, found in texts.items():
        found.update(zip(found, _numbers(list(found), own, now_ms), strict=True))
    return [_rebuilt(value, kind, texts) for value in values]


def strings_of(texts: Sequence[str | None]) -> pa.StringArray:
    """Returns the texts as a column. A text that UTF-8 cannot encode, because it has half of a
    surrogate pair, is no time, and has `?` in place of the half."""
    try:
        return pa.array(texts, pa.string())
    except ValueError:
        raw = [None if text is None else text.encode("utf-8", "replace") for text in texts]
        return pa.array(raw, pa.binary()).cast(pa.string())


def _inner(kind: pa.DataType) -> dict[str, pa.DataType]:
    if types.is_struct(kind):
        return {field.name: field.type for field in kind}
    if types.is_list(kind):
        return {"": kind.value_type}
    return {"": kind.item_type} if types.is_map(kind) else {}


def _gather(value: Any, kind: pa.DataType, texts: dict[pa.DataType, dict[str, Any]]) -> None:
    if type(value) is str:
        if is_time(kind):
            texts.setdefault(kind, {})[value] = None
        return
    for _, inside, inner in _parts(value, kind):
        _gather(inside, inner, texts)


def _rebuilt(value: Any, kind: pa.DataType, texts: dict[pa.DataType, dict[str, Any]]) -> Any:
    if type(value) is str:
        return texts[kind][value] if is_time(kind) else value
    parts = {key: _rebuilt(inside, inner, texts) for key, inside, inner in _parts(value, kind)}
    if not parts:
        return value
    return {**value, **parts} if type(value) is dict else [*parts.values()]


def _parts(value: Any, kind: pa.DataType) -> list[tuple[Any, Any, pa.DataType]]:
    """Returns the parts of a value that may hold dates or times: the key or index, the part and its
    type of each. A list has all of its items, or none."""
    inner = _inner(kind) if holds_times(kind) else {}
    if types.is_list(kind) and type(value) is list:
        return [(index, each, of) for of in inner.values() for index, each in enumerate(value)]
    if type(value) is not dict or not inner:
        return []
    if types.is_map(kind):
        return [(key, each, of) for of in inner.values() for key, each in value.items()]
    return [(key, value[key], of) for key, of in inner.items() if key in value]


def _numbers(texts: Sequence[str], kind: pa.DataType, now_ms: int) -> list[Any]:
    if types.is_date(kind):
        return [_days(x) for x in texts]
    digits = _DIGITS[kind.unit]
    if types.is_time(kind):
        return [_of_day(x, digits) for x in texts]
    if kind.tz is None:
        return [_local(x, digits) for x in texts]
    moments, good = _RFC3339.parse(strings_of(texts), now_ms)
    if digits == _DIGITS["ms"]:
        found = moments.tolist()
    else:
        found = [
            moment * 10 ** (digits - 3) + _fine(text, digits)
            for moment, text in zip(moments.tolist(), texts, strict=True)
        ]
    return [each if fine else UNFIT for each, fine in zip(found, good.tolist(), strict=True)]


def _fine(text: str, digits: int) -> int:
    """Returns what the digits behind the milliseconds add to a time in the unit with `digits`."""
    found = _FINE.search(text)
    return 0 if found is None else int(found[1][: digits - 3].ljust(digits - 3, "0"))


def _days(text: str) -> Any:
    try:
        return (date.fromisoformat(text) - _EPOCH).days if _DATE.fullmatch(text) else UNFIT
    except ValueError:
        return UNFIT


def _of_day(text: str, digits: int) -> Any:
    found = _TIME.fullmatch(text)
    if found is None:
        return UNFIT
    whole = int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3])
    return whole * 10**digits + int((found[4] or "")[:digits].ljust(digits, "0"))


def _local(text: str, digits: int) -> Any:
    days, time = _days(text[:10]), _of_day(text[11:], digits)
    is_one = text[10:11] in ("T", "t", " ") and days is not UNFIT and time is not UNFIT
    return days * 86_400 * 10**digits + time if is_one else UNFIT
