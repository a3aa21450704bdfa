"""Puts rows that were processed separately back into their positions in a column, and columns into
batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Mask = np.ndarray[Any, np.dtype[np.bool_]]


def spread(column: pa.Array, mask: Mask) -> pa.Array:
    """Returns an array with the values of `column` in the rows where `mask` is true, and null in
    the other rows."""
    places = np.cumsum(mask) - 1
    if not pa.types.is_struct(column.type):
        return column.take(pa.array(places, mask=~mask))
    with_null = pa.concat_arrays([column, null_of(column.type)])
    return with_null.take(pa.array(np.where(mask, places, len(column))))


def null_of(arrow: pa.DataType) -> pa.Array:
    """Returns an array of the type `arrow` with one null. Arrow stores values of a struct's fields
    even where the struct itself is null. So if `arrow` is a struct, each field that is not nullable
    gets an arbitrary value."""
    return pa.array([None], arrow)


def merged(parts: list[tuple[pa.Array, Mask]], arrow: pa.DataType) -> pa.Array:
    """Returns an array with the values of each part in the rows where the part's mask is true, and
    null in the rows where no mask is true. The masks must not overlap."""
    rows = len(parts[0][1])
    begin = sum(len(part) for part, _ in parts)
    places = np.full(rows, begin)  # rows without a part get the null that `concat_arrays` puts last
    begin = 0
    for part, mask in parts:
        places[mask] = begin + np.arange(len(part))
        begin += len(part)
    return pa.concat_arrays([*(part for part, _ in parts), null_of(arrow)]).take(pa.array(places))


def batch_of(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Returns a batch with these columns and `rows` rows. Arrow takes the number of rows from the
    first column, so without columns (those of a record without fields) it would make no rows."""
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    nothing = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(nothing)


def repeated(value: pa.Array, rows: int) -> pa.Array:
    """Returns an array with `rows` elements, which repeats the only element of `value`."""
    return value.take(pa.array(np.zeros(rows, np.int32)))
