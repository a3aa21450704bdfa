"""`skidway broker run`: starts a broker from its settings, runs it, and shuts it down."""

from __future__ import annotations

from typing import Any

from prometheus_client import REGISTRY

from skidway import log, systemd
from skidway.audit.topic.program_status import BrokerStatus, document_of
from skidway.broker.access.security_log import SecurityLog
from skidway.broker.access_control import AccessControl
from skidway.broker.api.requests import Requests
from skidway.broker.broker import Broker
from skidway.broker.catalog import Catalog, LiveBroker
from skidway.broker.coordination import store
from skidway.broker.coordination.access_reader import Granted
from skidway.broker.coordination.documents import Registration
from skidway.broker.coordination.producer_ids import Block, ProducerIds
from skidway.broker.coordination.session import ZooKeeperSession
from skidway.broker.expiry import Expiry
from skidway.broker.groups.administration import GroupAdministration
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.job_queue import JobQueue
from skidway.broker.groups.retention import OffsetRetention
from skidway.broker.log import descriptors
from skidway.broker.log.flusher import Flusher
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.producer_id import number_of
from skidway.broker.metrics import BrokerCollector
from skidway.broker.mirror.mirrors import Mirrors
from skidway.broker.network.listener import Listener
from skidway.broker.network.listener_tls import ListenerTls
from skidway.broker.network.loop import Limits, Loop
from skidway.broker.own_status import own_status
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.purgatory import Purgatory
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.administration import Topics
from skidway.clock import Clock, SystemClock
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError
from skidway.insecure_listeners import tell
from skidway.kafka.types import SASL_SSL
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer

STOP_WITHIN_MS = 10_000
"""A broker that is stopping waits at most this long until its logs are flushed and its last answers
are sent."""

CERTIFICATES_MS = 1_000
"""How often the files for TLS are looked at."""

PRODUCERS_MAX = 500_000
"""The broker remembers about as many producers, over all partitions: each needs 0.5 to 1.5 kB."""
PRODUCERS_CHECK_MS = 10_000

IDLE_GROUPS_MS = 10_000
"""The broker searches at this interval for groups without members. If ZooKeeper has an outdated
record of such a group, the broker stores the group. If no request has used the group for a while,
the broker removes it from memory."""

_MINUTE_MS = 60_000
_log = log.get(__name__)


def run(settings: BrokerSettings, shutdown: Shutdown, clock: Clock | None = None) -> int:
    """Serves until shutdown, then returns the exit status. Raises SkidwayError if the broker cannot
    start.
    """
    descriptors.raise_limit()
    program = Program(settings, clock or SystemClock())
    try:
        program.start()
        program.loop.watch(shutdown.fileno(), program.stop)
        program.loop.post(program.tell_ready)
        program.loop.run()
    finally:
        program.close()
    return 0


class Program:
    """A broker with its loop, its session with ZooKeeper and all its other parts. Call `start`,
    then `loop.run`, then `close`."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.loop = Loop(
            clock,
            Limits(
                request_bytes_max=settings.request_bytes_max,
                login_bytes_max=min(settings.login_bytes_max, settings.request_bytes_max),
                queued_bytes_max=settings.queued_bytes_max,
                requests_max=settings.queued_requests_max,
                connections_max=settings.connections_max,
                connections_per_ip_max=settings.connections_per_ip_max,
                unauthenticated_max=settings.connections_unauthenticated_max,
                idle_ms_max=settings.connections_idle_ms_max,
            ),
        )
        self._flusher = Flusher(self.loop.post, threads=settings.flush_threads)
        self.logs = LogManager(clock, self._flusher)
        self._purgatory = Purgatory(self.loop.timers)
        self.partitions = HostedPartitions(
            self.logs, self._purgatory, self._flusher, self.loop.timers, clock
        )
        self.logs.report = self.partitions.storage_failed
        self._listeners: list[Listener] = []
        self._tls: dict[str, ListenerTls] = {}
        self._logins = settings.logins()
        self._telemetry: TelemetryServer | None = None
        self._collector: BrokerCollector | None = None
        self._session: ZooKeeperSession | None = None
        self._coordinator: Coordinator | None = None
        self.broker: Broker | None = None
        self._mirrors: Mirrors | None = None
        self._serving = False
        self._stopping = False
        self._has_others = False

    def start(self) -> None:
        """Starts all parts of the broker, and accepts clients at the end. Raises SkidwayError."""
        settings = self._settings
        self._tls = settings.tls()
        self._listeners = [
            Listener(
                each.listener,
                each.host,
                each.port,
                self._tls.get(each.protocol),
                self._logins if each.protocol == SASL_SSL else None,
                send_buffer=settings.send_buffer_bytes,
                receive_buffer=settings.receive_buffer_bytes,
            )
            for each in settings.endpoints()
        ]
        self._start_telemetry()
        self.logs.open_directories(settings.log_dirs)
        self._coordinator = settings.zookeeper.open()
        cluster_id = store.cluster_id(self._coordinator)
        directory_id = self.logs.claim(settings.broker_id, cluster_id)
        self._session = ZooKeeperSession(
            self._coordinator,
            self._clock,
            self.loop.post,
            cluster_id=cluster_id,
            on_catalog=self._catalog_changed,
            on_access=self._access_changed,
            on_lost=self._session_lost,
            timeout_s=settings.zookeeper_session_timeout_ms / 1000,
        )
        self._session.register(
            Registration(self._own(), directory_id),
            wait_s=settings.zookeeper_session_timeout_ms / 1000 + 1,
        )
        self._load(self._session.read_catalog(settings.broker_id))
        self._session.start()
        self._serve(cluster_id)

    def tell_ready(self) -> None:
        """Called on the loop. Tells systemd that the broker is registered and accepts requests."""
        count = len(self.partitions.replicas)
        systemd.ready(f"broker {self._settings.broker_id} serves {count} partitions")

    def stop(self) -> None:
        """Accepts no more clients, flushes all logs, answers waiting requests, and ends the
        loop."""
        if self._stopping:
            return
        self._stopping = True
        if self.broker is not None:
            self.broker.stopping = True
            self.broker.groups.close()
        if self._mirrors is not None:
            self._mirrors.close()
        _log.info("broker_stopping")
        self.logs.end_creations()
        self.loop.close_listeners()
        self.loop.call_later(STOP_WITHIN_MS, self.loop.stop)
        self.partitions.flush_all(self._flushed)

    def close(self) -> None:
        """Closes all parts. If the stop was clean, marks the log directories as cleanly closed, so
        that the next start need not read the logs."""
        session, self._session = self._session, None
        epoch = -1 if session is None else session.broker_epoch
        if session is not None:
            session.close()
        elif self._coordinator is not None:
            self._coordinator.close()
        self._flusher.close()
        self.loop.close()
        for listener in self._listeners:
            listener.close()
        clean = self._serving and self._stopping and not self._unflushed()
        if clean:
            self.logs.close(epoch)
        else:
            self.logs.release()
        self._stop_telemetry()
        if self._serving:
            _log.info("broker_stopped", clean=clean)

    def _load(self, catalog: Catalog) -> None:
        session = self._session
        assert session is not None
        settings = self._settings
        self._has_others = catalog.has_others(settings.broker_id)
        topics = Topics(
            self._own(),
            settings.log_defaults(),
            self.loop,
            self.logs,
            self.partitions,
            catalog,
            settings.topics_max,
        )
        topics.use(session)
        topics.load(self.logs.discover())
        self.logs.loaded()
        groups = self._make_groups(session, topics)
        self.broker = Broker(
            settings,
            self._clock,
            self.loop,
            self.logs,
            self.partitions,
            self._purgatory,
            topics,
            ProducerIds(session.producer_id_key(), self._take_block),
            groups,
            GroupAdministration(groups, session),
            self._make_access(session),
        )

    def _make_access(self, session: ZooKeeperSession) -> AccessControl:
        authorizer = self._settings.authorizer(SecurityLog(self._clock.monotonic))
        access = AccessControl(self._logins, authorizer, self.loop, session)
        access.take(session.read_access())
        return access

    def _make_groups(self, session: ZooKeeperSession, topics: Topics) -> Groups:
        loop = self.loop
        jobs = JobQueue(session.submit, loop.call_later, self._clock.monotonic, topics.topic_id)
        return Groups(
            self._settings.broker_id,
            self._settings.group_limits(),
            self._clock,
            loop.timers,
            jobs,
            topics.topic_id,
            lambda: topics.catalog.controller_id,
            lambda: self._has_others and session.is_doubtful,
        )

    def _serve(self, cluster_id: str) -> None:
        assert self.broker is not None
        self.broker.own_status = lambda: document_of(self._own_status())
        self._collector = BrokerCollector(self.broker, self._mirror_status)
        REGISTRY.register(self._collector)
        tell(self._settings.insecure())
        if self._tls and self._settings.authorizer_mode == "off":
            _log.warning("no_authorizer", reason="every client that is let in may do everything")
        if self._settings.mirror_sources:
            self._mirrors = Mirrors(self.broker, self._settings.mirror_sources, self._clock)
            self._mirrors.start()
        self.loop.serve(Requests(self.broker, self._clock, self._mirrors))
        for listener in self._listeners:
            self.loop.add_listener(listener)
        self.logs.checkpoint()  # also tells whether there is space
        self._every(self._settings.checkpoint_ms, self.logs.checkpoint)
        if self._tls:
            self._every(CERTIFICATES_MS, self._look_at_certificates)
        self._keep_groups(self.broker.groups, self.broker.topics)
        assert self._session is not None
        expiry = Expiry(
            self.logs,
            self.partitions,
            self._session,
            self.broker.counts,
            self.loop.call_later,
            self._settings.producer_expiration_ms,
        )
        self._every(self._settings.retention_check_ms, expiry.look)
        self._every(PRODUCERS_CHECK_MS, self._bound_producers)
        self._serving = True
        _log.info(
            "broker_started",
            broker_id=self._settings.broker_id,
            cluster=self._settings.cluster_name,
            cluster_id=cluster_id,
            host=self._listeners[0].host,
            port=self._listeners[0].port,
            partitions=len(self.partitions.replicas),
            stopped=len(self.logs.stopped),
        )

    def _bound_producers(self) -> None:
        partition = self.logs.bound_producers(PRODUCERS_MAX)
        if partition is not None:
            self.loop.bounds.tell("producers", PRODUCERS_MAX, partition=str(partition))

    def _keep_groups(self, groups: Groups, topics: Topics) -> None:
        assert self._session is not None
        settings = self._settings
        retention_ms = settings.offsets_retention_minutes * _MINUTE_MS
        retention = OffsetRetention(
            groups, self._session, self._clock, retention_ms, topics.holds_of
        )
        self._every(settings.offsets_retention_check_ms, retention.look)
        self._every(IDLE_GROUPS_MS, groups.forget_idle)

    def _own(self) -> LiveBroker:
        told = self._settings.advertised([each.port for each in self._listeners])
        return LiveBroker(self._settings.broker_id, told)

    def _session_lost(self) -> None:
        if self.broker is not None and not self._stopping and self._has_others:
            self.broker.groups.hand_over()

    def _catalog_changed(self, catalog: Catalog) -> None:
        if self.broker is not None and not self._stopping:
            self._has_others = catalog.has_others(self._settings.broker_id)
            self.broker.topics.apply(catalog)
            self.broker.groups.follow_coordinator()

    def _access_changed(self, granted: Granted) -> None:
        if self.broker is not None and not self._stopping:
            self.broker.access.take(granted)

    def _take_block(self, taken: Any) -> None:
        session = self._session
        broker_id, above = self._settings.broker_id, number_of(self.logs.highest_producer_id())

        def work(coordinator: Coordinator) -> Block:
            return store.producer_id_block(coordinator, broker_id, above)

        if session is None:
            taken(SkidwayError("the broker stops"))
        else:
            session.submit(work, taken)

    def _every(self, interval_ms: int, action: Any) -> None:
        def unless_stopping() -> None:
            if not self._stopping:
                action()

        self.loop.call_every(interval_ms, unless_stopping)

    def _flushed(self) -> None:
        """Called during a stop, when all logs are flushed. Answers the waiting requests as if their
        deadlines had come, and ends the loop.
        """
        self._purgatory.expire_all()
        self.loop.call_later(0, self.loop.stop)

    def _unflushed(self) -> bool:
        return any(each.log.unflushed_messages for each in self.partitions.replicas.values())

    def _health(self) -> Health:
        stopped = {str(tp): reason for tp, reason in tuple(self.logs.stopped.items())}
        offline = {str(d.path): d.offline for d in self.logs.directories if d.offline is not None}
        full = {str(d.path): d.full for d in self.logs.directories if d.full is not None}
        session = self._session
        connected = session is not None and session.is_connected
        detail: dict[str, Any] = {
            "serving": self._serving and not self._stopping,
            "zookeeper": "connected" if connected else "away",
            "partitions": len(self.partitions.replicas),
            "stopped_partitions": stopped,
            "offline_log_dirs": offline,
            "full_log_dirs": full,
        }
        mirrors = self._mirror_status()
        if session is not None and session.problem:
            detail["zookeeper_refuses"] = session.problem
        if mirrors:
            detail["mirrors"] = mirrors
        if said := [x.sentence for x in self._own_status().obstacles]:
            detail["away"] = said
        if problems := [each.problem for each in self._tls.values() if each.problem]:
            detail["certificates"] = problems[0]
        ok = self._serving and not self._stopping and not (stopped or offline or full)
        return Health(ok and not any(each["stopped"] for each in mirrors), detail)

    def _look_at_certificates(self) -> None:
        for each in self._tls.values():
            revoked = each.look()
            if revoked is not None:
                _log.info("revocations_replaced", revoked=len(revoked))
                self.loop.drop_revoked(revoked)

    def _own_status(self) -> BrokerStatus:
        session = self._session
        since = None if session is None else session.away_since_ms
        return own_status(self._settings, since, self._mirror_status())

    def _mirror_status(self) -> list[dict[str, Any]]:
        return [] if self._mirrors is None else self._mirrors.status()

    def _start_telemetry(self) -> None:
        if self._settings.metrics_listener:
            settings = self._settings
            self._telemetry = TelemetryServer(
                self._settings.metrics_listener, self._health, settings.allowed_hosts,
                settings.host_name,
            )  # fmt: skip
            self._telemetry.start()

    def _stop_telemetry(self) -> None:
        if self._collector is not None:
            REGISTRY.unregister(self._collector)
            self._collector = None
        if self._telemetry is not None:
            self._telemetry.stop()
            self._telemetry = None
