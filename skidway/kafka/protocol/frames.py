"""Frames: the length prefix, the headers, and a reader that cuts a stream of bytes into frames.

    frame              int32 length, then that many bytes: a header and a body
    request header 1   int16 api key, int16 version, int32 correlation id, string client id
    request header 2   request header 1, then tags; the client id keeps its int16 length
    response header 0  int32 correlation id
    response header 1  response header 0, then tags

Flexible versions have request header 2 and response header 1. But ApiVersions always has response
header 0 (KIP-511).

Invariants: a length that is negative or above the limit is refused before any memory is allocated.
For a valid length the buffer grows only as bytes arrive, to at most twice the bytes present, or to
`eager_bytes` of `FrameReader` if that is more. A peer may speak HTTP or TLS on a plain port. The
reader then reads the peer's first bytes as a length and refuses this length. The error names HTTP
or TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from skidway.kafka.errors import FrameTooLarge, Truncated, UnknownApi
from skidway.kafka.protocol.apis import ApiKey, flexible, known
from skidway.kafka.protocol.primitives import INT32, MessageReader, put_string

REQUEST_BYTES_MAX: Final = 104857600
"""The default of Kafka's socket.request.max.bytes."""
LENGTH_BYTES: Final = 4
_GROWTH_BYTES_MIN: Final = 64 * 1024
_BUFFER_BYTES: Final = 64 * 1024
_REQUEST_HEAD: Final = Struct(">hhi")
_RESPONSE_HEAD: Final = Struct(">ii")
_RESPONSE_HEAD_TAGS: Final = Struct(">iib")


class RequestHeader(NamedTuple):
    """The header of every request."""

    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str | None


def read_request_header(frame: memoryview) -> tuple[RequestHeader, memoryview]:
    """Returns header and body of a request's frame. The caller passes the frame without its length.

    The caller must check the version, because the broker may not offer it. If an ApiVersions
    request has an unknown version, this function reads only the first fields of the header, because
    the later fields may have another form. The broker must answer even such a request (KIP-511).

    Raises UnknownApi for an unknown key, and ProtocolError for a header that is cut short or
    damaged.
    """
    if len(frame) < _REQUEST_HEAD.size:
        raise Truncated(f"a request of {len(frame)} bytes, less than its header")
    number, version, correlation_id = _REQUEST_HEAD.unpack_from(frame)
    key = known(number)
    if key is ApiKey.API_VERSIONS and version not in key.broker:
        return RequestHeader(key, version, correlation_id, None), frame[_REQUEST_HEAD.size :]
    reader = MessageReader(frame, _REQUEST_HEAD.size)
    client_id = reader.string()
    if key is None:
        raise UnknownApi(str(number), version, client_id)
    if flexible(key, version):
        reader.tags()
    return RequestHeader(key, version, correlation_id, client_id), frame[reader.at :]


def request_head(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None, body_bytes: int
) -> bytes:
    """Returns length prefix and header of a request whose body has `body_bytes` bytes."""
    out = bytearray(LENGTH_BYTES)
    out += _REQUEST_HEAD.pack(key, version, correlation_id)
    put_string(out, client_id)
    if flexible(key, version):
        out.append(0)
    INT32.pack_into(out, 0, len(out) - LENGTH_BYTES + body_bytes)
    return bytes(out)


def request_frame(
    key: ApiKey, version: int, correlation_id: int, client_id: str | None, body: bytes
) -> bytes:
    """Returns a whole request, ready to be sent."""
    return request_head(key, version, correlation_id, client_id, len(body)) + body


def response_head(key: ApiKey, version: int, correlation_id: int, body_bytes: int) -> bytes:
    """Returns length prefix and header of a response whose body has `body_bytes` bytes."""
    if flexible(key, version) and key is not ApiKey.API_VERSIONS:
        return _RESPONSE_HEAD_TAGS.pack(body_bytes + 5, correlation_id, 0)
    return _RESPONSE_HEAD.pack(body_bytes + 4, correlation_id)


def response_frame(request: RequestHeader, body: bytes) -> bytes:
    """Returns the whole response to a request, ready to be sent."""
    key, version, correlation_id, _ = request
    return response_head(key, version, correlation_id, len(body)) + body


def peek_correlation_id(frame: memoryview) -> int:
    """Returns the correlation id in a response's frame. The caller passes the frame without its
    length."""
    if len(frame) < INT32.size:
        raise Truncated(f"a response of {len(frame)} bytes, less than its header")
    correlation_id: int = INT32.unpack_from(frame)[0]
    return correlation_id


def response_body(frame: memoryview, key: ApiKey, version: int) -> memoryview:
    """Returns the body of a response's frame. The caller passes the frame without its length."""
    reader = MessageReader(frame, INT32.size)
    if reader.left < 0:
        raise Truncated(f"a response of {len(frame)} bytes, less than its header")
    if flexible(key, version) and key is not ApiKey.API_VERSIONS:
        reader.tags()
    return frame[reader.at :]


class FrameReader:
    """Cuts the bytes that a connection receives into frames. Each connection needs its own reader.

    ::

        count = sock.recv_into(reader.space())
        for frame in reader.received(count): ...

    Every frame has its own memory, and stays valid while a reference to it exists. If the buffer
    ends within a frame, the frame's beginning moves to new memory, and the rest of the frame is
    received there.

    After a ProtocolError the reader must not be used again.
    """

    __slots__ = ("_buffer", "_eager_bytes", "_filled", "_limit_bytes", "_partial")

    def __init__(
        self, limit_bytes: int = REQUEST_BYTES_MAX, *, eager_bytes: int = _GROWTH_BYTES_MIN
    ) -> None:
        """`limit_bytes` is the size of the longest allowed frame. While only the length of a frame
        has arrived, the frame gets at most `eager_bytes` of memory, or at most 64 KiB if
        `eager_bytes` is less. A client that trusts its broker can set `eager_bytes` to the size of
        its responses."""
        self._limit_bytes = limit_bytes
        self._buffer = bytearray(_BUFFER_BYTES)
        self._eager_bytes = max(eager_bytes, _GROWTH_BYTES_MIN)
        self._partial: bytearray | None = None  # a frame's length and first bytes, then free space
        self._filled = 0

    @property
    def begun_bytes(self) -> int:
        """The length of the frame of which a part has arrived; 0 if no frame has begun, or its
        length has not arrived. Until `space` is called, only the bytes that have arrived are in
        memory."""
        if self._partial is None or self._filled < LENGTH_BYTES:
            return 0
        return self._length(memoryview(self._partial), 0)

    def space(self) -> memoryview:
        """Returns the memory into which the next bytes are received. This memory is never empty."""
        if self._partial is None:
            return memoryview(self._buffer)
        if self._filled == len(self._partial):
            self._grow()
        return memoryview(self._partial)[self._filled :]

    def received(self, count: int) -> Iterator[memoryview]:
        """Yields the frames that are completed by the `count` bytes that were just received into
        `space()`.

        The frames come without their length. Raises FrameTooLarge. The caller must exhaust the
        iterator before it calls `space()` again.
        """
        if self._partial is None:
            return self._cut(count)
        self._filled += count
        return self._complete()

    def _cut(self, count: int) -> Iterator[memoryview]:
        view = memoryview(self._buffer)[:count]
        at = 0
        while count - at >= LENGTH_BYTES:
            end = at + LENGTH_BYTES + self._length(view, at)
            if end > count:
                break
            yield memoryview(bytes(view[at + LENGTH_BYTES : end]))
            at = end
        if at < count:
            self._keep(view[at:])

    def _keep(self, rest: memoryview) -> None:
        self._filled = len(rest)
        self._partial = bytearray(max(self._filled, LENGTH_BYTES))
        self._partial[: self._filled] = rest
        if self._filled >= LENGTH_BYTES:
            self._length(rest, 0)  # refuses a frame that is too long

    def _complete(self) -> Iterator[memoryview]:
        partial = self._partial
        if partial is None or self._filled < LENGTH_BYTES:
            return
        end = LENGTH_BYTES + self._length(memoryview(partial), 0)
        if self._filled == end:
            self._partial = None
            self._filled = 0
            yield memoryview(partial)[LENGTH_BYTES:end]

    def _grow(self) -> None:
        held = memoryview(self._partial or b"")[: self._filled]
        grown = bytearray(self._capacity(held))
        grown[: self._filled] = held
        self._partial = grown

    def _capacity(self, held: memoryview) -> int:
        """Returns how many bytes of memory to allocate for a frame that begins with `held`. The
        size is never more than the frame needs, so that no byte of the next frame is received into
        that memory."""
        if len(held) < LENGTH_BYTES:
            return LENGTH_BYTES
        needed = LENGTH_BYTES + self._length(held, 0)
        return min(needed, max(2 * len(held), self._eager_bytes))

    def _length(self, view: memoryview, at: int) -> int:
        length: int = INT32.unpack_from(view, at)[0]
        if not 0 <= length <= self._limit_bytes:
            raise FrameTooLarge(_refusal(bytes(view[at : at + LENGTH_BYTES]), length))
        return length


def _refusal(start: bytes, length: int) -> str:
    if start in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"HTTP"):
        return "the peer speaks HTTP on a port of the Kafka protocol"
    if start[0] in (0x15, 0x16) and start[1] == 3:  # an alert, or a handshake
        return "the peer speaks TLS, this side does not"
    return f"a frame of {length} bytes, which is not allowed"
