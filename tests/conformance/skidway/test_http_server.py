"""The HTTP server of registry and dashboard on real sockets: clients that are slow keep nobody
out."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from skidway.http import server
from skidway.http.bounds import AtMost, WholeBody
from skidway.http.counts import refused_requests
from skidway.http.hosts import AllowedHosts
from skidway.http.listeners import Listener
from skidway.service import Shutdown
from support.processes import eventually
from support.slow_http_clients import KINDS, asked, slow_clients

CONNECTIONS = 600
"""More than the server accepts in one turn of its loop (listeners.BACKLOG)."""


async def application(_scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 10_000})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of a server with few places."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", CONNECTIONS)
    app = AtMost(application, 5, 100, server.MEDIA_TYPE)
    with serving(WholeBody(app, 5000, server.MEDIA_TYPE)) as port:
        yield port


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serves the application. Yields the port."""
    end, started = Shutdown(), threading.Event()
    with Listener("127.0.0.1", 0, is_tls=False).open() as listening:
        thread = threading.Thread(
            target=lambda: server.serve(
                app, [listening], [], None, end, started.set, hosts=AllowedHosts()
            )
        )
        thread.start()
        assert started.wait(60)
        yield listening.getsockname()[1]
        end.request()
        thread.join(60)


@pytest.mark.parametrize("kind", KINDS)
def test_slow_clients_keep_nobody_out(port: int, kind: str) -> None:
    """Twice as many clients as the server has places, which send nothing, half a head, half a
    body, a byte now and then, or requests whose answers they do not read, keep no other client out:
    each of its requests is answered, on a connection of its own."""
    with slow_clients(port, kind, 2 * CONNECTIONS) as go_on:
        for _ in range(5):
            assert asked(port, "/")[0] == 200
            go_on()


class OneAfterTheOther:
    """An application that answers when the test lets it, and counts the requests that it gets."""

    def __init__(self) -> None:
        self.count = 0
        self.go = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.count += 1
        await asyncio.to_thread(self.go.wait, 60)
        await application(scope, receive, send)


def test_many_requests_of_one_address_keep_no_other_out() -> None:
    """While one address sends more requests than may wait, each request of another address is
    answered. Requests whose clients have left do not run."""
    slow = OneAfterTheOther()
    get = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(AtMost(slow, 1, 50, server.MEDIA_TYPE)) as port, ExitStack() as stack:
        flood = [socket.create_connection(("127.0.0.1", port)) for _ in range(90)]
        for each in flood:
            stack.enter_context(each).sendall(get)
        refused = [refused_requests.labels(reason)._value for reason in ("busy", "left")]
        busy, left = (each.get() for each in refused)
        eventually(lambda: refused[0].get() - busy >= 90 - 51)
        with ThreadPoolExecutor(1) as other:
            good = other.submit(asked, port, "/", source="127.0.0.2")
            for each in flood:
                each.close()
            eventually(lambda: refused[1].get() - left >= 49)
            slow.go.set()
            assert good.result()[0] == 200
        assert slow.count <= 3
