"""The texts of a column, also those inside of lists, maps and records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types


def has_texts(kind: pa.DataType) -> bool:
    """Whether values of a type are texts, or contain texts. The names of a map's members are no
    texts of a record."""
    if types.is_list(kind):
        return has_texts(kind.value_type)
    if types.is_map(kind):
        return has_texts(kind.item_type)
    if types.is_struct(kind):
        return any(has_texts(each.type) for each in kind)
    return bool(types.is_string(kind))


def changed(column: pa.Array, change: Callable[[pa.StringArray], pa.StringArray]) -> pa.Array:
    """Returns the column with all its texts as `change` makes them. Other values stay."""
    kind = column.type
    if not has_texts(kind):
        return column
    if types.is_string(kind):
        return change(column)
    nulls = column.is_null()
    if types.is_struct(kind):
        parts = [changed(column.field(number), change) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    offsets = pa.array(np.array(column.offsets))
    if types.is_list(kind):
        values = changed(column.values, change)
        return pa.ListArray.from_arrays(offsets, values, type=kind, mask=nulls)
    items = changed(column.items, change)
    return pa.MapArray.from_arrays(offsets, column.keys, items, type=kind, mask=nulls)


def lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Returns how many bytes all texts of each value have together."""
    kind = column.type
    if types.is_string(kind):
        return np.asarray(pc.fill_null(pc.binary_length(column), 0), np.int64)
    if not has_texts(kind):
        return np.zeros(len(column), np.int64)
    if types.is_struct(kind):
        parts = [lengths(column.field(number)) for number in range(kind.num_fields)]
        return np.asarray(np.sum(parts, axis=0), np.int64)
    inner = lengths(column.values if types.is_list(kind) else column.items)
    before = np.concatenate(([0], np.cumsum(inner)))[np.array(column.offsets)]
    return np.asarray(np.diff(before), np.int64)
