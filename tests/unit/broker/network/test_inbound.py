from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.network.inbound import Arena, Inbound
from skidway.kafka.errors import FrameTooLarge, ProtocolError, UnexpectedTls


class Socket:
    """A fake socket. Each receive returns the next piece of its data; the pieces have the given
    sizes."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes = data, sizes

    def recv_into(self, space: memoryview) -> int:
        assert len(space) > 0
        size = min(len(space), len(self.data), self.sizes.pop(0) if self.sizes else len(self.data))
        space[:size] = self.data[:size]
        self.data = self.data[size:]
        return size


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def received(data: bytes, sizes: list[int], limit: int = 1 << 20) -> list[bytes]:
    """Receives `data` in pieces of the given sizes, each in a turn of its own, and returns all
    frames that were received."""
    sock, inbound, found = Socket(data, sizes), Inbound(limit), []
    arena = Arena(1 << 17)
    while sock.data:
        inbound.receive(sock, arena)  # type: ignore[arg-type]
        while (frame := inbound.next_frame()) is not None:
            found.append(bytes(frame))
        inbound.keep()
        arena.space()[:] = b"\xee" * len(arena.space())
        arena.reset()
        arena.space()[:] = b"\xee" * len(arena.space())  # overwrites this turn's frames
    return found


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(1, 400)))
def test_frames_come_out_however_they_come_in(frames: list[bytes], sizes: list[int]) -> None:
    """`Inbound` returns the frames that the client has sent, unchanged and in order. It does so
    whether the frames arrive whole, in pieces, or many at once."""
    assert received(framed(*frames), sizes) == frames


def test_frames_come_out_byte_by_byte() -> None:
    """A frame is received correctly even if its bytes arrive one at a time."""
    frames = [b"", b"a", b"b" * 300]
    assert received(framed(*frames), [1] * 1000) == frames


def test_a_frame_larger_than_the_arena_is_received() -> None:
    """Each turn of the loop receives into one buffer, the arena. A frame that is larger than the
    arena gets memory of its own, which grows with the bytes that have arrived. The frame is
    received whole."""
    frame = bytes(range(256)) * 2000
    assert received(framed(b"x", frame, b"y"), [100_000] * 20) == [b"x", frame, b"y"]


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (b"GET / HTTP/1.1\r\n", FrameTooLarge),
        (b"\x16\x03\x01\x02\x00", UnexpectedTls),
        (b"\xff\xff\xff\xff", FrameTooLarge),
    ],
)
def test_lengths_that_cannot_be_are_refused(start: bytes, error: type[ProtocolError]) -> None:
    """Each frame begins with its length. A length that cannot be right (the first bytes of HTTP
    or TLS, or a negative number) is refused before memory is allocated for the frame. TLS is
    named."""
    for sizes in ([], [4], [1] * 20):
        tracemalloc.start()
        try:
            with pytest.raises(error):
                received(start, list(sizes))
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak_bytes < 1 << 20


def test_a_frame_at_the_limit_is_taken_and_one_above_not() -> None:
    """A frame of exactly socket.request.max.bytes is accepted, and a longer frame is refused."""
    assert received(framed(b"x" * 1000), [], limit=1000) == [b"x" * 1000]
    with pytest.raises(FrameTooLarge):
        received(framed(b"x" * 1001), [], limit=1000)


def test_what_was_left_of_a_stream_is_handled_with_what_comes_next() -> None:
    """If one receive from the socket ends in the middle of a frame, the bytes of this frame are
    kept. The frame and the frames after it are handled after the next receive."""
    frames = [b"%d" % n * 5000 for n in range(6)]
    sock, inbound, arena = Socket(framed(*frames), [12_000]), Inbound(1 << 20), Arena()
    turns = []
    while sock.data:
        inbound.receive(sock, arena)  # type: ignore[arg-type]
        turns.append([])
        while (frame := inbound.next_frame()) is not None:
            turns[-1].append(bytes(frame))
        inbound.keep()
        arena.reset()
        arena.space()[:] = b"\xee" * len(arena.space())
    assert turns == [frames[:2], frames[2:]]


def test_nothing_received_leaves_what_was_held_as_it_was() -> None:
    """If only a part of a frame has been received, and the next receive from the socket gets no
    bytes, this part is kept."""
    sock, inbound, arena = Socket(framed(b"a", b"bcd"), [8]), Inbound(100), Arena()

    class Empty:
        def recv_into(self, space: memoryview) -> int:
            raise BlockingIOError

    inbound.receive(sock, arena)  # type: ignore[arg-type]
    assert inbound.next_frame() == b"a"
    inbound.keep()
    arena.reset()
    with pytest.raises(BlockingIOError):
        inbound.receive(Empty(), arena)  # type: ignore[arg-type]
    arena.space()[:] = b"\xee" * len(arena.space())
    inbound.receive(sock, arena)  # type: ignore[arg-type]
    assert inbound.next_frame() == b"bcd"


def test_a_frame_that_comes_in_drops_is_copied_once() -> None:
    """If a frame comes in many small pieces, only its first bytes are copied, once. The kernel
    writes the later pieces directly into the frame's own memory."""
    sock = Socket(framed(b"a", b"b" * 1000), [10] + [1] * 2000)
    inbound, arena, used = Inbound(2000), Arena(), 0
    while sock.data:
        inbound.receive(sock, arena)  # type: ignore[arg-type]
        used += len(Arena().space()) - len(arena.space())
        while (frame := inbound.next_frame()) is not None:
            last = bytes(frame)
        inbound.keep()
        arena.reset()
    assert last == b"b" * 1000
    assert used < 100


def test_requests_held_back_are_kept() -> None:
    """Frames that are not handled in one turn are handled in the next turns, in order."""
    sock, inbound, arena = (
        Socket(framed(*[b"%d" % n for n in range(50)]), []),
        Inbound(100),
        Arena(),
    )
    inbound.receive(sock, arena)  # type: ignore[arg-type]
    found = []
    for _ in range(50):
        frame = inbound.next_frame()
        assert frame is not None
        found.append(bytes(frame))
        inbound.keep()
        arena.space()[:] = b"\xee" * len(arena.space())
    assert found == [b"%d" % n for n in range(50)]
    assert inbound.pending_bytes == 0


def test_a_receive_goes_on_behind_what_was_handled_in_between() -> None:
    """If more bytes are received before all earlier frames are handled, no frame is lost and none
    is handled twice. This also holds for a frame of which only a part has arrived."""
    frames = [b"%d" % n * 50 for n in range(60)]
    sock = Socket(framed(*frames), [1003] * 20)
    inbound, arena, found = Inbound(1000), Arena(1 << 17), []
    while sock.data or inbound.has_frame:
        if not inbound.has_frame:
            inbound.receive(sock, arena, 1 << 15)  # type: ignore[arg-type]
        for _ in range(3):
            frame = inbound.next_frame()
            if frame is not None:
                found.append(bytes(frame))
        if sock.data and not inbound.has_frame:
            inbound.receive(sock, arena, 1 << 15)  # type: ignore[arg-type]
        inbound.keep()
        arena.reset()
        arena.space()[:] = b"\xee" * len(arena.space())
    assert found == frames


def test_frames_that_wait_are_moved_once() -> None:
    """Each turn of the loop receives into the same buffer, the arena. Frames that are not handled
    in their turn are copied out of the arena only once, however many turns pass until the last one
    is handled."""
    sock = Socket(framed(*[b"x" * 100] * 50), [])
    inbound, arena = Inbound(1000), Arena()
    inbound.receive(sock, arena)  # type: ignore[arg-type]
    inbound.next_frame()
    inbound.keep()
    held = inbound.next_frame()
    assert held is not None
    inbound.keep()
    later = inbound.next_frame()
    assert later is not None
    assert later.obj is held.obj


def test_memory_follows_what_came_and_not_what_was_announced() -> None:
    """A connection's memory grows with the bytes that its client has sent, not with the frame
    length that the client announced. If each of 2,000 connections announces 100 MB and sends one
    byte, each takes at most 10 KiB. A connection that sends more takes at most a few times as much
    memory as it has sent."""
    arena, connections = Arena(), []
    start = struct.pack(">i", 100_000_000) + b"x"
    tracemalloc.start()
    try:
        for number in range(1, 2001):
            connections.append(Inbound(100_000_000))
            connections[-1].receive(Socket(start, []), arena)  # type: ignore[arg-type]
            assert connections[-1].next_frame() is None
            connections[-1].keep()
            arena.reset()
            assert tracemalloc.get_traced_memory()[0] < 10_240 * number + 100_000
        one, sent = connections[0], len(start)
        before = tracemalloc.get_traced_memory()[0]
        while sent < 1_000_000:
            sent += one.receive(Socket(bytes(10_000), []), arena)  # type: ignore[arg-type]
            one.keep()
            arena.reset()
            assert tracemalloc.get_traced_memory()[0] - before < 5 * sent + 10_000
    finally:
        tracemalloc.stop()
