"""One datum at a time: fastavro's reader and writer, held to the letter of the specification.

fastavro reads faster than it checks: it takes negative branches and symbols, booleans of 2 and
numbers of more than 64 bits. What it read is therefore written again; only where that gives other
bytes does `schemas.strict` walk over the datum and decide (padding and several blocks are legal).
"""

from __future__ import annotations

import io
import struct
from typing import Any, Final

import fastavro

from schemas.avro_schema import Array, AvroType, Enum, Fixed, Map, Primitive, Union
from schemas.strict import check_datum

MALFORMED: Final = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
)
"""What fastavro raises for a datum or a record that does not fit the schema."""


def plain_schema(avro: AvroType, *, defaults: bool = False) -> Any:
    """`avro` for fastavro: full names, no logical types, no properties; defaults where wanted."""
    return fastavro.parse_schema(_plain(avro, defaults, set()))


def read_datum(avro: AvroType, plain: Any, datum: bytes) -> Any:
    """The value of exactly one datum. Raises one of `MALFORMED`."""
    stream = io.BytesIO(datum)
    try:
        value = fastavro.schemaless_reader(stream, plain, None)
    except MALFORMED:
        check_datum(avro, datum)  # knows why in better words
        raise
    if stream.tell() != len(datum) or write_datum(plain, value) != datum:
        check_datum(avro, datum)
    return value


def write_datum(plain: Any, value: Any, *, exact: bool = False) -> bytes:
    """The datum of `value`. `exact`: no unknown keys, none missing without a default.

    Raises one of `MALFORMED`.
    """
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, plain, value, strict_allow_default=exact)
    return buffer.getvalue()


def malformed_reason(error: BaseException) -> str:
    """What one of `MALFORMED` means, for people."""
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, UnicodeDecodeError):
        return "a string is not UTF-8"
    return str(error) or type(error).__name__


def _plain(avro: AvroType, defaults: bool, declared: set[str]) -> Any:
    if isinstance(avro, Primitive):
        return avro.kind
    if isinstance(avro, Union):
        return [_plain(branch, defaults, declared) for branch in avro.branches]
    if isinstance(avro, Array):
        return {"type": "array", "items": _plain(avro.items, defaults, declared)}
    if isinstance(avro, Map):
        return {"type": "map", "values": _plain(avro.values, defaults, declared)}
    name = f"_.{avro.name}"  # a full name always: one without namespace would take that around it
    if name in declared:
        return name
    declared.add(name)
    if isinstance(avro, Enum):
        return {"type": "enum", "name": name, "symbols": list(avro.symbols)}
    if isinstance(avro, Fixed):
        return {"type": "fixed", "name": name, "size": avro.size}
    fields = []
    for each in avro.fields:
        field = {"name": each.name, "type": _plain(each.type, defaults, declared)}
        if defaults and each.has_default:
            field["default"] = each.default
        fields.append(field)
    return {"type": "record", "name": name, "fields": fields}
