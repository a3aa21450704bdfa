"""Does schema resolution on columns: turns columns with values of the writer's schema into columns
of the reader's schema.

The rules are those of Avro 1.12, "Schema Resolution". Where the specification leaves a choice, this
module uses these rules:

- If several of the writer's fields match a reader's field, this module reads the field of the same
  name. If no field has the same name, it reads the field of the first alias that matches. The
  writer's other matching fields are not read. Avro Java and the compatibility check
  (READER_FIELD_AMBIGUOUS) refuse a pair of schemas with this ambiguity. So the pair can only come
  from a subject whose compatibility is not checked.
- If the reader has a union, the value goes to a branch that has the writer's own type: of several
  with its name (in different namespaces), to that with its full name. Only if there is no such
  branch, the value goes to a branch to which the writer's type can be promoted. Avro Java does the
  same. For example, an int stays an int if the union has the branches float and int.
- If both types are timestamps, times of day or decimals, the value is kept, and the number in the
  datum may change. For example, a timestamp in milliseconds becomes the same moment in
  microseconds, and a decimal becomes the same value with another scale. If the conversion cannot
  keep the exact value, the row does not fit the reader's schema. In all other cases the number in
  the datum is kept, and read as the reader's logical type.

A pair of schemas is compiled once, into steps. A step is a function that gets a column without
nulls, and returns the reader's column and the rows that do not fit. (Only unions have nulls, and
the steps for unions handle these nulls.) If a field's type contains the field's record in one of
the schemas, `text_resolution` resolves the field's values one by one. If two schemas cannot be
resolved at all, the compilation raises `Unresolvable`. If some, but not all, branches of a writer's
union cannot be resolved, the rows with these branches do not fit, as the specification demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Field,
    Map,
    Record,
    Recursive,
    Union,
    candidates,
    default_fault,
)
from skidway.schemas.codec.arrow import arrow_type, branches_of, is_nullable
from skidway.schemas.codec.matching import Budget, Unresolvable, check_name, leaf, mismatch
from skidway.schemas.codec.rows import DEFAULT_FAULTS, default_value
from skidway.schemas.codec.spreading import merged, null_of, repeated
from skidway.schemas.codec.text_resolution import text_step

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Unfit = list[tuple[Mask, str]]
"""The rows that do not fit the reader's schema: for each reason, a mask of the rows."""
Step = Callable[[pa.Array], tuple[pa.Array, Unfit]]


def resolution(
    writer: AvroType, reader: AvroType, path: str = "", budget: Budget | None = None
) -> Step:
    """Returns the function that turns a column of the writer's type into a column of the reader's
    type. Raises `Unresolvable` and `TooManyTypes`. budget: for all columns of the same pair of
    schemas."""
    return _resolution(writer, reader, path, budget or Budget())


def _resolution(writer: AvroType, reader: AvroType, path: str, budget: Budget) -> Step:
    budget.take(1)
    if isinstance(writer, Recursive) or isinstance(reader, Recursive):
        return text_step(writer, reader, path, budget)
    if isinstance(writer, Union):
        return _from_union(writer, reader, path, budget)
    if isinstance(reader, Union):
        return _into_union(writer, reader, path, budget)
    if isinstance(writer, Record) and isinstance(reader, Record):
        check_name(writer, reader, path)
        return _record(writer, reader, path, budget)
    if isinstance(writer, Array) and isinstance(reader, Array):
        return _array(writer, reader, path, budget)
    if isinstance(writer, Map) and isinstance(reader, Map):
        return _map(writer, reader, path, budget)
    if isinstance(writer, Enum) and isinstance(reader, Enum):
        check_name(writer, reader, path)
        return _enum(writer, reader)
    return leaf(writer, reader, path)


def chosen_member(writer: AvroType, reader: Union) -> int:
    """Returns the branch of the reader's union into which values of the writer's type are
    converted, as an index among the branches other than null. Raises `Unresolvable` if no branch
    fits."""
    return _chosen(writer, reader, "", Budget())[1]


Child = Callable[[list[pa.Array], int], tuple[pa.Array, Unfit]]
"""A function that makes the column of one field of the reader's record. It gets the columns of the
writer's record and the number of their rows."""


def _child(
    writer: Record, places: Mapping[str, int], reader: Field, path: str, budget: Budget
) -> Child:
    for name in (reader.name, *reader.aliases):
        if name in places:
            at = places[name]
            step = _resolution(writer.fields[at].type, reader.type, path, budget)
            return lambda columns, _: step(columns[at])
    if not reader.has_default:
        raise Unresolvable(f"The writer has no field {path}, which has no default.")
    value = _default(reader, path)
    return lambda _, rows: (repeated(value, rows), [])


def _default(field: Field, path: str) -> pa.Array:
    fault = default_fault(field.type, field.default)
    if fault:
        raise Unresolvable(f"The default of field {path} is none: {fault}.")
    try:
        return pa.array([default_value(field.type, field.default)], arrow_type(field.type))
    except DEFAULT_FAULTS as error:
        raise Unresolvable(f"The default of field {path} has no column: {error}.") from None


def _record(writer: Record, reader: Record, path: str, budget: Budget) -> Step:
    arrow = arrow_type(reader)
    places = {each.name: at for at, each in enumerate(writer.fields)}
    children = [
        (each.name, _child(writer, places, each, f"{path}.{each.name}".lstrip("."), budget))
        for each in reader.fields
    ]

    def step(column: pa.StructArray) -> tuple[pa.Array, Unfit]:
        if not children:
            return pa.StructArray.from_buffers(arrow, len(column), [None]), []
        columns = [column.field(at) for at in range(len(writer.fields))]
        unfit: Unfit = []
        made = []
        for name, child in children:
            array, found = child(columns, len(column))
            made.append(array)
            unfit += [(mask, f"{name}: {reason}") for mask, reason in found]
        return pa.StructArray.from_arrays(made, fields=list(arrow)), unfit

    return step


def _array(writer: Array, reader: Array, path: str, budget: Budget) -> Step:
    inner, arrow = _resolution(writer.items, reader.items, path, budget), arrow_type(reader)

    def step(column: pa.ListArray) -> tuple[pa.Array, Unfit]:
        offsets, owners = _bounds(column)
        begin = int(column.offsets[0].as_py())
        items, unfit = inner(column.values.slice(begin, len(owners)))
        made = pa.ListArray.from_arrays(offsets, items, type=arrow)
        return made, _of_rows(unfit, owners, len(column))

    return step


def _map(writer: Map, reader: Map, path: str, budget: Budget) -> Step:
    inner, arrow = _resolution(writer.values, reader.values, path, budget), arrow_type(reader)

    def step(column: pa.MapArray) -> tuple[pa.Array, Unfit]:
        offsets, owners = _bounds(column)
        begin = int(column.offsets[0].as_py())
        keys = column.keys.slice(begin, len(owners))
        values, unfit = inner(column.items.slice(begin, len(owners)))
        made = pa.MapArray.from_arrays(offsets, keys, values, type=arrow)
        return made, _of_rows(unfit, owners, len(column))

    return step


def _bounds(column: pa.ListArray | pa.MapArray) -> tuple[pa.Array, Any]:
    offsets = np.asarray(column.offsets)
    return pa.array(offsets - offsets[0]), np.repeat(np.arange(len(column)), np.diff(offsets))


def _of_rows(unfit: Unfit, owners: Any, rows: int) -> Unfit:
    return [(np.bincount(owners[mask], minlength=rows) > 0, reason) for mask, reason in unfit]


def _enum(writer: Enum, reader: Enum) -> Step:
    if set(writer.symbols) <= set(reader.symbols):
        return lambda column: (column, [])
    symbols = pa.array(reader.symbols, pa.string())

    def step(column: pa.StringArray) -> tuple[pa.Array, Unfit]:
        known = pc.is_in(column, symbols)
        if reader.default is not None:
            return pc.if_else(known, column, reader.default), []
        unknown = ~np.asarray(known)
        reason = f"a symbol that enum {reader.name} has not, nor a default"
        return column, [(unknown, reason)] if unknown.any() else []

    return step


def _into_union(writer: AvroType, reader: Union, path: str, budget: Budget) -> Step:
    """Returns the function that turns the writer's column into a column of the reader's union. All
    values go into the branch that has the writer's type. If no branch has this type, they go into
    the first branch to which the writer's type can be promoted."""
    arrow = arrow_type(reader)
    if writer.kind == "null":
        if all(branch.kind != "null" for branch in reader.branches):
            raise mismatch(writer, reader, path)
        return lambda column: (repeated(null_of(arrow), len(column)), [])
    inner, number = _chosen(writer, reader, path, budget)
    return inner if len(branches_of(reader)) == 1 else _as_member(inner, number, arrow)


def _chosen(writer: AvroType, reader: Union, path: str, budget: Budget) -> tuple[Step, int]:
    """Chooses the branch of the reader's union for values of the writer's type. Returns the
    function that converts the values to the branch's type, and the branch's index among the
    branches other than null."""
    members = [reader.branches[at] for at in branches_of(reader)]
    for number in candidates(writer, members):
        try:
            return _resolution(writer, members[number], path, budget), number
        except Unresolvable:
            continue
    raise mismatch(writer, reader, path)


def _as_member(inner: Step, number: int, arrow: pa.StructType) -> Step:
    def step(column: pa.Array) -> tuple[pa.Array, Unfit]:
        value, unfit = inner(column)
        children = [
            value if at == number else repeated(null_of(each.type), len(column))
            for at, each in enumerate(arrow)
        ]
        return pa.StructArray.from_arrays(children, fields=list(arrow)), unfit

    return step


def _from_union(writer: Union, reader: AvroType, path: str, budget: Budget) -> Step:
    """Returns the function that turns a column of the writer's union into a column of the reader's
    type. The function converts the rows of each branch separately. If a branch cannot be resolved,
    its rows do not fit the reader's type."""
    members = branches_of(writer)
    steps = [_try(writer.branches[at], reader, path, budget) for at in members]
    takes_null = reader.kind == "null" or _has_null(reader)
    has_null = is_nullable(writer) or not members
    if all(isinstance(each, str) for each in steps) and not (has_null and takes_null):
        raise Unresolvable(next((each for each in steps if isinstance(each, str)), "null"))
    arrow = arrow_type(reader)

    def step(column: pa.Array) -> tuple[pa.Array, Unfit]:
        unfit: Unfit = []
        parts = []
        for number, inner in enumerate(steps):
            member = column.field(number) if len(steps) > 1 else column
            mask = np.asarray(member.is_valid())
            if len(steps) > 1:
                mask = mask & np.asarray(column.is_valid())
            if not mask.any():
                continue
            if isinstance(inner, str):
                unfit.append((mask, inner))
                continue
            value, found = inner(member if mask.all() else member.filter(pa.array(mask)))
            unfit += [(_where(mask, each), reason) for each, reason in found]
            parts.append((value, mask))
        if not takes_null and column.null_count:
            unfit.append((np.asarray(column.is_null()), "null in a required field"))
        if len(parts) == 1 and len(parts[0][0]) == len(column):
            return parts[0][0], unfit
        nothing = (pa.array([], arrow), np.zeros(len(column), bool))
        return merged([*parts, nothing], arrow), unfit

    return step


def _try(writer: AvroType, reader: AvroType, path: str, budget: Budget) -> Step | str:
    try:
        return _resolution(writer, reader, path, budget)
    except Unresolvable as error:
        return str(error)


def _has_null(avro: AvroType) -> bool:
    return isinstance(avro, Union) and any(each.kind == "null" for each in avro.branches)


def _where(mask: Mask, inside: Mask) -> Mask:
    """Returns a mask over all rows. In the rows where `mask` is true, it has the values of
    `inside`, which has one value for each of these rows. In all other rows it is false."""
    every = np.zeros(len(mask), bool)
    every[np.flatnonzero(mask)[inside]] = True
    return every
