"""The program `skidway audit run`: collects audit messages, and serves the dashboard, metrics and
health.

The main thread reads the audit topics into the ledger, judges, and publishes editions (see module
editions). The web server's threads answer from the newest edition. Another thread looks for old
buckets that the main thread may delete. Each of these threads has its own connections to the store,
except for the connections of the editions. The main thread passes the connection of an edition to a
thread of the web server, which passes it back. Only one thread at a time uses such a connection. If
`rejects.texts` is set, one more thread reads examples of rejected lines for the pages.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skidway import invocation, log, systemd
from skidway.audit.collector import loader_rejects, metrics, risks
from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.history_store import HISTORY, HistoryStore
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.judging_times import next_step_s
from skidway.audit.collector.pruning import OldBuckets, looking
from skidway.audit.collector.reject_examples import (
    REQUEST_TIMEOUT_MS,
    RejectExamples,
    reading,
)
from skidway.audit.collector.roster_file import RosterFile
from skidway.audit.collector.web.dashboard import Dashboard
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.database import failures
from skidway.audit.evidence.admission import Mode, Signatures
from skidway.audit.evidence.collection import Collection
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.present_causes import COLLECTOR
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import Clocks
from skidway.audit.judgement.hosts import HostState
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import NOTHING_JUDGED
from skidway.audit.reports import clock_report, report
from skidway.audit.settings import AuditSettings
from skidway.audit.signing.keys import KeyRefused
from skidway.audit.signing.master_file import MasterFile
from skidway.audit.topic.load_note import RejectedRecord
from skidway.audit.topic.notes import Note, encode
from skidway.audit.topic.program_status import KIND as STATUS
from skidway.audit.topic.program_status import Kind, Obstacle, ProgramStatus, body_of
from skidway.clock import Clock
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.files import DirectoryLock
from skidway.host_name import host_name
from skidway.http import server
from skidway.http.bounds import AtMost
from skidway.http.hosts import AllowedHosts
from skidway.http.listeners import Listener
from skidway.http.server import MEDIA_TYPE
from skidway.insecure_listeners import reachable, tell
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.errors import KafkaError
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer, host_and_port

TURN_MS = 500
PRUNE_EVERY_S = 1.0
RISKS_EVERY_S = 10.0
RETRY_S = 1.0
UNHEALTHY_AFTER_S = 60.0
JUDGED_WITHIN_S = 300.0
"""If no step of judging has ended for so long, the pages show old verdicts, and /health says so."""
REQUESTS_MAX = 64
"""At most this many requests wait. The dashboard answers one after the other."""
GARBAGE_MIN = 50_000
"""Python's garbage collector runs when the program has made this many more values than it has
freed."""

_log = log.get(__name__)


def collect_garbage_rarely() -> None:
    """Makes Python's garbage collector run less often. Each step of judging makes some hundred
    thousand values. With the default thresholds, the garbage collector would look through all
    values of the process several times in a step, and find nothing to free.
    """
    gc.set_threshold(GARBAGE_MIN, 20, 20)


def run_collector(settings: AuditSettings, clock: Clock, shutdown: Shutdown) -> int:
    """Collects messages and serves requests until a signal asks the program to stop."""
    collect_garbage_rarely()
    with contextlib.ExitStack() as stack:
        stack.enter_context(DirectoryLock(settings.store_dir))
        path = settings.store_dir / DATABASE
        masters = _masters(settings, clock)
        verifier = None if masters is None else masters.verifier
        signatures = Signatures(settings.mode, verifier)
        stack.enter_context(failures(path))
        ledger = Ledger(path, signatures=signatures)
        pruner, *readers = (Ledger(path) for _ in range(3))
        for each in (ledger, pruner, *readers):
            stack.callback(each.close)
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
        stopping = threading.Event()
        old = OldBuckets(pruner, lambda: expectation.policy, clock, settings.keep_days, stopping)
        editions = Editions(readers, ledger.checkpoint)
        loop = _Loop(settings, expectation, ledger, clock, histories[0], old, editions, masters)
        access = Access.of(
            invocation.of_this_process(), host_name(settings.host_name), settings.bootstrap_servers,
            settings.start_commands,
        )  # fmt: skip
        examples = RejectExamples(
            lambda: _client(settings, clock), lambda: loop.standing, lambda: loop.rejected
        )
        tell(settings.insecure())
        dashboard = Dashboard(
            editions, clock, histories[1], access, lambda: examples.found, _insecure(settings)
        )
        stack.enter_context(_serving(dashboard, settings))
        telemetry = TelemetryServer(
            settings.metrics_listener, lambda: loop.health, settings.allowed_hosts,
            settings.host_name,
        )  # fmt: skip
        telemetry.start()
        stack.callback(telemetry.stop)
        stack.enter_context(looking(old, clock, stopping))
        if settings.rejects_texts:
            stack.enter_context(reading(examples, stopping))
        _log.info("collector_started", dashboard=settings.listener, store=str(path))
        systemd.ready(f"dashboard on {settings.listener}")
        loop.until(shutdown)
    _log.info("collector_stopped")
    return 0


def _masters(settings: AuditSettings, clock: Clock) -> MasterFile | None:
    """Returns the file with the master keys; None if the settings name none. Raises
    ConfigurationRefused if it is needed and cannot be used."""
    path = settings.master_keys_location
    if path is None and settings.mode is not Mode.OFF:
        raise ConfigurationRefused(
            f"audit.signatures: {settings.signatures} needs audit.master.keys.location"
        )
    try:
        return None if path is None else MasterFile(path, clock)
    except KeyRefused as error:
        raise ConfigurationRefused(str(error)) from error


def _insecure(settings: AuditSettings) -> list[str]:
    """Returns what the pages name as open to other hosts: the dashboard, and the brokers, whose
    clients need not authenticate."""
    brokers = reachable((str(each), each.host) for each in settings.kafka.addresses)
    more = f" and {len(brokers) - 1} more" if len(brokers) > 1 else ""
    return [
        *(f"dashboard on {each}" for each in settings.insecure()),
        *(f"broker {each}{more}" for each in brokers[:1]),
    ]


def _client(settings: AuditSettings, clock: Clock) -> Client:
    """Returns a Kafka client that a thread other than the main thread uses for short requests."""
    return settings.kafka.within(REQUEST_TIMEOUT_MS).client(clock=clock)


class _Expected:
    """The present policy (what the audit expects), with the present roster (the hosts that must
    report). The main thread owns this object. Other threads only read its immutable value
    `policy`."""

    def __init__(self, settings: AuditSettings, clock: Clock) -> None:
        """Raises ConfigurationRefused if the roster's file has a mistake."""
        path = settings.roster_file
        self._settings = settings
        self._file = None if path is None else RosterFile(path, clock)
        self.policy = settings.policy(() if self._file is None else self._file.entries)

    def look(self) -> None:
        """If the roster's file has changed, reads it again and uses the new roster. If the new file
        has a mistake, the old roster stays in use."""
        if self._file is not None and self._file.look():
            self.policy = self._settings.policy(self._file.entries)

    @property
    def problem(self) -> str | None:
        """Why the present content of the roster's file is not in use; None if it is in use."""
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
        old: OldBuckets | None = None,
        editions: Editions | None = None,
        masters: MasterFile | None = None,
    ) -> None:
        self._masters = masters
        self._editions = editions
        self._old = old
        self._prune_at = self._risks_at = clock.monotonic()
        self._has_caught_up = False
        self._settings = settings
        self._expected = expected
        self._ledger = ledger
        self._clock = clock
        self._judge_at = clock.monotonic()
        self._good_at = clock.monotonic()
        self._partitions = 0
        self._is_away: bool | None = None
        self._blocked: Mapping[TopicPartition, SkidwayError] = {}
        note = None if history is None else history.note
        self._judging = Judge(
            ledger, lambda: expected.policy, clock, note, lambda: self._has_caught_up
        )
        self.standing = NOTHING_JUDGED
        self.rejected: Mapping[Source, RejectedRecord] = {}
        self._clocks = Clocks()
        self._has_read = False
        self._health = Health(True)
        self._judged_at = clock.monotonic()
        self._judge()

    @property
    def health(self) -> Health:
        """Any thread may read it, also while a step of judging runs."""
        found, silent_s = self._health, self._clock.monotonic() - self._judged_at
        if silent_s < JUDGED_WITHIN_S:
            return found
        words = f"no judgement has ended for {silent_s:.0f} s"
        return Health(False, {**found.detail, "judging": words})

    def until(self, shutdown: Shutdown) -> None:
        while not shutdown.requested:
            with self._settings.kafka.client(clock=self._clock) as client:
                collection = Collection(client, Fetcher(client), self._ledger, self._clock)
                try:
                    self._collect(collection, shutdown)
                except (Unreachable, KafkaError, CorruptBatch) as error:
                    self._has_caught_up = False
                    self._tell_away(str(error))
                    _log.error("collecting_interrupted", reason=str(error))
                    self._examine()
                    shutdown.wait(RETRY_S)

    def _collect(self, collection: Collection, shutdown: Shutdown) -> None:
        while not shutdown.requested:
            collection.turn(TURN_MS, shutdown.fileno())
            self._good_at, self._has_read = self._clock.monotonic(), True
            self._tell_away("")
            self._partitions = collection.partitions
            self._tell_blocked(collection.blocked)
            self._has_caught_up = collection.has_caught_up
            self._examine()

    def _tell_away(self, reason: str) -> None:
        """If the cluster that the audit reads no longer answers, or answers again, notes this in
        the store, for pages and reports. reason: why it does not answer; empty if it does."""
        if bool(reason) == self._is_away:
            return
        self._is_away, now_ms = bool(reason), self._clock.time_ms()
        name = self._settings.bootstrap_servers
        found = (Obstacle(Kind.CLUSTER, name, reason, now_ms),) if reason else ()
        status = body_of(ProgramStatus(invocation.of_this_process(), found))
        host = host_name(self._settings.host_name)
        self._ledger.take([encode(Note(STATUS, COLLECTOR, host, "", 0, 0, now_ms, status))])

    def _tell_blocked(self, blocked: Mapping[TopicPartition, SkidwayError]) -> None:
        before, self._blocked = self._blocked, blocked
        for tp in blocked.keys() - before.keys():
            _log.error("partition_blocked", partition=str(tp), reason=str(blocked[tp]))
        for tp in before.keys() - blocked.keys():
            _log.info("partition_readable", partition=str(tp))
        metrics.tell_blocked(len(blocked))

    def _prune(self) -> None:
        """Deletes from the store a few old rows that no verdict needs any more: buckets, seals, and
        digests (hashes that show whether two messages with one number have the same content)."""
        if (
            self._old is None
            or self._old.before_ms is None
            or self._clock.monotonic() < self._prune_at
        ):
            return
        self._prune_at = self._clock.monotonic() + PRUNE_EVERY_S
        if self._ledger.rebuilding or not self._has_caught_up:
            return  # an unread message may repeat an old number, whose digest is needed then
        found = self._old.take()
        pruned = self._ledger.prune(found, self._old.before_ms, self._old.settled_ms)
        metrics.tell_pruned(pruned)

    def _examine(self) -> None:
        self._expected.look()
        if self._masters is not None:
            self._masters.look()
        self._prune()
        missing = self._ledger.rebuilding
        has_turned = bool(missing) != bool(self.standing.rebuilding)
        if has_turned or self._clock.monotonic() >= self._judge_at:
            self._judge()
        silent_s = self._clock.monotonic() - self._good_at
        unread = self._ledger.unread()
        metrics.tell_unread(sum(unread.values()))
        refused = self._ledger.refused_by_reason()
        metrics.tell_refused(refused)
        detail: dict[str, Any] = {
            "partitions": self._partitions,
            "messages_refused": sum(refused.values()),
            "messages_unread": sum(unread.values()),
            "seconds_since_read": round(silent_s, 1) if self._has_read else None,
            "verdict": report.sentence(self.standing),
        }
        metrics.tell_rebuilding(missing)
        if missing:
            detail["rebuilding"] = reasons.of_rebuilding(missing)
        if not self._has_read:
            detail["read"] = f"nothing since the start, {silent_s:.0f} s ago"
        if said := clock_report.sentences(self._clocks):
            detail["clocks"] = said
        if self._expected.problem is not None:
            detail["roster"] = self._expected.problem
        if self._masters is not None and self._masters.problem is not None:
            detail["master_keys"] = self._masters.problem
        if unread:
            detail["schemas"] = reasons.of_unread(unread)
        if self._blocked:
            detail["blocked"] = [str(error) for error in self._blocked.values()]
        has_read_all = not unread and not self._blocked
        is_well = has_read_all and not self._clocks.is_ours_wrong
        is_well = is_well and not {"roster", "master_keys"} & detail.keys()
        self._health = Health(silent_s < UNHEALTHY_AFTER_S and is_well, detail)

    def _judge(self) -> None:
        """Runs one step of judging, which judges some buckets. Afterwards, pages, metrics and
        /health report the new standing, that is, the verdicts on all buckets together."""
        began = self._clock.monotonic()
        self.standing = found = self._judging.step()
        evidence = self._judging.evidence
        step = step_of(self._judging, found, self._clock.time_ms())
        metrics.tell_standing(found)
        metrics.tell_topics(found, evidence)
        hosts = [] if evidence.rebuilding else step.hosts
        metrics.tell_hosts(hosts)
        self._tell_risks(hosts, step.common.policy, self._clock.time_ms())
        self._tell_clocks(step.clocks)
        if self._editions is not None:
            self._editions.publish(step)
        self._ledger.narrow(self._judging.take_balanced())
        self._ledger.merge(self._judging.take_scattered())
        self._judged_at = self._clock.monotonic()
        taken_s = self._judged_at - began
        self._judge_at = began + next_step_s(taken_s, self._judging.due)

    def _tell_risks(self, hosts: Sequence[HostState], policy: Policy, now_ms: int) -> None:
        """Sets the metrics of bytes and records at risk (see module risks), and the attribute
        `rejected` (the records that the loader named in its newest notes). Does this at most once
        in RISKS_EVERY_S seconds, because it must read the newest notes of all senders (see module
        audit.topic.notes).
        """
        if self._clock.monotonic() < self._risks_at:
            return
        self._risks_at = self._clock.monotonic() + RISKS_EVERY_S
        notes = self._ledger.notes() if hosts else []
        self.rejected = loader_rejects.newest(notes)
        topics = [x for x in self.standing.topics if not x.source.topic.endswith(REJECTED_SUFFIX)]
        metrics.tell_risks(
            risks.host_risks(hosts, risks.backlogs(notes), now_ms),
            risks.tier_risks(topics, policy, risks.kept(notes)),
            now_ms,
        )

    def _tell_clocks(self, found: Clocks) -> None:
        if found.wrong != self._clocks.wrong:
            _log.warning("clocks_differ", reasons=clock_report.sentences(found))
        self._clocks = found
        metrics.tell_clocks(found)


@contextlib.contextmanager
def _serving(dashboard: Dashboard, settings: AuditSettings) -> Iterator[None]:
    """Serves the dashboard on a thread of its own while the `with` block runs."""
    app = AtMost(dashboard.application(), 1, REQUESTS_MAX, MEDIA_TYPE)
    address = Listener(*host_and_port(settings.listener, key="listener"), is_tls=False)
    hosts = AllowedHosts(settings.allowed_hosts, settings.host_name)
    end = Shutdown()
    with address.open("listener") as listening:
        thread = threading.Thread(
            target=lambda: server.serve(app, [listening], [], None, end, hosts=hosts),
            name="dashboard",
            daemon=True,
        )
        thread.start()
        try:
            yield
        finally:
            end.request()
            thread.join(2 * server.STOP_WITHIN_S)
