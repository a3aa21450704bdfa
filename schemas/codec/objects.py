"""Turns decoded columns into Python objects to show to people.

Arrow's own `to_pylist` refuses a whole column for one value that Python's types cannot hold. Here
such a value alone stays a number, and its neighbours are what they are:

    timestamp, date, time   datetime, date, time; the number that Avro stores, if it is outside of
                            what these types can hold; RFC 3339 text with nine digits if it has
                            nanoseconds
    map                     Map, a dict whose keys are data and no names of fields
    everything else         as `to_pylist` has it
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class Map(dict[str, Any]):
    """The value of a map."""


def objects(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Returns the rows of a batch, each with the value of every column."""
    names = batch.schema.names
    columns = [values(column) for column in batch.columns]
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def values(column: pa.Array) -> list[Any]:
    """Returns the values of a column."""
    kind = column.type
    if types.is_timestamp(kind):
        return _each(column.cast(pa.int64()), _moment(kind))
    if types.is_date32(kind):
        return _each(column.cast(pa.int32()), _day)
    if types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [values(part) for part in column.flatten()]
        rows = zip(*parts, strict=True) if parts else [()] * len(column)
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return _with_nulls(found, column)
    if types.is_map(kind):
        pairs = zip(values(column.keys), values(column.items), strict=True)
        return _divided(list(pairs), column, Map)
    if types.is_list(kind):
        return _divided(values(column.values), column, list)
    return list(column.to_pylist())


def _each(numbers: pa.Array, of: Callable[[int], Any]) -> list[Any]:
    return [None if number is None else of(number) for number in numbers.to_pylist()]


def _with_nulls(found: list[Any], column: pa.Array) -> list[Any]:
    if not column.null_count:
        return found
    return [
        value if is_valid else None
        for value, is_valid in zip(found, column.is_valid().to_pylist(), strict=True)
    ]


def _divided(inner: list[Any], column: pa.Array, make: Callable[[list[Any]], Any]) -> list[Any]:
    """Makes one value of the inner values of each row of a list or map. `inner` has the inner
    values of the whole buffer, also those before the first row of a slice."""
    bounds = column.offsets.to_pylist()
    found = [make(inner[begin:end]) for begin, end in pairwise(bounds)]
    return _with_nulls(found, column)


def _day(days: int) -> date | int:
    try:
        return _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        return days


def _moment(kind: pa.TimestampType) -> Callable[[int], datetime | str | int]:
    per_second, zone = _PER_SECOND[kind.unit], None if kind.tz is None else UTC

    def moment(number: int) -> datetime | str | int:
        whole_s, part = divmod(number, per_second)
        nanos = part * (1_000_000_000 // per_second)
        try:
            at = _EPOCH + timedelta(seconds=whole_s, microseconds=nanos // 1_000)
        except OverflowError:
            return number
        if nanos % 1_000 == 0:
            return at.replace(tzinfo=zone)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{nanos:09d}{'' if zone is None else 'Z'}"

    return moment
