"""How the bytes of a connection get to its client: as they are, or sealed by TLS.

Without TLS, the kernel copies parts of files to the socket (sendfile). With TLS, the broker reads
and seals them.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from skidway.broker.log.files import DEVICE_ERRORS, StorageFailed
from skidway.kafka.protocol.pieces import FileSlice
from skidway.security.tls_socket import PIECE_BYTES, SEALED_BYTES_MAX, TlsSocket

Buffer = bytes | bytearray | memoryview

AWAITED_BYTES_MIN: Final = 1024
AWAITED_BYTES_MAX: Final = 1 << 16


class Transport(Protocol):
    """A connected socket, which never blocks."""

    send_bytes_max: int
    """When the loop has sent more than this many bytes to one connection, it serves the other
    connections before it sends more."""

    @property
    def has_received(self) -> bool:
        """Whether bytes may be there without a further event of the socket."""
        ...

    @property
    def has_sealed(self) -> bool:
        """Whether bytes that `send` and `send_file` have taken wait for the socket."""
        ...

    @property
    def sealed_bytes(self) -> int:
        """How many such bytes wait."""
        ...

    @property
    def recv_into(self) -> Callable[[memoryview], int]:
        """Receives as `socket.recv_into` does."""
        ...

    def fileno(self) -> int:
        """Returns the descriptor of the socket."""
        ...

    def send(self, buffers: Sequence[Buffer], more: bool) -> int:
        """Takes bytes from the first buffers. more: whether others follow at once. Returns their
        number. Raises BlockingIOError and OSError."""
        ...

    def send_file(self, piece: FileSlice) -> int:
        """Takes bytes from the beginning of a part of a file. Returns their number, 0 if the file
        has ended. Raises BlockingIOError, OSError, and StorageFailed if the file cannot be read."""
        ...

    def flush(self) -> bool:
        """Sends bytes that wait. Returns whether none is left. Raises OSError."""
        ...

    def close(self) -> None:
        """Closes the socket."""
        ...


class PlainTransport:
    """A socket without TLS."""

    __slots__ = ("_descriptor", "_socket", "recv_into")

    send_bytes_max: int = 16 << 20
    has_received: Final = False
    has_sealed: Final = False
    sealed_bytes: Final = 0

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._descriptor = sock.fileno()
        self.recv_into: Callable[[memoryview], int] = sock.recv_into

    def fileno(self) -> int:
        """Returns the descriptor of the socket."""
        return self._descriptor

    def send(self, buffers: Sequence[Buffer], more: bool) -> int:
        """See Transport."""
        flags = socket.MSG_MORE if more else 0
        if len(buffers) == 1:
            return self._socket.send(buffers[0], flags)
        return self._socket.sendmsg(buffers, (), flags)

    def send_file(self, piece: FileSlice) -> int:
        """See Transport."""
        file = piece.file
        try:
            return os.sendfile(self._descriptor, file.fileno(), piece.position, piece.length)
        except OSError as error:
            # these errors can come only from the file, and never from the socket
            if error.errno in DEVICE_ERRORS:
                raise StorageFailed("read", file.path, error) from error
            raise

    def flush(self) -> bool:
        """See Transport."""
        return True

    def close(self) -> None:
        """See Transport."""
        self._socket.close()


class TlsTransport:
    """A socket with TLS, whose handshake is complete."""

    __slots__ = ("_awaited_bytes", "_tls", "recv_into")

    send_bytes_max: int = 4 << 20

    def __init__(self, tls: TlsSocket) -> None:
        self._tls = tls
        self._awaited_bytes = 1
        self.recv_into: Callable[[memoryview], int] = tls.recv_into

    @property
    def has_received(self) -> bool:
        """See Transport."""
        return self._tls.has_received

    @property
    def has_sealed(self) -> bool:
        """See Transport."""
        return self._tls.has_sealed

    @property
    def sealed_bytes(self) -> int:
        """See Transport."""
        return self._tls.sealed_bytes

    def fileno(self) -> int:
        """Returns the descriptor of the socket."""
        return self._tls.fileno()

    def send(self, buffers: Sequence[Buffer], more: bool) -> int:
        """See Transport."""
        return self._tls.sendmsg(buffers)

    def send_file(self, piece: FileSlice) -> int:
        """See Transport."""
        if not self._tls.flush() and self._tls.sealed_bytes >= SEALED_BYTES_MAX:
            raise BlockingIOError
        try:
            size = min(piece.length, PIECE_BYTES)
            data = os.pread(piece.file.fileno(), size, piece.position)
        except OSError as error:
            raise StorageFailed("read", piece.file.path, error) from error
        return self._tls.send(data) if data else 0

    def expect(self, size: int) -> None:
        """Says that `size` bytes are missing: until then, no event is needed. librdkafka seals and
        sends each message of a batch by itself, and each would be an event. (Sealed bytes are more
        than plain ones, so at least so many will come.)"""
        missing = size - self._tls.begun_bytes
        awaited_bytes = min(missing, AWAITED_BYTES_MAX) if missing >= AWAITED_BYTES_MIN else 1
        if awaited_bytes != self._awaited_bytes:
            self._awaited_bytes = awaited_bytes
            sock = self._tls.socket
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, awaited_bytes)

    def flush(self) -> bool:
        """See Transport."""
        return self._tls.flush()

    def close(self) -> None:
        """See Transport."""
        self._tls.close()
