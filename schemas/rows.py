"""The slow path of the codec: any schema that has columns, one datum at a time, through fastavro.

It also tells good datums from bad ones, each with its reason. fastavro sees the schema without
logical types: dates, times and timestamps travel as numbers, which Arrow converts for whole
columns and without the limits of Python's own dates.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from schemas.arrow import decimal_type, unwrapped
from schemas.avro_schema import (
    Array,
    AvroType,
    Fixed,
    Map,
    Record,
)
from schemas.datum import MALFORMED, malformed_reason, plain_schema, read_datum, write_datum

Convert = Callable[[Any], Any]
Faults = dict[int, str]


class SlowPath:
    """Encodes and decodes row by row. Holds no state."""

    def __init__(self, record: Record, schema: pa.Schema) -> None:
        self._record = record
        self._schema = schema
        self._plain = plain_schema(record)
        self._outgoing = {each.name: _outgoing(each.type) for each in record.fields}
        self._incoming = {each.name: _incoming(each.type) for each in record.fields}

    def encode(self, columns: list[pa.Array], rows: int) -> tuple[list[bytes | None], Faults]:
        """(datum or None per row, reason by index) of columns of exactly the schema's types."""
        names = self._schema.names
        lists = [
            _values(column.cast(_physical(column.type)), self._outgoing[name])
            for name, column in zip(names, columns, strict=True)
        ]
        datums: list[bytes | None] = []
        faults: Faults = {}
        for index in range(rows):
            try:
                row = {name: each[index] for name, each in zip(names, lists, strict=True)}
                datums.append(self._written(row))
            except MALFORMED as error:
                datums.append(None)
                faults[index] = malformed_reason(error)
        return datums, faults

    def decode(self, datums: list[bytes]) -> tuple[list[pa.Array], Faults]:
        """(columns of the good datums, reason by index of the others)."""
        rows: dict[int, dict[str, Any]] = {}
        faults: Faults = {}
        for index, datum in enumerate(datums):
            try:
                rows[index] = self._read(datum)
            except MALFORMED as error:
                faults[index] = malformed_reason(error)
        return self._columns(rows, faults), faults

    def _written(self, row: dict[str, Any]) -> bytes:
        for name, value in row.items():
            if isinstance(value, _Refused):
                raise ValueError(f"field {name}: {value.reason}")  # noqa: TRY004
        return write_datum(self._plain, row)

    def _read(self, datum: bytes) -> dict[str, Any]:
        row: dict[str, Any] = read_datum(self._record, self._plain, datum)
        return {
            name: value if (convert := self._incoming[name]) is None else convert(value)
            for name, value in row.items()
        }

    def _columns(self, rows: dict[int, dict[str, Any]], faults: Faults) -> list[pa.Array]:
        """Arrow columns of `rows`; rows that Arrow cannot take move to `faults`."""
        try:
            return [_array(rows, field) for field in self._schema]
        except (pa.ArrowInvalid, OverflowError):
            for index, row in list(rows.items()):
                fault = _unfit(row, self._schema)
                if fault:
                    faults[index] = fault
                    del rows[index]
        return [_array(rows, field) for field in self._schema]


def default_value(avro: AvroType, value: Any) -> Any:
    """What Arrow takes for the JSON default `value` of a checked schema."""
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
        return raw if decimal_type(inner) is None else _to_decimal(raw, decimal_type(inner))
    return value


class _Refused:
    """Stands in a column for a value that has no encoding, so that only its row is refused."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def _values(column: pa.Array, convert: Convert | None) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values if convert is None else [_converted(each, convert) for each in values]


def _converted(value: Any, convert: Convert) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        return _Refused(str(error))


def _array(rows: dict[int, dict[str, Any]], field: pa.Field) -> pa.Array:
    return pa.array([row[field.name] for row in rows.values()], field.type)


def _unfit(row: dict[str, Any], schema: pa.Schema) -> str | None:
    for field in schema:
        try:
            pa.array([row[field.name]], field.type)
        except (pa.ArrowInvalid, OverflowError) as error:
            return f"field {field.name}: {error}"
    return None


def _physical(arrow: pa.DataType) -> pa.DataType:
    """The type with numbers in place of dates, times and timestamps, all the way down."""
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow):
        return pa.int64()
    if pa.types.is_date32(arrow) or pa.types.is_time32(arrow):
        return pa.int32()
    if pa.types.is_struct(arrow):
        return pa.struct([each.with_type(_physical(each.type)) for each in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_physical(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_type, arrow.item_field.with_type(_physical(arrow.item_type)))
    return arrow


def _outgoing(avro: AvroType) -> Convert | None:
    """From Arrow's Python value to fastavro's; None where they are the same."""
    inner, _ = unwrapped(avro)
    decimal = decimal_type(inner)
    if decimal is not None:
        size = inner.size if isinstance(inner, Fixed) else None
        return _unless_none(lambda value: _from_decimal(value, size))
    if isinstance(inner, Map):
        return _unless_none(_to_dict(_outgoing(inner.values)))
    return _nested(inner, _outgoing)


def _incoming(avro: AvroType) -> Convert | None:
    """From fastavro's Python value to one that Arrow takes; None where they are the same."""
    inner, _ = unwrapped(avro)
    decimal = decimal_type(inner)
    if decimal is not None:
        return _unless_none(lambda value: _to_decimal(value, decimal))
    if isinstance(inner, Map):
        return _unless_none(_to_pairs(_incoming(inner.values)))
    return _nested(inner, _incoming)


def _nested(avro: AvroType, of: Callable[[AvroType], Convert | None]) -> Convert | None:
    if isinstance(avro, Array):
        item = of(avro.items)
        return None if item is None else _unless_none(lambda values: [item(v) for v in values])
    if isinstance(avro, Record):
        fields = {f.name: made for f in avro.fields if (made := of(f.type)) is not None}
        if not fields:
            return None
        return _unless_none(
            lambda row: {**row, **{name: made(row[name]) for name, made in fields.items()}}
        )
    return None


def _unless_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _to_dict(convert: Convert | None) -> Convert:
    def convert_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = {key: value if convert is None else convert(value) for key, value in pairs}
        if len(made) != len(pairs):
            raise ValueError("a map has a key twice")
        return made

    return convert_pairs


def _to_pairs(convert: Convert | None) -> Convert:
    return lambda values: [
        (key, value if convert is None else convert(value)) for key, value in values.items()
    ]


def _from_decimal(value: Decimal, size: int | None) -> bytes:
    """Two's complement, big-endian, of the unscaled number; as short as it goes, or `size`."""
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    length = size or (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def _to_decimal(raw: bytes, arrow: pa.DataType) -> Decimal:
    digits = str(abs(unscaled := int.from_bytes(raw, "big", signed=True)))
    if len(digits) > arrow.precision:
        raise ValueError(f"a decimal has {len(digits)} digits, more than {arrow.precision}")
    return Decimal((unscaled < 0, tuple(map(int, digits)), -arrow.scale))
