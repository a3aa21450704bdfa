"""Tests the TLS socket over a pair of connected sockets."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.security.contexts import TlsFiles, client_context, server_context
from skidway.security.tls_socket import (
    BARREN_BYTES_MAX,
    HEAD_BYTES,
    RECORD_BYTES,
    SEALED_BYTES_MAX,
    UNREAD_BYTES_MAX,
    TlsSocket,
    TooManyRecords,
    _Records,
)
from support.certificates import Authority
from support.tls_records import DATA, HANDSHAKE, Sealer, logs_keys

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Contexts:
    authority = Authority(tmp_path_factory.mktemp("tls"))
    pair = authority.sign("server")
    server = server_context(TlsFiles(pair.certificate, pair.key))
    return server, client_context(TlsFiles(ca=authority.certificate))


class Ends:
    """A server's and a client's end of one connection."""

    def __init__(self, contexts: Contexts) -> None:
        first, second = socket.socketpair()
        first.setblocking(False)
        second.setblocking(False)
        self.server = TlsSocket(first, contexts[0], server_side=True)
        self.client = TlsSocket(second, contexts[1], server_hostname="localhost")

    def shake(self) -> None:
        """Makes the handshake."""
        done = [False, False]
        while not all(done):
            for at, (one, other) in enumerate(
                ((self.client, self.server), (self.server, self.client))
            ):
                done[at] = one.advance()
                one.flush()
                if not done[1 - at]:
                    other.receive_sealed()

    def close(self) -> None:
        self.server.socket.close()
        self.client.socket.close()


@pytest.fixture
def ends(contexts: Contexts) -> Iterator[Ends]:
    made = Ends(contexts)
    made.shake()
    yield made
    made.close()


def received(end: TlsSocket, size: int = 1 << 20) -> bytes:
    """Returns the plain bytes that have arrived."""
    space = bytearray(size)
    try:
        return bytes(space[: end.recv_into(memoryview(space))])
    except BlockingIOError:
        return b""


Flood = Callable[[Sealer], bytes]
TICKET = b"\x04\x00\x00\x35" + bytes(8) + b"\x08" + bytes(8) + b"\x00\x20" + bytes(34)


@pytest.mark.parametrize(
    ("side", "record"),
    [
        ("CLIENT", lambda sealer: sealer.key_update(requested=True)),
        ("SERVER", lambda sealer: sealer.key_update(requested=False)),
        ("SERVER", lambda sealer: sealer.seal(HANDSHAKE, TICKET)),
    ],
)
def test_records_without_data_are_bounded(
    contexts: Contexts, tmp_path: Path, side: str, record: Flood
) -> None:
    """Of records that are no data, one call takes only as many bytes as one record of data may
    have; a peer that sends only such records is refused."""
    ends = Ends((contexts[0], logs_keys(contexts[1], tmp_path / "keys")))
    ends.shake()
    sealer = Sealer(tmp_path / "keys", side)
    sender, receiver = ends.client, ends.server
    if side == "SERVER":
        sender, receiver = receiver, sender
    few = b"".join(record(sealer) for _ in range(100))
    sender.socket.send(few + sealer.seal(DATA, b"data"))
    assert received(receiver) == b"data"
    flood = b"".join(record(sealer) for _ in range(2 * BARREN_BYTES_MAX * 100 // len(few)))
    sender.socket.setblocking(True)
    space, calls = memoryview(bytearray(100)), 0
    with contextlib.suppress(TooManyRecords):
        while flood:
            flood = flood[sender.socket.send(flood[:RECORD_BYTES]) :]
            with contextlib.suppress(BlockingIOError):
                receiver.recv_into(space)
            calls += 1
    assert BARREN_BYTES_MAX <= calls * RECORD_BYTES <= BARREN_BYTES_MAX + 3 * RECORD_BYTES
    ends.close()


def test_a_peer_that_asks_for_answers_and_reads_none_is_refused(
    contexts: Contexts, tmp_path: Path
) -> None:
    """A peer cannot fill the memory with answers of TLS, also if it sends some data."""
    ends = Ends((contexts[0], logs_keys(contexts[1], tmp_path / "keys")))
    ends.shake()
    sealer, most = Sealer(tmp_path / "keys", "CLIENT"), 0

    def ask() -> None:
        updates = b"".join(sealer.key_update(requested=True) for _ in range(500))
        ends.client.socket.send(updates + sealer.seal(DATA, b"x"))
        assert received(ends.server) == b"x"

    with contextlib.suppress(TooManyRecords):
        while most <= UNREAD_BYTES_MAX:
            ask()
            most = ends.server.sealed_bytes
    assert most + 2 * RECORD_BYTES > UNREAD_BYTES_MAX
    with pytest.raises(TooManyRecords):
        ask()
    ends.close()


@given(
    sizes=st.lists(st.integers(0, 600), max_size=12),
    cuts=st.lists(st.integers(1, 700), min_size=1, max_size=40),
)
def test_a_record_that_is_not_whole_is_known(sizes: list[int], cuts: list[int]) -> None:
    """However the bytes of records are cut, it is known how many belong to a record that is not
    whole."""
    data = b"".join(b"\x17\x03\x03" + size.to_bytes(2) + bytes(size) for size in sizes)
    ends = list(itertools.accumulate(HEAD_BYTES + size for size in sizes))
    records, at = _Records(), 0
    for cut in itertools.cycle(cuts):
        if at >= len(data):
            break
        piece = memoryview(data)[at : at + cut]
        records.follow(piece)
        at += len(piece)
        assert records.begun_bytes == at - max((end for end in ends if end <= at), default=0)


def test_bytes_arrive_in_both_directions(ends: Ends) -> None:
    """What one end sends in many pieces, or in one of many records, the other end receives whole,
    also with little space."""
    assert ends.client.sendmsg([b"a", b"", bytearray(b"bc"), memoryview(b"d")]) == 4
    assert received(ends.server, 3) == b"abc"
    assert ends.server.has_received
    assert received(ends.server) == b"d"
    assert not ends.server.has_received
    data = bytes(range(256)) * 400
    assert ends.server.send(data) == len(data)
    assert received(ends.client) == data


def test_a_peer_that_does_not_read_is_not_fed(ends: Ends) -> None:
    """If the peer reads nothing, only a limited number of sealed bytes waits in memory; when it
    reads, all of them arrive."""
    sent = 0
    with contextlib.suppress(BlockingIOError):
        while sent < 1 << 26:
            sent += ends.server.send(bytes(1 << 16))
    assert ends.server.has_sealed
    arrived = 0
    while arrived < sent:
        arrived += len(received(ends.client))
        ends.server.flush()
    assert (arrived, ends.server.has_sealed) == (sent, False)
    assert sent < SEALED_BYTES_MAX + (1 << 20)


def test_an_end_is_told(ends: Ends) -> None:
    """A peer that closes ends the stream after the last bytes, whether it says so by TLS or only by
    TCP."""
    ends.client.send(b"last")
    ends.client.close()
    assert received(ends.server) == b"last"
    assert ends.server.recv_into(memoryview(bytearray(9))) == 0


def test_an_end_by_tcp_alone(ends: Ends) -> None:
    """A peer that disconnects without a word of TLS ends the stream, too."""
    assert received(ends.client) == b""  # but a session's ticket
    ends.client.send(b"last")
    ends.client.socket.close()
    assert received(ends.server) == b"last"
    assert ends.server.recv_into(memoryview(bytearray(9))) == 0


def test_a_changed_byte_ends_the_connection(ends: Ends) -> None:
    """If a byte changes on the way, the receiver raises an error and returns nothing of the
    record."""
    ends.client._tls.write(b"one record")
    sealed = bytearray(ends.client._outgoing.read())
    sealed[-1] ^= 1
    ends.client.socket.send(sealed)
    with pytest.raises(ssl.SSLError):
        ends.server.recv_into(memoryview(bytearray(99)))


def test_a_handshake_cut_at_every_byte(contexts: Contexts) -> None:
    """A handshake of which only the first bytes arrive is not complete, and the rest can come
    later, byte by byte."""
    made = Ends(contexts)
    made.client.advance()
    hello = made.client._outgoing.read()
    for at in range(len(hello)):
        made.client.socket.send(hello[at : at + 1])
        made.server.receive_sealed()
        assert not made.server.advance()
    made.server.flush()
    made.client.receive_sealed()
    assert made.client.advance()
    made.close()


@pytest.mark.parametrize(
    "hello", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x1a\0\x12\0\x03\0\0\0\0\0\x07"]
)
def test_plain_bytes_are_no_handshake(contexts: Contexts, hello: bytes) -> None:
    """A client that speaks in the clear to a TLS port is refused."""
    made = Ends(contexts)
    made.client.socket.send(hello)
    made.server.receive_sealed()
    with pytest.raises(ssl.SSLError):
        made.server.advance()
    made.close()


def test_openssl_keeps_little_memory(contexts: Contexts) -> None:
    """However much a connection has carried, OpenSSL got it in small pieces: the memory of a
    connection that is idle again is small."""
    largest = 0

    class Watched:
        """The memory of OpenSSL, whose largest content is noted."""

        def __init__(self, bio: ssl.MemoryBIO) -> None:
            self.bio, self.read = bio, bio.read

        def write(self, data: memoryview) -> int:
            nonlocal largest
            largest = max(largest, self.bio.pending + len(data))
            return self.bio.write(data)

        @property
        def pending(self) -> int:
            nonlocal largest
            largest = max(largest, self.bio.pending)
            return self.bio.pending

    made = Ends(contexts)
    made.shake()
    made.server._incoming = Watched(made.server._incoming)  # type: ignore[assignment]
    made.client._outgoing = Watched(made.client._outgoing)  # type: ignore[assignment]
    data, arrived = bytes(1 << 20), bytearray()
    sent = 0
    while len(arrived) < len(data):
        with contextlib.suppress(BlockingIOError):
            sent += made.client.send(memoryview(data)[sent:]) if sent < len(data) else 0
        made.client.flush()
        arrived += received(made.server)
    assert arrived == data
    assert 0 < largest < 3 * RECORD_BYTES
    made.close()
