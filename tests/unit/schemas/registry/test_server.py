"""The server closes a connection if the client does not send its request, or does not read the
answer, in time. It also closes connections beyond the allowed number. The tests use a fake clock
and a fake transport."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from skidway.schemas.registry import server
from skidway.schemas.registry.server import HEAD_WITHIN_S, KEEP_ALIVE_S, Protocol


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

    def __init__(self) -> None:
        self.unsent = 0
        self.aborted = False

    def get_extra_info(self, _name: str) -> Any:
        return None

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


class Cycle:
    """A stand-in for uvicorn's RequestResponseCycle. `response_complete` says whether the answer to
    a request is complete."""

    def __init__(self, response_complete: bool) -> None:
        self.response_complete = response_complete


def connected(state: ServerState | None = None) -> tuple[Protocol, Transport, Timers]:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None: ...

    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    timers, transport = Timers(), Transport()
    made = Protocol(config, state or ServerState(), {}, timers)  # type: ignore[arg-type]
    made.connection_made(transport)  # type: ignore[arg-type]
    return made, transport, timers


def test_a_connection_that_says_nothing_ends() -> None:
    """The registry's server closes a connection if no request arrives on it for HEAD_WITHIN_S
    seconds."""
    _, transport, timers = connected()
    assert timers.fire() == HEAD_WITHIN_S
    assert transport.aborted


def test_a_request_that_is_being_answered_has_its_time() -> None:
    """The registry's server does not close a connection while a request is being answered, because
    the answer may have to wait for ZooKeeper, where the registry stores its log. This wait may be
    longer than the time that is allowed for a request's head."""
    protocol, transport, timers = connected()
    protocol.cycle = Cycle(response_complete=False)  # type: ignore[assignment]
    timers.fire()
    assert not transport.aborted


def test_who_reads_slowly_is_waited_for_as_long_as_he_reads() -> None:
    """If a client reads a large answer slowly, the registry's server keeps the connection open. If
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


def test_more_connections_than_allowed_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection beyond the limit of connections is closed at once, and the other connections
    stay open."""
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 1)
    state = ServerState()
    _, first, _ = connected(state)
    _, second, _ = connected(state)
    assert (first.aborted, second.aborted) == (False, True)


def test_it_takes_the_descriptors_that_there_are() -> None:
    """The registry's server raises its limit of file descriptors to the hard limit, because a
    shell's usual limit is lower than the number of allowed connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        server.take_descriptors()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
