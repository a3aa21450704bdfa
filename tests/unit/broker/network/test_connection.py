from __future__ import annotations

from typing import Any

from skidway.broker.network.connection import OUTBOX_BYTES_MAX, Connection
from skidway.broker.network.transport import PlainTransport


class Socket:
    """A fake socket, which accepts a given number of bytes and then would block."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.sent, self.room, self.closed = b"", room, False

    def fileno(self) -> int:
        return 99

    def recv_into(self, _buffer: Any) -> int:
        raise BlockingIOError

    def send(self, data: Any, _flags: int = 0) -> int:
        return self.sendmsg([data])

    def sendmsg(self, buffers: Any, _ancillary: Any = (), _flags: int = 0) -> int:
        data = b"".join(bytes(each) for each in buffers)[: self.room]
        if not data:
            raise BlockingIOError
        self.room -= len(data)
        self.sent += data
        return len(data)

    def close(self) -> None:
        self.closed = True


def connection(sock: Socket, requests_max: int = 10) -> Connection:
    return Connection(
        PlainTransport(sock), "test", "PLAINTEXT", request_bytes_max=1000, requests_max=requests_max
    )  # type: ignore[arg-type]


def test_answers_go_out_in_the_order_of_the_requests() -> None:
    """Answers are sent in the order of their requests. An answer that is ready early waits for the
    answers before it."""
    sock = Socket()
    client = connection(sock)
    first, second, third = client.reserve(), client.reserve(), client.reserve()
    assert not client.fill(third, [b"3"])
    assert not client.fill(second, [b"2"])
    assert not client.has_output
    assert client.fill(first, [b"1"])
    assert client.send()
    assert sock.sent == b"123"


def test_an_empty_answer_lets_the_next_one_pass() -> None:
    """The answer to a Produce request with acks=0 is empty. An empty answer does not prevent the
    sending of the answers after it."""
    sock = Socket()
    client = connection(sock)
    silent, loud = client.reserve(), client.reserve()
    client.fill(loud, [b"x"])
    client.fill(silent, ())
    client.send()
    assert sock.sent == b"x"


def test_a_full_socket_is_taken_up_where_it_stopped() -> None:
    """If the socket accepts no more bytes, the connection later continues to send at the first byte
    that was not sent. No byte is sent twice or left out."""
    data = [bytes([n]) * 7 for n in range(200)]
    for room in range(1, 40):
        sock = Socket(room)
        client = connection(sock, 1000)
        for piece in data:
            client.fill(client.reserve(), [piece[:3], memoryview(piece)[3:]])
        while not client.send():
            sock.room += room
        assert sock.sent == b"".join(data)


def test_a_connection_is_full_by_requests_and_by_bytes() -> None:
    """A connection is full when too many of its requests wait for answers, or when the answers that
    wait to be sent have too many bytes. The broker handles no further requests of a full
    connection."""
    client = connection(Socket(), 3)
    slots = [client.reserve() for _ in range(3)]
    assert client.is_full
    client.fill(slots[0], [b""])
    assert not client.is_full
    client.fill(slots[2], [b"x" * (OUTBOX_BYTES_MAX + 1)])
    assert client.is_full
    client.fill(slots[1], [b""])
    client.send()
    assert not client.is_full


def test_requests_answered_together_count_each() -> None:
    """Several requests of a connection may get one common answer. Until this answer is ready, each
    of them counts towards the connection's limit of unanswered requests."""
    client = connection(Socket(), 3)
    slot = client.reserve()
    client.reserve_in(slot)
    assert not client.is_full
    client.reserve_in(slot)
    assert client.is_full
    client.fill(slot, [b"abc"])
    assert not client.is_full
    for _ in range(2):
        client.reserve()
    assert not client.is_full


def test_an_answer_to_a_closed_connection_is_nothing() -> None:
    """An answer to a closed connection is dropped, so that the code that answers need not check
    whether the client has gone."""
    sock = Socket()
    client = connection(sock)
    slot = client.reserve()
    client.close()
    assert sock.closed
    assert not client.fill(slot, [b"x"])
