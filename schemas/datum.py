"""Reads and writes single datums with fastavro, as strictly as the specification demands.

fastavro checks little. It accepts negative indexes of branches and symbols, booleans whose byte is
2, and numbers of more than 64 bits. So `read_datum` decodes a value and then encodes it again. If
the bytes differ from the datum, `skidway.schemas.strict` walks over the datum and decides whether
the datum is valid. (Varints with padding and arrays in several blocks are valid.)
"""

from __future__ import annotations

import io
import struct
from typing import Any, Final

import fastavro

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Recursive,
    Union,
)
from skidway.schemas.strict import check_datum

MALFORMED: Final = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
)
"""The errors that fastavro raises for a datum, or a value to encode, that does not fit the
schema."""


def plain_schema(avro: AvroType, *, defaults: bool = False, tagged: bool = False) -> Any:
    """Returns the schema in the form that fastavro needs, with full names, and without logical
    types and properties. The returned schema has default values only if `defaults` is true.

    With `tagged`, a value of a union of several types has a tag, for example `{"member1": value}`.
    The number in the tag is the index of the value's type in the union, without counting null. The
    encoded bytes are the same with and without these tags. Without the tags, fastavro cannot decide
    which of the types a value has, for example int or long.
    """
    return fastavro.parse_schema(PlainSchema(defaults, tagged).of(avro))


def read_datum(avro: AvroType, plain: Any, datum: bytes) -> Any:
    """Returns the value of a datum. The bytes must be exactly one datum; otherwise raises one of
    `MALFORMED`.
    """
    stream = io.BytesIO(datum)
    try:
        value = fastavro.schemaless_reader(stream, plain, None)
    except MALFORMED:
        check_datum(avro, datum)  # raises an error that says what is wrong with the datum
        raise
    if stream.tell() != len(datum) or write_datum(plain, value) != datum:
        check_datum(avro, datum)
    return value


def read_checked(plain: Any, datum: bytes) -> Any:
    """Returns the value of a datum. The caller must have checked the datum with
    `skidway.schemas.strict`, because an unchecked datum may be nested too deeply or have too many
    items."""
    return fastavro.schemaless_reader(io.BytesIO(datum), plain, None)


def write_datum(plain: Any, value: Any, *, exact: bool = False) -> bytes:
    """Returns `value`, encoded as a datum. With `exact`, a record in `value` must have no unknown
    key, and must not lack the key of a field that has no default.

    Raises one of `MALFORMED`.
    """
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, plain, value, strict_allow_default=exact)
    return buffer.getvalue()


def malformed_reason(error: BaseException) -> str:
    """Returns a sentence that says why an error of `MALFORMED` was raised."""
    if isinstance(error, EOFError):
        return "it ends too early"
    if isinstance(error, UnicodeDecodeError):
        return "a string is not UTF-8"
    return str(error) or type(error).__name__


class PlainSchema:
    """Converts one schema to the form that fastavro needs (see `plain_schema`), and remembers the
    named types that are declared so far."""

    def __init__(self, defaults: bool, tagged: bool) -> None:
        self._unions: dict[int, int] = {}
        self._defaults = defaults
        self._tagged = tagged
        self._declared: set[str] = set()

    def of(self, avro: AvroType) -> Any:
        if isinstance(avro, Recursive):
            return self.of(avro.type)
        if isinstance(avro, Primitive):
            return avro.kind
        if isinstance(avro, Union):
            return self._union(avro)
        if isinstance(avro, Array):
            return {"type": "array", "items": self.of(avro.items)}
        if isinstance(avro, Map):
            return {"type": "map", "values": self.of(avro.values)}
        name = _name(avro)  # a full name, because a short name would inherit a namespace
        if name in self._declared:
            return name
        self._declared.add(name)
        aliases = [f"_.{each}" for each in avro.aliases]
        made = {"type": avro.kind, "name": name, "aliases": aliases}
        if isinstance(avro, Fixed):
            return made | {"size": avro.size}
        if isinstance(avro, Record):
            return made | {"fields": [self._field(each) for each in avro.fields]}
        default = {"default": avro.default} if avro.default in avro.symbols else {}
        return made | {"symbols": list(avro.symbols)} | default

    def _field(self, field: Field) -> dict[str, Any]:
        made = {"name": field.name, "aliases": list(field.aliases), "type": self.of(field.type)}
        if self._defaults and field.has_default:
            made["default"] = field.default
        return made

    def _union(self, union: Union) -> list[Any]:
        members = [each for each in union.branches if each.kind != "null"]
        is_tagged = self._tagged and len(members) > 1
        number = self._unions.setdefault(id(union), len(self._unions))
        made = [
            self._tag(each, at, f"_tag.t{number}_{at}") if is_tagged else self.of(each)
            for at, each in enumerate(members)
        ]
        rest = iter(made)
        return ["null" if each.kind == "null" else next(rest) for each in union.branches]

    def _tag(self, avro: AvroType, number: int, name: str) -> Any:
        if name in self._declared:
            return name
        self._declared.add(name)
        fields = [{"name": f"member{number}", "type": self.of(avro)}]
        return {"type": "record", "name": name, "fields": fields}


def _name(avro: AvroType) -> str:
    return f"_.{avro.name}" if isinstance(avro, Named) else avro.kind
