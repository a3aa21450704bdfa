"""Values of primitive types are read as they were written. A length or count that is larger than
the rest of the message allocates no memory."""

from __future__ import annotations

import tracemalloc
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.errors import BadValue, ProtocolError, TrailingBytes, Truncated
from skidway.kafka.protocol import primitives as wire
from skidway.kafka.protocol.primitives import MessageReader

READS: list[Callable[[MessageReader], object]] = [
    MessageReader.int8,
    MessageReader.int16,
    MessageReader.int32,
    MessageReader.int64,
    MessageReader.uuid,
    MessageReader.uvarint,
    MessageReader.varint,
    MessageReader.varlong,
    MessageReader.string,
    MessageReader.compact_string,
    MessageReader.sized,
    MessageReader.compact_sized,
    MessageReader.tags,
    lambda reader: reader.count(1),
    lambda reader: reader.compact_count(4),
    lambda reader: reader.take(3),
]


def read(data: bytes) -> MessageReader:
    return MessageReader(memoryview(data))


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "80 01"),
        (300, "ac 02"),
        (16383, "ff 7f"),
        (16384, "80 80 01"),
        ((1 << 32) - 1, "ff ff ff ff 0f"),
    ],
)
def test_uvarint_bytes(value: int, encoded: str) -> None:
    """Unsigned varints have the bytes that the protocol defines."""
    out = bytearray()
    wire.put_uvarint(out, value)
    assert bytes(out) == bytes.fromhex(encoded)
    assert read(bytes(out)).uvarint() == value


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "80 01"),
        ((1 << 31) - 1, "fe ff ff ff 0f"),
        (-(1 << 31), "ff ff ff ff 0f"),
    ],
)
def test_varint_bytes(value: int, encoded: str) -> None:
    """Signed varints are zigzag-encoded."""
    assert read(bytes.fromhex(encoded)).varint() == value


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varlong_round_trip(value: int) -> None:
    """Every signed 64-bit integer is read back from its zigzag form, which has at most ten
    bytes."""
    out = bytearray()
    wire.put_uvarint(out, value << 1 if value >= 0 else (~value << 1) | 1)
    reader = read(bytes(out))
    assert reader.varlong() == value
    reader.finish()
    assert len(out) <= wire.VARLONG_BYTES_MAX


@pytest.mark.parametrize("data", ["ff ff ff ff ff 01", "80 80 80 80 80 00", "ff ff ff ff 1f"])
def test_uvarint_too_long(data: str) -> None:
    """An unsigned varint with a sixth byte, or with a bit above the 32nd, is refused."""
    with pytest.raises(BadValue):
        read(bytes.fromhex(data)).uvarint()


def test_varlong_too_long() -> None:
    """A varlong with an eleventh byte, or with a bit above the 64th, is refused."""
    with pytest.raises(BadValue):
        read(b"\xff" * 10 + b"\x01").varlong()
    with pytest.raises(BadValue):
        read(b"\xff" * 9 + b"\x02").varlong()


@given(st.none() | st.text())
def test_string_round_trip(text: str | None) -> None:
    """Strings and null are read as they were written, both in the plain and in the compact
    encoding."""
    plain, compact = bytearray(), bytearray()
    wire.put_string(plain, text)
    wire.put_compact_string(compact, text)
    assert read(bytes(plain)).string() == text
    assert read(bytes(compact)).compact_string() == text


@given(st.none() | st.binary())
def test_bytes_round_trip(data: bytes | None) -> None:
    """Bytes and null are read as they were written, both in the plain and in the compact
    encoding."""
    plain, compact = bytearray(), bytearray()
    wire.put_sized(plain, data)
    wire.put_compact_sized(compact, data)
    for view in (read(bytes(plain)).sized(), read(bytes(compact)).compact_sized()):
        assert (None if view is None else bytes(view)) == data


def test_uuid_bytes() -> None:
    """A UUID is written as sixteen bytes, the most significant byte first."""
    value = read(bytes(range(16))).uuid()
    assert value == uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")


def test_bytes_are_not_copied() -> None:
    """Bytes that are read from a message are not copied, but are views of the message."""
    message = bytearray(b"\0\0\0\x03abc")
    view = MessageReader(memoryview(message)).sized()
    assert view is not None
    message[4:5] = b"X"
    assert bytes(view) == b"Xbc"


@pytest.mark.parametrize("size", ["ff fe", "80 00"])
def test_negative_string(size: str) -> None:
    """A length of -1 means null. Other negative lengths are refused."""
    with pytest.raises(BadValue):
        read(bytes.fromhex(size)).string()


def test_not_utf8() -> None:
    """A string that is not UTF-8 is refused. Its invalid bytes are not replaced."""
    with pytest.raises(BadValue):
        read(b"\0\x02\xc3\x28").string()


def test_negative_bytes_and_count() -> None:
    """Negative lengths and counts other than -1 are refused."""
    with pytest.raises(BadValue):
        read(b"\xff\xff\xff\xfe").sized()
    with pytest.raises(BadValue):
        read(b"\xff\xff\xff\xfe").count(1)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: read(b"\x7f\xff\xff\xff").sized(),
        lambda: read(b"\x7f\xff\xff\xff" + bytes(100)).count(4),
        lambda: read(b"\xff\xff\xff\xff\x0f").compact_string(),
        lambda: read(b"\xff\xff\xff\xff\x0f").compact_count(1),
        lambda: read(b"\xff\xff\xff\xff\x0f").tags(),
    ],
)
def test_nothing_allocated_for_a_claim(attempt: Callable[[], object]) -> None:
    """A length or count of two thousand million allocates no memory if the message is shorter."""
    tracemalloc.start()
    try:
        with pytest.raises(Truncated):
            attempt()
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_elements_are_bounded() -> None:
    """A message with more than ELEMENTS_MAX elements is refused, even if it is long enough for
    them."""
    reader = read(wire.INT32.pack(wire.ELEMENTS_MAX) * 2 + bytes(wire.ELEMENTS_MAX * 2))
    assert reader.count(1) == wire.ELEMENTS_MAX
    with pytest.raises(BadValue):
        reader.count(1)


def test_trailing_bytes() -> None:
    """Bytes after the end of a message are refused."""
    reader = read(b"\0\0")
    reader.int8()
    with pytest.raises(TrailingBytes):
        reader.finish()


def test_tags_are_skipped() -> None:
    """Unknown tagged fields are skipped, whatever they contain."""
    reader = read(bytes.fromhex("02 05 03 aabbcc ff01 00 07"))
    reader.tags()
    assert reader.int8() == 7


def test_known_tag() -> None:
    """The reader calls the function `known` for each tagged field. If `known` returns True, it must
    have read all bytes of the field, otherwise the reader raises an error. If `known` returns
    False, the reader skips the field. A tag that comes twice is refused."""
    seen: list[int] = []

    def known(tag: int, part: MessageReader) -> bool:
        if tag != 1:
            return False
        seen.append(part.int16())
        return True

    read(bytes.fromhex("02 00 01 ff 01 02 0102")).tags(known)
    assert seen == [0x0102]
    with pytest.raises(TrailingBytes):
        read(bytes.fromhex("01 01 03 010203")).tags(known)
    with pytest.raises(BadValue, match="twice"):
        read(bytes.fromhex("02 01 02 0102 01 02 0102")).tags(known)


@given(st.binary(max_size=40), st.sampled_from(READS))
def test_arbitrary_bytes(data: bytes, take: Callable[[MessageReader], object]) -> None:
    """Reading arbitrary bytes either returns a value or raises ProtocolError. The reader never
    reads beyond the end of the bytes."""
    reader = read(data)
    try:
        take(reader)
    except ProtocolError:
        return
    assert 0 <= reader.at <= len(data)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda out: wire.put_uvarint(out, -1),
        lambda out: wire.put_string(out, "x" * 32768),
        lambda out: wire.put_compact_string(out, "é" * 16384),
        lambda out: wire.put_string(out, "\ud800"),
    ],
)
def test_values_that_do_not_fit(attempt: Callable[[bytearray], None]) -> None:
    """Writing a value that does not fit into its type raises ValueError."""
    with pytest.raises(ValueError):
        attempt(bytearray())


def test_tags_are_bounded() -> None:
    """A tag section that claims more than 1,000 fields is refused before any field is read."""
    data = bytearray()
    wire.put_uvarint(data, 1001)
    reader = MessageReader(memoryview(data + b"\0\0" * 1001))
    with pytest.raises(BadValue, match="1001 tags"):
        reader.tags()
    assert reader.at == len(data)
