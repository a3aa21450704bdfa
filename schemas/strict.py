"""Whether bytes are exactly one datum of a schema: a walk that makes nothing and forgives nothing.

The slow path asks it about datums whose values, encoded again, give other bytes: that is right for
an array in several blocks or a varint with padding, and wrong for what lenient readers let pass (a
negative branch or symbol, a boolean of 2, a number of more than 64 bits).
"""

from __future__ import annotations

from typing import Final

from schemas.avro_schema import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union

_FIXED_SIZES: Final = {"null": 0, "float": 4, "double": 8}
_VARINT_BYTES_MAX: Final = 10


class DatumInvalid(ValueError):
    """Why these bytes are no datum of the schema."""


def check_datum(avro: AvroType, data: bytes) -> None:
    """Raises `DatumInvalid` unless `data` is one datum of `avro`, from first byte to last."""
    end = _walk(avro, data, 0)
    if end != len(data):
        raise DatumInvalid(f"{len(data) - end} bytes too many")


def _walk(avro: AvroType, data: bytes, at: int) -> int:
    """The position behind the datum that begins at `at`."""
    if isinstance(avro, Primitive):
        return _primitive(avro.kind, data, at)
    if isinstance(avro, Record):
        for field in avro.fields:
            at = _walk(field.type, data, at)
        return at
    if isinstance(avro, Fixed):
        return _skip(data, at, avro.size)
    if isinstance(avro, Enum):
        number, at = _number(data, at)
        _within(number, len(avro.symbols), f"enum {avro.name} has no symbol")
        return at
    if isinstance(avro, Union):
        number, at = _number(data, at)
        _within(number, len(avro.branches), "the union has no branch")
        return _walk(avro.branches[number], data, at)
    return _blocks(avro, data, at)


def _primitive(kind: str, data: bytes, at: int) -> int:
    if kind == "boolean":
        end = _skip(data, at, 1)
        if data[at] > 1:
            raise DatumInvalid(f"{data[at]} is no boolean")
        return end
    if kind in _FIXED_SIZES:
        return _skip(data, at, _FIXED_SIZES[kind])
    number, at = _number(data, at)
    if kind == "int" and not -(2**31) <= number < 2**31:
        raise DatumInvalid(f"{number} is no int")
    return _sized(kind, number, data, at) if kind in ("string", "bytes") else at


def _sized(kind: str, size: int, data: bytes, at: int) -> int:
    if size < 0:
        raise DatumInvalid(f"{size} is no length")
    end = _skip(data, at, size)
    if kind == "string":
        try:
            data[at:end].decode()
        except UnicodeDecodeError:
            raise DatumInvalid("a string is not UTF-8") from None
    return end


def _blocks(avro: Array | Map, data: bytes, at: int) -> int:
    keys: set[bytes] = set()
    while True:
        count, at = _number(data, at)
        if count == 0:
            return at
        expected = None
        if count < 0:
            size, at = _number(data, at)
            count, expected = -count, at + size
        for _ in range(count):
            if isinstance(avro, Map):
                at = _key(data, at, keys)
            at = _walk(avro.items if isinstance(avro, Array) else avro.values, data, at)
        if expected not in (None, at):
            raise DatumInvalid(f"a block of the {avro.kind} has another size than it says")


def _key(data: bytes, at: int, keys: set[bytes]) -> int:
    _, begin = _number(data, at)
    end = _primitive("string", data, at)
    if data[begin:end] in keys:  # readers keep one of the values, and nobody knows which
        raise DatumInvalid("a map has a key twice")
    keys.add(data[begin:end])
    return end


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(_VARINT_BYTES_MAX):
        if at + position >= len(data):
            raise DatumInvalid("it ends too early")
        byte = data[at + position]
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return (value >> 1) ^ -(value & 1), at + position + 1
    raise DatumInvalid("a number has more than 64 bits")


def _skip(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise DatumInvalid("it ends too early")
    return at + size


def _within(number: int, count: int, what: str) -> None:
    if not 0 <= number < count:
        raise DatumInvalid(f"{what} {number}")
