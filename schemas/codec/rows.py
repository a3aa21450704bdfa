"""The slow path of decoding: reads one datum at a time, with fastavro. The codec first decodes all
datums together (the module `reading`). It then uses the slow path for the datums that `reading`
marks as bad.

The slow path decides which of these datums are really bad, and returns the reason for each of them.
fastavro gets the schema without logical types, so it reads dates, times and timestamps as numbers.
Arrow converts these numbers for whole columns, without the limits of Python's own dates. If a union
has several types, the slow path adds the name of the member to each value of the union, as in
`{"member1": value}`. Arrow needs this form for a struct column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Map,
    Record,
    Recursive,
    Union,
    default_fault,
    leading_back,
)
from skidway.schemas.bounds import CLAIM_MAX, ROWS_BYTES_MAX, item_types, least_bytes
from skidway.schemas.codec.arrow import (
    branches_of,
    column_bytes,
    decimal_type,
    member,
    unwrapped,
)
from skidway.schemas.codec.json_text import JsonText, Malformed, tagged_default
from skidway.schemas.codec.json_values import scaled
from skidway.schemas.codec.times import checked_time, is_time
from skidway.schemas.datum import malformed_reason, plain_schema, read_checked, read_datum
from skidway.schemas.strict import check_datum

Convert = Callable[[Any], Any]
Faults = dict[int, str]
Row = dict[str, Any]


class Rows:
    """Decodes one datum after the other. Keeps no state between calls. read: the function that
    reads a datum, and returns the value of each field as fastavro does with `plain_schema`, with
    tags; None if the datums are those of `record`. It raises an error of the tuple `Malformed`."""

    def __init__(
        self, record: Record, schema: pa.Schema, read: Callable[[bytes], Row] | None = None
    ) -> None:
        self._record = record
        self._schema = schema
        self._read = read or self._read_record
        self._plain = plain_schema(record, tagged=True)
        self._incoming = {each.name: _incoming(each.type) for each in record.fields}
        self._weights = _weights(record)
        self._has_circles = leading_back(record) is not None

    def decode(self, datums: list[bytes]) -> tuple[list[pa.Array], Faults]:
        """Returns the columns of the good datums, and the faults: a mapping from the index of each
        bad datum to the reason why it is bad.

        A Python object takes many times as much memory as the datum from which it is read. So this
        method converts the datums in portions of at most `ROWS_BYTES_MAX` bytes. A longer datum is
        a portion of its own.
        """
        faults: Faults = {}
        parts = [self._part(part, faults) for part in _parts(datums)]
        if len(parts) == 1:
            return parts[0], faults
        return [pa.concat_arrays(each) for each in zip(*parts, strict=True)], faults

    def _part(self, part: dict[int, bytes], faults: Faults) -> list[pa.Array]:
        rows: dict[int, Row] = {}
        for index, datum in part.items():
            try:
                rows[index] = self._converted(self._read(datum))
            except Malformed as error:
                faults[index] = malformed_reason(error)
        return self._columns(rows, faults)

    def _read_record(self, datum: bytes) -> Row:
        row: Row
        if self._weights or self._has_circles:
            check_datum(self._record, datum, lambda avro: self._weights.get(id(avro), 0))
            row = read_checked(self._plain, datum)
        else:
            row = read_datum(self._record, self._plain, datum)
        return row

    def _converted(self, row: Row) -> Row:
        return {
            name: value if (convert := self._incoming[name]) is None else convert(value)
            for name, value in row.items()
        }

    def _columns(self, rows: dict[int, Row], faults: Faults) -> list[pa.Array]:
        try:
            return [_array(rows, field) for field in self._schema]
        except (pa.ArrowInvalid, OverflowError):
            for index, row in list(rows.items()):
                fault = _unfit(row, self._schema)
                if fault:
                    faults[index] = fault
                    del rows[index]
        return [_array(rows, field) for field in self._schema]


def _parts(datums: list[bytes]) -> Iterator[dict[int, bytes]]:
    """Yields the datums in parts of at most `ROWS_BYTES_MAX` bytes. Each part maps the index of a
    datum to the datum. If there are no datums, yields one empty part."""
    part: dict[int, bytes] = {}
    size = 0
    for index, datum in enumerate(datums):
        if part and size + len(datum) > ROWS_BYTES_MAX:
            yield part
            part, size = {}, 0
        part[index] = datum
        size += len(datum)
    yield part


DEFAULT_FAULTS: Final = (AttributeError, KeyError, OverflowError, TypeError, ValueError)
"""The errors that an invalid default causes, in `default_value` or when its result is passed to
Arrow."""


def default_value(avro: AvroType, value: Any) -> Any:
    """Returns the Python value that Arrow needs for the JSON default `value`. Raises one of
    `DEFAULT_FAULTS` if the default is invalid."""
    if isinstance(avro, Recursive):
        return JsonText(avro.type).of(tagged_default(avro.type, value))
    if isinstance(avro, Union) and len(branches_of(avro)) > 1:
        return _default_member(avro, value)
    inner, _ = unwrapped(avro)
    if value is None:
        return None
    if isinstance(inner, Record):
        return {
            each.name: default_value(each.type, value.get(each.name, each.default))
            for each in inner.fields
        }
    if isinstance(inner, Array):
        return [default_value(inner.items, each) for each in value]
    if isinstance(inner, Map):
        return [(key, default_value(inner.values, each)) for key, each in value.items()]
    if inner.kind in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        return raw if decimal_type(inner) is None else scaled(raw, decimal_type(inner))
    return checked_time(inner, value) if is_time(inner) else value


def default_bytes(avro: AvroType, value: Any, most: int) -> int:
    """Returns about how many bytes the default `value` takes; records inside it may have defaults
    of their own. Counts no further than a little above `most`."""
    if isinstance(avro, Union):
        fitting = (avro.branches[at] for at in branches_of(avro))
        avro = next((each for each in fitting if default_fault(each, value) is None), avro)
    parts: Iterable[tuple[AvroType, Any]] = ()
    total = 8
    if isinstance(avro, Record) and isinstance(value, dict):
        parts = ((each.type, value.get(each.name, each.default)) for each in avro.fields)
    elif isinstance(avro, Array) and isinstance(value, list):
        parts = ((avro.items, each) for each in value)
    elif isinstance(avro, Map) and isinstance(value, dict):
        total += sum(map(len, value))
        parts = ((avro.values, each) for each in value.values())
    elif isinstance(value, str):
        total += len(value.encode(errors="replace"))
    for type_, each in parts:
        if total > most:
            break
        total += default_bytes(type_, each, most - total)
    return total


def _default_member(union: Union, value: Any) -> Any:
    """Returns the Python value that Arrow needs for the JSON default `value` of a union. The
    default gets the type of the first branch that accepts it, as the specification demands."""
    if value is None:
        return None
    for number, at in enumerate(branches_of(union)):
        if default_fault(union.branches[at], value) is None:
            return {member(number): default_value(union.branches[at], value)}
    raise ValueError(f"{value} fits no branch")  # the parser refuses such defaults


def _weights(record: Record) -> dict[int, int]:
    """Returns, for each type of items, the number of bytes that one item takes in columns. The key
    of a type is its Python `id`. The result is empty if the items of every type take bytes in a
    datum, and can take no more bytes in columns than `CLAIM_MAX` allows. For items that take no
    bytes in a datum, the number is 0, because `EMPTY_ITEMS_MAX` limits them."""
    known: dict[str, int] = {}
    every = {
        id(each): (column_bytes(each, known), least_bytes(each)) for each in item_types(record)
    }
    is_harmless = all(least and width <= CLAIM_MAX * least for width, least in every.values())
    if is_harmless:
        return {}
    return {key: width if least else 0 for key, (width, least) in every.items()}


def _array(rows: dict[int, Row], field: pa.Field) -> pa.Array:
    return pa.array([row[field.name] for row in rows.values()], field.type)


def _unfit(row: Row, schema: pa.Schema) -> str | None:
    for field in schema:
        try:
            pa.array([row[field.name]], field.type)
        except (pa.ArrowInvalid, OverflowError) as error:
            return f"field {field.name}: {error}"
    return None


def _incoming(avro: AvroType) -> Convert | None:
    """Returns the function that turns a Python value from fastavro into the value that Arrow needs.
    Returns None if Arrow accepts fastavro's values unchanged."""
    if isinstance(avro, Recursive):
        return JsonText(avro.type).of
    if isinstance(avro, Union) and len(branches_of(avro)) > 1:
        return _to_member(avro)
    inner, _ = unwrapped(avro)
    decimal = decimal_type(inner)
    if decimal is not None:
        return _unless_none(lambda value: scaled(value, decimal))
    if is_time(inner):
        return _unless_none(lambda number: checked_time(inner, number))
    return _nested(inner)


def _nested(avro: AvroType) -> Convert | None:
    if isinstance(avro, Array):
        item = _incoming(avro.items)
        return None if item is None else _unless_none(lambda values: [item(v) for v in values])
    if isinstance(avro, Map):
        value = _incoming(avro.values)
        if value is None:
            return None
        return _unless_none(lambda found: {key: value(each) for key, each in found.items()})
    if isinstance(avro, Record):
        fields = {f.name: made for f in avro.fields if (made := _incoming(f.type)) is not None}
        if not fields:
            return None
        return _unless_none(
            lambda row: {**row, **{name: made(row[name]) for name, made in fields.items()}}
        )
    return None


def _to_member(union: Union) -> Convert | None:
    converts = {
        member(number): made
        for number, at in enumerate(branches_of(union))
        if (made := _incoming(union.branches[at])) is not None
    }
    if not converts:
        return None

    def convert(tagged: dict[str, Any]) -> dict[str, Any]:
        ((name, value),) = tagged.items()
        made = converts.get(name)
        return tagged if made is None else {name: made(value)}

    return _unless_none(convert)


def _unless_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)
