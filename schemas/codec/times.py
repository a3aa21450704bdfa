"""Checks times that Avro can encode, but that other programs cannot hold. A Parquet file with such
a time is a file that some readers cannot read.

A time of day is the number of milliseconds or microseconds since midnight, and less than one day.
Avro can encode any int or long as a time of day. But Arrow's types allow only numbers from zero to
less than one day. So if a row has a time of day outside this range, the codec refuses the row, both
when it encodes and when it decodes.

A timestamp in milliseconds can be a thousand times farther from 1970 than one in microseconds.
Spark and most databases count microseconds in 64 bits. So `far_times` finds timestamps that are
farther away (mostly they are nanoseconds in a field for milliseconds). The codec refuses to encode
them. It decodes them, because people want to see them (`objects`), and the loader refuses them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.schemas.avro_schema import AvroType
from skidway.schemas.codec.arrow import arrow_type

Mask = np.ndarray[Any, np.dtype[np.bool_]]

NO_TIME_OF_DAY: Final = "no time of a day"
FAR_TIME: Final = "a time that microseconds of 64 bits cannot hold"
MILLIS_MAX: Final = (2**63 - 1) // 1000
"""The most milliseconds whose microseconds fit into 64 bits: the year 294247 or -290308."""
_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000}


def far_times(column: pa.Array) -> Mask | None:
    """Returns a mask that is true for the rows in which a timestamp in milliseconds, at any depth,
    is more than `MILLIS_MAX` before or after 1970. Returns None if there is no such row."""
    kind = column.type
    if types.is_timestamp(kind):
        return far(column.view(pa.int64()).fill_null(0)) if kind.unit == "ms" else None
    if types.is_struct(kind):
        found = [mask for mask in map(far_times, column.flatten()) if mask is not None]
        return np.logical_or.reduce(found) if found else None
    if types.is_list(kind) or types.is_map(kind):
        offsets = np.asarray(column.offsets)
        items = column.items if types.is_map(kind) else column.values
        inside = far_times(items.slice(offsets[0], offsets[-1] - offsets[0]))
        return None if inside is None else _of_rows(column, offsets - offsets[0], inside)
    return None


def far(times_ms: pa.Array | np.ndarray[Any, np.dtype[np.int64]]) -> Mask | None:
    """Does the same as `far_times` for numbers of milliseconds."""
    numbers = np.asarray(times_ms)
    mask: Mask = (numbers > MILLIS_MAX) | (numbers < -MILLIS_MAX)
    return mask if mask.any() else None


def _of_rows(column: pa.Array, offsets: Any, inside: Mask) -> Mask | None:
    """Returns a mask that is true for the lists or maps that have an item in the mask `inside`."""
    before = np.concatenate(([0], np.cumsum(inside)))
    mask: Mask = (before[offsets[1:]] > before[offsets[:-1]]) & np.asarray(column.is_valid())
    return mask if mask.any() else None


def time_faults(column: pa.Array) -> Mask | None:
    """Returns a mask that is true for the rows whose time of day is negative, or 24 hours or more.
    Returns None if all times are valid, or if the column does not contain times of day."""
    if not types.is_time(column.type):
        return None
    bare = pa.int32() if types.is_time32(column.type) else pa.int64()
    numbers = np.asarray(column.view(bare).fill_null(0))
    wrong = (numbers < 0) | (numbers >= _DAY[column.type.unit])
    return wrong if wrong.any() else None


def is_time(avro: AvroType) -> bool:
    """Returns whether values of a primitive type are times of day."""
    return avro.kind in ("int", "long") and types.is_time(arrow_type(avro))


def checked_time(avro: AvroType, number: int) -> int:
    """Returns `number`. Raises ValueError if it is not a valid time of day of the type `avro`."""
    if not 0 <= number < _DAY[arrow_type(avro).unit]:
        raise ValueError(NO_TIME_OF_DAY)
    return number
