"""Finds the rows that cannot be encoded although their columns have the types that the schema
demands. Returns a reason for each of these rows.

A row does not fit if it has one of these faults, at any depth:

- a null where the schema allows no null
- a text that is not UTF-8
- a symbol that the enum does not have
- a union in which no member, or more than one member, is set
- a map with the same key twice
- a value of a fixed type that does not have the type's size
- a time of day that is negative, or 24 hours or more
- a timestamp in milliseconds that microseconds of 64 bits cannot hold
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.schemas.avro_schema import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union
from skidway.schemas.codec.arrow import branches_of, unwrapped
from skidway.schemas.codec.text import repeated_keys, utf8_faults
from skidway.schemas.codec.times import FAR_TIME, NO_TIME_OF_DAY, far_times, time_faults


class NotUtf8(str):
    """The reason why a row does not fit the schema: the row has, at any depth, a string that is not
    UTF-8."""

    __slots__ = ()


NOT_UTF8: Final = NotUtf8("not UTF-8")

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


def value_faults(column: pa.Array, avro: AvroType) -> list[tuple[Mask, str]]:
    """Returns, for each kind of fault, a mask and the reason. The mask is true for the rows of the
    column that have the fault, at any depth."""
    found: list[tuple[Mask, str]] = []
    inner, nullable = unwrapped(avro)
    if column.null_count and not nullable and inner.kind != "null":
        found.append((np.asarray(column.is_null()), "missing or null in a required field"))
    outside = time_faults(column)
    if outside is not None:
        found.append((outside, NO_TIME_OF_DAY))
    if types.is_timestamp(column.type):
        far = far_times(column)
        found += [] if far is None else [(far, FAR_TIME)]
    elif types.is_string(column.type):
        found += _text_faults(column, inner)
    elif isinstance(inner, Record):
        found += _struct_faults(column, inner)
    elif isinstance(inner, Union):
        found += _member_faults(column, inner)
    elif isinstance(inner, Fixed) and types.is_binary(column.type):
        found += _size_faults(column, inner)
    elif isinstance(inner, Array):
        found += _list_faults(column, inner.items)
    elif isinstance(inner, Map):
        found += _map_faults(column, inner)
    return found


def within(place: str, reason: str) -> str:
    """Returns the reason with `place` (the path of the field) before it. The result has the class
    of `reason`, which may be a subclass of str."""
    return type(reason)(f"{place}: {reason}")


def _text_faults(column: pa.Array, avro: AvroType) -> list[tuple[Mask, str]]:
    if isinstance(avro, Enum):
        known = pc.is_in(column, pa.array(avro.symbols, pa.string()))
        unknown = np.asarray(pc.and_(pc.invert(known), column.is_valid()))
        return [(unknown, f"no symbol of enum {avro.name}")] if unknown.any() else []
    mask = utf8_faults(column)
    return [] if mask is None else [(mask, NOT_UTF8)]


def _struct_faults(column: pa.Array, record: Record) -> list[tuple[Mask, str]]:
    present = np.asarray(column.is_valid())
    return [
        (mask & present, within(each.name, reason))
        for at, each in enumerate(record.fields)
        for mask, reason in value_faults(column.field(at), each.type)
    ]


def _member_faults(column: pa.StructArray, union: Union) -> list[tuple[Mask, str]]:
    present = np.asarray(column.is_valid())
    set_count = np.zeros(len(column), np.int64)
    found = []
    for number, at in enumerate(branches_of(union)):
        member = column.field(number)
        is_set = np.asarray(member.is_valid())
        set_count += is_set
        for mask, reason in value_faults(member, union.branches[at]):
            found.append((mask & present & is_set, reason))
    found.append((present & (set_count == 0), "no member of the union is set"))
    found.append((present & (set_count > 1), "several members of the union are set"))
    return [(mask, reason) for mask, reason in found if mask.any()]


def _size_faults(column: pa.BinaryArray, fixed: Fixed) -> list[tuple[Mask, str]]:
    sizes = pc.binary_length(column).fill_null(fixed.size)
    wrong = np.asarray(pc.not_equal(sizes, fixed.size))
    return [(wrong, f"not {fixed.size} bytes")] if wrong.any() else []


def _list_faults(column: pa.Array, items: AvroType) -> list[tuple[Mask, str]]:
    parents = np.asarray(pc.list_parent_indices(column))
    found = []
    for mask, reason in value_faults(pc.list_flatten(column), items):
        found.append((_of_rows(column, parents[mask]), reason))
    return found


def _map_faults(column: pa.MapArray, avro: Map) -> list[tuple[Mask, str]]:
    keys, values, parents = _pairs(column)
    found = [
        (np.asarray(keys.is_null()), "key: null in a required field"),
        (repeated_keys(keys, parents), "a map has a key twice"),
    ]
    found = [(mask, reason) for mask, reason in found if mask.any()]
    found += [(mask, within("key", why)) for mask, why in _text_faults(keys, Primitive("string"))]
    found += [(mask, within("value", why)) for mask, why in value_faults(values, avro.values)]
    return [(_of_rows(column, parents[mask]), reason) for mask, reason in found]


def _pairs(column: pa.MapArray) -> tuple[pa.Array, pa.Array, Ints]:
    """Returns the keys and the values of all maps that are not null, and for each pair of key and
    value the row of its map."""
    offsets = np.asarray(column.offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    keys, values = column.keys.slice(first, count), column.items.slice(first, count)
    parents = np.repeat(np.arange(len(column)), np.diff(offsets))
    if not column.null_count:
        return keys, values, parents
    kept = np.asarray(column.is_valid())[parents]
    mask = pa.array(kept)
    return keys.filter(mask), values.filter(mask), parents[kept]


def _of_rows(column: pa.Array, indices: Ints) -> Mask:
    rows = np.zeros(len(column), bool)
    rows[indices] = True
    return rows
