"""Reads and writes the protocol's primitive types.

    type             bytes
    int8..int64      big-endian, two's complement
    bool             one byte, 0 = false
    uuid             16 bytes
    uvarint          7 bits a byte, lowest first, high bit = another byte follows; at most 5 bytes
    varint, varlong  zigzag-encoded uvarint; at most 5 and 10 bytes
    string           int16 length, UTF-8; -1 = null          compact: uvarint length + 1, 0 = null
    bytes, records   int32 length; -1 = null                 compact: uvarint length + 1, 0 = null
    array            int32 count; -1 = null                  compact: uvarint count + 1, 0 = null
    tags             uvarint count, then (uvarint tag, uvarint size, bytes); in flexible versions
                     at the end of every structure (KIP-482)

Invariants: a ``MessageReader`` never reads past the end of its view. Before it allocates memory, it
checks each length and each count. A length must not exceed the number of bytes that are left in the
view. The count of an array must not exceed the number of elements that fit into the rest of the
view, if each element has the smallest size of its type. A reader raises only ``ProtocolError``. The
write functions raise ``ValueError`` for a value that does not fit.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from typing import Final

from skidway.kafka.errors import BadValue, TrailingBytes, Truncated

INT8: Final = struct.Struct(">b")
INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")

UVARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10
STRING_BYTES_MAX: Final = (1 << 15) - 1
ELEMENTS_MAX: Final = 2_000_000
"""The highest number of array elements in one message, in all arrays together. One byte of a
message can become a Python object of a hundred bytes, so a limit on the frame's size does not limit
the memory enough. The Metadata response of the largest cluster that Kafka supports (200,000
partitions with three replicas each) has fewer elements."""
REQUEST_ELEMENTS_MAX: Final = 25_000
"""The highest number of array elements in a request. A request about 10,000 partitions, each of
another topic, or with a replica each, has 20,001. A broker has no more partitions, and a server's
loop handles a whole request in one turn."""

TAGS_MAX: Final = 1000
"""The highest number of tags in one section. Kafka's messages have only a few tags. A reader
processes tags one by one, so a long section would cost much time."""


class MessageReader:
    """Reads a message from its beginning to its end. The methods for types return the next value,
    and move the position to the end of this value."""

    __slots__ = ("_counts", "_elements_left", "at", "end", "view")

    def __init__(self, view: memoryview, at: int = 0, elements_max: int = ELEMENTS_MAX) -> None:
        self.view = view
        self.at = at
        self.end = len(view)
        self._elements_left = elements_max
        self._counts: dict[str, int] = {}

    @property
    def left(self) -> int:
        """The number of bytes that are not read yet."""
        return self.end - self.at

    def finish(self) -> None:
        """Raises TrailingBytes if the message has more bytes after the present position."""
        if self.at != self.end:
            raise TrailingBytes(f"{self.left} bytes follow the end of a message")

    def fixed(self, form: struct.Struct) -> tuple[int, ...]:
        """Reads integers in the format `form`."""
        at = self.at
        if form.size > self.end - at:
            raise _truncated(form.size, self)
        self.at = at + form.size
        return form.unpack_from(self.view, at)

    def int8(self) -> int:
        """A signed integer of one byte."""
        return self.fixed(INT8)[0]

    def int16(self) -> int:
        """A signed integer of two bytes."""
        return self.fixed(INT16)[0]

    def int32(self) -> int:
        """A signed integer of four bytes."""
        return self.fixed(INT32)[0]

    def int64(self) -> int:
        """A signed integer of eight bytes."""
        return self.fixed(INT64)[0]

    def uuid(self) -> uuid.UUID:
        """A UUID of sixteen bytes."""
        return uuid.UUID(bytes=bytes(self.take(16)))

    def uvarint(self) -> int:
        """An unsigned 32-bit integer of one to five bytes."""
        value = self._groups(UVARINT_BYTES_MAX)
        if value >> 32:
            raise BadValue("a variable-length integer does not fit 32 bits")
        return value

    def varint(self) -> int:
        """A signed 32-bit integer of one to five bytes, zigzag-encoded."""
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """A signed 64-bit integer of one to ten bytes, zigzag-encoded."""
        value = self._groups(VARLONG_BYTES_MAX)
        if value >> 64:
            raise BadValue("a variable-length integer does not fit 64 bits")
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        at = self.at
        if size > self.end - at:
            raise _truncated(size, self)
        self.at = at + size
        return self.view[at : self.at]

    def string(self) -> str | None:
        """A string with an int16 length, or None."""
        size = self.int16()
        return None if size == -1 else self._text(size)

    def compact_string(self) -> str | None:
        """A string with a compact length, or None."""
        size = self.uvarint() - 1
        return None if size == -1 else self._text(size)

    def sized(self) -> memoryview | None:
        """Bytes with an int32 length. The bytes are not copied. None stands for null."""
        size = self.int32()
        if size < -1:
            raise BadValue(f"a length of {size} bytes")
        return None if size == -1 else self.take(size)

    def compact_sized(self) -> memoryview | None:
        """Bytes with a compact length. The bytes are not copied. None stands for null."""
        size = self.uvarint() - 1
        return None if size == -1 else self.take(size)

    def count(self, least_bytes: int) -> int:
        """Reads the number of elements of an array; -1 means null. Raises Truncated if the rest of
        the message is too short for this number of elements of `least_bytes` bytes each, and
        BadValue if the number is below -1, or the message has too many elements."""
        return self._counted(self.int32(), least_bytes)

    def compact_count(self, least_bytes: int) -> int:
        """Like `count`, for a number of elements in compact form."""
        return self._counted(self.uvarint() - 1, least_bytes)

    def limit(self, what: str, count: int, most: int) -> None:
        """Counts elements of one kind. Raises BadValue if all arrays of this kind together have
        more than `most`."""
        self._counts[what] = self._counts.get(what, 0) + count
        if self._counts[what] > most:
            raise BadValue(f"more than {most} {what} in one message")

    def tags(self, known: Callable[[int, MessageReader], bool] | None = None) -> None:
        """Reads a tag section. Calls `known` with each tag and with a reader of only this tag's
        field. If `known` recognizes the tag, it reads the field and returns True. If `known`
        returns False, the tag is skipped."""
        count = self.uvarint()
        if count * 2 > self.left:
            raise _truncated(count * 2, self)
        if count > TAGS_MAX:
            raise BadValue(f"a section of {count} tags")
        seen: set[int] = set()
        for _ in range(count):
            tag = self.uvarint()
            field = self.take(self.uvarint())
            if known is None:
                continue
            part = MessageReader(field, elements_max=self._elements_left)
            if known(tag, part):
                self._once(tag, seen)
                part.finish()
                self._elements_left = part._elements_left

    @staticmethod
    def _once(tag: int, seen: set[int]) -> None:
        if tag in seen:
            raise BadValue(f"tag {tag} comes twice in one structure")
        seen.add(tag)

    def _groups(self, most: int) -> int:
        value = shift = 0
        for at in range(self.at, min(self.at + most, self.end)):
            byte = self.view[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = at + 1
                return value
            shift += 7
        if self.left < most:
            raise _truncated(self.left + 1, self)
        raise BadValue(f"a variable-length integer of more than {most} bytes")

    def _text(self, size: int) -> str:
        if size < 0:
            raise BadValue(f"a string of {size} bytes")
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise BadValue("a string is not UTF-8") from None

    def _counted(self, count: int, least_bytes: int) -> int:
        if count < -1:
            raise BadValue(f"an array of {count} elements")
        if count * least_bytes > self.left:
            raise Truncated(
                f"an array of {count} elements in the last {self.left} bytes of a message"
            )
        self._elements_left -= count
        if self._elements_left < 0:
            raise BadValue("more array elements than a message may have")
        return count


def put_uvarint(out: bytearray, value: int) -> None:
    """Appends an unsigned variable-length integer."""
    if value < 0:
        raise ValueError(f"{value} is negative")
    while value >= 0x80:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def put_string(out: bytearray, value: str | None) -> None:
    """Appends a string with an int16 length."""
    if value is None:
        out += b"\xff\xff"
        return
    data = encoded(value)
    out += INT16.pack(len(data))
    out += data


def put_compact_string(out: bytearray, value: str | None) -> None:
    """Appends a string with a compact length."""
    if value is None:
        out.append(0)
        return
    data = encoded(value)
    put_uvarint(out, len(data) + 1)
    out += data


def put_sized(out: bytearray, value: bytes | memoryview | None) -> None:
    """Appends bytes with an int32 length."""
    if value is None:
        out += b"\xff\xff\xff\xff"
        return
    out += INT32.pack(len(value))
    out += value


def put_compact_sized(out: bytearray, value: bytes | memoryview | None) -> None:
    """Appends bytes with a compact length."""
    put_uvarint(out, 0 if value is None else len(value) + 1)
    if value is not None:
        out += value


def put_count(out: bytearray, count: int) -> None:
    """Appends the number of an array's elements; -1 means null."""
    out += INT32.pack(count)


def put_compact_count(out: bytearray, count: int) -> None:
    """Appends the number of an array's elements in compact form; -1 means null."""
    put_uvarint(out, count + 1)


def encoded(text: str) -> bytes:
    """Returns the UTF-8 of a string. Raises ValueError for more than 32,767 bytes, the limit of the
    protocol."""
    data = text.encode()
    if len(data) > STRING_BYTES_MAX:
        raise ValueError(f"a string of {len(data)} bytes, more than {STRING_BYTES_MAX}")
    return data


def _truncated(needed: int, reader: MessageReader) -> Truncated:
    return Truncated(f"{needed} bytes needed at the last {reader.left} bytes of a message")
