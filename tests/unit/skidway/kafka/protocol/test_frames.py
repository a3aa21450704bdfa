"""A stream of bytes is divided into frames, whose size is limited. The header of a request or
response has the form that belongs to the message's version."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.kafka.errors import FrameTooLarge, ProtocolError, Truncated, UnknownApi
from skidway.kafka.protocol import (
    ApiKey,
    FrameReader,
    peek_correlation_id,
    read_request_header,
    request_frame,
    response_body,
    response_frame,
)
from skidway.kafka.protocol.frames import RequestHeader
from support.messages import wire
from support.randomness import share_of

KIB = 1024


def framed(*payloads: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(payload)) + payload for payload in payloads)


def feed(reader: FrameReader, stream: bytes, most: int) -> list[bytes]:
    """Feeds the stream to the reader, at most `most` bytes at a time, and returns the frames."""
    frames = []
    while stream:
        space = reader.space()
        count = min(most, len(space), len(stream))
        space[:count] = stream[:count]
        stream = stream[count:]
        frames += [bytes(frame) for frame in reader.received(count)]
    return frames


@settings(max_examples=share_of(60), deadline=None)
@given(
    payloads=st.lists(st.binary(max_size=50) | st.integers(1, 3000).map(bytes), max_size=8),
    most=st.integers(1, 400),
)
def test_any_cut(payloads: list[bytes], most: int) -> None:
    """However the bytes arrive, the reader returns the frames that were sent."""
    assert feed(FrameReader(), framed(*payloads), most) == payloads


def test_own_frames_stay_valid() -> None:
    """A frame that the reader has returned keeps its bytes while later frames arrive."""
    reader = FrameReader()
    kept = []
    for payload in (b"a" * 10, b"b" * 100_000, b"c" * 10):
        stream = framed(payload)
        while stream:
            space = reader.space()
            count = min(len(space), len(stream))
            space[:count] = stream[:count]
            stream = stream[count:]
            kept += list(reader.received(count))
    assert [bytes(frame[:3]) for frame in kept] == [b"aaa", b"bbb", b"ccc"]
    assert [len(frame) for frame in kept] == [10, 100_000, 10]


def test_large_frames_are_received_in_place() -> None:
    """If a frame is at most `eager_bytes` long, its rest is received into a buffer of exactly the
    frame's size, as soon as the frame's length has arrived. So no byte of the next frame gets into
    this buffer."""
    reader = FrameReader(eager_bytes=1 << 20)
    beginning = framed(bytes(1000_000))[:500]
    reader.space()[:500] = beginning
    assert list(reader.received(500)) == []
    assert len(reader.space()) == 1000_004 - 500


def test_a_claim_allocates_nothing() -> None:
    """A frame's buffer grows only as bytes arrive. A large length in front of the frame does not
    make the buffer larger."""
    reader = FrameReader(100_000_000)
    stream = struct.pack(">i", 99_000_000) + bytes(300 * KIB)
    arrived = 0
    while stream:
        space = reader.space()
        assert len(space) <= max(64 * KIB, 2 * arrived)
        count = min(len(space), len(stream))
        space[:count] = stream[:count]
        stream, arrived = stream[count:], arrived + count
        assert list(reader.received(count)) == []


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"GET / HTTP/1.1\r\n", "HTTP"),
        (b"POST /topics HTTP/1.1\r\n", "HTTP"),
        (bytes.fromhex("160301020001fc0303"), "TLS"),
        (bytes.fromhex("15030300020246"), "TLS"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\x80\x00\x00\x00", "-2147483648 bytes"),
        (struct.pack(">i", 1001), "1001 bytes"),
    ],
)
@pytest.mark.parametrize("most", [1, 100])
def test_refused_lengths(start: bytes, said: str, most: int) -> None:
    """A negative or too large length of a frame is refused at once. If the bytes are the start of
    HTTP or TLS, the error says so."""
    reader = FrameReader(1000)
    with pytest.raises(FrameTooLarge, match=said):
        feed(reader, start, most)


def test_the_limit_itself_is_allowed() -> None:
    """A frame as long as the limit is accepted. The four bytes of the length field do not count
    towards the limit."""
    assert feed(FrameReader(1000), framed(bytes(1000)), 5000) == [bytes(1000)]


def test_frames_before_a_bad_one_are_given() -> None:
    """If an invalid length comes after valid frames, these frames are returned first."""
    reader = FrameReader(1000)
    stream = framed(b"good") + b"\xff\xff\xff\xff"
    reader.space()[: len(stream)] = stream
    frames = reader.received(len(stream))
    assert bytes(next(frames)) == b"good"
    with pytest.raises(FrameTooLarge):
        next(frames)


REQUEST_HEADER_1 = wire("""
    0003          # Metadata
    0008          # version 8, not flexible
    00000007      # correlation id
    0002 6d65     # client id "me"
""")
REQUEST_HEADER_2 = wire("""
    0003          # Metadata
    0009          # version 9, flexible
    00000007      # correlation id
    0002 6d65     # client id "me", still with an int16 length
    00            # no tags
""")


@pytest.mark.parametrize(("version", "head"), [(8, REQUEST_HEADER_1), (9, REQUEST_HEADER_2)])
def test_request_header(version: int, head: bytes) -> None:
    """A request header has two forms: the header of flexible versions has tags, and the older form
    has none. In both forms, the length of the client id is an int16."""
    frame = request_frame(ApiKey.METADATA, version, 7, "me", b"body")
    assert frame == struct.pack(">i", len(head) + 4) + head + b"body"
    header, body = read_request_header(memoryview(frame)[4:])
    assert header == RequestHeader(ApiKey.METADATA, version, 7, "me")
    assert bytes(body) == b"body"
    for end in range(len(head)):
        with pytest.raises(ProtocolError):
            read_request_header(memoryview(head)[:end])


def test_request_header_with_tags_and_null_client() -> None:
    """Unknown tags in a request header are skipped, and a null client id is read."""
    frame = wire("0003 0009 00000007 ffff  01 05 02 aabb  626f6479")
    header, body = read_request_header(memoryview(frame))
    assert header.client_id is None
    assert bytes(body) == b"body"


def test_unknown_api() -> None:
    """A request for an unknown API raises UnknownApi, which names API, version and client."""
    with pytest.raises(UnknownApi) as caught:
        read_request_header(memoryview(wire("7fff 0002 00000001 0002 6d65")))
    error = caught.value
    assert (error.api, error.version, error.client_id) == ("32767", 2, "me")


def test_api_versions_of_the_future() -> None:
    """An ApiVersions request in an unknown version can be answered, whatever its body is."""
    frame = wire("0012 0063 00000009 ff ff ff ff ff ff ff ff ff ff ff ff")
    header, _ = read_request_header(memoryview(frame))
    assert header == RequestHeader(ApiKey.API_VERSIONS, 99, 9, None)
    assert response_frame(header, b"\0\x23") == wire("00000006 00000009 0023")


def test_api_versions_response_header_has_no_tags() -> None:
    """The response to ApiVersions has a header without tags in every version, flexible or not."""
    for version in (0, 3, 4):
        header = RequestHeader(ApiKey.API_VERSIONS, version, 5, None)
        assert response_frame(header, b"xy") == wire("00000006 00000005 7879")
    body = response_body(memoryview(wire("00000005 7879")), ApiKey.API_VERSIONS, 3)
    assert bytes(body) == b"xy"


@pytest.mark.parametrize(
    ("version", "frame"),
    [(8, "00000006 00000005 7879"), (9, "00000007 00000005 00 7879")],
)
def test_response_header(version: int, frame: str) -> None:
    """Responses in flexible versions have a tag section after the correlation id."""
    sent = response_frame(RequestHeader(ApiKey.METADATA, version, 5, "me"), b"xy")
    assert sent == wire(frame)
    received = memoryview(sent)[4:]
    assert peek_correlation_id(received) == 5
    assert bytes(response_body(received, ApiKey.METADATA, version)) == b"xy"


@pytest.mark.parametrize("size", [0, 3])
def test_short_response(size: int) -> None:
    """A response that is too short for a correlation id is refused."""
    frame = memoryview(bytes(size))
    with pytest.raises(Truncated):
        peek_correlation_id(frame)
    with pytest.raises(Truncated):
        response_body(frame, ApiKey.METADATA, 0)


@given(st.binary(max_size=60))
def test_arbitrary_frames(frame: bytes) -> None:
    """A header of arbitrary bytes is either read or refused with ProtocolError. No other exception
    is raised."""
    for key in ApiKey:
        try:
            read_request_header(memoryview(struct.pack(">h", key) + frame))
            response_body(memoryview(frame), key, 9)
        except ProtocolError:
            continue
