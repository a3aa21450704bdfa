"""The types of the columns in Parquet files and in queries.

These types are the Arrow types of `skidway.schemas.codec`, except for the types in this table:

| Avro | column | why |
|---|---|---|
| int | int64 | the registry lets an int become a long; plain Spark cannot read both types at once |
| float | double | likewise, a float may become a double |
| time-millis, time-micros | int64 | Spark does not read Parquet's type TIME |
| (local-)timestamp-nanos | int64 | Spark does not read nanoseconds |
| decimal of more than 38 digits | string | Spark's decimals have 38 digits |
| null | string, always null | Parquet's null type becomes an int in Spark |
| record without fields | struct of a null string `_` | Parquet has no struct without fields |
| fixed | binary | Spark 3.3 reads no Parquet file with a fixed; Parquet has no fixed of no bytes |

A recursive Avro type needs no row in this table, because the codec has already turned it into a
string (`schemas/codec/json_text.py`). No conversion changes a value: a time, for example, keeps the
number that it has in Avro.
docs/adr/0019-columns-that-stay-readable.md says which conversions were tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc
from pyarrow import types

_NOTHING: Final = (pa.field("_", pa.string()),)


def column_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema that the columns have in files and queries. schema: the schema that they
    have in the codec.
    """
    return pa.schema([_column_field(field) for field in schema])


def column_type(arrow: pa.DataType) -> pa.DataType:
    """Returns the type that a column, or a part of a column, has in files and queries. arrow: its
    type in the codec."""
    if types.is_struct(arrow):
        return pa.struct([_column_field(field) for field in arrow] or _NOTHING)
    if types.is_map(arrow):
        return pa.map_(arrow.key_type, _column_field(arrow.item_field))
    if types.is_list(arrow):
        return pa.list_(_column_field(arrow.value_field))
    if types.is_integer(arrow) or types.is_time(arrow):
        return pa.int64()
    if types.is_floating(arrow):
        return pa.float64()
    if types.is_timestamp(arrow) and arrow.unit == "ns":
        return pa.int64()
    if types.is_null(arrow) or types.is_decimal256(arrow):
        return pa.string()
    if types.is_fixed_size_binary(arrow):
        return pa.binary()
    return arrow


def directory_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema with which all files of a directory can be read. The result has the
    columns of `schema` (the newest schema of the rows), but every field at every depth may be null,
    because rows of older schemas may lack the field.
    """
    return pa.schema([_stored(field, is_nullable=True) for field in schema])


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema of the file that is made when a table with the schema `schema` is
    written.
    """
    return pa.schema([_stored(field) for field in schema])


def converted(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Returns the column, converted to the type `target`. `target` must be
    `column_type(column.type)`."""
    if column.type == target:
        return column
    if types.is_nested(target):
        return _each_part(converted, column, target)
    if types.is_time32(column.type):
        column = column.cast(pa.int32())
    return column.cast(target)


def reverted(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Converts a column of a file back to the codec's type `target`. This is the opposite of
    `converted`."""
    if column.type == target:
        return column
    if types.is_struct(target) and column.null_count:
        return _reverted_records(column, target)
    if types.is_nested(target):
        return _each_part(reverted, column, target)
    if types.is_null(target):
        return pa.nulls(len(column))
    if types.is_time32(target):
        column = column.cast(pa.int32())
    if types.is_fixed_size_binary(target) and not target.byte_width:
        return pa.array(column.to_pylist(), target)
    if types.is_dictionary(target):
        return column.cast(target.value_type).dictionary_encode().cast(target)
    return column.cast(target)


def _each_part(
    change: Callable[[pa.Array, pa.DataType], pa.Array], column: pa.Array, target: pa.DataType
) -> pa.Array:
    if types.is_struct(target):
        return _struct(change, column, target)
    offsets, items = _items(column)
    if types.is_map(target):
        keys, values = items.field(0), change(items.field(1), target.item_type)
        return pa.MapArray.from_arrays(offsets, keys, values, type=target, mask=_mask(column))
    values = change(items, target.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=_mask(column))


def _struct(
    change: Callable[[pa.Array, pa.DataType], pa.Array], column: pa.Array, target: pa.StructType
) -> pa.Array:
    if not target.num_fields:
        nothing = pa.array([{}] * len(column), target)
        return pc.if_else(column.is_valid(), nothing, pa.scalar(None, target))
    if not column.type.num_fields:
        children = [pa.nulls(len(column), pa.string())]
    else:
        children = [change(column.field(at), each.type) for at, each in enumerate(target)]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(column))


def _reverted_records(column: pa.StructArray, target: pa.StructType) -> pa.StructArray:
    """Reverts only the records that are not null, because what the fields of a null record contain
    need not fit their types. A null record gets the fields of the record before it."""
    made = reverted(column.drop_null(), target)
    if not len(made):
        made = pa.array([_empty(target)], target)
    last = np.cumsum(np.asarray(column.is_valid())) - 1
    children = made.take(pa.array(np.maximum(last, 0))).flatten()
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_mask(column))


def _empty(arrow: pa.DataType) -> Any:
    """Returns a value of the type: zero, or one without content."""
    if types.is_struct(arrow):
        return {each.name: _empty(each.type) for each in arrow}
    if types.is_list(arrow) or types.is_map(arrow):
        return []
    if types.is_fixed_size_binary(arrow):
        return bytes(arrow.byte_width)
    if types.is_string(arrow) or types.is_binary(arrow) or types.is_dictionary(arrow):
        return ""
    return None if types.is_null(arrow) else 0


def _column_field(field: pa.Field) -> pa.Field:
    return field.with_type(column_type(field.type))


def _stored(field: pa.Field, *, is_nullable: bool = False) -> pa.Field:
    """Returns the field with the type that it has in a file. is_nullable: if true, the field and
    every field inside it may be null; if false, each of them keeps its own `nullable`."""
    arrow = field.type
    if types.is_struct(arrow):
        arrow = pa.struct([_stored(each, is_nullable=is_nullable) for each in arrow])
    elif types.is_map(arrow):
        arrow = pa.map_(arrow.key_type, _stored(arrow.item_field, is_nullable=is_nullable))
    elif types.is_list(arrow):
        arrow = pa.list_(_stored(arrow.value_field, is_nullable=is_nullable))
    elif types.is_dictionary(arrow):
        arrow = arrow.value_type  # a file stores the values, without a dictionary
    return field.with_type(arrow).with_nullable(is_nullable or field.nullable)


def _items(column: pa.ListArray | pa.MapArray) -> tuple[pa.Array, pa.Array]:
    offsets = np.asarray(column.offsets)
    begin, end = int(offsets[0]), int(offsets[-1])
    return pa.array(offsets - begin), column.values.slice(begin, end - begin)


def _mask(column: pa.Array) -> pa.BooleanArray:
    return pa.array(np.asarray(column.is_null()))
