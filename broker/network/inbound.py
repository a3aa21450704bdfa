"""Splits the bytes of a connection into frames.

    frame    int32 length, then that many bytes

`Arena` is the memory into which all connections receive during one turn of the loop. Frames are
views of the arena and **valid until the turn ends**. When the loop has served a connection in a
turn, it copies the connection's unhandled bytes out of the arena. If these bytes are the beginning
of a frame, and other frames of the connection were handled in the turn, the next receive copies
them back, before the new bytes. In this way one receive yields many small frames, even if the
received bytes begin within a frame. If the frame is still not whole after that receive, it gets
memory of its own, into which the rest of the frame is received directly. So each byte is copied
back into the arena at most once.

A frame whose length is negative or above the limit is refused before memory is allocated for it.
How much memory a frame gets depends on the number of its bytes that have arrived, and not only on
the length that the client has announced (see EAGER_BYTES and GROWTH).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from skidway.broker.network.transport import Transport
from skidway.kafka.errors import FrameTooLarge, UnexpectedTls

ARENA_BYTES: Final = 1 << 20
"""The loop receives at most this many bytes into the arena in one turn. If these bytes consist of
the smallest possible requests, the loop handles all of them in 30 ms.
"""
RECEIVE_BYTES_MAX: Final = 1 << 18
"""If no other connection is ready, one receive into the arena reads at most this many bytes from a
connection. If many connections are ready, the loop receives less from each of them, because
received bytes wait in memory until their connection is served.
"""
RECEIVE_BYTES_MIN: Final = 1 << 15
LENGTH_BYTES: Final = 4
EAGER_BYTES: Final = 1 << 13
"""A frame that is at least this long gets at least this many bytes of memory, even if only a few of
its bytes have arrived.
"""
GROWTH: Final = 4
"""If N bytes of a frame have arrived and the frame is not complete, it gets at most GROWTH times N
bytes of memory, or EAGER_BYTES if that is more. So if the first receive reads RECEIVE_BYTES_MAX
(256 KiB), a frame of 1 MiB gets all of its memory in one step, and its bytes need not be copied
into a larger memory later.
"""

_LENGTH = Struct(">i")
_TLS = b"\x16\x03"
"""How a TLS handshake begins."""


class Arena:
    """One buffer, which is filled from the front during a turn of the loop."""

    __slots__ = ("_at", "_buffer", "_view")

    def __init__(self, size_bytes: int = ARENA_BYTES) -> None:
        self._buffer = bytearray(size_bytes)
        self._view = memoryview(self._buffer)
        self._at = 0

    @property
    def is_full(self) -> bool:
        """Whether the arena is full, so that the turn must end before more can be received."""
        return len(self._buffer) - self._at < RECEIVE_BYTES_MIN

    def space(self, size: int = RECEIVE_BYTES_MAX) -> memoryview:
        """Returns the part of the buffer for the next receive, at most `size` bytes long."""
        return self._view[self._at : self._at + size]

    def take(self, size: int) -> None:
        """Reserves the first `size` bytes of `space` until `reset`."""
        self._at += size

    def reset(self) -> None:
        """Empties the buffer at the end of a turn. All views of it are invalid afterwards."""
        self._at = 0


class Inbound:
    """The bytes that one connection has received, but not yet handled."""

    __slots__ = ("_at", "_carried", "_end", "_own", "_view", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        """The largest frame that is not refused."""
        self._own: bytearray | None = None
        self._carried = False
        self._view = memoryview(b"")
        self._at = 0
        self._end = 0

    @property
    def pending_bytes(self) -> int:
        """The number of bytes that were received but not handled yet."""
        return self._end - self._at

    @property
    def held_bytes(self) -> int:
        """The memory that the bytes that were not handled yet need: for the beginning of a frame,
        the whole frame's. 0 if this connection has no memory of its own."""
        own = self._own
        if own is None:
            return 0
        if self.pending_bytes < LENGTH_BYTES:
            return len(own)
        return max(len(own), LENGTH_BYTES + int(_LENGTH.unpack_from(self._view, self._at)[0]))

    @property
    def missing_bytes(self) -> int:
        """How many bytes a frame lacks that has begun and is not whole; 0 if none has begun."""
        pending = self.pending_bytes
        if pending < LENGTH_BYTES:
            return 0
        length: int = _LENGTH.unpack_from(self._view, self._at)[0]
        return max(LENGTH_BYTES + length - pending, 0)

    @property
    def has_frame(self) -> bool:
        """Whether `next_frame` would return or refuse a frame."""
        start = self._at + LENGTH_BYTES
        if start > self._end:
            return False
        length: int = _LENGTH.unpack_from(self._view, self._at)[0]
        return start + length <= self._end or length > self.limit_bytes

    def receive(self, sock: Transport, arena: Arena, size: int = RECEIVE_BYTES_MAX) -> int:
        """Receives bytes with one call of recv. Must be called only when all whole frames from
        earlier receives are handled. Returns how many bytes were received; 0 if the client has
        closed the connection. Uses at most `size` bytes of the arena, the buffer into which all
        connections receive. Raises ProtocolError and OSError.
        """
        self.keep()
        own = self._own
        if own is None:
            return self._receive_behind(sock, arena, arena.space(size), 0)
        if self._carried:
            space = arena.space(size)
            if len(own) < len(space):
                return self._receive_behind(sock, arena, space, self._end)
        if self._end == len(own):
            self._grow()
        assert self._own is not None
        assert self._end < len(self._own), "received for a frame that is whole"
        count = sock.recv_into(self._view[self._end :])
        self._end += count
        return count

    def _receive_behind(self, sock: Transport, arena: Arena, space: memoryview, rest: int) -> int:
        """Receives into the arena (the buffer into which all connections receive), but leaves the
        first `rest` bytes of its free space unused. Then copies the bytes that are left from
        earlier turns into these first `rest` bytes.
        """
        count = sock.recv_into(space[rest:] if rest else space)
        if rest:
            space[:rest] = self._view[:rest]
            self._own = None
        arena.take(rest + count)
        self._view, self._at, self._end = space, 0, rest + count
        return count

    def next_frame(self) -> memoryview | None:
        """Returns the next whole frame, without its length; None if there is none. Raises
        FrameTooLarge or UnexpectedTls.
        """
        at, view = self._at, self._view
        start = at + LENGTH_BYTES
        if start > self._end:
            return None
        length: int = _LENGTH.unpack_from(view, at)[0]
        if not 0 <= length <= self.limit_bytes:
            self._refuse(view[at:start])
        end = start + length
        if end > self._end:
            return None
        self._at = end
        return view[start:end]

    def keep(self) -> None:
        """Called when the loop has served this connection in a turn. Copies the unhandled bytes
        from the arena, the buffer into which all connections receive, into memory of this
        connection. Raises FrameTooLarge.

        If whole frames are among these bytes, the frames are not copied again, even if it takes
        many turns to handle them.
        """
        rest = self._end - self._at
        if self._own is not None and (self._at == 0 or self.has_frame):
            return
        if not rest:
            self._own = None
            self._view = memoryview(b"")
        else:
            held = self._view[self._at : self._end]
            # If a frame was handled in this turn (`_at` is above 0), the next receive copies the
            # unhandled bytes (`held`) back into the arena. If no frame was handled, this connection
            # receives only a few bytes in a turn. Even after the next receive, the frame would
            # probably be incomplete, and would have to be copied out of the arena once more. So the
            # unhandled bytes are not copied back.
            self._carried = self._at > 0
            self._own = bytearray(self._capacity(held))
            self._own[:rest] = held
            self._view = memoryview(self._own)
        self._at, self._end = 0, rest

    def forget(self) -> None:
        """Frees the memory, when the connection is closed."""
        self._own = None
        self._view = memoryview(b"")
        self._at = self._end = 0

    def _grow(self) -> None:
        held = self._view[: self._end]
        grown = bytearray(self._capacity(held))
        grown[: self._end] = held
        self._own, self._view = grown, memoryview(grown)

    def _capacity(self, held: memoryview) -> int:
        if len(held) < LENGTH_BYTES:
            return LENGTH_BYTES
        needed: int = LENGTH_BYTES + _LENGTH.unpack_from(held)[0]
        if needed > self.limit_bytes + LENGTH_BYTES or needed < LENGTH_BYTES:
            self._refuse(held[:LENGTH_BYTES])
        return max(len(held), min(needed, max(GROWTH * len(held), EAGER_BYTES)))

    def _refuse(self, start: memoryview) -> None:
        if bytes(start[:2]) == _TLS:
            raise UnexpectedTls("it speaks TLS to a listener without TLS")
        raise FrameTooLarge(
            f"a frame of {_LENGTH.unpack(start)[0]} bytes, where {self.limit_bytes} are allowed "
            f"(its first bytes: {bytes(start)!r})"
        )
