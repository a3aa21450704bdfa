"""Converts a column of a writer's primitive or fixed type to the reader's type, by Avro's
promotions and logical types.

Avro promotes int to long, float or double, long to float or double, float to double, string to
bytes, and bytes to string. A conversion between two logical types of one family (timestamps, times
of day, decimals) does not change the value. In all other cases, the conversion ignores the writer's
logical type, and reads the number or bytes as the reader's logical type. Numbers that become
floating-point numbers are rounded as in Java. If rounding has changed a number, the conversion
reports the number's row with the reason `ROUNDED`, because some callers must then refuse the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.schemas.avro_schema import AvroType, Fixed
from skidway.schemas.codec import decimals
from skidway.schemas.codec.arrow import arrow_type
from skidway.schemas.codec.conform import checked_cast
from skidway.schemas.codec.spreading import spread
from skidway.schemas.codec.text import utf8_faults
from skidway.schemas.codec.times import NO_TIME_OF_DAY, time_faults

Unfit = list[tuple[Any, str]]
Step = Callable[[pa.Array], tuple[pa.Array, Unfit]]

PROMOTIONS: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
ROUNDED: Final = "has more digits than the floating-point number"
_BARE: Final = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}


class NotPromotable(Exception):
    """Raised if Avro has no promotion from the writer's type to the reader's type."""


def promotion(writer: AvroType, reader: AvroType) -> Step:
    """Returns the function that converts a column of the writer's type to the reader's type. Raises
    `NotPromotable`."""
    if writer.kind != reader.kind and reader.kind not in PROMOTIONS.get(writer.kind, ()):
        raise NotPromotable
    source, target = arrow_type(writer), arrow_type(reader)
    if source == target:
        return lambda column: (column, [])
    if types.is_timestamp(source) and types.is_timestamp(target):
        return lambda column: _moments(column, target)
    if types.is_time(source) and types.is_time(target):
        return lambda column: _cast(column, target)
    if types.is_decimal(source) and types.is_decimal(target):
        return lambda column: _cast(column, target)
    return _bare(writer, reader, target)


def _cast(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Unfit]:
    made, unfit = checked_cast(column, target)
    return made, [] if unfit is None else [(unfit, f"does not fit into {target}")]


def _moments(column: pa.Array, target: pa.TimestampType) -> tuple[pa.Array, Unfit]:
    """Converts timestamps from one unit to another. Converts only the numbers and ignores time
    zones, so that no local time changes."""
    bare = column.view(pa.int64()).view(pa.timestamp(column.type.unit))
    made, unfit = _cast(bare, pa.timestamp(target.unit))
    return made.view(pa.int64()).view(target), unfit


def _bare(writer: AvroType, reader: AvroType, target: pa.DataType) -> Step:
    def step(column: pa.Array) -> tuple[pa.Array, Unfit]:
        bare = _to_bare(column, writer)
        unfit: Unfit = []
        if writer.kind != reader.kind:
            bare, unfit = _promoted(bare, _BARE[reader.kind])
        if types.is_decimal(target):
            return _to_decimal(bare.view(pa.binary()) if reader.kind == "bytes" else bare, target)
        made = bare if bare.type == target else bare.view(target)
        outside = time_faults(made)
        return made, unfit if outside is None else [*unfit, (outside, NO_TIME_OF_DAY)]

    return step


def _to_bare(column: pa.Array, writer: AvroType) -> pa.Array:
    if types.is_decimal(column.type):
        size = writer.size if isinstance(writer, Fixed) else None
        data, sizes = decimals.encode(column, size)
        offsets = np.zeros(len(sizes) + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
        made = pa.BinaryArray.from_buffers(pa.binary(), len(column), buffers)
        return made if size is None else made.cast(pa.binary(size))
    bare = _BARE.get(writer.kind, column.type)
    return column if column.type == bare else column.view(bare)


def _promoted(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Unfit]:
    if types.is_string(target):
        text = column.view(pa.string())
        faults = utf8_faults(text)
        if faults is None:
            return text, []
        safe = spread(text.filter(pa.array(~faults)), ~faults).fill_null("")
        return safe, [(faults, "not UTF-8")]
    if types.is_binary(target):
        return column.view(target), []
    made = column.cast(target, safe=False)
    if not types.is_integer(column.type) or not types.is_floating(target):
        return made, []
    return made, _rounded(column, made)


def _rounded(column: pa.Array, made: pa.Array) -> Unfit:
    same = pc.and_(
        pc.equal(made.cast(column.type, safe=False), column),
        # a larger number would overflow in the cast above
        pc.less(made, pa.scalar(2.0 ** (column.type.bit_width - 1), made.type)),
    )
    rounded = ~np.asarray(pc.coalesce(same, pa.scalar(True)))
    return [(rounded, ROUNDED)] if rounded.any() else []


def _to_decimal(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Unfit]:
    raw = column.cast(pa.binary())
    data = np.frombuffer(raw.buffers()[2] or b"", np.uint8)
    every = np.frombuffer(raw.buffers()[1], np.int32)
    offsets = every[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)
    padded = np.append(data, np.zeros(1, np.uint8))
    made, wrong = decimals.read(padded, offsets[1:], np.diff(offsets), target)
    return made, [(wrong, f"does not fit into {target}")] if wrong.any() else []
