from __future__ import annotations

import errno
import socket

import pytest

from skidway.broker.network.listener import Listener
from skidway.broker.network.loop import Limits, Loop
from support.clock import ManualClock


class Accepted:
    def close(self) -> None:
        pass


class FakeSocket:
    """A fake listening socket. Each call of `accept` has the next of the given outcomes: the number
    of an error, or None if it returns a connection."""

    outcomes: list[int | None]

    def __init__(self, *_: object) -> None:
        pass

    def setsockopt(self, *_: object) -> None:
        pass

    def bind(self, _address: object) -> None:
        pass

    def setblocking(self, _blocking: bool) -> None:
        pass

    def getsockname(self) -> tuple[str, int]:
        return "here", 1

    def accept(self) -> tuple[Accepted, tuple[str, int]]:
        number = self.outcomes.pop(0)
        if number is not None:
            raise OSError(number, "refused")
        return Accepted(), ("there", 2)

    def close(self) -> None:
        pass


def test_connections_without_a_descriptor_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metric connections_refused counts each connection that the broker closes at once because
    no descriptor is free. If accept fails for lack of a descriptor although no connection waits,
    nothing is counted."""
    monkeypatch.setattr(socket, "socket", FakeSocket)
    FakeSocket.outcomes = [
        errno.EMFILE, None,
        errno.ENFILE, None,
        errno.EMFILE, errno.EAGAIN,
        errno.EAGAIN,
    ]  # fmt: skip
    listener = Listener("PLAINTEXT", "here", 0, send_buffer=-1, receive_buffer=-1)
    limits = Limits(
        request_bytes_max=1, login_bytes_max=1, queued_bytes_max=1, requests_max=1,
        connections_max=1,
        connections_per_ip_max=1,
        unauthenticated_max=1,
        idle_ms_max=1000,
    )  # fmt: skip
    loop = Loop(ManualClock(), limits)
    loop._accept(listener)
    assert (loop.traffic.refused, loop.traffic.accepted) == (2, 0)
    assert FakeSocket.outcomes == []
    listener.close()
    loop.close()
