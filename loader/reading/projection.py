"""Turns the writer's columns into those of the file, which has the subject's latest schema.

A writer's field matches the reader's field of the same name, or a reader's field that has this name
as an alias. If the writer has no such field, the rows get the reader field's default, or null.
Types are cast if no value changes. A row that does not fit is set apart. If the writer's schema as
a whole does not fit the reader's (a field without default, a type that has no cast), all its rows
are set apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import Field, default_fault, parse
from skidway.schemas.codec.arrow import arrow_schema, as_record
from skidway.schemas.codec.rows import DEFAULT_FAULTS, default_value
from skidway.schemas.codec.spreading import repeated

Bools = npt.NDArray[np.bool_]


class NotProjectable(SkidwayError):
    """No row of the writer's schema can fit the reader's schema; the sentence names the field."""


@dataclass(frozen=True, slots=True)
class Projected:
    """The rows that fit, in the reader's columns. fits: per row of the batch, whether it fits."""

    columns: list[pa.Array]
    fits: Bools


Step = Callable[[pa.RecordBatch], tuple[pa.Array, Bools | None]]


class Projection:
    """Brings batches of one writer's schema to the reader's. Made once per pair of schemas."""

    def __init__(self, writer: pa.Schema, reader: str) -> None:
        record = as_record(parse(reader, check_defaults=False))
        self.schema = arrow_schema(record)
        self._steps: list[Step] | None = None
        if not self.schema.equals(writer):
            pairs = zip(record.fields, self.schema, strict=True)
            self._steps = [_step(writer, avro, field) for avro, field in pairs]

    def apply(self, batch: pa.RecordBatch) -> Projected:
        """The rows of a batch that fit, in the reader's columns."""
        fits = np.ones(batch.num_rows, np.bool_)
        if self._steps is None:
            return Projected(batch.columns, fits)
        columns = []
        for step in self._steps:
            column, unfit = step(batch)
            columns.append(column)
            if unfit is not None:
                fits &= ~unfit
        if not fits.all():
            kept = pa.array(np.flatnonzero(fits))
            columns = [column.take(kept) for column in columns]
        return Projected(columns, fits)


def _step(writer: pa.Schema, avro: Field, field: pa.Field) -> Step:
    for name in (avro.name, *avro.aliases):
        at = writer.get_field_index(name)
        if at >= 0:
            _check_castable(writer.field(at), field)
            return lambda batch: _cast(batch.column(at), field)
    if avro.has_default and avro.default is not None:
        value = _default(avro, field)
        return lambda batch: (repeated(value, batch.num_rows), None)
    if field.nullable:
        return lambda batch: (pa.nulls(batch.num_rows, field.type), None)
    raise NotProjectable(f"the writer's schema has no field {avro.name}, which has no default")


def _default(avro: Field, field: pa.Field) -> pa.Array:
    """The default as one row. Schemas in other vendors' registries may have invalid defaults."""
    fault = default_fault(avro.type, avro.default)
    if fault is None:
        try:
            return pa.array([default_value(avro.type, avro.default)], field.type)
        except DEFAULT_FAULTS as error:
            fault = str(error)
    raise NotProjectable(f"the default of field {avro.name} is none: {fault}")


def _check_castable(source: pa.Field, target: pa.Field) -> None:
    if source.type == target.type:
        return
    try:
        pa.nulls(0, source.type).cast(target.type)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise NotProjectable(
            f"field {target.name} was written as {source.type} and is {target.type} now"
        ) from error


def _cast(column: pa.Array, field: pa.Field) -> tuple[pa.Array, Bools | None]:
    unfit, written = None, column
    if column.type != field.type:
        try:
            column = column.cast(field.type)
        except pa.ArrowInvalid:
            unfit = np.zeros(len(column), np.bool_)
            _mark_unfit(column, field.type, 0, unfit)
            column = pc.if_else(pa.array(unfit), None, column).cast(field.type)
        changed = _changed(written, column)
        if changed is not None:
            unfit = changed if unfit is None else unfit | changed
    if not field.nullable and column.null_count:
        missing = np.asarray(column.is_null())
        unfit = missing if unfit is None else unfit | missing
    return column, unfit


def _changed(written: pa.Array, cast: pa.Array) -> Bools | None:
    """Rows whose value is another one after a cast and back. Arrow's casts round, and turn 5 into
    true."""
    if written.type == cast.type or not (_is_plain(written.type) and _is_plain(cast.type)):
        return None
    same = pc.equal(cast.cast(written.type), written)
    if types.is_floating(written.type):
        same = pc.or_(same, pc.is_nan(written))
    changed = ~np.asarray(pc.coalesce(same, pa.scalar(True)))  # a null stays a null in any cast
    return changed if changed.any() else None


def _is_plain(kind: pa.DataType) -> bool:
    checks = (types.is_floating, types.is_boolean, types.is_integer, types.is_string)
    return any(check(kind) for check in checks)


def _mark_unfit(column: pa.Array, target: pa.DataType, start: int, unfit: Bools) -> None:
    """Marks the rows whose cast fails. It halves the column until it finds them, so that a few bad
    rows among many cost few casts."""
    try:
        column.cast(target)
    except pa.ArrowInvalid:
        half = len(column) // 2
        if half == 0:
            unfit[start] = True
            return
        _mark_unfit(column.slice(0, half), target, start, unfit)
        _mark_unfit(column.slice(half), target, start + half, unfit)
