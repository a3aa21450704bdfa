"""The loop. It finds out which connections are ready and which timers are due, and does the work of
each turn in a fixed order.

The loop handles sockets and timers. A `Service` handles the requests, and `Shares` decides which of
the ready connections is served next, and for how long. Other threads may only call `post`.

A bug in the broker does as little damage as possible. After an unexpected exception in the handling
of a request, the loop closes the request's connection. An exception in the function of a timer, or
in a posted function, ends only that call. The loop logs both kinds of exceptions with a traceback,
and counts them. An exception at the end of a turn, where logs are written, ends the broker (`run`
raises it). After such an exception the state in memory may be wrong. The next start computes the
state again from the files.
"""

from __future__ import annotations

import os
import select
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from skidway import log
from skidway.broker.access.identity import Identity
from skidway.broker.access.logins import Login
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.network.connection import Connection, Slot
from skidway.broker.network.fair_threads import FairThreads
from skidway.broker.network.frame_memory import FrameMemory
from skidway.broker.network.handshakes import (
    CROWDED,
    Handshake,
    Handshakes,
    Workers,
)
from skidway.broker.network.inbound import RECEIVE_BYTES_MAX, RECEIVE_BYTES_MIN, Arena
from skidway.broker.network.listener import Listener
from skidway.broker.network.shares import Shares
from skidway.broker.network.timers import Timers
from skidway.broker.network.transport import PlainTransport, TlsTransport
from skidway.broker.network.unauthenticated import DEADLINE_S, Unauthenticated
from skidway.clock import Clock
from skidway.holders import Holders
from skidway.kafka.errors import FrameTooLarge, ProtocolError
from skidway.kafka.protocol.pieces import Piece
from skidway.rare_lines import RareLines
from skidway.reached_bounds import ReachedBounds
from skidway.security.tls_socket import TlsSocket
from skidway.security.x509 import SerialOf

EVENTS_MAX = 1024
IDLE_CHECKS = 4
"""The loop looks for idle connections this many times in each period of connections.max.idle.ms."""
BYTES_PER_COST = 2048
"""Receiving or sending this many bytes counts as a cost of 1 (about a microsecond of work; see
`shares`)."""

UNSENT_BYTES_MIN = 1 << 14
"""The answers of a connection count among the unsent ones if they are more than this many bytes."""
BEGIN_MAX = 64
"""At most this many connections that waited for memory go on in a turn."""
LATE_CHECK_MS = 1_000
HANDSHAKE_THREADS = 2
CHECK_THREADS = 1

_READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP
R = TypeVar("R")
_log = log.get(__name__)


class Service(Protocol):
    """Handles the requests that the loop receives."""

    def handle(self, connection: Connection, frame: memoryview) -> int:
        """Handles a request. Its frame is valid until the turn ends. Returns the cost of the
        request in microseconds, without the cost of receiving its bytes. Raises ProtocolError,
        after which the loop closes the connection.
        """
        ...

    def end_turn(self) -> None:
        """Does the work that `handle` has postponed to the end of the turn, such as writing to
        files."""
        ...

    def unreadable(self, error: StorageFailed | DamagedLog) -> None:
        """Called when a file with data for an answer cannot be read. The loop has already closed
        the connection that waited for the answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of connections. Times are in ms, and sizes in bytes."""

    request_bytes_max: int
    login_bytes_max: int
    queued_bytes_max: int
    requests_max: int
    connections_max: int
    connections_per_ip_max: int
    unauthenticated_max: int
    idle_ms_max: int


@dataclass(slots=True)
class Traffic:
    """The numbers of connections, requests and received bytes so far, and of calls that have ended
    with an unexpected exception. The metrics endpoint reads these numbers from its own thread."""

    accepted: int = 0
    refused: int = 0
    closed: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    received_bytes: int = 0
    failed_calls: int = 0

    def count_closed(self, reason: str) -> None:
        """Counts a closed connection under its reason. (The reason is a label of a metric, so there
        must be only a few different reasons.)"""
        self.closed[reason] = self.closed.get(reason, 0) + 1


# This class has many methods: a method for each step of a turn, and the methods that other parts of
# the broker call.
class Loop:
    """The loop runs on one thread. Other threads may call only `post`."""

    def __init__(self, clock: Clock, limits: Limits, workers: Workers | None = None) -> None:
        """workers: where handshakes and `check` are done, if not in threads of the loop."""
        self.clock = clock
        self.now = clock.monotonic()
        self.timers = Timers()
        self.traffic = Traffic()
        self.connections: dict[int, Connection] = {}
        self.queued: FrameMemory[Connection] = FrameMemory(limits.queued_bytes_max)
        """Which connections need memory for bytes that are not handled yet: the beginnings of
        frames, and frames that wait."""
        self.unsent: Holders[Connection] = Holders(limits.queued_bytes_max)
        """Which connections have many bytes of answers in memory."""
        self.bounds = ReachedBounds(clock.monotonic)
        self.unauthenticated: Unauthenticated[Handshake | Connection] = Unauthenticated(
            limits.unauthenticated_max, self._waits_for_client
        )
        self._checks = workers or FairThreads("passwords", CHECK_THREADS)
        self.handshakes = Handshakes(
            self,
            workers or FairThreads("handshakes", HANDSHAKE_THREADS),
            clock.monotonic,
            self.unauthenticated,
            self._admit,
            self._forget_handshake,
        )
        self._refused = RareLines("connection_refused", clock.monotonic)
        self._limits = limits
        self._by_address: Counter[str] = Counter()
        self._service: Service | None = None
        self._epoll = select.epoll()
        self._listeners: dict[int, Listener] = {}
        self._watched: dict[int, Callable[[], None]] = {}
        self._clients: dict[int, Callable[[bool, bool], None]] = {}
        self._arena = Arena()
        self._shares: Shares[Connection] = Shares()
        self._to_send: dict[Connection, None] = {}
        self._posted: deque[Callable[[], None]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # The loop's only lock. Without this lock, a thread that calls `post` during `close` could
        # write to a descriptor number that is closed and already used for another file.
        self._wake_lock = threading.Lock()
        self._stopped = False
        self.watch(self._wake, self._woken)

    def serve(self, service: Service) -> None:
        """Sets the service that handles the requests."""
        self._service = service
        self.call_every(self._limits.idle_ms_max / IDLE_CHECKS, self._check_idle)
        self.call_every(LATE_CHECK_MS, self._drop_late)

    def watch(self, descriptor: int, readable: Callable[[], None]) -> None:
        """Calls `readable` whenever the descriptor is readable."""
        self._watched[descriptor] = readable
        self._epoll.register(descriptor, select.EPOLLIN)

    def watch_both(
        self, descriptor: int, ready: Callable[[bool, bool], None], *, read: bool, write: bool
    ) -> None:
        """Calls `ready(readable, writable)` when the descriptor is ready. A second call for the
        same descriptor changes the events to watch for."""
        mask = (select.EPOLLIN if read else 0) | (select.EPOLLOUT if write else 0)
        if descriptor in self._clients:
            self._epoll.modify(descriptor, mask)
        else:
            self._epoll.register(descriptor, mask)
        self._clients[descriptor] = ready

    def unwatch(self, descriptor: int) -> None:
        """Stops watching a descriptor that `watch_both` added. Must be called before the descriptor
        is closed."""
        if self._clients.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def add_listener(self, listener: Listener) -> None:
        """Makes the listener listen; from now on the loop accepts the listener's connections."""
        listener.listen()
        self._listeners[listener.socket.fileno()] = listener
        self._epoll.register(listener.socket.fileno(), select.EPOLLIN)

    def close_listeners(self) -> None:
        """Accepts no more connections."""
        for descriptor, listener in self._listeners.items():
            self._epoll.unregister(descriptor)
            listener.close()
        self._listeners = {}

    def post(self, action: Callable[[], None]) -> None:
        """Runs `action` in one of the next turns. Any thread may call this. Does nothing after
        `close`.
        """
        with self._wake_lock:
            if self._wake >= 0:
                self._posted.append(action)
                os.eventfd_write(self._wake, 1)

    def check(self, address: str, work: Callable[[], R], done: Callable[[R], None]) -> None:
        """Checks a password: does `work`, which raises nothing, in a thread, then `done` with its
        outcome on the loop. Only for connections in `unauthenticated`, each of which has at most
        one such job; addresses take turns."""

        def job() -> None:
            outcome = work()
            self.post(lambda: done(outcome))

        self._checks.submit(job, address)

    def call_later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Runs `action` once, after a delay."""
        self.timers.call_at(self.clock.monotonic() + delay_ms / 1000, action)

    def call_every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Runs `action` at every interval, for the first time after one interval. The calls
        continue even if `action` fails.
        """

        def again() -> None:
            self.call_later(interval_ms, again)
            action()

        self.call_later(interval_ms, again)

    def run(self) -> None:
        """Runs turns until `stop`."""
        while not self._stopped:
            self.turn()

    def stop(self) -> None:
        """Ends `run` after this turn."""
        self._stopped = True

    def close(self) -> None:
        """Closes every connection, and frees the loop's own descriptors."""
        self.close_listeners()
        self.handshakes.close()
        self._checks.close()
        for connection in list(self.connections.values()):
            self.drop(connection, "stopped")
        self._epoll.close()
        with self._wake_lock:
            os.close(self._wake)
            self._wake = -1

    def turn(self) -> None:
        """Runs one turn: waits until there is work, and does this work (see the package's
        docstring)."""
        for descriptor, mask in self._poll():
            connection = self.connections.get(descriptor)
            if connection is not None:
                self._ready(connection, mask)
            elif descriptor in self._listeners:
                self._accept(self._listeners[descriptor])
            elif descriptor in self._watched:
                self._watched[descriptor]()
            elif descriptor in self._clients:
                readable, writable = bool(mask & _READABLE), bool(mask & select.EPOLLOUT)
                # After an error, the socket is treated as writable too. Code that waits until a
                # connect is complete looks at its socket only when the socket is writable.
                failed = bool(mask & (select.EPOLLHUP | select.EPOLLERR))
                self._clients[descriptor](readable, writable or failed)
        self._run_posted()
        self.timers.run_due(self.now, self._call)
        # This call comes before `_serve`, so that complete answers need not wait until `_serve` has
        # handled further requests.
        self._send_all()
        self._serve()
        self._end_turn()

    def fill(self, connection: Connection, slot: Slot, pieces: Sequence[Piece]) -> None:
        """Fills the slot of a request with the answer. The answer is sent in this turn, or as soon
        as all earlier answers of the connection are known."""
        if connection.fill(slot, pieces) and (connection.has_output or connection.has_more):
            self._to_send[connection] = None
        if connection.unsent_bytes > UNSENT_BYTES_MIN and not connection.closed:
            self.unsent.hold(connection, connection.address, connection.unsent_bytes)

    def drop(self, connection: Connection, reason: str) -> None:
        """Closes a connection."""
        if connection.closed:
            return
        self.traffic.count_closed(reason)
        self._epoll.unregister(connection.descriptor)
        del self.connections[connection.descriptor]
        self.queued.release(connection)
        self.queued.leave(connection, connection.address)
        self.unsent.release(connection)
        self._leave(connection.address)
        self._to_send.pop(connection, None)
        self._shares.leave(connection)
        self.unauthenticated.end(connection)
        connection.close()

    def end(self, connection: Connection, reason: str) -> None:
        """Closes a connection when its answers are sent, and takes no more requests of it."""
        connection.ends_with = reason
        self._to_send[connection] = None

    def expect_login(self, connection: Connection) -> None:
        """Called when a client begins to log in again: it has as long as for its first login."""
        connection.forget_access()
        self.unauthenticated.begin(connection, connection.address, self.now)

    def login_stepped(self, connection: Connection) -> None:
        """Called when a login has come a step further, and waits for its client."""
        self.unauthenticated.stepped(connection, self.now)

    def admit_requests(self, connection: Connection) -> None:
        """Called when the client of a connection is known: now it may send requests of any size."""
        connection.inbound.limit_bytes = self._limits.request_bytes_max
        self.unauthenticated.end(connection)

    def drop_revoked(self, revoked: frozenset[SerialOf]) -> None:
        """Closes the connections of clients whose certificates are revoked."""
        for connection in list(self.connections.values()):
            if connection.identity.serial in revoked:
                self.drop(connection, "revoked")

    def _poll(self) -> list[tuple[int, int]]:
        self.now = self.clock.monotonic()
        wait = 0.0 if self._shares or self._posted else self.timers.seconds_left(self.now)
        events = self._epoll.poll(wait, EVENTS_MAX)
        self.now = self.clock.monotonic()
        return events

    def _ready(self, connection: Connection, mask: int) -> None:
        connection.last_active = self.now
        if mask & select.EPOLLOUT:
            self._to_send[connection] = None
        if not mask & _READABLE:
            return
        if not connection.is_full and not connection.is_held_back:
            connection.readable = True
            self._shares.wait(connection)
        elif mask & (select.EPOLLHUP | select.EPOLLERR):
            self.drop(connection, "disconnected")
        else:
            # The connection is full, because answers are not sent yet, or waits for memory. Until
            # then, new requests of this connection must not wake the loop.
            self._listen_to(connection)

    def _serve(self) -> None:
        """Serves the waiting connections, each within its share, until the turn's cost limit is
        reached or the arena is full.
        """
        shares = self._shares
        shares.begin_turn()
        while not self._arena.is_full and (connection := shares.next()) is not None:
            try:
                self._serve_one(connection, shares.allowance)
            except ProtocolError as error:
                self._refuse(connection, error)
            except Exception as error:  # noqa: BLE001 - a bug must not affect others
                _log.error("request_failed", exc=error, address=connection.address)
                self.drop(connection, "failed")

    def _serve_one(self, connection: Connection, allowance: int) -> None:
        """Handles those requests of a connection that were received in earlier turns. Then receives
        once, and handles the new requests.
        """
        handled_before = self.traffic.requests
        cost = self._handle(connection, allowance) if connection.has_more else 0
        may_receive = connection.readable and not connection.has_more and not connection.is_full
        if may_receive and not connection.closed and not self.queued.may_receive(connection):
            self._hold_back(connection)
        elif may_receive and not connection.closed:
            count, spent = self._receive(connection)
            connection.readable = connection.transport.has_received
            cost += spent
            if count:
                cost += self._handle(connection, max(allowance - cost, 1))
        if connection.closed:
            return
        connection.inbound.keep()
        held_bytes = connection.inbound.held_bytes
        if held_bytes:
            anew = self.traffic.requests > handled_before
            self.queued.hold(connection, connection.address, held_bytes, self.now, anew=anew)
        else:
            self.queued.release(connection)
        transport = connection.transport
        if isinstance(transport, TlsTransport):
            transport.expect(connection.inbound.missing_bytes)
        self._shares.charge(connection, cost)
        if connection.has_more or connection.transport.has_received:
            self._go_on(connection)
        self._listen_to(connection)

    def _go_on(self, connection: Connection) -> None:
        """Serves a connection in this turn or the next one without a further event of its socket,
        unless something else must happen before."""
        if not (connection.is_full or connection.is_held_back):
            self._shares.wait(connection)

    def _receive(self, connection: Connection) -> tuple[int, int]:
        """Receives once from a connection. Returns how many bytes were received, 0 if there were
        none, or if the connection was closed; and what this has cost. Raises ProtocolError.
        """
        size = max(RECEIVE_BYTES_MAX // (len(self._shares) + 1), RECEIVE_BYTES_MIN)
        transport, count = connection.transport, 0
        is_tls = isinstance(transport, TlsTransport)
        begin = self.clock.monotonic() if is_tls else 0.0
        try:
            count = connection.inbound.receive(transport, self._arena, size)
        except BlockingIOError:
            pass
        except OSError:
            self.drop(connection, "disconnected")
        else:
            if not count:
                self.drop(connection, "disconnected")
            self.traffic.received_bytes += count
        if is_tls:  # much work may bring few bytes, or none
            return count, int((self.clock.monotonic() - begin) * 1e6)
        return count, count // BYTES_PER_COST

    def _handle(self, connection: Connection, allowance: int) -> int:
        """Handles whole frames until none is left, their cost has used up the allowance, or the
        connection has reached a limit. Returns this cost. Raises ProtocolError."""
        service, inbound = self._service, connection.inbound
        assert service is not None
        cost = 0
        while cost < allowance and not connection.is_full:
            frame = inbound.next_frame()
            if frame is None:
                connection.has_more = False
                return cost
            self.traffic.requests += 1
            cost += service.handle(connection, frame)
            if connection.closed:
                return cost
        connection.has_more = inbound.has_frame
        return cost

    def _hold_back(self, connection: Connection) -> None:
        """Lets a connection wait until there is memory for its next request."""
        connection.is_held_back = True
        gives_way = self.queued.wait(connection, connection.address)
        if gives_way is not None:
            self._give_way(gives_way)

    def _let_begin(self) -> None:
        """Lets connections go on for whose requests there is memory now."""
        for _ in range(BEGIN_MAX):
            connection = self.queued.next()
            if connection is None:
                return
            connection.is_held_back = False
            self._shares.wait(connection)

    def _drop_late(self) -> None:
        for late in self.unauthenticated.late(self.now):
            self._turn_out(late, "late", f"it was not complete after {DEADLINE_S:g} s")
        self.handshakes.make_room()
        for connection in self.queued.late(self.now):
            self._give_way(connection)

    def _turn_out(self, who: Handshake | Connection, kind: str, reason: str) -> None:
        if isinstance(who, Handshake):
            self.handshakes.fail(who, kind, reason)
        else:
            self.drop(who, kind)

    def _drop_unsent(self) -> None:
        """Closes connections whose clients do not read their answers, until the other answers need
        no more than queued.max.request.bytes."""
        while (connection := self.unsent.gives_way()) is not None:
            self._give_way(connection)

    def _give_way(self, connection: Connection) -> None:
        limit, address = self.queued.held.limit, connection.address
        self.bounds.tell("queued.max.request.bytes", limit, address=address)
        self.drop(connection, "memory")

    def _refuse(self, connection: Connection, error: ProtocolError) -> None:
        if isinstance(error, FrameTooLarge):
            limit, address = self._limits.request_bytes_max, connection.address
            self.bounds.tell("socket.request.max.bytes", limit, address=address, reason=str(error))
        else:
            address, kind = connection.address, type(error).__name__
            self._refused.tell((address, kind), address=address, reason=str(error))
        self.drop(connection, type(error).__name__)

    def _listen_to(self, connection: Connection) -> None:
        wanted = 0 if connection.is_full or connection.is_held_back else select.EPOLLIN
        if connection.has_output:
            wanted |= select.EPOLLOUT
        if wanted != connection.interest:
            connection.interest = wanted
            self._epoll.modify(connection.descriptor, wanted)

    def _end_turn(self) -> None:
        service = self._service
        if service is not None:
            service.end_turn()
        self._arena.reset()
        self._send_all()
        self._drop_unsent()
        self._let_begin()

    def _send_all(self) -> None:
        to_send, self._to_send = self._to_send, {}
        for connection in to_send:
            self._send(connection)

    def _send(self, connection: Connection) -> None:
        if connection.closed:
            return
        sent_before = connection.sent_bytes
        try:
            is_sent = connection.send()
        except OSError:
            self.drop(connection, "disconnected")
            return
        except (StorageFailed, DamagedLog) as error:
            # The beginning of the answer is already sent, so an error code can no longer be sent in
            # its place.
            self.drop(connection, "unreadable")
            assert self._service is not None
            self._service.unreadable(error)
            return
        if not is_sent and connection.unsent_bytes > UNSENT_BYTES_MIN:
            self.unsent.hold(connection, connection.address, connection.unsent_bytes)
        elif connection in self.unsent:
            self.unsent.release(connection)
        self._shares.charge(connection, (connection.sent_bytes - sent_before) // BYTES_PER_COST)
        if connection.ends_with and not connection.is_busy and is_sent:
            self.drop(connection, connection.ends_with)
            return
        self._listen_to(connection)
        if connection.has_more or connection.transport.has_received:
            self._go_on(connection)

    def _accept(self, listener: Listener) -> None:
        refused_before = listener.refused_count
        for sock, peer in listener.accept():
            if self._is_one_too_many(peer, listener):
                self.traffic.refused += 1
                sock.close()
                continue
            self.traffic.accepted += 1
            self._by_address[peer.rpartition(":")[0]] += 1
            if listener.tls is None:
                limits = self._limits
                self._open(
                    Connection(
                        PlainTransport(sock),
                        peer,
                        listener.name,
                        request_bytes_max=limits.request_bytes_max,
                        requests_max=limits.requests_max,
                    )
                )
            else:
                handshake = self.handshakes.begin(sock, peer, listener)
                self.unauthenticated.begin(handshake, handshake.address, self.now)
        self.traffic.refused += listener.refused_count - refused_before

    def _waits_for_client(self, who: Handshake | Connection) -> bool:
        if isinstance(who, Handshake):
            return self.handshakes.waits_for_client(who)
        return not (who.is_busy or who.has_more)

    def _forget_handshake(self, handshake: Handshake) -> None:
        self.unauthenticated.end(handshake)
        self._leave(handshake.address)

    def _leave(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _admit(self, handshake: Handshake, tls: TlsSocket, identity: Identity) -> None:
        """Takes over a connection whose handshake is complete."""
        limits, logins = self._limits, handshake.listener.logins
        connection = Connection(
            TlsTransport(tls),
            handshake.peer,
            handshake.listener.name,
            identity,
            None if logins is None else Login(logins),
            request_bytes_max=limits.request_bytes_max
            if logins is None
            else limits.login_bytes_max,
            requests_max=limits.requests_max,
        )
        if logins is None:
            self.unauthenticated.end(handshake)
        else:
            self.unauthenticated.goes_on(handshake, connection, connection.address, self.now)
        self._open(connection)
        # The client may have sent its first request with the last bytes of the handshake.
        connection.readable = connection.transport.has_received
        if connection.has_more or connection.transport.has_received:
            self._go_on(connection)
        self._listen_to(connection)

    def _open(self, connection: Connection) -> None:
        connection.last_active = self.now
        connection.interest = select.EPOLLIN
        self.connections[connection.descriptor] = connection
        self._shares.join(connection)
        self._epoll.register(connection.descriptor, select.EPOLLIN)

    def _is_one_too_many(self, peer: str, listener: Listener) -> bool:
        limits, address = self._limits, peer.rpartition(":")[0]
        if len(self.connections) + len(self.handshakes) >= limits.connections_max:
            self.bounds.tell("max.connections", limits.connections_max)
            return True
        if self._by_address[address] >= limits.connections_per_ip_max:
            limit = limits.connections_per_ip_max
            self.bounds.tell("max.connections.per.ip", limit, address=address)
            return True
        if listener.tls is None:
            return False
        if not self.unauthenticated.is_full:
            return False
        gives_way = self.unauthenticated.gives_way(address, self.now)
        if gives_way is None:
            limit = limits.unauthenticated_max
            self.bounds.tell("max.connections.unauthenticated", limit, address=address)
            return True
        self._turn_out(gives_way, *CROWDED)
        return False

    def _check_idle(self) -> None:
        oldest = self.now - self._limits.idle_ms_max / 1000
        for connection in list(self.connections.values()):
            # A connection with a request that is not answered yet is not idle. But if answers are
            # ready and cannot be sent, the client has stopped reading, so the loop treats the
            # connection as idle.
            stuck = connection.is_busy and not connection.has_output
            if connection.last_active < oldest and not stuck:
                self.drop(connection, "idle")

    def _woken(self) -> None:
        os.eventfd_read(self._wake)

    def _run_posted(self) -> None:
        for _ in range(len(self._posted)):
            self._call(self._posted.popleft())

    def _call(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a bug must not prevent the other calls
            self.traffic.failed_calls += 1
            _log.error("call_failed", exc=error)
