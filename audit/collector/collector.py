"""The program `skidway audit run`: collects audit messages, and serves the dashboard, metrics and
health.

The main thread reads the audit topics into the ledger. The web server's thread reads the ledger
through a connection of its own. Each connection belongs to one thread, so the threads share only
the ledger's file.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import uvicorn
from prometheus_client import Gauge

from skidway import log, ports, systemd
from skidway.audit.collector.history_store import HISTORY, HistoryStore
from skidway.audit.collector.hours import Hours
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.roster_file import RosterFile
from skidway.audit.collector.web import Dashboard
from skidway.audit.database import failures
from skidway.audit.evidence.collection import Collection
from skidway.audit.evidence.evidence import Window
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import Clocks, clocks
from skidway.audit.judgement.hosts import HostStatus, survey
from skidway.audit.judgement.standing import NOTHING_JUDGED, Standing
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import clock_report, report
from skidway.audit.settings import AuditSettings
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.files import DirectoryLock
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.errors import KafkaError
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer, host_and_port

TURN_MS = 500
JUDGE_EVERY_S = 1.0
JUDGE_SHARE = 20  # judging takes at most a twentieth of the time
CLOCKS_MAX = 50
RETRY_S = 1.0
UNHEALTHY_AFTER_S = 60.0
STOP_WITHIN_S = 5
CONCURRENT_MAX = 64
BACKLOG = 128

_log = log.get(__name__)

_BUCKETS = Gauge(
    "skidway_audit_buckets", "All buckets in which anything was counted, per verdict.", ["verdict"]
)
_OVERDUE = Gauge(
    "skidway_audit_overdue_buckets",
    "Of these, how many are due or lost, and neither complete nor accepted.",
)
_ACCEPTED = Gauge(
    "skidway_audit_accepted_buckets",
    "Of these, how many are not complete, but accepted by a person.",
)
_WARNED = Gauge(
    "skidway_audit_warned_buckets",
    "Of these, how many are complete with more rejects than rejects.share.max, and nobody has"
    " accepted it.",
)
_DIFFERING = Gauge(
    "skidway_audit_differing_recounts",
    "Topics of outputs whose newest recount found files or rows that are not what was counted.",
)
_UNCOUNTED = Gauge(
    "skidway_audit_uncounted_offsets",
    "Offsets that counters could not read, such as those that expired before.",
)
_UNREAD = Gauge(
    "skidway_audit_unread_messages",
    "Messages of a schema that this version does not have; while there are any, every bucket is"
    " unknown.",
)
_EXPECTED = Gauge("skidway_audit_expected_hosts", "Hosts that must report.")
_BEHIND = Gauge(
    "skidway_audit_behind_hosts",
    "Of these, how many speak, but would be silent by their own clocks.",
)
_SILENT = Gauge("skidway_audit_silent_hosts", "Of these, how many are silent.")
_NEVER_HEARD = Gauge("skidway_audit_never_heard_hosts", "Of these, how many were never heard.")
_OWN_CLOCK = Gauge(
    "skidway_audit_own_clock_ahead_seconds",
    "How far the clock of this host is ahead of most others, negative: behind; 0 below the bound.",
)
_WRONG_CLOCKS = Gauge(
    "skidway_audit_wrong_clocks",
    "Programs whose clocks differ by more than clock.difference.max.ms.",
)
_CLOCK = Gauge(
    "skidway_audit_clock_ahead_seconds",
    f"How far such a program's clock is ahead, negative: behind; of the {CLOCKS_MAX} that differ"
    " most.",
    ["tier", "host", "producer"],
)


def run_collector(settings: AuditSettings, clock: Clock, shutdown: Shutdown) -> int:
    """Collects messages, and serves requests, until the program is told to stop."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(DirectoryLock(settings.store_dir))
        path = settings.store_dir / DATABASE
        stack.enter_context(failures(path))
        ledger, reader = Ledger(path), Ledger(path)
        stack.callback(ledger.close)
        stack.callback(reader.close)
        histories = [
            HistoryStore(
                settings.store_dir / HISTORY, now_ms=clock.time_ms(), days=settings.history_days
            )
            for _ in ("the judging thread's", "the web thread's")
        ]
        for history in histories:
            stack.callback(history.close)
        if ledger.read_again():
            _log.info("audit_topics_read_again", reason="messages were unread, and can be read now")
        expectation = _Expected(settings, clock)
        loop = _Loop(settings, expectation, ledger, clock, histories[0])
        telemetry = TelemetryServer(settings.metrics_listener, lambda: loop.health)
        telemetry.start()
        stack.callback(telemetry.stop)
        hours = Hours(reader, lambda: expectation.policy, lambda: loop.blocks, clock)
        dashboard = Dashboard(
            reader, lambda: expectation.policy, lambda: loop.standing, hours, clock, histories[1]
        )
        stack.enter_context(_serving(dashboard, settings.listener))
        _log.info("collector_started", dashboard=settings.listener, store=str(path))
        systemd.ready(f"dashboard on {settings.listener}")
        loop.until(shutdown)
    _log.info("collector_stopped")
    return 0


class _Expected:
    """The present policy (what the audit expects), with the present roster (the hosts that must
    report). The main thread owns this object. Other threads only read its immutable value
    `policy`."""

    def __init__(self, settings: AuditSettings, clock: Clock) -> None:
        """Raises ConfigurationRefused for a bad roster."""
        path = settings.roster_file
        self._settings = settings
        self._file = None if path is None else RosterFile(path, clock)
        self.policy = settings.policy(() if self._file is None else self._file.entries)

    def look(self) -> None:
        """If the roster's file has changed, reads it again and uses the new roster. A bad file
        changes nothing."""
        if self._file is not None and self._file.look():
            self.policy = self._settings.policy(self._file.entries)

    @property
    def problem(self) -> str | None:
        """Why the roster's file is not in use; None if the file is in use."""
        return None if self._file is None else self._file.problem


class _Loop:
    """Collects messages, and keeps trying while a cluster is unreachable."""

    def __init__(
        self,
        settings: AuditSettings,
        expected: _Expected,
        ledger: Ledger,
        clock: Clock,
        history: HistoryStore | None = None,
    ) -> None:
        self._history = history
        self._has_caught_up = False
        self._settings = settings
        self._expected = expected
        self._ledger = ledger
        self._clock = clock
        self._judge_at = clock.monotonic()
        self._good_at = clock.monotonic()
        self._partitions = 0
        self._judging = Judge(ledger, lambda: expected.policy, clock, self._note)
        self.standing = NOTHING_JUDGED
        self._clocks = Clocks()
        self._has_read = False
        self.health = Health(True)
        self._judge()

    @property
    def blocks(self) -> Mapping[int, Standing]:
        """The last judgement of each hour of buckets, by the hour's start."""
        return self._judging.blocks

    def until(self, shutdown: Shutdown) -> None:
        while not shutdown.requested:
            with Client(
                self._settings.bootstrap_servers,
                client_id="skidway-audit",
                clock=self._clock,
            ) as client:
                collection = Collection(client, Fetcher(client), self._ledger, self._clock)
                try:
                    self._collect(collection, shutdown)
                except (Unreachable, KafkaError, CorruptBatch) as error:
                    self._has_caught_up = False
                    _log.error("collecting_interrupted", reason=str(error))
                    self._examine()
                    shutdown.wait(RETRY_S)

    def _collect(self, collection: Collection, shutdown: Shutdown) -> None:
        while not shutdown.requested:
            collection.turn(TURN_MS, shutdown.fileno())
            self._good_at, self._has_read = self._clock.monotonic(), True
            self._partitions = collection.partitions
            self._has_caught_up = collection.has_caught_up
            self._examine()

    def _examine(self) -> None:
        self._expected.look()
        if self._clock.monotonic() >= self._judge_at:
            self._judge()
        silent_s = self._clock.monotonic() - self._good_at
        unread = self._ledger.unread()
        _UNREAD.set(sum(unread.values()))
        detail: dict[str, Any] = {
            "partitions": self._partitions,
            "messages_refused": self._ledger.refused_count,
            "messages_unread": sum(unread.values()),
            "seconds_since_read": round(silent_s, 1) if self._has_read else None,
            "verdict": report.sentence(self.standing),
        }
        if not self._has_read:
            detail["read"] = f"nothing since the start, {silent_s:.0f} s ago"
        if said := clock_report.sentences(self._clocks):
            detail["clocks"] = said
        if self._expected.problem is not None:
            detail["roster"] = self._expected.problem
        if unread:
            detail["schemas"] = reasons.of_unread(unread)
        is_well = self._expected.problem is None and not unread and not self._clocks.is_ours_wrong
        self.health = Health(silent_s < UNHEALTHY_AFTER_S and is_well, detail)

    def _note(self, window: Window, found: Sequence[BucketVerdict], now_ms: int) -> None:
        """Notes changed verdicts, unless the ledger lacks messages that the topics already have."""
        if self._history is not None and self._has_caught_up:
            self._history.note(window, found, now_ms)

    def _judge(self) -> None:
        """Judges some buckets. Pages, metrics and /health then report the new standing, that is,
        the result for all buckets."""
        began = self._clock.monotonic()
        self.standing = found = self._judging.step()
        evidence = self._ledger.evidence(NO_BUCKETS)
        policy, now_ms = self._expected.policy, self._clock.time_ms()
        for status in Status:
            _BUCKETS.labels(status.word).set(found.by_status.get(status, 0))
        _OVERDUE.set(sum(found.overdue.values()))
        _ACCEPTED.set(sum(found.accepted.values()))
        _WARNED.set(found.warned)
        _UNCOUNTED.set(found.uncounted)
        _DIFFERING.set(sum(1 for recount in found.recounts if not recount.is_good))
        self._tell_clocks(clocks(evidence, policy, now_ms))
        expected = [x for x in survey(evidence, policy, now_ms) if x.expected]
        _EXPECTED.set(len(expected))
        _BEHIND.set(sum(1 for x in expected if x.status is HostStatus.BEHIND))
        _SILENT.set(sum(1 for x in expected if x.status is HostStatus.SILENT))
        _NEVER_HEARD.set(sum(1 for x in expected if x.status is HostStatus.NEVER_HEARD))
        taken_s = self._clock.monotonic() - began
        self._judge_at = began + max(JUDGE_EVERY_S, JUDGE_SHARE * taken_s)

    def _tell_clocks(self, found: Clocks) -> None:
        if found.wrong != self._clocks.wrong:
            _log.warning("clocks_differ", reasons=clock_report.sentences(found))
        self._clocks = found
        _OWN_CLOCK.set(found.ours_ms / 1000)
        _WRONG_CLOCKS.set(len(found.others))
        _CLOCK.clear()
        for x in found.others[:CLOCKS_MAX]:
            _CLOCK.labels(x.tier.value.lower(), x.host, x.producer).set(x.ahead_ms / 1000)


@contextlib.contextmanager
def _serving(dashboard: Dashboard, listener: str) -> Iterator[None]:
    """Serves the dashboard on a thread of its own while the `with` block runs."""
    server = uvicorn.Server(
        uvicorn.Config(
            dashboard.application(),
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=CONCURRENT_MAX,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
    )
    with _listening(listener) as listening:
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve([listening])), name="dashboard", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(2 * STOP_WITHIN_S)


def _listening(listener: str) -> socket.socket:
    host, port = host_and_port(listener, key="listener")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ports.cannot_listen(host, port, "listener", error) from error
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
    return made
