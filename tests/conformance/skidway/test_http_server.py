"""The HTTP server of registry and dashboard on real sockets: clients that are slow keep nobody
out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from skidway.http import server
from skidway.http.bounds import AtMost, WholeBody
from skidway.http.hosts import AllowedHosts
from skidway.http.listeners import Listener
from skidway.service import Shutdown
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
    app = WholeBody(AtMost(application, 5, server.MEDIA_TYPE), 5000, server.MEDIA_TYPE)
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
