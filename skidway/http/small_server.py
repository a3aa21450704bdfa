"""A server of the standard library that answers one request on each connection, on one thread.

It is for answers that are made at once. However many clients send half a request, or a byte now and
then, or do not read: a client has `HEAD_WITHIN_S` for its request, and time for the answer, and
there are at most `CLIENTS_MAX` clients; one with a large answer counts as several. If one more
comes, the client gives way that came first, of the address with the most clients. So who sends a
whole request is answered at once.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from skidway import log
from skidway.holders import Holders
from skidway.http.counts import closed_connections
from skidway.reached_bounds import ReachedBounds
from skidway.service import Shutdown

HEAD_BYTES_MAX: Final = 16 << 10
HEAD_WITHIN_S: Final = 5.0
ANSWER_WITHIN_S: Final = 30.0
CLIENTS_MAX: Final = 64
_RECEIVE_BYTES: Final = 4096
_PLACE_BYTES: Final = 1 << 20
_ACCEPTS_MAX: Final = 16
_WITHOUT_DESCRIPTORS_S: Final = 0.1

_log = log.get(__name__)
Answer = Callable[[bytes, str], bytes]
"""Returns the whole answer to the head of a request, which arrived at this local address."""


@dataclass(eq=False, slots=True)
class _Client:
    sock: socket.socket
    address: str
    until: float
    head: bytearray = field(default_factory=bytearray)
    unsent: memoryview | None = None
    """None until the request is there; empty when the whole answer is sent."""


class SmallServer:
    """Serves the clients of a listening socket. Only `run` uses it."""

    def __init__(self, listening: socket.socket, answer: Answer) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._answer = answer
        self._clients: dict[int, _Client] = {}
        self._places: Holders[_Client] = Holders(CLIENTS_MAX)
        self._bounds = ReachedBounds()
        self._poll = select.poll()

    def run(self, end: Shutdown) -> None:
        """Answers until `end` is requested, then closes all connections but the listening one."""
        self._poll.register(self._listening, select.POLLIN)
        self._poll.register(end, select.POLLIN)
        while not end.requested:
            for descriptor, _ in self._poll.poll(self._wait_ms()):
                if descriptor == self._listening.fileno():
                    self._accept(end)
                elif (client := self._clients.get(descriptor)) is not None:
                    self._serve(client)
            now = time.monotonic()
            for client in [x for x in self._clients.values() if x.until <= now]:
                self._close(client, "slow" if client.unsent is None else "unread")
        for client in list(self._clients.values()):
            self._close(client)

    def _wait_ms(self) -> float | None:
        if not self._clients:
            return None
        first = min(client.until for client in self._clients.values())
        return max(first - time.monotonic(), 0) * 1000 + 1

    def _accept(self, end: Shutdown) -> None:
        for _ in range(_ACCEPTS_MAX):
            try:
                sock, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError:  # perhaps no descriptor is free; then the next poll would not wait
                end.wait(_WITHOUT_DESCRIPTORS_S)
                return
            sock.setblocking(False)
            client = _Client(sock, str(address[0]), time.monotonic() + HEAD_WITHIN_S)
            self._clients[sock.fileno()] = client
            self._poll.register(sock, select.POLLIN)
            self._places.hold(client, client.address, 1)
            self._make_room()

    def _make_room(self) -> None:
        while (first := self._places.gives_way()) is not None:
            self._bounds.tell("clients of /metrics", CLIENTS_MAX, address=first.address)
            self._close(first, "gave_way")

    def _serve(self, client: _Client) -> None:
        try:
            if client.unsent is None:
                self._receive(client)
            elif client.unsent:
                self._send(client, client.unsent)
            elif not client.sock.recv(_RECEIVE_BYTES):  # what comes behind the request is ignored
                self._close(client)
        except BlockingIOError:
            return
        except OSError:  # a client that disconnects is no error
            self._close(client)
        except Exception as error:  # noqa: BLE001 - a bug must not end the answers to others
            _log.error("telemetry_failed", exc=error)
            self._close(client)

    def _receive(self, client: _Client) -> None:
        data = client.sock.recv(_RECEIVE_BYTES)
        client.head += data
        if not data:
            self._close(client)
        elif b"\n\r\n" in client.head or b"\n\n" in client.head:
            local = str(client.sock.getsockname()[0])
            answer = self._answer(bytes(client.head), local)
            client.until = time.monotonic() + ANSWER_WITHIN_S
            places = min(1 + len(answer) // _PLACE_BYTES, CLIENTS_MAX // 4)
            self._places.hold(client, client.address, places)
            self._send(client, memoryview(answer))
            self._make_room()
        elif len(client.head) > HEAD_BYTES_MAX:
            self._close(client, "large")

    def _send(self, client: _Client, unsent: memoryview) -> None:
        client.unsent = unsent
        self._poll.modify(client.sock, select.POLLOUT)
        client.unsent = unsent[client.sock.send(unsent) :]
        if not client.unsent:
            # Closing a socket with bytes that nobody has read would destroy the answer on its way.
            client.sock.shutdown(socket.SHUT_WR)
            self._poll.modify(client.sock, select.POLLIN)

    def _close(self, client: _Client, reason: str | None = None) -> None:
        if reason is not None:
            closed_connections.labels(reason).inc()
        self._places.release(client)
        self._poll.unregister(client.sock)
        del self._clients[client.sock.fileno()]
        client.sock.close()
