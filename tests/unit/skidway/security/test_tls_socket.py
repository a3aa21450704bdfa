"""Tests the TLS socket over a pair of connected sockets."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Iterator

import pytest

from skidway.security.contexts import TlsFiles, client_context, server_context
from skidway.security.tls_socket import RECORD_BYTES, SEALED_BYTES_MAX, TlsSocket
from support.certificates import Authority

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
