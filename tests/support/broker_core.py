"""Makes a broker core for tests: a broker without its own process, network and ZooKeeper. The core
has the broker's event loop, logs and handlers.

Each client has one end of a socket pair, and the event loop has the other end. The test runs the
loop's turns and moves the clock. Disk operations are finished at once, and a dictionary replaces
ZooKeeper.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from skidway.broker.access.logins import Logins
from skidway.broker.access.security_log import SecurityLog
from skidway.broker.access_control import AccessControl
from skidway.broker.api.requests import Requests
from skidway.broker.broker import Broker
from skidway.broker.catalog import Catalog
from skidway.broker.coordination import store
from skidway.broker.coordination.access_reader import Granted
from skidway.broker.coordination.producer_ids import ProducerIds
from skidway.broker.groups.administration import GroupAdministration
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.job_queue import JobQueue
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.producer_id import number_of
from skidway.broker.network.listener_tls import ListenerTls
from skidway.broker.network.loop import Limits, Loop
from skidway.broker.network.transport import PlainTransport, TlsTransport, Transport
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.purgatory import Purgatory
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.administration import Topics
from skidway.errors import SkidwayError
from skidway.security.tls_socket import TlsSocket
from support.clock import ManualClock
from support.live_brokers import live_broker
from support.nodes import Nodes

REQUEST_BYTES_MAX = 1 << 20
QUEUED_BYTES_MAX = 64 << 20
TURNS = 8


class MemorySession:
    """A fake ZooKeeper session that runs each job at once, and posts the result to the event
    loop."""

    is_connected = True

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.zookeeper: Any = Nodes()
        self.granted = Granted({}, ())

    def read_access(self, written: Collection[str] = ()) -> Granted:
        return self.granted

    def submit(self, work: Callable[[Any], Any], done: Callable[[Any], None]) -> None:
        try:
            outcome = work(self.zookeeper)
        except SkidwayError as error:
            outcome = error
        self._loop.post(lambda: done(outcome))


class AtOnce:
    """Replaces the broker's disk thread. Runs each job (such as an fsync) at once, in the caller's
    thread. The event loop gets the result in its next turn.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        outcome = timed(work)
        self._loop.post(lambda: done(outcome))


class Inline:
    """Computes TLS handshakes at once, in the loop's thread."""

    def submit(self, job: Callable[[], None], address: str) -> None:
        job()

    def close(self) -> None:
        pass


class CoreClient:
    """The client's end of a connection to the broker core. No method blocks."""

    def __init__(self, core: BrokerCore, transport: Transport) -> None:
        self._core = core
        self._transport = transport
        self._received = b""
        self.is_closed = False

    def send(self, data: bytes) -> None:
        """Sends the bytes unchanged. Whenever the socket is full, runs a turn of the broker's
        loop."""
        left = memoryview(data)
        while not self.is_closed:
            try:
                if left:
                    left = left[self._transport.send([left], False) :]
                elif self._transport.flush():
                    return
                else:
                    self._core.turn()
            except BlockingIOError:
                self._core.turn()
            except (BrokenPipeError, ConnectionResetError):
                self.is_closed = True

    def answers(self) -> list[bytes]:
        """Returns the complete frames that have arrived since the last call, without their length
        fields."""
        while not self.is_closed:
            space = memoryview(bytearray(1 << 18))
            try:
                data = bytes(space[: self._transport.recv_into(space)])
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            self.is_closed = not data
            self._received += data
        found = []
        while len(self._received) >= 4:
            end = 4 + int.from_bytes(self._received[:4], "big")
            if end > len(self._received):
                break
            found.append(self._received[4:end])
            self._received = self._received[end:]
        return found

    def ask(self, data: bytes) -> bytes | None:
        """Sends a request, moves the clock until the answer is due, and returns the answer. Returns
        None if there is no answer.

        If `data` is only a part of a request, no answer comes, and this method returns None.
        """
        self.send(data)
        for seconds in (0.0, 0.1, 61.0):
            self._core.advance(seconds)
            found = self.answers()
            if found or self.is_closed:
                return found[0] if found else None
        return None

    def close(self) -> None:
        self._transport.close()


class BrokerCore:
    """A broker core as the module's docstring describes it. It is the only broker of its cluster,
    and therefore itself creates the topics for which a request asks."""

    def __init__(self, directory: Path, settings: BrokerSettings) -> None:
        self.clock = ManualClock()
        self._clients: list[CoreClient] = []
        limits = Limits(
            request_bytes_max=REQUEST_BYTES_MAX,
            login_bytes_max=settings.login_bytes_max,
            queued_bytes_max=QUEUED_BYTES_MAX,
            requests_max=100,
            connections_max=1000,
            connections_per_ip_max=1000,
            unauthenticated_max=1000,
            idle_ms_max=1 << 40,
        )
        self.loop = Loop(self.clock, limits, Inline())
        worker = AtOnce(self.loop)
        logs = LogManager(self.clock, worker)
        logs.open_directories([directory])
        purgatory = Purgatory(self.loop.timers)
        partitions = HostedPartitions(logs, purgatory, worker, self.loop.timers, self.clock)
        own = live_broker(settings.broker_id, "127.0.0.1", 9092)
        catalog = Catalog("cluster", {own.broker_id: own}, {}, own.broker_id)
        topics = Topics(
            own, settings.log_defaults(), self.loop, logs, partitions, catalog, settings.topics_max
        )
        self.session = MemorySession(self.loop)
        session: Any = self.session
        topics.use(session)
        topics.load(logs.discover())

        def take_block(taken: Callable[[Any], None]) -> None:
            above = number_of(logs.highest_producer_id())
            session.submit(lambda zk: store.producer_id_block(zk, own.broker_id, above), taken)

        jobs = JobQueue(session.submit, self.loop.call_later, self.clock.monotonic, topics.topic_id)
        groups = Groups(
            own.broker_id, settings.group_limits(), self.clock, self.loop.timers, jobs,
            topics.topic_id, lambda: topics.catalog.controller_id, lambda: False,
        )  # fmt: skip
        self.logins: Logins = settings.logins()
        authorizer = settings.authorizer(SecurityLog(self.clock.monotonic))
        self.broker = Broker(
            settings, self.clock, self.loop, logs, partitions, purgatory, topics,
            ProducerIds(b"key", take_block), groups, GroupAdministration(groups, session),
            AccessControl(self.logins, authorizer, self.loop, session),
        )  # fmt: skip
        self.loop.serve(Requests(self.broker, self.clock))

    def connect(self, listener_name: str = "PLAINTEXT") -> CoreClient:
        ours = PlainTransport(self.open(listener_name))
        self._clients.append(CoreClient(self, ours))
        return self._clients[-1]

    def grant(self, granted: Granted) -> None:
        """Lets ZooKeeper have these users and rules."""
        self.session.granted = granted
        self.broker.access.take(granted)

    def connect_tls(
        self, tls: ListenerTls, context: ssl.SSLContext, *, with_sasl: bool = False
    ) -> CoreClient:
        """Connects with TLS, and makes the handshake. Raises OSError (ssl.SSLError is one)."""
        logins = self.logins if with_sasl else None
        ours = TlsSocket(self.open("SSL", tls, logins), context, server_hostname="localhost")
        client = CoreClient(self, TlsTransport(ours))
        self._clients.append(client)
        try:
            while not ours.advance():
                ours.flush()
                self.advance(0)
                ours.receive_sealed()
        finally:
            ours.flush()
            self.advance(0)
        return client

    def open(
        self, listener_name: str, tls: ListenerTls | None = None, logins: Logins | None = None
    ) -> socket.socket:
        """Connects. Returns the client's end."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        listener: Any = SimpleNamespace(
            name=listener_name,
            tls=tls,
            logins=logins,
            accept=lambda: iter([(theirs, "test:1")]),
            refused_count=0,
        )
        self.loop._accept(listener)
        return ours

    def turn(self) -> None:
        """Runs one turn of the loop. The turn does not wait for events."""
        self.loop.post(lambda: None)
        self.loop.turn()

    def advance(self, seconds: float) -> None:
        """Lets time pass, and then runs so many turns of the loop that all due work and its
        follow-up work are done."""
        self.clock.advance(seconds)
        for _ in range(TURNS):
            self.turn()

    def close(self) -> None:
        for each in self._clients:
            each.close()
        self.loop.close()
        self.broker.logs.release()

    def closed_for(self, reason: str) -> int:
        return self.loop.traffic.closed.get(reason, 0)


@contextlib.contextmanager
def broker_core(directory: Path, **settings: Any) -> Iterator[BrokerCore]:
    core = BrokerCore(directory, BrokerSettings(**settings))
    try:
        yield core
    finally:
        core.close()
