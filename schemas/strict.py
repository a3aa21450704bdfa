"""Checks, without building any values, that bytes are exactly one datum of a schema.

The slow path (`skidway.schemas.codec.rows`) reads a datum and encodes its value again. If the new
bytes differ from the datum, the datum is checked here. The bytes may differ because the datum has
an array in several blocks or a varint with padding, which is legal. They may also differ because
fastavro accepted invalid bytes, such as a negative index of a branch or symbol, a boolean whose
byte is 2, or a number of more than 64 bits. In two cases, this module checks a datum before the
slow path reads it. First, the items of the datum could take much more memory than the datum has
bytes (`skidway.schemas.bounds`). Second, the schema is recursive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Record,
    Recursive,
    Union,
)
from skidway.schemas.bounds import CLAIM_MAX, DEPTH_MAX, EMPTY_ITEMS_MAX, least_bytes

_FIXED_SIZES: Final = {"null": 0, "float": 4, "double": 8}
_VARINT_BYTES_MAX: Final = 10
_ZEROS: Final = re.compile(rb"\0*")


class DatumInvalid(ValueError):
    """Raised if bytes are not a datum of the schema. The message says why."""


def check_datum(
    avro: AvroType, data: bytes, weigh: Callable[[AvroType], int] = lambda _: 0
) -> None:
    """Raises `DatumInvalid` if `data` is not exactly one datum of `avro`.

    The columns for the items of arrays and maps may take only a limited amount of memory
    (`CLAIM_MAX`). For this limit, `weigh` returns how many bytes an item of a type takes; by
    default, items count as 0 bytes.
    """
    end = _Walk(data, 0, len(data), weigh).over(avro, 0)
    if end != len(data):
        raise DatumInvalid(f"{len(data) - end} bytes too many")


def value_end(avro: AvroType, data: bytes, begin: int, end: int) -> int:
    """Returns the position after the value of the type `avro` that begins at `begin`, in a datum
    that ends at `end`. Raises `DatumInvalid`."""
    return _Walk(data, begin, end, lambda _: 0).over(avro, begin)


class _Walk:
    """Walks over one datum, or over one value in it, and adds up how many bytes its items would
    take in columns."""

    def __init__(self, data: bytes, begin: int, end: int, weigh: Callable[[AvroType], int]) -> None:
        self._data = data
        self._size = end
        self._bytes = end - begin
        self._depth = 0
        self._weigh = weigh
        self._claimed = 0
        self._empty_items = 0
        self._least: dict[int, int] = {}

    def over(self, avro: AvroType, at: int) -> int:
        """Returns the position after the value that begins at `at`. Each level of nesting adds only
        two calls to Python's stack, so that `DEPTH_MAX` levels fit on the stack."""
        if isinstance(avro, Recursive):
            return value_end(avro.type, self._data, at, self._size)
        if isinstance(avro, Union):
            number, at = self._number(at)
            _within(number, len(avro.branches), "the union has no branch")
            avro = avro.branches[number]
        if isinstance(avro, Record | Array | Map):
            self._depth += 1
            if self._depth > DEPTH_MAX:
                raise DatumInvalid(f"it is nested more than {DEPTH_MAX} levels deep")
            at = self._fields(avro, at) if isinstance(avro, Record) else self._blocks(avro, at)
            self._depth -= 1
            return at
        return self._leaf(avro, at)

    def _fields(self, record: Record, at: int) -> int:
        for field in record.fields:
            at = self.over(field.type, at)
        return at

    def _leaf(self, avro: AvroType, at: int) -> int:
        if isinstance(avro, Fixed):
            return self._skip(at, avro.size)
        if isinstance(avro, Enum):
            number, at = self._number(at)
            _within(number, len(avro.symbols), f"enum {avro.name} has no symbol")
            return at
        return self._primitive(avro.kind, at)

    def _primitive(self, kind: str, at: int) -> int:
        if kind == "boolean":
            end = self._skip(at, 1)
            if self._data[at] > 1:
                raise DatumInvalid(f"{self._data[at]} is no boolean")
            return end
        if kind in _FIXED_SIZES:
            return self._skip(at, _FIXED_SIZES[kind])
        number, at = self._number(at)
        if kind == "int" and not -(2**31) <= number < 2**31:
            raise DatumInvalid(f"{number} is no int")
        return self._sized(kind, number, at) if kind in ("string", "bytes") else at

    def _sized(self, kind: str, size: int, at: int) -> int:
        if size < 0:
            raise DatumInvalid(f"{size} is no length")
        end = self._skip(at, size)
        if kind == "string":
            try:
                self._data[at:end].decode()
            except UnicodeDecodeError:
                raise DatumInvalid("a string is not UTF-8") from None
        return end

    def _blocks(self, avro: Array | Map, at: int) -> int:
        keys: set[bytes] = set()
        inside = avro.items if isinstance(avro, Array) else avro.values
        is_map = isinstance(avro, Map)
        may_be_empty = isinstance(avro, Array) and isinstance(inside, Array | Map)
        least, weight = self._least_of(inside) + is_map, self._weigh(inside)
        while True:
            count, at = self._number(at)
            if count == 0:
                return at
            expected = None
            if count < 0:
                size, at = self._number(at)
                count, expected = -count, at + size
            self._claim(count, least, weight)
            while count:
                if may_be_empty:  # skips empty items (each is one zero byte) all at once
                    begin, at = at, self._behind_zeros(at, count)
                    count -= at - begin
                    if not count:
                        break
                if is_map:
                    at = self._key(at, keys)
                at = self.over(inside, at)
                count -= 1
            if expected not in (None, at):
                raise DatumInvalid(f"a block of the {avro.kind} has another size than it says")

    def _least_of(self, avro: AvroType) -> int:
        if id(avro) not in self._least:
            self._least[id(avro)] = least_bytes(avro)
        return self._least[id(avro)]

    def _claim(self, count: int, least: int, weight: int) -> None:
        if count * least > self._bytes:
            raise DatumInvalid("it ends too early")
        self._empty_items += 0 if least else count
        if self._empty_items > EMPTY_ITEMS_MAX:
            raise DatumInvalid(f"it has more than {EMPTY_ITEMS_MAX} items that take no bytes")
        self._claimed += count * weight
        if self._claimed > CLAIM_MAX * self._bytes:
            raise DatumInvalid(f"its items take more than {CLAIM_MAX} times its bytes in columns")

    def _key(self, at: int, keys: set[bytes]) -> int:
        _, begin = self._number(at)
        end = self._primitive("string", at)
        # if a map has a key twice, readers disagree which of the two values they keep
        if self._data[begin:end] in keys:
            raise DatumInvalid("a map has a key twice")
        keys.add(self._data[begin:end])
        return end

    def _number(self, at: int) -> tuple[int, int]:
        if at < self._size and (byte := self._data[at]) < 0x80:  # most numbers take one byte
            return (byte >> 1) ^ -(byte & 1), at + 1
        value = 0
        for position in range(_VARINT_BYTES_MAX):
            if at + position >= self._size:
                raise DatumInvalid("it ends too early")
            byte = self._data[at + position]
            value |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                if value >= 1 << 64:
                    break
                return (value >> 1) ^ -(value & 1), at + position + 1
        raise DatumInvalid("a number has more than 64 bits")

    def _behind_zeros(self, at: int, most: int) -> int:
        found = _ZEROS.match(self._data, at, min(at + most, self._size))
        return at if found is None else found.end()

    def _skip(self, at: int, size: int) -> int:
        if at + size > self._size:
            raise DatumInvalid("it ends too early")
        return at + size


def _within(number: int, count: int, what: str) -> None:
    if not 0 <= number < count:
        raise DatumInvalid(f"{what} {number}")
