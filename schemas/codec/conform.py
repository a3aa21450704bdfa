"""Brings columns to exactly the types of a schema before they are encoded, and finds bad rows.

Only conversions that change no value are made. Dictionaries and run-end encoded columns are
decoded. If the schema demands strings, large strings and string views become strings, and so do
binary and large binary values that are UTF-8. If the schema demands binary values, strings and all
kinds of binary values become binary values. A column of the type null may become any type.
Integers, decimals, dates and times of day may get another width or unit. Floats may get a wider
type. Timestamps may get another unit and another time zone. Integers of 64 bits may become
timestamps. If a column needs any other conversion, the caller has made a mistake, and the module
raises `ColumnsRefused`. If the column can be converted except for some values, the mistake is in
the data, and the rows of these values are bad.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import Field, Record, default_fault
from skidway.schemas.codec.arrow import avro_name
from skidway.schemas.codec.faults import value_faults, within
from skidway.schemas.codec.rows import DEFAULT_FAULTS, default_value

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Faults = dict[int, str]


class ColumnsRefused(SkidwayError):
    """Raised if the columns of a batch do not match the columns of the schema, or if a batch is too
    large."""


def conform(
    batch: pa.RecordBatch, record: Record, schema: pa.Schema
) -> tuple[list[pa.Array], Faults]:
    """Returns the columns in the schema's order and types, and a dict that maps the index of each
    bad row to the reason. The columns still contain the bad rows, but the values of these rows have
    no meaning. Raises `ColumnsRefused`."""
    _refuse_strangers(batch, schema)
    faults: Faults = {}
    columns = []
    for avro, field in zip(record.fields, schema, strict=True):
        column = _given(batch, avro, field)
        column, unfit = _cast(_decoded(column), field)
        _note(faults, unfit, field.name, f"does not fit into {avro_name(field.type)}")
        for mask, reason in value_faults(column, avro.type):
            _note(faults, mask, field.name, reason)
        columns.append(column)
    return columns, faults


def _refuse_strangers(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    names = batch.schema.names
    strangers = sorted(set(names) - set(schema.names))
    if strangers:
        raise ColumnsRefused(f"The schema has no field for column {', '.join(strangers)}.")
    if len(set(names)) != len(names):
        raise ColumnsRefused("The batch has a column twice.")


def _given(batch: pa.RecordBatch, avro: Field, field: pa.Field) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at >= 0:
        return batch.column(at)
    return default_column(avro, field, batch.num_rows)


def default_column(avro: Field, field: pa.Field, count: int) -> pa.Array:
    """Returns a column with `count` rows that all have the default of a field. Raises
    `ColumnsRefused` if the field has no valid default."""
    if not avro.has_default:
        raise ColumnsRefused(f"Field {field.name} has no column and no default.")
    fault = default_fault(avro.type, avro.default)
    if fault:
        raise ColumnsRefused(f"Field {field.name} has no column and its default is none: {fault}.")
    if avro.default is None:
        return pa.nulls(count, field.type)
    try:
        return pa.array([default_value(avro.type, avro.default)] * count, field.type)
    except DEFAULT_FAULTS as error:
        raise ColumnsRefused(
            f"Field {field.name} has no column and its default does not fit ({error})."
        ) from None


def _decoded(column: pa.Array) -> pa.Array:
    if types.is_dictionary(column.type):
        return column.dictionary_decode()
    return pc.run_end_decode(column) if types.is_run_end_encoded(column.type) else column


def _cast(column: pa.Array, field: pa.Field) -> tuple[pa.Array, Mask | None]:
    """Returns the column in the field's type, and a mask of the rows that do not fit, or None if
    all rows fit. The column is null in the rows that do not fit."""
    source, target = column.type, _all_nullable(field.type)
    if source in (target, field.type):
        return column, None
    if types.is_binary(source) and types.is_string(target):
        return column.view(pa.string()), None  # UTF-8 is checked later
    if types.is_large_binary(source) and types.is_string(target):
        return _cast(column.cast(pa.binary()), field)
    if not _is_lossless(source, target):
        raise ColumnsRefused(f"Column {field.name} is {source}; its field takes {target}.")
    return checked_cast(column, target)


def checked_cast(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Mask | None]:
    """Returns the column cast to `target`, and a mask of the rows that do not fit, or None if all
    rows fit. The column is null in the rows that do not fit."""
    try:
        return column.cast(target), None
    except pa.ArrowInvalid:
        unfit, column = np.zeros(len(column), bool), _copied(column, 0, len(column))
        _mark_unfit(column, target, 0, unfit)
        return pc.if_else(pa.array(unfit), None, column).cast(target), unfit


def _mark_unfit(column: pa.Array, target: pa.DataType, start: int, unfit: Mask) -> None:
    """Sets `unfit` to true for the rows of `column` that cannot be cast to `target`. `start` is the
    index in `unfit` of the column's first row. Divides the column into halves until it finds the
    bad rows, so a few bad rows among many need only a few casts.

    Each half is a copy, because Arrow's cast of a part of a list or map column also reads the items
    outside of this part.
    """
    try:
        column.cast(target)
    except pa.ArrowInvalid:
        half = len(column) // 2
        if half == 0:
            unfit[start] = True
            return
        for first, end in ((0, half), (half, len(column))):
            _mark_unfit(_copied(column, first, end), target, start + first, unfit)


def _copied(column: pa.Array, first: int, end: int) -> pa.Array:
    return column.take(pa.array(np.arange(first, end)))


def _all_nullable(arrow: pa.DataType) -> pa.DataType:
    """Returns the type with nulls allowed at every depth. Later, `value_faults` finds the nulls
    that the schema does not allow."""
    if types.is_struct(arrow):
        return pa.struct([(each.name, _all_nullable(each.type)) for each in arrow])
    if types.is_list(arrow):
        return pa.list_(_all_nullable(arrow.value_type))
    return pa.map_(pa.string(), _all_nullable(arrow.item_type)) if types.is_map(arrow) else arrow


def _is_any_string(arrow: pa.DataType) -> bool:
    return bool(
        types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow)
    )


def _is_any_binary(arrow: pa.DataType) -> bool:
    return bool(
        types.is_binary(arrow)
        or types.is_large_binary(arrow)
        or types.is_binary_view(arrow)
        or types.is_fixed_size_binary(arrow)
    )


def _is_instant(arrow: pa.DataType) -> bool:
    return bool(types.is_timestamp(arrow)) and arrow.tz is not None


def _is_wall_time(arrow: pa.DataType) -> bool:
    return bool(types.is_timestamp(arrow)) and arrow.tz is None


_FAMILIES: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    types.is_integer,
    types.is_floating,
    types.is_date,
    types.is_time,
    types.is_decimal,
    _is_any_string,
    _is_any_binary,
    _is_instant,
    _is_wall_time,
)


def _is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    """Returns whether `checked_cast` from `source` to `target` changes no value, apart from the
    values that it refuses."""
    if types.is_null(source):
        return True
    if types.is_floating(source) and types.is_floating(target):
        return bool(source.bit_width <= target.bit_width)
    if types.is_int64(source) and types.is_timestamp(target):
        return True
    if _is_any_string(source) and types.is_binary(target):
        return True
    if types.is_fixed_size_binary(source) and types.is_fixed_size_binary(target):
        return bool(source.byte_width == target.byte_width)
    if types.is_struct(target):
        return _is_lossless_struct(source, target)
    if types.is_list(target):
        listed = types.is_list(source) or types.is_large_list(source)
        return listed and _is_same_or_lossless(source.value_type, target.value_type)
    if types.is_map(target):
        return types.is_map(source) and (
            _is_same_or_lossless(source.key_type, target.key_type)
            and _is_same_or_lossless(source.item_type, target.item_type)
        )
    return any(family(source) and family(target) for family in _FAMILIES)


def _is_same_or_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    if types.is_dictionary(source):
        source = source.value_type
    return bool(source == target) or _is_lossless(source, target)


def _is_lossless_struct(source: pa.DataType, target: pa.DataType) -> bool:
    if not types.is_struct(source) or source.num_fields != target.num_fields:
        return False
    return all(
        mine.name == other.name and _is_same_or_lossless(other.type, mine.type)
        for mine, other in zip(target, source, strict=True)
    )


def _note(faults: Faults, mask: Mask | None, name: str, reason: str) -> None:
    if mask is not None:
        for index in np.flatnonzero(mask).tolist():
            faults.setdefault(index, within(f"field {name}", reason))
