"""The proxy that tests put between clients and a broker (support.proxy) makes each fault hit as
many answers as the test wants."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame
from support.processes import eventually
from support.proxy import Fault, Proxy

ASKED = 5


@contextlib.contextmanager
def echoing() -> Iterator[int]:
    """Starts a server, and yields its port. The server first reads ASKED requests from a
    connection, and then answers each of them with the request's correlation id."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as file:
            frames = [file.read(int.from_bytes(file.read(4), "big")) for _ in range(ASKED)]
            for frame in frames:
                connection.sendall(b"\0\0\0\4" + frame[4:8])
            file.read(1)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with echoing() as target:
        made = Proxy(0, target)
        made.start()
        assert made._server is not None
        made.port = made._server.getsockname()[1]
        yield made
        made.stop()


def ask(proxy: Proxy) -> int:
    """Sends ASKED requests at once. Reads answers until the connection ends or all answers have
    come, and returns their number."""
    with socket.create_connection(("127.0.0.1", proxy.port), 60) as connection:
        requests = [request_frame(ApiKey.METADATA, 5, n, "x", b"") for n in range(ASKED)]
        connection.sendall(b"".join(requests))
        found = b""
        with contextlib.suppress(ConnectionError):
            while len(found) < 8 * ASKED and (data := connection.recv(1 << 16)):
                found += data
        return len(found) // 8


def test_a_fault_hits_as_often_as_it_was_told(proxy: Proxy) -> None:
    """If a test tells the proxy to lose two answers, the proxy loses exactly two, even if more
    requests are in flight. The proxy chooses the requests whose answers it will lose. If the
    connection of a chosen request ends before the answer arrives, the proxy chooses another
    request."""
    lost = proxy.inject(Fault.LOSE_ANSWER, lambda *_: True, times=2)
    assert ask(proxy) == 0
    eventually(lambda: lost.hits == lost.chosen == 1, what="the other hit is given back")
    assert ask(proxy) == 0
    eventually(lambda: lost.hits == lost.chosen == 2, what="both hits are used up")
    assert ask(proxy) == ASKED
    assert lost.hits == 2


def test_a_held_answer_is_one_of_several_in_flight(proxy: Proxy) -> None:
    """If a test tells the proxy to hold back one answer, the proxy holds back only one answer, even
    if several requests are in flight."""
    held = proxy.inject(Fault.HOLD_ANSWER, lambda *_: True, times=1)
    asking = threading.Thread(target=ask, args=(proxy,), daemon=True)
    asking.start()
    held.wait_for_hit()
    held.release()
    asking.join(60)
    assert not asking.is_alive()
    assert held.hits == 1
