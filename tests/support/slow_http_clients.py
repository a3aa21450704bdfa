"""Many HTTP clients at once that do not do what a client should, beside one that does."""

from __future__ import annotations

import contextlib
import http.client
import resource
import socket
import time
from collections.abc import Callable, Iterator

HEAD = b"POST /subjects/x/versions HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /subjects HTTP/1.1\r\nHost: localhost\r\n\r\n"
KINDS: dict[str, Callable[[int], bytes]] = {
    "nothing": lambda _n: b"",
    "half a head": lambda _n: HEAD,
    "a byte now and then": lambda n: HEAD[n % len(HEAD) :][:1],
    "half a body": lambda _n: HEAD + b"Content-Length: 4000\r\n\r\n{" if _n == 0 else b"x",
    "nothing after an answer": lambda n: GET if n == 0 else b"",
    "requests without reading": lambda n: GET * 200 if n == 0 else b"",
}
"""What a client of each kind sends at its n-th turn."""


@contextlib.contextmanager
def slow_clients(port: int, kind: str, count: int) -> Iterator[Callable[[], None]]:
    """Opens `count` connections of a kind. Yields a function that gives all of them a turn to send,
    and opens those again that the server has closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sends, turn = KINDS[kind], 0
    opened: list[socket.socket] = []

    def open_one() -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", port), 60)
        sock.setblocking(False)
        return sock

    def go_on() -> None:
        nonlocal turn
        for at, sock in enumerate(opened):
            try:
                sock.send(sends(turn))
            except BlockingIOError:
                continue
            except OSError:
                sock.close()
                opened[at] = open_one()
        turn += 1

    try:
        opened += (open_one() for _ in range(count))
        go_on()
        yield go_on
    finally:
        for each in opened:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def asked(
    port: int, path: str, host: str = "localhost", source: str = "127.0.0.1"
) -> tuple[int, float, str]:
    """Asks once, on a connection of its own. Returns the status, the seconds and the body."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, 60, (source, 0))
    try:
        connection.request("GET", path, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, time.monotonic() - began, answer.read().decode()
    finally:
        connection.close()
