"""Defines the Arrow type of each Avro type. The codec uses this table to encode and to decode.

| Avro | Arrow |
|---|---|
| boolean, int, long, float, double | bool, int32, int64, float, double |
| string (and logical uuid) | string |
| bytes | binary |
| fixed(n), duration | fixed_size_binary(n); binary from 65 bytes on |
| enum | string |
| date | date32 |
| time-millis, time-micros | time32[ms], time64[us] |
| timestamp-millis, -micros, -nanos | timestamp[ms, us, ns; UTC] |
| local-timestamp-millis, -micros, -nanos | timestamp[ms, us, ns] without zone |
| decimal(p, s) on bytes or fixed | decimal128(p, s) up to 38 digits, decimal256 up to 76 |
| record | struct |
| array, map | list, map of string |
| union of null and one type | that type, nullable |
| union of several types, perhaps null too | struct of member0, member1, ... |
| null, union of nothing but null | null |
| any type that leads back to the record of the field | string: JSON (`json_text`) |

A union's members are its branches except null, numbered in order. In each struct of a union,
exactly one member is not null; a null of the union is a struct that is null. Spark's from_avro uses
the same form. (The codec does not use Arrow's own union type, because Parquet and ORC have no
unions.) The codec treats a schema that is not a record as a record with one field, `value`. The
datum of this record has the same bytes as the datum of the field. The codec ignores a logical type
that Avro does not know, or that does not fit its base type, as the specification demands.

A type that contains itself would need an infinite number of columns. A field *leads back* if its
type contains the record that has the field (`skidway.schemas.avro_schema.recursion`). A field that
leads back becomes a column, or a nested field, of strings. `as_record` removes the circles; the
other functions of the codec expect types without circles. The codec refuses (`SchemaUnsupported`) a
schema that has more than `COLUMNS_MAX` columns, or nests types more than `NESTING_MAX` levels
deep, and a schema in which a small datum could become a large text. The error message names the
record or the field.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import pyarrow as pa

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import (
    NESTING_MAX,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Recursive,
    Union,
    logical_type,
    without_circles,
)
from skidway.schemas.bounds import TextBound

COLUMNS_MAX: Final = 10_000
"""A schema may have at most this many columns. Nested fields, items of arrays, values of maps and
branches of unions count as columns, too. Without this limit, a short schema could have very many
columns, because it can refer to the same record many times by name.

A column inside an array or map counts once more for each array or map around it, because the values
inside are passed to find where each item begins, before they are read (`items`). Names of fields
and symbols of enums are kept with each column, so each `COLUMN_CHARACTERS` of them count as one
more column."""
COLUMN_CHARACTERS: Final = 1000
FIXED_BYTES_MAX: Final = 64
"""An Avro `fixed` of at most this many bytes gets a column of fixed size. (A SHA-512 hash has this
size.) In such a column, even a null takes the bytes of a whole value. Without this limit, a null
could take as much memory as a very large fixed, although the null is only one byte in a datum."""
VALUE: Final = "value"
"""Name of the only column of a schema that is no record."""
_MEMBER: Final = "member"
_OFFSET_BYTES: Final = 4
DECIMAL128_DIGITS: Final = 38
DECIMAL256_DIGITS: Final = 76


class SchemaUnsupported(SkidwayError):
    """Raised for a valid Avro schema that cannot become columns. The message contains the name of
    the record or field that is the reason."""


_PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[tuple[str, str], pa.DataType]] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


def arrow_schema(avro: AvroType) -> pa.Schema:
    """Returns the Arrow schema of the columns for an Avro schema. Raises `SchemaUnsupported`."""
    record = as_record(avro)
    if _columns(record, 0, 1, {}) > COLUMNS_MAX:
        raise SchemaUnsupported(f"Record {record.name} has more than {COLUMNS_MAX} columns.")
    return pa.schema(_Types().fields(record, "", 0))


def arrow_type(avro: AvroType) -> pa.DataType:
    """Returns the Arrow type of a column for values of `avro`. If `avro` is a union, ignores its
    branch null. Raises `SchemaUnsupported`."""
    inner, _ = unwrapped(avro)
    return _Types().type(inner, "", 0)


@cache
def avro_name(arrow: pa.DataType) -> str:
    """Returns the name of the Avro type, or of the logical type, that has this Arrow type. Messages
    use this name, because people write Avro types."""
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision}, {arrow.scale})"
    if pa.types.is_fixed_size_binary(arrow):
        return "fixed"
    nested = ((pa.types.is_struct, "record"), (pa.types.is_list, "array"), (pa.types.is_map, "map"))
    found = next((name for is_kind, name in nested if is_kind(arrow)), None)
    logical = {kind: name for (_, name), kind in _LOGICAL.items()}
    plain = {kind: name for name, kind in _PRIMITIVES.items()}
    return found or logical.get(arrow) or plain.get(arrow) or str(arrow)


def as_record(avro: AvroType) -> Record:
    """If `avro` is a record, returns the same record without circles (types that contain
    themselves, see `without_circles`). Otherwise, returns a record whose only field has the type
    `avro`. Datums of this record have the same bytes as datums of `avro`."""
    avro = without_circles(avro)
    return avro if isinstance(avro, Record) else record_of([(VALUE, avro)])


def record_of(fields: list[tuple[str, AvroType]]) -> Record:
    """Returns a record with these fields. The codec uses this record for values that are no
    records, but are encoded like the fields of a record."""
    made = [Field(name, avro, None, False, None, "ascending", (), {}) for name, avro in fields]
    return Record("-", made, None, (), {})  # no record in a schema can have this name


def branches_of(union: Union) -> list[int]:
    """Returns the indexes of all branches of a union except the branch null."""
    return [at for at, branch in enumerate(union.branches) if branch.kind != "null"]


def is_nullable(avro: AvroType) -> bool:
    """Returns whether the type is a union of null and something else."""
    if isinstance(avro, Recursive):
        return is_nullable(avro.type)
    return isinstance(avro, Union) and 0 < len(branches_of(avro)) < len(avro.branches)


def unwrapped(avro: AvroType) -> tuple[AvroType, bool]:
    """Returns the type without its null branch, and whether the type allows null. Returns a
    `Recursive` (a type that contains itself), or a union with several branches besides null,
    unchanged. Returns the type null, and False, for a union that has no other branch."""
    if not isinstance(avro, Union):
        return avro, is_nullable(avro)
    members = branches_of(avro)
    if len(members) == 1:
        return avro.branches[members[0]], is_nullable(avro)
    return (avro, is_nullable(avro)) if members else (Primitive("null"), False)


def member(number: int) -> str:
    """Returns the name of the column for one branch of a union. `number` is the branch's index
    among the branches other than null."""
    return f"{_MEMBER}{number}"


def member_number(name: str) -> int:
    """Returns the index of the branch whose column has this name (see `member`)."""
    return int(name.removeprefix(_MEMBER))


def decimal_type(avro: AvroType) -> pa.DataType | None:
    """Returns the Arrow decimal type for bytes or fixed with a valid logical type `decimal`.
    Returns None for any other type."""
    if logical_type(avro) != "decimal" or avro.kind not in ("bytes", "fixed"):
        return None
    precision, scale = avro.properties.get("precision"), avro.properties.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    if not (0 <= scale <= precision and 1 <= precision <= DECIMAL256_DIGITS):
        return None
    if isinstance(avro, Fixed) and (10**precision - 1).bit_length() > 8 * avro.size - 1:
        return None
    if precision <= DECIMAL128_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale)


def column_bytes(avro: AvroType, known: dict[str, int]) -> int:
    """Returns how many bytes every value, even a null, takes in a column for values of `avro`.
    known: the results for records of the same schema, which this function adds."""
    if isinstance(avro, Recursive | Enum | Array | Map):
        return _OFFSET_BYTES
    if isinstance(avro, Union):
        members = [column_bytes(avro.branches[at], known) for at in branches_of(avro)]
        return sum(members) + (len(members) > 1)
    if isinstance(avro, Record):
        if avro.name not in known:
            known[avro.name] = sum(column_bytes(each.type, known) for each in avro.fields) + 1
        return known[avro.name]
    return _leaf_bytes(_leaf(avro))


def _leaf_bytes(arrow: pa.DataType) -> int:
    if pa.types.is_null(arrow):
        return 0
    if pa.types.is_boolean(arrow):
        return 1
    if pa.types.is_string(arrow) or pa.types.is_binary(arrow):
        return _OFFSET_BYTES
    if pa.types.is_fixed_size_binary(arrow):
        return int(arrow.byte_width)
    return int(arrow.bit_width) // 8


def _columns(avro: AvroType, level: int, passes: int, known: dict[tuple[str, int], int]) -> int:
    """Returns the number of columns that a type and all types inside it have together, each as
    often as it is passed. Computes the number for each named type only once. Does not look deeper
    than `NESTING_MAX` levels."""
    if isinstance(avro, Union):
        inside = (avro.branches[at] for at in branches_of(avro))
        return passes + sum(_columns(each, level, passes, known) for each in inside)
    if not isinstance(avro, Array | Map | Record | Enum) or level >= NESTING_MAX:
        return passes
    if isinstance(avro, Array | Map):
        items = avro.items if isinstance(avro, Array) else avro.values
        return passes + _columns(items, level + 1, passes + 1, known)
    key = (avro.name, passes)
    if key not in known:
        if isinstance(avro, Enum):
            count = sum(len(each) + 1 for each in avro.symbols) // COLUMN_CHARACTERS
        else:
            count = sum(
                len(each.name) // COLUMN_CHARACTERS + _columns(each.type, level + 1, passes, known)
                for each in avro.fields
            )
        known[key] = passes + count
    return known[key]


class _Types:
    """Makes the Arrow types of one schema. level: how many records, arrays and maps are around a
    type. (The parser already limits how deeply types are nested in the schema's text. They can be
    nested deeper only if a record refers to other records by name.)"""

    def __init__(self) -> None:
        self._texts = TextBound()

    def fields(self, record: Record, path: str, level: int) -> list[pa.Field]:
        return [
            self._field(each.name, each.type, f"{path}.{each.name}".lstrip("."), level + 1)
            for each in record.fields
        ]

    def type(self, avro: AvroType, path: str, level: int) -> pa.DataType:
        if isinstance(avro, Recursive):
            fault = self._texts.fault(avro.type)
            if fault:
                raise SchemaUnsupported(f"Field {path} contains itself, and is no text: {fault}.")
            return pa.string()
        if isinstance(avro, Primitive | Fixed):
            return _leaf(avro)
        if isinstance(avro, Enum):
            return pa.string()
        if isinstance(avro, Union):
            return pa.struct(self._members(avro, path, level))
        if level >= NESTING_MAX:
            raise SchemaUnsupported(f"Field {path} is nested more than {NESTING_MAX} levels deep.")
        if isinstance(avro, Record):
            return pa.struct(self.fields(avro, path, level))
        if isinstance(avro, Array):
            return pa.list_(self._field("item", avro.items, path, level + 1))
        return pa.map_(pa.string(), self._field("value", avro.values, path, level + 1))

    def _field(self, name: str, avro: AvroType, path: str, level: int) -> pa.Field:
        inner, nullable = unwrapped(avro)
        return pa.field(name, self.type(inner, path, level), nullable or inner.kind == "null")

    def _members(self, union: Union, path: str, level: int) -> list[pa.Field]:
        return [
            pa.field(member(number), self.type(union.branches[at], path, level), nullable=True)
            for number, at in enumerate(branches_of(union))
        ]


def _leaf(avro: Primitive | Fixed) -> pa.DataType:
    decimal = decimal_type(avro)
    if decimal is not None:
        return decimal
    if isinstance(avro, Fixed):
        return pa.binary(avro.size) if avro.size <= FIXED_BYTES_MAX else pa.binary()
    return _LOGICAL.get((avro.kind, logical_type(avro) or "")) or _PRIMITIVES[avro.kind]
