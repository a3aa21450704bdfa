"""A proxy between clients and a broker. It can delay and lose the traffic, as a network does.

The broker's `advertised.listeners` contain the proxy's address, so all clients connect to the
proxy. The proxy handles whole frames (requests and answers). It passes a frame on, or holds it
back, or drops it and breaks the connection. A test chooses a fault and the frames that this fault
hits. There are three faults:

    HOLD_REQUEST   client --x      broker      the broker does not receive the request yet
    HOLD_ANSWER    client     x--  broker      the broker handles the request, and the client does
                                               not receive the answer yet
    LOSE_ANSWER    client     //   broker      the broker handles the request, and then the proxy
                                               breaks the connection

While the proxy holds a frame back, all later frames of the same connection and direction wait, as
in TCP.

The proxy cannot see the frames of a connection with TLS. It handles what arrives at once as if it
were a frame, of a request that it does not know (HIDDEN).
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.fetch import FetchRequest
from skidway.kafka.protocol.frames import (
    LENGTH_BYTES,
    RequestHeader,
    peek_correlation_id,
    read_request_header,
)
from skidway.kafka.protocol.messages import decode
from skidway.kafka.protocol.produce import parse_request
from support.processes import WITHIN_S, eventually

AGENT, LOADER = "skidway-agent", "skidway-loader"
TLS = (b"\x15", b"\x16")
"""The first byte of each side of a connection with TLS: that of an alert or of a handshake. Without
TLS it is the first byte of a frame's length, and no frame is so long."""
HIDDEN = RequestHeader(ApiKey.API_VERSIONS, 0, 0, None)
AT_ONCE_BYTES = 1 << 20

Matches = Callable[[RequestHeader, memoryview], bool]


class Fault(Enum):
    HOLD_REQUEST = "hold request"
    HOLD_ANSWER = "hold answer"
    LOSE_ANSWER = "lose answer"


class _Lost(Exception):
    """Raised in the thread that is about to pass on a frame, if the frame must be dropped and the
    connection ended."""


@dataclass(eq=False)
class Intervention:
    """An active fault. It counts the frames that the fault has hit (held back or lost) so far. The
    methods `release` and `drop` end the fault."""

    fault: Fault
    matches: Matches
    times: int | None
    _changed: threading.Condition
    hits: int = 0
    chosen: int = 0
    """The number of requests that the fault has chosen: those that it has already hit, and those
    whose answers it will hit when they arrive."""
    is_over: bool = False
    passes: bool = True

    def wait_for_hit(self, hits: int = 1, within_s: float = WITHIN_S) -> None:
        """Waits until the fault has hit `hits` frames."""
        eventually(lambda: self.hits >= hits, within_s=within_s, what=f"{self.fault.value} at work")

    def release(self) -> None:
        """Ends the fault. The proxy passes on the frames that it held back, even if their sender
        has died in the meantime."""
        self._end(passes=True)

    def drop(self) -> None:
        """Ends the fault. The proxy drops the frames that it held back, and breaks their
        connections."""
        self._end(passes=False)

    def _end(self, *, passes: bool) -> None:
        with self._changed:
            self.is_over, self.passes = True, passes
            self._changed.notify_all()


def produces(topic: str, client_id: str = AGENT) -> Matches:
    """Returns a filter that matches the Produce requests with which a client sends records to a
    topic."""

    def matches(header: RequestHeader, body: memoryview) -> bool:
        if header.api_key is not ApiKey.PRODUCE or header.client_id != client_id:
            return False
        data = parse_request(body, header.api_version).data
        return any(records.topic == topic for records in data)

    return matches


def fetches(topic: str, client_id: str = AGENT, first: int = 0) -> Matches:
    """Returns a filter that matches a client's Fetch requests for records of a topic at the offset
    `first` or later."""

    def matches(header: RequestHeader, body: memoryview) -> bool:
        if header.api_key is not ApiKey.FETCH or header.client_id != client_id:
            return False
        request = decode(FetchRequest, body, header.api_version)
        return any(
            each.fetch_offset >= first
            for asked in request.topics
            if asked.topic == topic
            for each in asked.partitions
        )

    return matches


class Proxy:
    """Listens on `port`, and passes everything on to the broker's port `target`. Both ports are on
    the loopback interface."""

    def __init__(self, port: int, target: int) -> None:
        self.port, self._target = port, target
        self._changed = threading.Condition()
        self._interventions: list[Intervention] = []
        self._connections: set[_Connection] = set()
        self._server: socket.socket | None = None
        self.refused = 0
        """The number of client connections that failed because the proxy could not connect to the
        broker."""
        self.delay_s = 0.0
        """The delay of each answer, in seconds."""
        self._is_cut = False

    def start(self) -> None:
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def stop(self) -> None:
        self.clear()
        if self._server is not None:
            self._server.shutdown(socket.SHUT_RDWR)
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.close()

    def inject(self, fault: Fault, matches: Matches, times: int | None = None) -> Intervention:
        """Begins a fault that hits `times` requests for which `matches` returns true, or the
        answers to such requests. If `times` is None, the fault hits all of them until the test
        releases or drops the fault."""
        made = Intervention(fault, matches, times, self._changed)
        with self._changed:
            self._interventions.append(made)
        return made

    def cut(self) -> Callable[[], None]:
        """Breaks all connections, and refuses new connections until the test calls the returned
        function."""
        self._is_cut = True
        for connection in list(self._connections):
            connection.close()

        def mend() -> None:
            self._is_cut = False

        return mend

    def slow(self, delay_s: float) -> Callable[[], None]:
        """Delays each answer by `delay_s` seconds until the test calls the returned function."""
        self.delay_s = delay_s

        def mend() -> None:
            self.delay_s = 0.0

        return mend

    def clear(self) -> None:
        """Ends all faults. The proxy drops the frames that it held back."""
        with self._changed:
            held, self._interventions = self._interventions, []
        for each in held:
            each.drop()

    def hit(self, header: RequestHeader, body: memoryview) -> Intervention | None:
        """Returns the fault that hits this request or its answer, and increments the fault's
        `chosen`. Returns None if there is no such fault."""
        with self._changed:
            for each in self._interventions:
                spent = each.times is not None and each.chosen >= each.times
                if not spent and not each.is_over and each.matches(header, body):
                    each.chosen += 1
                    if each.fault is Fault.HOLD_REQUEST:
                        each.hits += 1
                    return each
        return None

    def answered(self, intervention: Intervention) -> None:
        """Counts a hit of the fault `intervention`. The proxy calls this method when it gets the
        answer to a request that the fault has chosen."""
        with self._changed:
            intervention.hits += 1

    def unanswered(self, intervention: Intervention) -> None:
        """Decrements the number of requests that the fault has chosen, because the answer to one of
        them will not arrive. So the fault can choose another request in its place."""
        with self._changed:
            intervention.chosen -= 1

    def hold(self, intervention: Intervention) -> None:
        """Blocks the calling thread, which is about to pass on a frame, until the test calls
        `release`. Raises _Lost if the test calls `drop`."""
        with self._changed:
            self._changed.wait_for(lambda: intervention.is_over)
            if not intervention.passes:
                raise _Lost

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                if self._is_cut:
                    client.close()
                    continue
                try:
                    broker = socket.create_connection(("127.0.0.1", self._target), 5)
                except OSError:
                    self.refused += 1
                    client.close()
                    continue
                broker.settimeout(None)
                connection = _Connection(self, client, broker, self._connections.discard)
                self._connections.add(connection)
                if self._is_cut:
                    connection.close()
                else:
                    connection.start()


class _Connection:
    """The connection of one client through the proxy to the broker, with one thread for each
    direction."""

    def __init__(
        self,
        proxy: Proxy,
        client: socket.socket,
        broker: socket.socket,
        gone: Callable[[_Connection], None],
    ) -> None:
        self._proxy, self._client, self._broker, self._gone = proxy, client, broker, gone
        self._hit: dict[int, Intervention] = {}
        for end in (client, broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        for work in (self._requests, self._answers):
            threading.Thread(target=self._run, args=(work,), daemon=True).start()

    def close(self) -> None:
        for end in (self._client, self._broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with contextlib.suppress(KeyError):  # raised when `_hit` is empty
            while True:
                self._proxy.unanswered(self._hit.popitem()[1])
        self._gone(self)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            with contextlib.suppress(OSError, EOFError, _Lost):
                work()
        finally:
            self.close()

    def _requests(self) -> None:
        is_tls = _speaks_tls(self._client)
        while True:
            frame = _read_frame(self._client, is_tls=is_tls)
            header, body = HIDDEN, memoryview(b"")
            if not is_tls:
                header, body = read_request_header(memoryview(frame)[LENGTH_BYTES:])
            intervention = self._proxy.hit(header, body)
            if intervention is not None and intervention.fault is Fault.HOLD_REQUEST:
                self._proxy.hold(intervention)
            elif intervention is not None:
                self._hit[header.correlation_id] = intervention
            self._broker.sendall(frame)

    def _answers(self) -> None:
        is_tls = _speaks_tls(self._broker)
        while True:
            frame = _read_frame(self._broker, is_tls=is_tls)
            correlation_id = HIDDEN.correlation_id
            if not is_tls:
                correlation_id = peek_correlation_id(memoryview(frame)[LENGTH_BYTES:])
            intervention = self._hit.pop(correlation_id, None)
            if intervention is not None:
                self._proxy.answered(intervention)
                if intervention.fault is Fault.LOSE_ANSWER:
                    return
                self._proxy.hold(intervention)
            if delay_s := self._proxy.delay_s:
                time.sleep(delay_s)
            self._client.sendall(frame)


def _speaks_tls(source: socket.socket) -> bool:
    """Waits for the first byte of this side of a connection."""
    return source.recv(1, socket.MSG_PEEK) in TLS


def _read_frame(source: socket.socket, *, is_tls: bool) -> bytes | bytearray:
    """Reads a frame, and returns it with its length field; with TLS, what has arrived. Raises
    EOFError at the end of the stream."""
    if is_tls:
        if arrived := source.recv(AT_ONCE_BYTES):
            return arrived
        raise EOFError
    frame = bytearray(LENGTH_BYTES)
    _read_into(source, memoryview(frame))
    size = int.from_bytes(frame, "big")
    frame += bytes(size)
    _read_into(source, memoryview(frame)[LENGTH_BYTES:])
    return frame


def _read_into(source: socket.socket, room: memoryview) -> None:
    while room:
        count = source.recv_into(room)
        if count == 0:
            raise EOFError
        room = room[count:]
