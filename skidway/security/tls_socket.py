"""A non-blocking socket that speaks TLS, for any loop that waits for the socket's events.

Sealed bytes are those on the wire. OpenSSL works on memory alone (`ssl.MemoryBIO`), so a handshake
can be computed on another thread, and the owner decides how much memory a connection takes::

    socket -> receive_sealed -> advance (until it returns True), recv_into -> plain bytes
    socket <- flush          <- advance, send                              <- plain bytes

epoll knows nothing of what is in this memory. So the owner must, after `recv_into`, come back
without an event while `has_received` is true, and ask for EPOLLOUT while `has_sealed` is true, even
if it has no plain bytes to send. One thread at a time may call a method.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
from collections.abc import Sequence
from typing import Final

Buffer = bytes | bytearray | memoryview

SEALED_BYTES_MAX: Final = 1 << 18
"""While more sealed bytes than this wait for the socket, no more plain bytes are taken."""
RECEIVE_BYTES: Final = 1 << 17
PIECE_BYTES: Final = 1 << 18
"""One call takes or returns at most this many plain bytes. Many small calls of `send` would make
many small records."""
RECORD_BYTES: Final = 1 << 14
"""OpenSSL gets plain and sealed bytes in pieces of about this size, that of the largest record. Its
memory grows with the largest piece, and is never freed while the connection is open."""
BARREN_BYTES_MAX: Final = 1 << 16
"""A peer may send this many sealed bytes without a plain one: a record and some tickets. OpenSSL
answers some records (KeyUpdate, renegotiation) without a word to the application, so a peer could
keep it busy for ever."""
UNREAD_BYTES_MAX: Final = 3 * SEALED_BYTES_MAX
"""A peer that sends, and takes so few of its answers that more sealed bytes than this wait, is
closed. What an application sends is never so much (`SEALED_BYTES_MAX`)."""
HEAD_BYTES: Final = 5
"""At the beginning of each record; its last two bytes are the length of the rest."""
_BUFFERS_MAX: Final = 64


class TooManyRecords(ConnectionError):
    """The peer sends only records that are no data."""


class TlsSocket:
    """Owns a connected socket and its TLS state."""

    __slots__ = (
        "_barren",
        "_incoming",
        "_is_ended",
        "_outgoing",
        "_received",
        "_records",
        "_sealed",
        "_tls",
        "socket",
    )

    def __init__(
        self,
        sock: socket.socket,
        context: ssl.SSLContext,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
    ) -> None:
        self.socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self._received = memoryview(b"")
        """Sealed bytes that the socket has given, and OpenSSL has not got yet."""
        self._sealed: list[Buffer] = []
        """Sealed bytes that OpenSSL has made, and the socket has not taken yet."""
        self._is_ended = False
        self._barren = 0
        """How many sealed bytes OpenSSL has got since the last plain byte."""
        self._records = _Records()

    def fileno(self) -> int:
        """The descriptor of the socket; -1 after `close`."""
        return self.socket.fileno()

    # The handshake

    def receive_sealed(self, size: int = RECEIVE_BYTES) -> int:
        """Receives once, at most `size` bytes. Must be called only when `advance` or `recv_into`
        has used all that was received before. Returns the number of sealed bytes; 0 if the peer has
        disconnected. Raises BlockingIOError and OSError."""
        data = self.socket.recv(size)
        if data:
            self._received = memoryview(data)
        else:
            self._is_ended = True
            self._incoming.write_eof()
        return len(data)

    def advance(self) -> bool:
        """Computes what the handshake can do with the bytes that have been received, which may take
        a millisecond. Returns whether the handshake is complete. Raises ssl.SSLError; `flush` then
        sends the alert that tells the peer."""
        self._feed()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self._feed():
                    return False
            else:
                self._barren = 0
                return True

    @property
    def certificate(self) -> bytes | None:
        """The peer's certificate in DER, after the handshake; None if it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    # What a socket does

    @property
    def has_received(self) -> bool:
        """Whether plain bytes may be there without a further receive."""
        return bool(self._tls.pending() or self._incoming.pending or self._received)

    @property
    def begun_bytes(self) -> int:
        """How many bytes of a record have arrived that is not whole."""
        return self._records.begun_bytes

    @property
    def has_sealed(self) -> bool:
        """Whether sealed bytes wait until the socket takes them."""
        return bool(self._sealed or self._outgoing.pending)

    @property
    def sealed_bytes(self) -> int:
        """How many sealed bytes wait."""
        return sum(map(len, self._sealed)) + self._outgoing.pending

    def recv_into(self, buffer: memoryview) -> int:
        """Fills the buffer with plain bytes, as far as they have arrived, but returns at most
        `PIECE_BYTES` at once, and fewer if the records have little in them. Returns their number; 0
        if the peer has ended the connection. Raises BlockingIOError if none has arrived, and
        OSError (ssl.SSLError and TooManyRecords are such)."""
        count, fed, size = 0, 0, min(len(buffer), PIECE_BYTES)
        while count < size:
            try:
                read = self._tls.read(size - count, buffer[count:])
            except ssl.SSLWantReadError:
                self._refuse_barren()
                if fed - count > RECORD_BYTES:  # they are not all of one record
                    if count:
                        return count
                    raise BlockingIOError from None
                if self._received:
                    fed += self._feed()
                    continue
                try:
                    self.receive_sealed()
                except OSError:
                    if count:
                        return count  # the next call raises it again, or finds the end
                    raise
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return count
            if not read:
                return count
            count += int(read)
            self._barren = 0
        return count

    def send(self, data: Buffer) -> int:
        """Takes plain bytes, and sends what the socket takes of them. Returns how many were taken.
        Raises BlockingIOError if too many sealed bytes wait, and OSError."""
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        """Takes plain bytes as `send` does, from the first buffers of several."""
        if self.has_sealed and not self.flush() and self.sealed_bytes >= SEALED_BYTES_MAX:
            raise BlockingIOError
        data = memoryview(_joined(buffers))
        for at in range(0, len(data), RECORD_BYTES):
            self._tls.write(data[at : at + RECORD_BYTES])
            self._take_sealed()
        self.flush()
        return len(data)

    def flush(self) -> bool:
        """Sends sealed bytes. Returns whether none is left. Raises OSError."""
        self._take_sealed()
        sealed = self._sealed
        while sealed:
            try:
                sent = self.socket.sendmsg(sealed[:_BUFFERS_MAX])
            except BlockingIOError:
                return False
            done = 0
            while sent and sent >= len(sealed[done]):
                sent -= len(sealed[done])
                done += 1
            del sealed[:done]
            if sent:
                sealed[0] = memoryview(sealed[0])[sent:]
        return True

    def close(self) -> None:
        """Tells the peer of the end, if the socket takes it now, and closes the socket."""
        with contextlib.suppress(OSError):
            if not self._is_ended:
                with contextlib.suppress(ssl.SSLWantReadError):
                    self._tls.unwrap()
                self.flush()
        self.socket.close()

    def _refuse_barren(self) -> None:
        if self._barren > BARREN_BYTES_MAX:
            raise TooManyRecords(errno.EPROTO, "the peer sends only records of TLS without data")
        if self.has_sealed and self.sealed_bytes > UNREAD_BYTES_MAX:
            raise TooManyRecords(errno.EPROTO, "the peer does not read what TLS answers")

    def _feed(self) -> int:
        """Gives OpenSSL more of the received bytes. Returns how many."""
        piece = self._received[:RECORD_BYTES]
        if piece:
            self._incoming.write(piece)
            self._received = self._received[RECORD_BYTES:]
            self._barren += len(piece)
            self._records.follow(piece)
        return len(piece)

    def _take_sealed(self) -> None:
        """Takes from OpenSSL what it has sealed."""
        if self._outgoing.pending:
            self._sealed.append(self._outgoing.read())


class _Records:
    """Follows where records begin and end in the sealed bytes that have arrived."""

    __slots__ = ("_head", "_left", "_size")

    def __init__(self) -> None:
        self._head = b""
        """What has arrived of the head of a record, if it is not whole."""
        self._size = self._left = 0
        """The bytes of the newest record, and how many of them have not arrived."""

    @property
    def begun_bytes(self) -> int:
        return len(self._head) or (self._size - self._left if self._left else 0)

    def follow(self, piece: memoryview) -> None:
        at, head, size = self._left, self._head, self._size
        if head:
            missing = HEAD_BYTES - len(head)
            self._head = head = head + bytes(piece[:missing])
            if len(head) < HEAD_BYTES:
                return
            size = HEAD_BYTES + (head[3] << 8) + head[4]
            at = missing + size - HEAD_BYTES
        end = len(piece)
        while at + HEAD_BYTES <= end:
            size = HEAD_BYTES + (piece[at + 3] << 8) + piece[at + 4]
            at += size
        self._head = bytes(piece[at:]) if at < end else b""
        self._size, self._left = size, max(at - end, 0)


def _joined(buffers: Sequence[Buffer]) -> Buffer:
    """Returns the first bytes of the buffers, at most `PIECE_BYTES`, as one piece."""
    first = buffers[0]
    if len(first) >= PIECE_BYTES:
        return memoryview(first)[:PIECE_BYTES]
    if len(buffers) == 1:
        return first
    pieces, count = [], 0
    for each in buffers:
        piece = memoryview(each)[: PIECE_BYTES - count]
        pieces.append(piece)
        count += len(piece)
        if count == PIECE_BYTES:
            break
    return b"".join(pieces)
