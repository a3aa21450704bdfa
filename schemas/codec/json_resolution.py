"""Does schema resolution on single values, for types that contain themselves. The values are the
JSON values that `json_text` describes. The rules are those of the module `resolution`, which
resolves whole columns.

If a field's type contains itself in both schemas, the JSON text of each value is read, resolved and
written again. If the type contains itself only in the reader's schema, the writer's column is
encoded into datums, which become JSON values and then texts. If the type contains itself only in
the writer's schema, the resolved JSON values become datums, which become a column. So the result is
the same text or column as if the value had been written with the reader's schema.

A pair of schemas is compiled once, into one conversion for each pair of types. While a pair of
records is compiled, the same pair may occur again inside the records. For the inner occurrence,
this module assumes that the pair can be resolved. If the pair turns out to be unresolvable, the
conversions that were compiled in the meantime may be wrong. So this module drops them, and compiles
them again when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

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
)
from skidway.schemas.codec.arrow import (
    VALUE,
    arrow_schema,
    arrow_type,
    branches_of,
    is_nullable,
    member,
    record_of,
)
from skidway.schemas.codec.json_text import JsonText, Malformed, read, written
from skidway.schemas.codec.matching import Unresolvable, check_name, leaf, mismatch, unknown_symbol
from skidway.schemas.codec.promotion import Step
from skidway.schemas.codec.rows import DEFAULT_FAULTS, Rows
from skidway.schemas.codec.spreading import spread
from skidway.schemas.codec.writing import joined, writer_of
from skidway.schemas.datum import malformed_reason

Convert = Callable[[Any], Any]
"""A function that turns a JSON value of the writer's type into a JSON value of the reader's type.
It raises `Unfit`."""


class Unfit(ValueError):
    """Raised if a value does not fit the reader's schema. The message says why."""


def text_step(writer: AvroType, reader: AvroType, path: str) -> Step:
    """Returns the function that turns the writer's column into the reader's column. At least one of
    the two columns consists of JSON texts. Raises `Unresolvable`."""
    try:
        convert = Resolver().of(writer, reader, path)
    except RecursionError:  # types contain one another in too long a chain
        raise Unresolvable(f"Field {path} is nested too deeply.") from None
    values, column = _values_of(writer), _column_of(reader)

    def step(given: pa.Array) -> tuple[pa.Array, list[tuple[Any, str]]]:
        made: list[Any] = [None] * len(given)
        unfit: dict[str, Any] = {}
        for row, value in enumerate(values(given)):
            try:
                made[row] = column.one(convert(value))
            except Malformed as error:
                mask = unfit.setdefault(malformed_reason(error), np.zeros(len(given), bool))
                mask[row] = True
        fits = ~np.any([np.zeros(len(given), bool), *unfit.values()], axis=0)
        return column.all(made, fits), [(mask, reason) for reason, mask in unfit.items()]

    return step


class Resolver:
    """Compiles the conversions of one pair of schemas."""

    def __init__(self) -> None:
        self._records: dict[tuple[int, int], Convert] = {}

    def of(self, writer: AvroType, reader: AvroType, path: str) -> Convert:
        """Returns the function that converts values of the writer's type to values of the reader's
        type. Raises `Unresolvable`."""
        writer, reader = _declared(writer), _declared(reader)
        if isinstance(writer, Union):
            return self._from_union(writer, reader, path)
        if isinstance(reader, Union):
            return self._into_union(writer, reader, path)
        if isinstance(writer, Record) and isinstance(reader, Record):
            return self._record(writer, reader, path)
        if isinstance(writer, Array) and isinstance(reader, Array):
            return _each(self.of(writer.items, reader.items, path))
        if isinstance(writer, Map) and isinstance(reader, Map):
            return _each_value(self.of(writer.values, reader.values, path))
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            check_name(writer, reader, path)
            return _enum(reader)
        return _leaf(writer, reader, path)

    def chosen(self, writer: AvroType, reader: Union, path: str) -> tuple[Convert, int]:
        """Chooses the branch of the reader's union into which values of the writer's type are
        converted. Returns the conversion, and the branch's index among the branches other than
        null. Raises `Unresolvable`."""
        for wants_same in (True, False):
            for number, at in enumerate(branches_of(reader)):
                branch = reader.branches[at]
                if wants_same and branch.kind != writer.kind:
                    continue
                try:
                    return self.of(writer, branch, path), number
                except Unresolvable:
                    continue
        raise mismatch(writer, reader, path)

    def _record(self, writer: Record, reader: Record, path: str) -> Convert:
        check_name(writer, reader, path)
        pair = (id(writer), id(reader))
        if pair in self._records:
            return self._records[pair]
        before = len(self._records)
        children: list[tuple[str, str | None, Any]] = []
        self._records[pair] = _record(children)
        try:
            children += [self._child(writer, each, path) for each in reader.fields]
        except Unresolvable:
            for key in list(self._records)[before:]:
                del self._records[key]
            raise
        return self._records[pair]

    def _child(self, writer: Record, field: Field, path: str) -> tuple[str, str | None, Any]:
        """`field` is a field of the reader. Returns three values: the name of `field`, the name of
        the writer's field from which the value comes, and the conversion of the value. If no field
        of the writer matches, the second value is None, and the third is the default of `field`."""
        place = f"{path}.{field.name}".lstrip(".")
        known = {each.name: each.type for each in writer.fields}
        for name in (field.name, *field.aliases):
            if name in known:
                return field.name, name, self.of(known[name], field.type, place)
        if not field.has_default:
            raise Unresolvable(f"The writer has no field {place}, which has no default.")
        return field.name, None, _default(field, place)

    def _from_union(self, writer: Union, reader: AvroType, path: str) -> Convert:
        steps = [self._try(writer.branches[at], reader, path) for at in branches_of(writer)]
        takes_null = reader.kind == "null" or _has_null(reader)
        if all(isinstance(each, str) for each in steps) and not (
            is_nullable(writer) and takes_null
        ):
            raise Unresolvable(next((each for each in steps if isinstance(each, str)), "null"))

        def convert(value: Any) -> Any:
            number = 0
            if value is None:
                if takes_null:
                    return None
                raise Unfit("null in a required field")
            if len(steps) > 1:
                ((name, value),) = value.items()
                number = [member(at) for at in range(len(steps))].index(name)
            step = steps[number]
            if isinstance(step, str):
                raise Unfit(step)
            return step(value)

        return convert

    def _try(self, writer: AvroType, reader: AvroType, path: str) -> Convert | str:
        try:
            return self.of(writer, reader, path)
        except Unresolvable as error:
            return str(error)

    def _into_union(self, writer: AvroType, reader: Union, path: str) -> Convert:
        if writer.kind == "null":
            if not _has_null(reader):
                raise mismatch(writer, reader, path)
            return lambda _: None
        inner, number = self.chosen(writer, reader, path)
        if len(branches_of(reader)) == 1:
            return inner
        name = member(number)
        return lambda value: {name: inner(value)}


class _Texts:
    """Turns JSON values of the reader's type into a column of JSON texts. Used if the reader's type
    contains itself (`Recursive`)."""

    def one(self, value: Any) -> str | None:
        return written(value)

    def all(self, texts: list[str | None], _: Any) -> pa.Array:
        return pa.array(texts, pa.string())


class _Columns:
    """Turns JSON values of the reader's type into a column of this type. Used if the reader's type
    does not contain itself."""

    def __init__(self, avro: AvroType) -> None:
        self._arrow = arrow_type(avro)
        self._form = JsonText(avro)
        record = record_of([(VALUE, avro)])
        self._rows = Rows(record, arrow_schema(record))

    def one(self, value: Any) -> pa.Array:
        (column,), faults = self._rows.decode([self._form.datum_of(value)])
        if faults:
            raise Unfit(faults[0])
        return column

    def all(self, parts: list[pa.Array | None], fits: Any) -> pa.Array:
        found = [each for each in parts if each is not None]
        made = pa.concat_arrays(found) if found else pa.array([], self._arrow)
        return made if fits.all() else spread(made, fits)


def _column_of(reader: AvroType) -> _Texts | _Columns:
    return _Texts() if isinstance(reader, Recursive) else _Columns(reader)


def _values_of(writer: AvroType) -> Callable[[pa.Array], list[Any]]:
    """Returns the function that turns a column of the writer's type into JSON values."""
    if isinstance(writer, Recursive):
        return lambda column: list(map(read, column.to_pylist()))
    encode, form = writer_of(writer), JsonText(writer)

    def values(column: pa.Array) -> list[Any]:
        datums = joined(encode(column), len(column)).to_pylist()
        return [read(form.read(each, 0, len(each))[0]) for each in datums]

    return values


def _declared(avro: AvroType) -> AvroType:
    """Returns the type that the schema declares. For a type that contains itself, `avro` may be the
    `Recursive` by which `without_circles` has replaced the declared type."""
    return avro.type if isinstance(avro, Recursive) else avro


def _record(children: list[tuple[str, str | None, Any]]) -> Convert:
    def convert(value: Any) -> Any:
        made = {}
        for name, source, inner in children:
            made[name] = inner if source is None else inner(value[source])
        return made

    return convert


def _each(item: Convert) -> Convert:
    return lambda values: list(map(item, values))


def _each_value(inner: Convert) -> Convert:
    return lambda values: dict(zip(values, map(inner, values.values()), strict=True))


def _enum(reader: Enum) -> Convert:
    def convert(symbol: Any) -> Any:
        if symbol in reader.symbols:
            return symbol
        if reader.default is None:
            raise Unfit(unknown_symbol(reader))
        return reader.default

    return convert


def _leaf(writer: AvroType, reader: AvroType, path: str) -> Convert:
    """Returns the conversion between two primitive or fixed types. If both have the same Arrow
    type, the conversion changes nothing. Otherwise it makes a column with one row for each value,
    and converts this column by the rules for columns."""
    step = leaf(writer, reader, path)
    if arrow_type(writer) == arrow_type(reader):
        return lambda value: value
    given, made = JsonText(writer), JsonText(reader)
    record = record_of([(VALUE, writer)])
    rows, encode = Rows(record, arrow_schema(record)), writer_of(reader)

    def convert(value: Any) -> Any:
        (column,), faults = rows.decode([given.datum_of(value)])
        if faults:
            raise Unfit(faults[0])
        column, unfit = step(column)
        if unfit:
            raise Unfit(unfit[0][1])
        datum = joined(encode(column), 1)[0].as_py()
        return read(made.read(datum, 0, len(datum))[0])

    return convert


def _default(field: Field, path: str) -> Any:
    avro = _declared(field.type)
    fault = default_fault(avro, field.default)
    if fault:
        raise Unresolvable(f"The default of field {path} is none: {fault}.")
    try:
        return read(JsonText(avro).of_default(field.default))
    except DEFAULT_FAULTS as error:
        raise Unresolvable(f"The default of field {path} has no text: {error}.") from None


def _has_null(avro: AvroType) -> bool:
    return isinstance(avro, Union) and any(each.kind == "null" for each in avro.branches)
