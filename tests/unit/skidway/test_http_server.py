"""The server closes a connection if the client does not send its request, or does not read the
answer, in time. It also closes connections beyond the allowed number. The tests use a fake clock
and a fake transport."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from uvicorn.server import ServerState

from skidway.http import server
from skidway.http.hosts import AllowedHosts
from skidway.http.server import HEAD_WITHIN_S, KEEP_ALIVE_S, Config, Protocol
from skidway.service import Shutdown


class Timers:
    """A fake event loop. It stores delayed calls with their delays; the test makes these calls with
    `fire`."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[..., None]]] = []

    def call_later(self, delay: float, call: Callable[..., None]) -> Any:
        timer = (delay, call)
        self.waiting.append(timer)
        return _Handle(lambda: self.waiting.remove(timer) if timer in self.waiting else None)

    def fire(self) -> float:
        """Calls the next timer, and returns its delay."""
        delay, call = self.waiting.pop(0)
        call()
        return delay


class _Handle:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel


class Transport:
    """A fake asyncio transport with the methods that the server's protocol uses."""

    def __init__(self, address: str) -> None:
        self.unsent = 0
        self.aborted = False
        self._address = address

    def get_extra_info(self, name: str) -> Any:
        return (self._address, 1) if name == "peername" else None

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


class Cycle:
    """A stand-in for uvicorn's RequestResponseCycle. `response_complete` says whether the answer to
    a request is complete."""

    def __init__(self, response_complete: bool, more_body: bool = False) -> None:
        self.response_complete = response_complete
        self.more_body = more_body


class Shared:
    """What the connections of a server share."""

    def __init__(self) -> None:
        async def app(_scope: Any, _receive: Any, _send: Any) -> None: ...

        self.config, self.state = Config(app, "application/json"), ServerState()


def connected(
    shared: Shared | None = None, address: str = "10.0.0.1"
) -> tuple[Protocol, Transport, Timers]:
    shared = shared or Shared()
    timers, transport = Timers(), Transport(address)
    made = Protocol(shared.config, shared.state, {}, timers)  # type: ignore[arg-type]
    made.connection_made(transport)  # type: ignore[arg-type]
    return made, transport, timers


def test_a_connection_that_says_nothing_ends() -> None:
    """The server closes a connection if no request arrives on it for HEAD_WITHIN_S
    seconds."""
    _, transport, timers = connected()
    assert timers.fire() == HEAD_WITHIN_S
    assert transport.aborted


def test_a_request_that_is_being_answered_has_its_time() -> None:
    """The server does not close a connection while a request is being answered, because
    the answer may have to wait for ZooKeeper, where the registry stores its log. This wait may be
    longer than the time that is allowed for a request's head."""
    protocol, transport, timers = connected()
    protocol.cycle = Cycle(response_complete=False)  # type: ignore[assignment]
    timers.fire()
    assert not transport.aborted


def test_who_reads_slowly_is_waited_for_as_long_as_he_reads() -> None:
    """If a client reads a large answer slowly, the server keeps the connection open. If
    the client stops reading, the server closes the connection."""
    protocol, transport, timers = connected()
    protocol.cycle = Cycle(response_complete=True)  # type: ignore[assignment]
    for unsent in (3_000_000, 2_000_000, 1_000_000):
        transport.unsent = unsent
        timers.fire()
        assert not transport.aborted
    timers.fire()
    assert transport.aborted


def test_behind_an_answer_a_new_time_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an answer, the head of the next request must arrive within the keep-alive time plus the
    time that is allowed for a request's head. One timer measures both times together."""
    monkeypatch.setattr(server.H11Protocol, "on_response_complete", lambda _self: None)
    protocol, transport, timers = connected()
    protocol.cycle = Cycle(response_complete=True)  # type: ignore[assignment]
    protocol.on_response_complete()
    assert len(timers.waiting) == 1
    assert timers.fire() == KEEP_ALIVE_S + HEAD_WITHIN_S
    assert transport.aborted


def test_a_connection_asks_for_one_answer_at_a_time() -> None:
    """A client that sends further requests before it has its answer gets the first answer, and then
    its connection is closed; the others are not answered. A client that waits for each answer keeps
    its connection."""
    asked: list[str] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    shutdown = Shutdown()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        arguments = (app, [listening], [], None, shutdown)
        hosts = {"hosts": AllowedHosts(())}
        running = threading.Thread(target=server.serve, args=arguments, kwargs=hosts)
        running.start()
        try:
            with socket.create_connection(address, timeout=30) as good:
                for _ in range(3):
                    good.sendall(_get("/good"))
                    answer = b""
                    while not answer.endswith(b"ok"):
                        answer += good.recv(1000)
            with socket.create_connection(address, timeout=30) as greedy:
                greedy.sendall(_get("/greedy") * 200)
                assert _until_closed(greedy).count(b"HTTP/1.1 200") == 1
        finally:
            shutdown.request()
            running.join()
    assert asked == ["/good"] * 3 + ["/greedy"]


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _until_closed(sock: socket.socket) -> bytes:
    found = b""
    while data := sock.recv(1 << 16):
        found += data
    return found


def test_half_requests_give_way_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one connection more than allowed waits for its client, the oldest of them ends, of the
    address with the most. A connection whose request is being
    answered stays open."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 3)
    shared = Shared()
    other = connected(shared, "10.0.0.2")[1]
    busy, transport, _ = connected(shared)
    busy.cycle = Cycle(response_complete=False)  # type: ignore[assignment]
    busy._note()
    body, slow_body, _ = connected(shared)
    body.cycle = Cycle(response_complete=False, more_body=True)  # type: ignore[assignment]
    body._note()
    half = connected(shared)[1]
    newest = connected(shared)[1]
    assert slow_body.aborted
    assert not any(each.aborted for each in (other, transport, half, newest))
    connected(shared)
    assert half.aborted
    assert not any(each.aborted for each in (other, transport, newest))


def test_a_connection_that_is_used_again_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection on which requests were answered gives way before a newer one that has not sent
    its first request yet."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 2)
    monkeypatch.setattr(server.H11Protocol, "on_response_complete", lambda _self: None)
    shared = Shared()
    used, first, _ = connected(shared)
    _, second, _ = connected(shared)
    used.cycle = Cycle(response_complete=False)  # type: ignore[assignment]
    used._note()
    used.cycle = Cycle(response_complete=True)  # type: ignore[assignment]
    used.on_response_complete()
    connected(shared)
    assert (first.aborted, second.aborted) == (True, False)


def test_it_takes_the_descriptors_that_there_are() -> None:
    """The server raises its limit of file descriptors to the hard limit, because a
    shell's usual limit is lower than the number of allowed connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        server.take_descriptors()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
