"""Reads and writes single values whose type contains itself. In Python, a value is what `json`
makes of its text; `json_text` has the table of the forms.

Neither direction prepares anything for a schema, so a schema may have many fields whose types
contain one another. Each level of nesting needs only two nested calls, so that the stack is large
enough for `bounds.DEPTH_MAX` levels.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from typing import Any, Final

import pyarrow as pa

from skidway.schemas.avro_schema import Array, AvroType, Enum, Fixed, Map, Record, Recursive, Union
from skidway.schemas.codec.arrow import DECIMAL256_DIGITS, decimal_type, member, member_number
from skidway.schemas.codec.times import checked_time, is_time

_EXACT: Final = Context(prec=DECIMAL256_DIGITS)
_FLOATS: Final = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


class ValueReader:
    """Reads values of a datum, one after the other. `skidway.schemas.strict` must have checked the
    bytes: this class relies on lengths and indexes."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at

    def value(self, avro: AvroType) -> Any:
        """Returns the value that begins here. Raises ValueError for a time or decimal out of its
        range."""
        if isinstance(avro, Recursive):
            avro = avro.type
        if not isinstance(avro, Union):
            return self._parts(avro)
        at = self._number()
        if at == avro.null_at:
            return None
        made = self._parts(avro.branches[at])
        return made if avro.members_count == 1 else {member(avro.member_number(at)): made}

    def _parts(self, avro: AvroType) -> Any:
        if isinstance(avro, Record):
            made = {}
            for each in avro.fields:
                made[each.name] = self.value(each.type)
            return made
        if isinstance(avro, Array):
            items = []
            while count := self._count():
                for _ in range(count):
                    items.append(self.value(avro.items))
            return items
        if isinstance(avro, Map):
            made = {}
            while count := self._count():
                for _ in range(count):
                    key = self._bytes(self._number()).decode()
                    made[key] = self.value(avro.values)
            return made
        return leaf_json(avro, self._leaf(avro))

    def _leaf(self, avro: AvroType) -> Any:
        if isinstance(avro, Fixed):
            return self._bytes(avro.size)
        if isinstance(avro, Enum):
            return avro.symbols[self._number()]
        if avro.kind == "string":
            return self._bytes(self._number()).decode()
        if avro.kind == "bytes":
            return self._bytes(self._number())
        if avro.kind == "boolean":
            return self._bytes(1) == b"\1"
        form = _FLOATS.get(avro.kind)
        if form is not None:
            return form.unpack(self._bytes(form.size))[0]
        return None if avro.kind == "null" else self._number()

    def _bytes(self, size: int) -> bytes:
        begin = self._at
        self._at += size
        return self._data[begin : self._at]

    def _count(self) -> int:
        count = self._number()
        if count < 0:
            self._number()  # the size of the block
        return abs(count)

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7


def put_value(avro: AvroType, value: Any, datum: bytearray) -> None:
    """Appends the bytes of a value to a datum. The value must be one that a `ValueReader` has
    returned."""
    if isinstance(avro, Recursive):
        avro = avro.type
    if not isinstance(avro, Union):
        _put_parts(avro, value, datum)
    elif value is None:
        assert avro.null_at is not None
        _put_number(avro.null_at, datum)
    else:
        number = 0
        if avro.members_count > 1:
            ((tag, value),) = value.items()
            number = member_number(tag)
        at = avro.member_at(number)
        _put_number(at, datum)
        _put_parts(avro.branches[at], value, datum)


def _put_parts(avro: AvroType, value: Any, datum: bytearray) -> None:
    if isinstance(avro, Record):
        for each in avro.fields:
            put_value(each.type, value[each.name], datum)
    elif isinstance(avro, Array | Map):
        if value:
            _put_number(len(value), datum)
        if isinstance(avro, Array):
            for item in value:
                put_value(avro.items, item, datum)
        else:
            for key, item in value.items():
                _put_bytes(key.encode(), datum)
                put_value(avro.values, item, datum)
        _put_number(0, datum)
    else:
        _put_leaf(avro, _leaf_of(avro, value), datum)


def _put_leaf(avro: AvroType, value: Any, datum: bytearray) -> None:
    if isinstance(avro, Fixed):
        datum += value
    elif isinstance(avro, Enum):
        _put_number(avro.symbols.index(value), datum)
    elif avro.kind in ("string", "bytes"):
        _put_bytes(value.encode() if avro.kind == "string" else value, datum)
    elif avro.kind == "boolean":
        datum.append(value)
    elif avro.kind in _FLOATS:
        datum += _FLOATS[avro.kind].pack(value)
    elif avro.kind != "null":
        _put_number(value, datum)


def _put_bytes(value: bytes, datum: bytearray) -> None:
    _put_number(len(value), datum)
    datum += value


def _put_number(value: int, datum: bytearray) -> None:
    rest = (value << 1) ^ (value >> 63)
    while rest >= 0x80:
        datum.append(rest & 0x7F | 0x80)
        rest >>= 7
    datum.append(rest)


def leaf_json(avro: AvroType, value: Any) -> Any:
    """Returns the JSON of a value of a type without inner types. Raises ValueError for a time or
    decimal out of its range."""
    decimal = decimal_type(avro)
    if decimal is not None:
        return format(scaled(value, decimal), "f")
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return checked_time(avro, value) if is_time(avro) else value


def _leaf_of(avro: AvroType, value: Any) -> Any:
    """Returns the value of which `leaf_json` made this JSON."""
    decimal = decimal_type(avro)
    if decimal is not None:
        unscaled = int(Decimal(value).scaleb(decimal.scale, _EXACT))
        size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(avro.size if isinstance(avro, Fixed) else size, "big", signed=True)
    if avro.kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    return float(value) if avro.kind in _FLOATS else value


def scaled(raw: bytes, arrow: pa.DataType) -> Decimal:
    """Returns the decimal of these bytes. Raises ValueError if the decimal has too many digits."""
    digits = str(abs(unscaled := int.from_bytes(raw, "big", signed=True)))
    if len(digits) > arrow.precision:
        raise ValueError(f"a decimal has {len(digits)} digits, more than {arrow.precision}")
    return Decimal((unscaled < 0, tuple(map(int, digits)), -arrow.scale))
