"""Turns the writer's columns into the file's columns. A file has the columns of the subject's
latest schema; this module calls that schema the reader's schema.

A writer's field matches the reader's field of the same name, or a reader's field that has this name
as an alias. If several writer's fields match a reader's field, the values come from the writer's
field with the same name. If no matching field has the same name, the reader's aliases are tried in
their order, and the values come from the writer's field that is found first (as in
schemas/codec/resolution.py). If no writer's field matches a reader's field, the rows get the
default of the reader's field, or null if the field allows null. A value is cast to the reader's
type if the cast does not change the value. Otherwise the value's row becomes a reject. All rows of
a writer's schema become rejects in two cases: if the writer lacks a reader's field that has no
valid default and does not allow null, or if a type cannot be cast.

Records, arrays, maps and unions in fields follow Avro's schema resolution. Arrow's casts alone
would give wrong values, because they ignore aliases and defaults, and match the members of unions
by position. In one point rows differ from that resolution: a row keeps the symbol that was written,
even if the reader's enum lacks it. If Avro's resolution refuses to read a nested type as the
reader's type, there are two cases. If the type contains a union, or contains itself, it cannot be
cast, and all rows of the writer's schema become rejects. Otherwise this module lets Arrow cast it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Field,
    Map,
    Record,
    Recursive,
    Union,
    default_fault,
    named_types,
    parse,
)
from skidway.schemas.canonical import canonical
from skidway.schemas.codec.arrow import arrow_schema, arrow_type, as_record, branches_of
from skidway.schemas.codec.conform import checked_cast
from skidway.schemas.codec.matching import Budget, TooManyTypes, Unresolvable, size
from skidway.schemas.codec.resolution import resolution
from skidway.schemas.codec.rows import DEFAULT_FAULTS, default_value
from skidway.schemas.codec.spreading import null_of, repeated
from skidway.schemas.codec.times import far_times, time_faults

Bools = npt.NDArray[np.bool_]


class NotProjectable(SkidwayError):
    """Raised if no row of the writer's schema can fit the reader's schema. The error message
    contains the name of the field that prevents this."""


@dataclass(frozen=True, slots=True)
class Projected:
    """The rows that fit the reader's schema, in the reader's columns. fits: for each row of the
    batch, whether the row fits. far: whether the row does not fit because of a timestamp that
    readers of the files cannot hold (`far_times`)."""

    columns: list[pa.Array]
    fits: Bools
    far: Bools


Step = Callable[[pa.RecordBatch], tuple[pa.Array, Bools | None]]


class Projection:
    """Turns batches with the writer's columns into batches with the reader's columns. There is one
    `Projection` for each pair of schemas."""

    def __init__(self, writer: str, reader: str) -> None:
        written, read = (parse(each, check_defaults=False) for each in (writer, reader))
        is_same = canonical(written) == canonical(read)
        _keep_symbols(written, read)
        record = as_record(read)
        self.schema = arrow_schema(record)
        self._steps: list[Step] | None = None
        if not is_same:
            pairs = zip(record.fields, self.schema, strict=True)
            fields = enumerate(as_record(written).fields)
            source, budget = {each.name: (at, each.type) for at, each in fields}, Budget()
            try:
                self._steps = [_step(source, avro, field, budget) for avro, field in pairs]
            except TooManyTypes as error:
                raise NotProjectable(str(error)) from error

    def apply(self, batch: pa.RecordBatch) -> Projected:
        """Returns the rows of the batch that fit the reader's schema, in the reader's columns."""
        far = np.zeros(batch.num_rows, np.bool_)
        unfit = far.copy()
        columns = batch.columns
        if self._steps is not None:
            found = [step(batch) for step in self._steps]
            columns = [column for column, _ in found]
            for mask in (mask for _, mask in found if mask is not None):
                unfit |= mask
        for beyond in map(far_times, columns):
            if beyond is not None:
                far |= beyond & ~unfit
        fits = ~(unfit | far)
        if not fits.all():
            kept = pa.array(np.flatnonzero(fits))
            columns = [column.take(kept) for column in columns]
        return Projected(columns, fits, far)


def _keep_symbols(writer: AvroType, reader: AvroType) -> None:
    """Adds the symbols of each of the writer's enums to the reader's enum of the same name, so that
    each row keeps the symbol that was written. A column of symbols is a column of strings, in which
    every symbol has room. If old rows became the reader's default instead, dropping a symbol would
    change history, and every file would have to be rewritten."""
    written: dict[str, dict[str, None]] = {}
    for each in _enums(writer):
        for name in (each.name, each.name.rpartition(".")[2]):
            written.setdefault(name, {}).update(dict.fromkeys(each.symbols))
    for each in _enums(reader):
        names = (each.name.rpartition(".")[2], *each.aliases)
        more = (symbol for name in names for symbol in written.get(name, ()))
        each.symbols = tuple(dict.fromkeys((*each.symbols, *more)))


def _enums(avro: AvroType) -> list[Enum]:
    return [each for each in named_types(avro).values() if isinstance(each, Enum)]


def _step(
    written: Mapping[str, tuple[int, AvroType]], avro: Field, field: pa.Field, budget: Budget
) -> Step:
    for name in (avro.name, *avro.aliases):
        if name in written:
            return _taken(*written[name], avro.type, field, budget)
    if avro.has_default and avro.default is not None:
        value = _default(avro, field)
        return lambda batch: (repeated(value, batch.num_rows), None)
    if field.nullable:
        nothing = null_of(field.type)
        return lambda batch: (repeated(nothing, batch.num_rows), None)
    raise NotProjectable(f"the writer's schema has no field {avro.name}, which has no default")


def _default(avro: Field, field: pa.Field) -> pa.Array:
    """Returns the default of a field, as an array with one row. Raises NotProjectable if the
    default is invalid. Schemas in the registries of other vendors may have invalid defaults."""
    fault = default_fault(avro.type, avro.default)
    if fault is None:
        try:
            return pa.array([default_value(avro.type, avro.default)], field.type)
        except DEFAULT_FAULTS as error:
            fault = str(error)
    raise NotProjectable(f"the default of field {avro.name} is none: {fault}")


def _taken(at: int, written: AvroType, read: AvroType, field: pa.Field, budget: Budget) -> Step:
    """Returns the function that makes the column of the reader's field from the column at index
    `at` of the writer's rows."""
    source, has_choice = arrow_type(written), _has_choice(written) or _has_choice(read)
    budget.take(size(written) + size(read))
    is_same = source == field.type and (not has_choice or canonical(written) == canonical(read))
    if not is_same and (has_choice or types.is_nested(source) or types.is_nested(field.type)):
        try:
            resolve = resolution(written, read, field.name, budget)
        except Unresolvable as error:
            if has_choice:
                raise NotProjectable(str(error)) from error
        else:
            return lambda batch: _resolved(*resolve(batch.column(at)))
    try:
        _check_castable(source, field)
    except NotProjectable as error:
        return _without_cast(at, written, read, error, budget)
    return lambda batch: _cast(batch.column(at), field)


def _without_cast(
    at: int, written: AvroType, read: AvroType, error: NotProjectable, budget: Budget
) -> Step:
    """Returns the function that converts a column if Arrow cannot cast the writer's type to the
    reader's type. Raises `error` if Avro's resolution also refuses these types."""
    try:
        resolve = resolution(written, read, budget=budget)
    except Unresolvable:
        raise error from None
    return lambda batch: _resolved(*resolve(batch.column(at)))


def _has_choice(avro: AvroType) -> bool:
    """Returns whether the type contains, at any depth, a union with two or more members besides
    null, or a type that contains itself."""
    if isinstance(avro, Recursive):
        return True
    if isinstance(avro, Union):
        inside = [avro.branches[at] for at in branches_of(avro)]
        return len(inside) > 1 or any(map(_has_choice, inside))
    if isinstance(avro, Record):
        return any(_has_choice(each.type) for each in avro.fields)
    if isinstance(avro, Array):
        return _has_choice(avro.items)
    return isinstance(avro, Map) and _has_choice(avro.values)


def _resolved(column: pa.Array, found: list[tuple[Bools, str]]) -> tuple[pa.Array, Bools | None]:
    unfit = np.zeros(len(column), np.bool_)
    for mask, _ in found:
        unfit |= mask
    return column, unfit if found else None


def _check_castable(source: pa.DataType, target: pa.Field) -> None:
    """Checks that Arrow can cast to the target's type and back, because `_changed` needs both
    casts. If one of the casts is impossible, raises NotProjectable. Arrow casts an empty array to
    any type, even to a type to which it cannot cast values. So this check casts an array with one
    null."""
    if source == target.type:
        return
    try:
        null_of(source).cast(target.type)
        null_of(target.type).cast(source)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise NotProjectable(
            f"field {target.name} was written as {source} and is {target.type} now"
        ) from error


def _cast(column: pa.Array, field: pa.Field) -> tuple[pa.Array, Bools | None]:
    unfit, written = None, column
    if column.type != field.type:
        column, unfit = checked_cast(column, field.type)
        for found in (_changed(written, column), time_faults(column)):
            if found is not None:
                unfit = found if unfit is None else unfit | found
    if not field.nullable and column.null_count:
        missing = np.asarray(column.is_null())
        unfit = missing if unfit is None else unfit | missing
    return column, unfit


def _differ(left: pa.Scalar, right: pa.Scalar) -> bool:
    """Returns whether two values differ. If Python cannot represent a time, the two values count as
    different."""
    try:
        return repr(left.as_py()) != repr(right.as_py())
    except (OverflowError, ValueError):
        return True


def _changed(written: pa.Array, cast: pa.Array) -> Bools | None:
    """Returns, for each row, whether its value changes if it is cast to the new type and back. May
    return None if no value changes. Some of Arrow's casts change values: they round numbers, turn
    5 into true, or lose the sign of -0.0."""
    if types.is_nested(written.type):
        pairs = zip(cast.cast(written.type), written, strict=True)
        return np.fromiter((_differ(back, value) for back, value in pairs), np.bool_)
    back = cast.cast(written.type, safe=False)
    same = pc.equal(back, written)
    if types.is_floating(written.type):
        signs = (np.signbit(each.to_numpy(zero_copy_only=False)) for each in (back, written))
        same = pc.or_(pc.and_(same, pa.array(np.equal(*signs))), pc.is_nan(written))
    changed = ~np.asarray(pc.coalesce(same, pa.scalar(True)))  # every cast keeps a null
    return changed if changed.any() else None
