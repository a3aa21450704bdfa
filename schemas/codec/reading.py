"""Decodes all datums of a chunk at once into columns: numpy computes on positions, and no record
becomes a Python object (except values whose type contains itself, `text_columns`).

The schema is compiled into readers once. A reader moves a cursor over the values of one type and
returns the column of that type. If rows have different branches of a union, the rows of each branch
are read separately, and the results are merged. For arrays and maps, this module first finds where
the items begin (`skidway.schemas.codec.items`), then reads the items like rows.

A row is marked as bad if its bytes are not a valid datum. A row is also marked as bad if it has a
rare form that this module leaves to `rows`: many more items or blocks than most rows, or decimals
with padding. `rows` then decides whether a marked row is good after all. So this module itself
refuses no row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    Recursive,
    Union,
)
from skidway.schemas.codec import decimals
from skidway.schemas.codec.arrow import branches_of, decimal_type, is_nullable
from skidway.schemas.codec.cursor import Chunk, Cursor, Ints, Mask
from skidway.schemas.codec.items import Located, locator
from skidway.schemas.codec.spreading import spread
from skidway.schemas.codec.text import repeated_keys, utf8_faults
from skidway.schemas.codec.text_columns import text_reader
from skidway.schemas.codec.times import time_faults

Reader = Callable[[Cursor], pa.Array]

_FLOATS: Final = {"float": "<f4", "double": "<f8"}


def read_columns(readers: list[Reader], datums: pa.BinaryArray) -> tuple[list[pa.Array], Mask]:
    """Returns one column per reader, and a mask that is true for bad rows. No datum may be null. In
    bad rows, the values in the columns have no meaning."""
    cursor = Cursor.over(Chunk(datums))
    columns = [reader(cursor) for reader in readers]
    cursor.finish()
    return columns, cursor.bad


def reader_of(avro: AvroType, arrow: pa.DataType) -> Reader:
    """Returns a reader for values of the type `avro`. This reader returns arrays of exactly the
    type `arrow`."""
    if isinstance(avro, Recursive):
        return text_reader(avro)
    if isinstance(avro, Union):
        return _union(avro, arrow)
    if isinstance(avro, Record):
        return _record(avro, arrow)
    if isinstance(avro, Array):
        return _array(avro, arrow)
    if isinstance(avro, Map):
        return _map(avro, arrow)
    if isinstance(avro, Enum):
        return _enum(avro)
    decimal = decimal_type(avro)
    if isinstance(avro, Fixed):
        return _fixed(avro.size, arrow) if decimal is None else _fixed_decimal(avro.size, arrow)
    if decimal is not None:
        return _decimal(arrow)
    return _primitive(avro.kind, arrow)


def _primitive(kind: str, arrow: pa.DataType) -> Reader:
    if kind in _FLOATS:
        return _float(np.dtype(_FLOATS[kind]), arrow)
    return {
        "null": lambda cursor: pa.nulls(len(cursor)),
        "boolean": _boolean,
        "int": lambda cursor: _viewed(cursor, _int(cursor), arrow),
        "long": lambda cursor: _viewed(cursor, cursor.number(), arrow),
        "bytes": _bytes,
        "string": _string,
    }[kind]


def _viewed(cursor: Cursor, numbers: Any, arrow: pa.DataType) -> pa.Array:
    array = pa.array(numbers)
    array = array if array.type == arrow else array.view(arrow)
    faults = time_faults(array)
    if faults is not None:
        cursor.fail(faults)
    return array


def _boolean(cursor: Cursor) -> pa.Array:
    found = cursor.byte()
    cursor.fail(found > 1)
    return pa.array(found == 1)


def _int(cursor: Cursor) -> Any:
    found = cursor.number()
    narrow = found.astype(np.int32)
    cursor.fail(narrow != found)
    return narrow


def _float(dtype: np.dtype[Any], arrow: pa.DataType) -> Reader:
    bits = np.dtype(f"<u{dtype.itemsize}")
    return lambda cursor: pa.array(
        cursor.word(dtype.itemsize).astype(bits, copy=False).view(dtype), arrow
    )


def _bytes(cursor: Cursor) -> pa.BinaryArray:
    lengths = cursor.length()
    starts = cursor.at
    cursor.at = starts + lengths
    return cursor.chunk.slices(starts, cursor.at)


def _string(cursor: Cursor) -> pa.StringArray:
    found = _bytes(cursor).view(pa.string())
    faults = utf8_faults(found)
    if faults is None:
        return found
    cursor.fail(faults)
    return spread(found.filter(pa.array(~faults)), ~faults).fill_null("")


def _enum(avro: Enum) -> Reader:
    symbols = pa.array(avro.symbols or ("",), pa.string())  # `take` needs one also for bad rows
    return lambda cursor: symbols.take(pa.array(cursor.index(len(avro.symbols))))


def _fixed(size: int, arrow: pa.DataType) -> Reader:
    def read(cursor: Cursor) -> pa.Array:
        if pa.types.is_fixed_size_binary(arrow):
            found = np.ascontiguousarray(cursor.fixed(size))
            return pa.FixedSizeBinaryArray.from_buffers(
                arrow, len(cursor), [None, pa.py_buffer(found)]
            )
        cursor.fail(cursor.end - cursor.at < size)
        lengths = np.where(cursor.bad, 0, size)
        starts = cursor.at
        cursor.at = starts + lengths
        return cursor.chunk.slices(starts, cursor.at)

    return read


def _fixed_decimal(size: int, arrow: pa.DataType) -> Reader:
    def read(cursor: Cursor) -> pa.Array:
        cursor.fail(cursor.end - cursor.at < size)
        lengths = np.where(cursor.bad, 0, size)
        return _decimals(cursor, lengths, arrow)

    return read


def _decimal(arrow: pa.DataType) -> Reader:
    return lambda cursor: _decimals(cursor, cursor.length(), arrow)


def _decimals(cursor: Cursor, lengths: Ints, arrow: pa.DataType) -> pa.Array:
    cursor.at = cursor.at + lengths
    found, wrong = decimals.read(cursor.chunk.data, cursor.at, lengths, arrow)
    cursor.fail(wrong)
    return found


def _record(record: Record, arrow: pa.StructType) -> Reader:
    readers = [
        reader_of(each.type, field.type) for each, field in zip(record.fields, arrow, strict=True)
    ]

    def read(cursor: Cursor) -> pa.StructArray:
        if not readers:
            return pa.StructArray.from_buffers(arrow, len(cursor), [None])
        children = [reader(cursor) for reader in readers]
        return pa.StructArray.from_arrays(children, fields=list(arrow))

    return read


def _union(union: Union, arrow: pa.DataType) -> Reader:
    members = branches_of(union)
    if not members:
        return _nulls_only(union)
    if len(members) > 1:
        return _members(union, arrow)
    (member,) = members
    inner = reader_of(union.branches[member], arrow)
    if not is_nullable(union):
        return lambda cursor: _after_branch(cursor, inner)

    def read(cursor: Cursor) -> pa.Array:
        return _chosen(cursor, cursor.index(2) == member, inner, arrow)

    return read


def _nulls_only(union: Union) -> Reader:
    def read(cursor: Cursor) -> pa.Array:
        cursor.index(len(union.branches))
        return pa.nulls(len(cursor))

    return read


def _after_branch(cursor: Cursor, inner: Reader) -> pa.Array:
    cursor.index(1)
    return inner(cursor)


def _members(union: Union, arrow: pa.StructType) -> Reader:
    """Returns a reader for a union of several types. It reads the rows of each branch separately.
    In the rows of one branch, the members of the other branches are null."""
    places = branches_of(union)
    readers = [
        reader_of(union.branches[at], field.type) for at, field in zip(places, arrow, strict=True)
    ]

    def read(cursor: Cursor) -> pa.StructArray:
        branch = cursor.index(len(union.branches))
        children = [
            _chosen(cursor, branch == at, reader, field.type)
            for at, reader, field in zip(places, readers, arrow, strict=True)
        ]
        mask = None
        if is_nullable(union):
            mask = pa.array(~np.isin(branch, places))
        return pa.StructArray.from_arrays(children, fields=list(arrow), mask=mask)

    return read


def _chosen(cursor: Cursor, mask: Mask, inner: Reader, arrow: pa.DataType) -> pa.Array:
    """Reads with `inner` the rows where `mask` is true. The other rows become null, and their
    positions do not move."""
    rows = np.flatnonzero(mask)
    if len(rows) == len(cursor):
        return inner(cursor)
    part = cursor.select(rows)
    column = inner(part) if len(rows) else pa.nulls(0, arrow)
    cursor.merge(rows, part)
    return spread(column, mask)


def _array(avro: Array, arrow: pa.ListType) -> Reader:
    locate = locator(avro.items)
    item = reader_of(avro.items, arrow.value_type)

    def read(cursor: Cursor) -> pa.ListArray:
        located = locate(cursor)
        items = item(located.cursor)
        _settle(cursor, located)
        return pa.ListArray.from_arrays(pa.array(located.offsets), items, type=arrow)

    return read


def _map(avro: Map, arrow: pa.MapType) -> Reader:
    locate = locator(avro.values, is_map=True)
    value = reader_of(avro.values, arrow.item_type)

    def read(cursor: Cursor) -> pa.MapArray:
        located = locate(cursor)
        keys = _string(located.cursor)
        located.cursor.fail(repeated_keys(keys, located.rows))
        items = value(located.cursor)
        _settle(cursor, located)
        return pa.MapArray.from_arrays(pa.array(located.offsets), keys, items, type=arrow)

    return read


def _settle(cursor: Cursor, located: Located) -> None:
    wrong = np.zeros(len(cursor), bool)
    wrong[located.rows[located.cursor.bad]] = True
    cursor.fail(wrong)
