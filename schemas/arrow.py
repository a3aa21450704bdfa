"""Which Arrow type stands for which Avro type. One table, for both directions.

| Avro | Arrow |
|---|---|
| boolean, int, long, float, double | bool, int32, int64, float, double |
| string (and logical uuid) | string |
| bytes | binary |
| fixed(n), duration | fixed_size_binary(n) |
| enum | string |
| date | date32 |
| time-millis, time-micros | time32[ms], time64[us] |
| timestamp-millis, -micros, -nanos | timestamp[ms, us, ns; UTC] |
| local-timestamp-millis, -micros, -nanos | timestamp[ms, us, ns] without zone |
| decimal(p, s) on bytes or fixed | decimal128(p, s) up to 38 digits, decimal256 up to 76 |
| record | struct |
| array, map | list, map of string |
| union of null and one type | that type, nullable |
| null | null |

A logical type that Avro does not know, or that does not fit its base type, is ignored, as the
specification demands. Refused, with the place: unions of several branches, types that contain
themselves, and arrays or maps of something that takes no bytes (a few bytes of such a datum could
claim any number of items), and a fixed of more than `FIXED_BYTES_MAX`.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from schemas.avro_schema import (
    NESTING_MAX,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    logical_type,
)
from skidway.errors import SkidwayError

COLUMNS_MAX: Final = 10_000
"""Fields of a record and of the records in it: names that refer to names could multiply them."""
FIXED_BYTES_MAX: Final = 65_536
"""Arrow keeps a fixed's bytes even where it is null: one byte of a datum could claim gigabytes."""
DECIMAL128_DIGITS: Final = 38
DECIMAL256_DIGITS: Final = 76


class SchemaUnsupported(SkidwayError):
    """A good Avro schema that has no form in columns; the sentence names the field."""


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
    """The columns of a record. Raises `SchemaUnsupported`; only a record has columns."""
    if not isinstance(avro, Record):
        raise SchemaUnsupported(f"Only a record has columns; this schema is a {avro.kind}.")
    if not avro.fields:
        raise SchemaUnsupported(f"Record {avro.name} has no fields: no columns.")
    if _columns(avro, (), {}) > COLUMNS_MAX:
        raise SchemaUnsupported(f"Record {avro.name} has more than {COLUMNS_MAX} columns.")
    return pa.schema(_fields(avro, "", ()))


def unwrapped(avro: AvroType) -> tuple[AvroType, bool]:
    """(the type without its null branch, whether it had one). Several branches stay a union."""
    if not isinstance(avro, Union):
        return avro, False
    others = [branch for branch in avro.branches if branch.kind != "null"]
    nullable = len(others) < len(avro.branches)
    if len(others) == 1:
        return others[0], nullable
    return (avro, nullable) if others else (Primitive("null"), False)


def decimal_type(avro: AvroType) -> pa.DataType | None:
    """The Arrow decimal of a valid `decimal` logical type on bytes or fixed, else None."""
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


def takes_bytes(avro: AvroType) -> bool:
    """Whether every datum of that type is at least one byte long."""
    if isinstance(avro, Record):
        return any(takes_bytes(each.type) for each in avro.fields)
    if isinstance(avro, Fixed):
        return avro.size > 0
    return avro.kind != "null"


def _columns(avro: AvroType, outer: tuple[str, ...], known: dict[str, int]) -> int:
    """How many columns there are in all; each record is counted once. Cycles end it."""
    if isinstance(avro, Union):
        return max((_columns(branch, outer, known) for branch in avro.branches), default=1)
    if isinstance(avro, Array):
        return 1 + _columns(avro.items, outer, known)
    if isinstance(avro, Map):
        return 1 + _columns(avro.values, outer, known)
    if not isinstance(avro, Record) or avro.name in outer:
        return 1
    if len(outer) < NESTING_MAX and avro.name not in known:
        inside = (*outer, avro.name)
        known[avro.name] = 1 + sum(_columns(each.type, inside, known) for each in avro.fields)
    return known.get(avro.name, 1)


def _fields(record: Record, path: str, outer: tuple[str, ...]) -> list[pa.Field]:
    if len(outer) >= NESTING_MAX:
        raise SchemaUnsupported(f"Field {path} is nested more than {NESTING_MAX} levels deep.")
    if record.name in outer:
        raise SchemaUnsupported(f"Field {path} contains itself ({record.name}): no columns.")
    inside = (*outer, record.name)  # only records can hide depth: names refer to them
    return [
        _field(each.name, each.type, f"{path}.{each.name}".lstrip("."), inside)
        for each in record.fields
    ]


def _field(name: str, avro: AvroType, path: str, outer: tuple[str, ...]) -> pa.Field:
    inner, nullable = unwrapped(avro)
    return pa.field(name, _type(inner, path, outer), nullable or inner.kind == "null")


def _type(avro: AvroType, path: str, outer: tuple[str, ...]) -> pa.DataType:
    if isinstance(avro, Fixed) and avro.size > FIXED_BYTES_MAX:
        raise SchemaUnsupported(f"Field {path} is a fixed of more than {FIXED_BYTES_MAX} bytes.")
    if isinstance(avro, Primitive | Fixed):
        return _leaf(avro)
    if isinstance(avro, Enum):
        return pa.string()
    if isinstance(avro, Record):
        return pa.struct(_fields(avro, path, outer))
    if isinstance(avro, Union):
        kinds = ", ".join(branch.kind for branch in avro.branches)
        raise SchemaUnsupported(f"Field {path} is a union of several types ({kinds}): no column.")
    inside = avro.items if isinstance(avro, Array) else avro.values
    item = _field("item" if isinstance(avro, Array) else "value", inside, path, outer)
    if not takes_bytes(inside):
        raise SchemaUnsupported(f"Field {path} is an {avro.kind} of items that take no bytes.")
    return pa.list_(item) if isinstance(avro, Array) else pa.map_(pa.string(), item)


def _leaf(avro: Primitive | Fixed) -> pa.DataType:
    decimal = decimal_type(avro)
    if decimal is not None:
        return decimal
    if isinstance(avro, Fixed):
        return pa.binary(avro.size)
    return _LOGICAL.get((avro.kind, logical_type(avro) or "")) or _PRIMITIVES[avro.kind]
