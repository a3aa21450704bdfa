"""Checks times of day. A time of day is the number of milliseconds or microseconds since midnight,
and less than one day.

Avro can encode any int or long as a time of day. But Arrow's types allow only numbers from zero to
less than one day. If a Parquet file has any other number, programs that read the file fail. So if a
row has a time of day outside this range, the codec refuses the row, both when it encodes and when
it decodes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.schemas.avro_schema import AvroType
from skidway.schemas.codec.arrow import arrow_type

NO_TIME_OF_DAY: Final = "no time of a day"
_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000}


def time_faults(column: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
    """Returns a mask that is true for the rows whose time of day is negative, or 24 hours or more.
    Returns None if all times are valid, or if the column does not contain times of day."""
    if not pa.types.is_time(column.type):
        return None
    bare = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
    numbers = np.asarray(column.view(bare).fill_null(0))
    wrong = (numbers < 0) | (numbers >= _DAY[column.type.unit])
    return wrong if wrong.any() else None


def is_time(avro: AvroType) -> bool:
    """Returns whether values of a primitive type are times of day."""
    return avro.kind in ("int", "long") and pa.types.is_time(arrow_type(avro))


def checked_time(avro: AvroType, number: int) -> int:
    """Returns `number`. Raises ValueError if it is not a valid time of day of the type `avro`."""
    if not 0 <= number < _DAY[arrow_type(avro).unit]:
        raise ValueError(NO_TIME_OF_DAY)
    return number
