"""`skidway agent run` and `drain`: builds the loop from the settings, runs it, and stops it
cleanly.

    lock the state -> serve metrics -> wait for the cluster -> check whether the state was restored
    from a copy -> wait for the registry, unless the state has all schemas -> run the loop

`drain` serves no metrics. One thread does all of this. Other threads only pass values to it or read
its values: the thread of the library watchdog puts the paths of changed files into a set, one
thread measures compressed files, one prepares changed settings, and one serves the metrics.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from skidway import log, systemd
from skidway.agent import events, memory
from skidway.agent.batches.press import AHEAD_MS_MAX
from skidway.agent.cluster import connection, topics
from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.cluster.known_schemas import KnownSchemas
from skidway.agent.cluster.own_status import OwnStatus, obstacles_of
from skidway.agent.configuration import Configuration, SourcesRefused
from skidway.agent.delivery.logs import FetchedLogs
from skidway.agent.delivery.silences import Silences
from skidway.agent.files.host import Host
from skidway.agent.files.operating_system import host_of
from skidway.agent.files.patterns import Pattern, patterns_of
from skidway.agent.files.watching import Watch
from skidway.agent.good_files import keep
from skidway.agent.loop import beginning
from skidway.agent.loop.loop import Loop
from skidway.agent.loop.parts import Surroundings
from skidway.agent.reloading.preparation import Prepared, Refusal, prepare
from skidway.agent.reloading.reloader import Reloader
from skidway.agent.settings import AgentSettings
from skidway.agent.state.database import StateDatabase, check_machine, open_state
from skidway.agent.state.renewal import renew
from skidway.agent.values import identity
from skidway.audit.signing.agent_ids import is_id_of, new_agent_id
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.signing.keys import KeyRefused
from skidway.audit.signing.setting import signer_of
from skidway.audit.signing.signer import Signer
from skidway.audit.topic import topic
from skidway.audit.topic.claims import sender_overclaim
from skidway.audit.topic.messages import TOPIC, Bounds, Sender, Tier
from skidway.audit.topic.program_status import Kind, Obstacle
from skidway.audit.topic.publisher import Newest, Publisher, check_restored, newest_own
from skidway.clock import Clock, SystemClock
from skidway.dataclass import dataclass
from skidway.errors import Unreachable
from skidway.files import DirectoryLock
from skidway.host_name import host_name
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import READ_UNCOMMITTED, Client, Delivery, Fetcher, Producer
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import RegistryUnreachable
from skidway.service import Shutdown
from skidway.telemetry import Health, TelemetryServer

WAIT_FIRST_S = 0.5
WAIT_MAX_S = 10.0
SETTLE_S = 10.0
"""How long (s) a stopping agent waits for acknowledgements. At its next start, the agent sends
again all records that were not acknowledged.
"""

REFRESH_S = 30.0
"""Seconds between two requests to the cluster for partitions, size limits and ids of the topics."""

TROUBLED_AFTER_S = 10.0
REGISTRY_TIMEOUT_S = 5.0
LOOK_MS = 1_000
"""A waiting agent looks this often whether it has to tell the audit something."""
ASK_TIMEOUT_MS = 5_000
"""How many milliseconds a request to the cluster may take. The loop waits for the response, and
does nothing else meanwhile.
"""

_log = log.get(__name__)

T = TypeVar("T")


@dataclass(slots=True)
class Status:
    """What /health reports. Another thread reads the fields. So the loop never changes a field's
    value in place, but sets the field to a new value.

    pending: a function that returns how many bytes of the files are not settled yet; None until the
    loop exists. (Bytes are settled when they are, for example, acknowledged or declared lost.)
    """

    health: Health
    pending: Callable[[], int] | None = None

    def answer(self) -> Health:
        """Returns the present health, with the number of bytes that are neither acknowledged nor
        otherwise accounted for."""
        health, pending = self.health, self.pending
        if pending is None:
            return health
        return replace(health, detail={**health.detail, "pending_bytes": pending()})


def run(settings: AgentSettings, shutdown: Shutdown, configuration: Configuration) -> int:
    """Runs the agent until the shutdown. Raises SkidwayError if an operator must act before the
    agent can continue, for example because the state is damaged.

    configuration: where the settings come from, so that the agent can read them again.
    """
    memory.collect_seldom()
    memory.keep_freed()
    status = Status(Health(False, {"status": "starting"}))
    clock = SystemClock()
    with ExitStack() as stack:
        stack.enter_context(DirectoryLock(settings.state_dir))
        telemetry = TelemetryServer(
            settings.metrics_listener, status.answer, settings.allowed_hosts, settings.host_name
        )
        telemetry.start()
        stack.callback(telemetry.stop)
        reloader = Reloader(configuration, settings, clock)
        reloader.open()
        stack.callback(reloader.close)
        stack.enter_context(asked_by_signal(reloader))
        while True:
            try:
                made_again = _tail(reloader, clock, shutdown, status)
            except SourcesRefused as refused:
                reloader.set_aside(refused)
                continue
            if not made_again:
                break
            _log.warning("topics_made_again", topics=sorted(made_again))
    _log.info("agent_stopped")
    return 0


@contextmanager
def asked_by_signal(reloader: Reloader) -> Iterator[None]:
    """Makes SIGHUP ask for a reload until the `with` block ends. A SIGHUP that came earlier, while
    the signal was blocked, also asks for a reload.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers only on the main thread
        return
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: reloader.ask())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _tail(reloader: Reloader, clock: Clock, shutdown: Shutdown, status: Status) -> frozenset[str]:
    """Runs until the shutdown, or until topics were deleted and made again. Returns the topics that
    were made again. Before it returns, closes the connections, so that they send no more batches.
    If topics were made again, the caller starts the agent anew from the durable state, as after any
    stop.
    """
    settings = reloader.settings
    with opened_state(settings) as state, connected(settings) as clients:
        _log.info("agent_started", agent=state.agent, epoch=state.epoch)
        found = find(settings, state, clients[0], clock, shutdown, status, reloader)
        if found is None:
            return frozenset()
        keep(settings)  # before anything is read; on a full disk, no agent starts
        with RunningAgent(settings, state, clients, clock, shutdown, status, found) as agent:
            agent.reloader = reloader
            systemd.ready(f"tailing for {len(found.destinations)} topics")
            agent.run()
            return agent.made_again


@contextmanager
def opened(settings: AgentSettings) -> Iterator[StateDatabase]:
    """Locks and opens the state, so that no other agent can use it meanwhile. Raises StateRefused,
    and SkidwayError if the file system refuses the access.
    """
    with DirectoryLock(settings.state_dir), opened_state(settings) as state:
        yield state


@contextmanager
def opened_state(settings: AgentSettings) -> Iterator[StateDatabase]:
    """Opens the state, which the caller has locked. Raises StateRefused, and SkidwayError if the
    file system refuses the access."""
    state = open_state(settings.state_dir)
    try:
        check_machine(state, identity.machine_id())
        yield state
    finally:
        state.close()


@contextmanager
def connected(settings: AgentSettings) -> Iterator[tuple[Client, Client]]:
    """Yields two clients of the Kafka cluster. The first asks for metadata and offsets, and gives
    up soon if brokers do not answer. The second sends the records, and reads records back. Both
    look beyond open transactions, because the agent's own records may stand there.
    """
    kafka = settings.kafka
    with (
        kafka.within(ASK_TIMEOUT_MS).client(isolation_level=READ_UNCOMMITTED) as asking,
        kafka.client(isolation_level=READ_UNCOMMITTED) as sending,
    ):
        yield asking, sending


@dataclass(frozen=True, slots=True)
class Found:
    """What the cluster and the registry answered when the agent started. registry_away: why the
    registry did not answer, so that the agent uses the schemas that it knows; "" if it did."""

    cluster: Cluster
    destinations: list[Destination]
    audit_partition: TopicPartition
    ends: dict[TopicPartition, int]
    registry_away: str = ""
    signer: Signer | None = None


def find(
    settings: AgentSettings,
    state: StateDatabase,
    client: Client,
    clock: Clock,
    shutdown: Shutdown,
    status: Status,
    reloader: Reloader | None = None,
) -> Found | None:
    """Waits until the cluster and the registry answer, and refuses all reloads that operators ask
    for meanwhile. Returns None if the shutdown was requested before the answers came. Raises
    StateRefused if the state is an older copy, and ConfigurationRefused or SchemaUnsupported if the
    settings cannot be used.
    """
    # This function has seven arguments, because the caller makes these objects before the call, and
    # uses them after it.

    def pause(seconds: float) -> None:
        shutdown.wait(seconds)

    registry = settings.registry.client(timeout_s=REGISTRY_TIMEOUT_S, pause=pause)
    audit_partition: TopicPartition | None = None
    signer: Signer | None = None

    def attempt() -> Found:
        nonlocal audit_partition, signer
        cluster, is_kafka = connection.cluster_of(client, settings.cluster_name)
        if audit_partition is None:  # a later attempt need not search the audit topic again
            partitions = topic.ensure(client, pause)
            sender, mine = _sender(settings, state, cluster), _partition(state, partitions)
            signer = signer or signer_of(
                settings.audit_key_location,
                lambda identity: sender_overclaim(identity, sender),
                clock,
            )
            own.reached(sender, mine, 0, signer)
            if settle_id(state, _identity(sender, signer), has_key=signer is not None):
                sender, mine = _sender(settings, state, cluster), _partition(state, partitions)
            newest = newest_of(state, client, clock, signer)
            check_restored(newest, state.epoch, state.number, f"the state in {settings.state_dir}")
            renew(state, newest)
            audit_partition = mine
            told = newest is not None and newest.epoch == state.epoch
            own.reached(sender, mine, newest.number if newest and told else 0, signer)
        schemas = KnownSchemas(registry, settings.schema_registry_url, state.schemas())
        of_sources = connection.schemas_of(schemas, settings)
        connection.ensure_topics(client, settings, is_kafka, pause)
        destinations = connection.resolve(client, of_sources, settings, cluster)
        ends = connection.ends_of(client, beginning.without_floor(state, destinations))
        return Found(cluster, destinations, audit_partition, ends, schemas.failure, signer)

    own = OwnStatus(Producer(client), clock, settings.heartbeat_interval_ms / 1000)
    try:
        return _insist(attempt, shutdown, status, reloader, Waiting(own, settings, clock))
    finally:
        own.close()


def settle_id(state: StateDatabase, identity: Identity, *, has_key: bool) -> bool:
    """If the agent's id does not say that it is this sender's, and nobody has heard of it yet,
    gives the state an id that does. Returns whether it has. has_key: whether it signs. Raises
    KeyRefused if it signs, and its id is another sender's, so that the audit would refuse it."""
    if is_id_of(state.agent, identity):
        return False
    if state.begin_as(new_agent_id(identity)):
        _log.info("agent_id_taken", agent=state.agent, identity=str(identity))
        return True
    if has_key:
        raise KeyRefused(
            f"The agent's state began under another name than {identity}, so the audit would refuse"
            " its messages. Keep the former name and its key, or begin with a new state."
        )
    return False


def _identity(sender: Sender, signer: Signer | None) -> Identity:
    """Whose messages the agent sends. Raises KeyRefused."""
    if signer is not None:
        return signer.identity
    return Identity(Role.AGENT, (sender.cluster, sender.host))


def _partition(state: StateDatabase, partitions: int) -> TopicPartition:
    return TopicPartition(TOPIC, topic.partition_of(str(state.agent), partitions))


def _sender(settings: AgentSettings, state: StateDatabase, cluster: Cluster) -> Sender:
    name = host_name(settings.host_name)
    bounds = Bounds(settings.lateness_ms, AHEAD_MS_MAX)
    return Sender(Tier.AGENT, cluster.name, str(state.agent), name, state.epoch, bounds)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tells the audit what a starting agent waits for, while it waits."""

    own: OwnStatus
    settings: AgentSettings
    clock: Clock

    @property
    def host_name(self) -> str:
        """The name of the host, as the audit knows it."""
        return host_name(self.settings.host_name)

    def wait(self, error: Exception, seconds: float, shutdown: Shutdown) -> None:
        """Waits until the shutdown, at most so long."""
        kind, name = Kind.OTHER, "start"
        if isinstance(error, RegistryUnreachable):
            kind, name = Kind.REGISTRY, self.settings.schema_registry_url
        self.own.wait(Obstacle(kind, name, str(error), self.clock.time_ms()))
        until = self.clock.monotonic() + seconds
        while not shutdown.requested and (left := until - self.clock.monotonic()) > 0:
            left_ms = min(round(left * 1000) + 1, LOOK_MS)
            self.own.poll(left_ms, shutdown.fileno(), is_waiting=True)


def newest_of(
    state: StateDatabase, client: Client, clock: Clock, signer: Signer | None
) -> Newest | None:
    """Returns the agent's newest message on the audit topic. Returns None without a search if this
    process has just made the agent's id. The id is random, so no message can have it, and the
    search would read the whole topic.
    """
    if state.is_new:
        return None
    return newest_own(client, Fetcher(client), (Tier.AGENT, str(state.agent)), clock, signer)


def _insist(
    attempt: Callable[[], T],
    shutdown: Shutdown,
    status: Status,
    reloader: Reloader | None,
    waiting: Waiting,
) -> T | None:
    """Calls `attempt` until it succeeds, and returns its result: a server that is unreachable now
    may be reachable later, and a damaged batch may expire. Returns None if the shutdown comes
    first.
    """
    for pause_s in _pauses():
        if shutdown.requested:
            return None
        try:
            return attempt()
        except (Unreachable, KafkaError, CorruptBatch, KeyRefused) as error:
            detail = {"status": "waiting", "reason": str(error), "host": waiting.host_name}
            status.health = Health(False, detail)
            _log.error("waiting", reason=str(error))
            # tells systemd that the agent has started, although it still waits for other services
            systemd.ready(f"waiting: {error}")
            if reloader is not None:
                reloader.refuse_all(f"the agent has not begun yet: {error}; restart it")
            waiting.wait(error, pause_s, shutdown)
    return None


def _pauses() -> Iterator[float]:
    pause_s = WAIT_FIRST_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 2, WAIT_MAX_S)


@dataclass(frozen=True, slots=True)
class Drained:
    """The result of an agent's attempt to leave for good (`skidway agent drain`).

    A last word is a seal after which the audit waits for nothing more from this agent.

    said: the number of topics that have a last word.
    unsaid: the names of the topics that have no last word.
    obstacles: why these topics have no last word.
    is_published: whether brokers have acknowledged all messages to the audit.
    full_reason: why the state cannot be written now (for example because its disk is full); None if
        it can.
    """

    said: int
    unsaid: set[str]
    obstacles: list[str]
    is_published: bool
    full_reason: str | None = None


class RunningAgent:
    """Runs the loop, and owns what the loop does not own: sockets, the watch on directories and the
    clock."""

    def __init__(
        self,
        settings: AgentSettings,
        state: StateDatabase,
        clients: tuple[Client, Client],
        clock: Clock,
        shutdown: Shutdown,
        status: Status,
        found: Found,
    ) -> None:
        """clients: the client that asks for metadata and offsets, and the client that sends records
        (see `connected`)."""
        # This method has seven arguments, because the caller makes these objects, and still uses
        # some of them when it no longer uses the `RunningAgent`.
        self._settings = settings
        self._host_name = host_name(settings.host_name)
        self._asking, client = clients
        self._clock = clock
        self._shutdown = shutdown
        self._status = status
        self._cluster = found.cluster
        self._destinations = found.destinations
        self.reloader: Reloader | None = None
        self._host: Host = host_of(settings)
        self._producer = Producer(client, max_buffered_bytes=settings.buffer_memory)
        self._loop = Loop(settings, state, self._surroundings(client, found), found.destinations)
        status.pending = self._pending
        events.pending_from(self._pending)
        mail, partition = self._loop.mail, found.audit_partition
        self._signer = found.signer
        self._publisher = Publisher(Producer(client), mail, partition, clock, found.signer)
        self._own = OwnStatus(Producer(client), clock, 0)
        self._own.reached(_sender(settings, state, found.cluster), partition, 0, found.signer)
        self._registry_away = found.registry_away
        self._watch = Watch(_patterns(settings))
        self._status_at = self._refresh_at = 0.0
        # The earliest time at which to give memory back; None if the agent has not been active
        # since it last gave memory back.
        self._give_back_at: float | None = None
        self._troubled_since: float | None = None
        self.made_again: frozenset[str] = frozenset()
        self._bound = _topic_ids(found.destinations)
        self._producer.bind(self._bound)
        self._silences = Silences()
        self._told_silence = False

    def _surroundings(self, client: Client, found: Found) -> Surroundings:
        return Surroundings(
            host=self._host,
            host_name=self._host_name,
            clock=self._clock,
            sink=self._producer,
            cluster=found.cluster,
            logs=lambda: FetchedLogs(client, self._asking),
            ends=found.ends,
        )

    def __enter__(self) -> RunningAgent:
        self._watch.start()
        self._tell_if_idle()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.stop()
        self._loop.close()

    def run(self) -> None:
        """Runs turns until the shutdown. Then sends and settles the bytes that have an intent, for
        at most SETTLE_S seconds. If topics were deleted and made again, returns at once and sends
        nothing more: the brokers would store the batches in the new topic, but the agent would
        count them as delivered to the old topic.
        """
        self._refresh_at = self._clock.monotonic() + REFRESH_S
        while not self._shutdown.requested and not self.made_again:
            self._mind(self._clock.monotonic())
            self._turn(self._watch.inbox.fileno(), self._shutdown.fileno())
        self._settle()

    def drain(self) -> Drained:
        """Runs turns until every topic has its last word (see `Drained`), or until the shutdown.
        Then settles the bytes that have an intent and returns, as `run` does.
        """
        self._loop.leave()
        while not self._loop.has_left and not self._shutdown.requested and not self.made_again:
            self._mind(self._clock.monotonic())
            self._turn(self._watch.inbox.fileno(), self._shutdown.fileno())
        if not self._loop.has_left:
            self._settle()
        loop = self._loop
        return Drained(
            loop.last_words, loop.unsaid, loop.obstacles(), loop.is_settled, loop.full_reason
        )

    def _pending(self) -> int:
        """Returns the number of bytes that are not settled (acknowledged, declared lost and so on).
        The thread that answers requests for metrics calls this method. The loop does not, because
        adding up the bytes of many files is too slow for a turn.
        """
        return self._loop.pending_bytes

    def _settle(self) -> None:
        self._loop.is_stopping = True
        deadline = self._clock.monotonic() + SETTLE_S
        while not (self._loop.is_settled or self.made_again):
            if self._clock.monotonic() >= deadline:
                break
            self._turn()

    def _turn(self, *wake: int) -> None:
        timeout_ms = round(self._loop.patience_s() * 1000)
        deliveries = self._producer.poll(timeout_ms, *wake)
        if self._is_made_again(deliveries):
            return
        answered = {each.tp for each in deliveries}
        self._silences.look(self._producer.waiting, answered, self._clock.monotonic())
        self._publisher.poll(0)
        paths, everything, events = self._watch.inbox.take()
        everything |= self._watch.mind(events, self._clock.monotonic())
        self._watch.follow(self._loop.tracker.linked_directories)
        if paths or everything:
            self._loop.touch(paths, everything=everything)
        self._loop.turn(deliveries)

    def _is_made_again(self, deliveries: Sequence[Delivery]) -> bool:
        """Whether these deliveries show that topics were deleted and made again. If so, the caller
        must not pass the deliveries to the loop."""
        self.made_again |= self._producer.made_again
        if not self.made_again and topics.has_fallen_back(deliveries, self._loop.offsets):
            self._refresh()
        return bool(self.made_again)

    # --- now and then ---------------------------------------------------------------------------

    def _mind(self, now: float) -> None:
        if now >= self._status_at:
            self._status_at = now + 1.0
            self._status.health = self._health(now)
            self._tell_audit(self._status.health)
            self._mind_memory(now)
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH_S
            self._refresh()
        if self.reloader is not None:
            self._mind_reloads(self.reloader, now)

    def _tell_audit(self, health: Health) -> None:
        troubles = () if health.ok else health.detail["troubles"].items()
        full, now_ms = self._loop.full_reason, self._clock.time_ms()
        self._own.waits_for = obstacles_of(full, troubles, self._own.waits_for, now_ms)
        self._own.poll()

    def _mind_memory(self, now: float) -> None:
        if not self._loop.is_quiet:
            if self._give_back_at is None:
                self._give_back_at = now + memory.GIVE_BACK_S
        elif self._give_back_at is not None and now >= self._give_back_at:
            self._give_back_at = None
            memory.give_back()

    def _mind_reloads(self, reloader: Reloader, now: float) -> None:
        """If an operator has asked for a reload, begins to prepare it. If a preparation has ended,
        applies the new settings, or reports why they are refused.
        """
        reloader.look(now)
        if reloader.is_due:
            configuration, known = reloader.configuration, self._loop.topics
            running, cluster = self._settings, self._cluster
            reloader.begin(lambda: prepare(configuration, running, cluster, known))
        result = reloader.result()
        if result is not None:
            self._status_at = now  # /health reports the reload's result at the next turn
        if isinstance(result, Refusal):
            reloader.refuse(result)
        elif result is not None:
            reason = self._loop.refusal(result.destinations)
            if reason is None:
                self._take(result, reloader)
            else:
                reloader.refuse(Refusal(reason, 1))

    def _take(self, prepared: Prepared, reloader: Reloader) -> None:
        """Applies new settings, with which the agent runs from the next turn on."""
        before, self._destinations = self._destinations, prepared.destinations
        self._settings = prepared.settings
        self._loop.reload(prepared.settings, prepared.destinations, prepared.ends)
        # The old topics stay in the set, because batches of topics that no source names any more
        # may still be on their way.
        self._bound |= _topic_ids(prepared.destinations)
        self._producer.bind(self._bound)
        self._registry_away = ""
        old, self._watch = self._watch, Watch(_patterns(prepared.settings))
        self._watch.start()  # events come only for later changes; a look finds earlier ones
        old.stop()
        reloader.took(prepared, _of_schemas(before, prepared.destinations))
        self._tell_if_idle()

    def _tell_if_idle(self) -> None:
        if (reason := self._settings.idle_reason) is not None:
            events.no_sources(reason)

    def _health(self, now: float) -> Health:
        troubles = {str(tp): str(error) for tp, error in self._producer.troubles.items()}
        if not troubles:
            self._troubled_since = None
        elif self._troubled_since is None:
            self._troubled_since = now
        troubled = (
            self._troubled_since is not None and now - self._troubled_since > TROUBLED_AFTER_S
        )
        silent = self._silences.longer_than(TROUBLED_AFTER_S, now)
        reasons = {tp: why for tp in silent if (why := self._producer.failure(tp))}
        for tp, seconds in silent.items():
            says = f"no broker has acknowledged anything for {seconds:.0f} s"
            why = f": {reasons[tp]}" if tp in reasons else ""
            troubles.setdefault(str(tp), says + why)
        unread = {
            tp: seconds
            for tp, seconds in self._loop.not_read_back.items()
            if seconds > TROUBLED_AFTER_S
        }
        for tp, seconds in unread.items():
            troubles.setdefault(str(tp), f"could not be read back for {seconds:.0f} s")
        if bool(silent) != self._told_silence:
            self._told_silence = bool(silent)
            events.brokers_silent(sorted(map(str, silent)), sorted(set(reasons.values())))
        if self._signer is not None and self._signer.refusal is not None:
            troubles["audit"] = self._signer.refusal
        known = {*self._producer.troubles, *silent, *unread}
        leaders = {str(tp): self._producer.leader(tp) for tp in known}
        report = self._loop.source_reports.report
        detail: dict[str, Any] = {
            "status": "running",
            "host": self._host_name,
            "unreadable": self._loop.tracker.unreadable,
            "not_read": self._loop.tracker.beside,
            "sources_without_files": [each.words for each in report.fileless],
            "held_seals": self._loop.held_seals,
            "fieldless": self._loop.fieldless.copy(),
            "troubles": troubles,
            "leaders": {name: str(x) for name, x in leaders.items() if x is not None},
        }
        detail |= self._held_back() if troubles else {}
        detail |= self._remarks()
        if self._loop.full_reason is not None:
            detail["status"] = "state full, nothing is read"
            detail["reason"] = self._loop.full_reason
        detail["rejecting"] = rejecting = self._loop.rejections.too_many()
        is_held = any(each.holds for each in report.unread)
        if stopped := self._loop.stopped:
            detail["stopped"] = dict(stopped)
        is_stuck = self._loop.full_reason or troubled or silent or unread or stopped
        delivers = not (is_stuck or rejecting)
        detail["delivers"] = delivers  # what can be read
        return Health(delivers and not is_held and "audit" not in troubles, detail)

    def _remarks(self) -> dict[str, Any]:
        """Returns, for /health, what keeps the agent from no work."""
        found: dict[str, Any] = {}
        if (reading_back := self._loop.reading_back) is not None:
            found["reading_back"] = reading_back
        if (idle := self._settings.idle_reason) is not None:
            found["sources"] = idle
        if self._registry_away:
            found["registry"] = f"did not answer at the start: {self._registry_away}"
        return found | ({} if self.reloader is None else self.reloader.detail)

    def _held_back(self) -> dict[str, Any]:
        if not self._loop.outbound.has_room:
            return {"status": "buffer.memory is full, nothing is read"}
        held = {
            topic: f"not read, because {size} bytes of its batches are not acknowledged"
            for topic, size in self._loop.held_back.items()
        }
        return {"held_back": held} if held else {}

    def _refresh(self) -> None:
        try:
            found = connection.refresh(self._asking, self._destinations)
        except (Unreachable, KafkaError) as error:
            _log.warning("topics_not_refreshed", reason=str(error))
            return
        self.made_again |= found.made_again
        if found.destinations != self._destinations:
            self._destinations = found.destinations
            self._loop.update(found.destinations)
            _log.info("topics_changed")


def _patterns(settings: AgentSettings) -> list[Pattern]:
    sources = settings.sources
    return [each for source in sources for each in patterns_of(source.paths, source.exclude)]


def _of_schemas(before: Sequence[Destination], after: Sequence[Destination]) -> list[str]:
    """Returns sentences that name the sources whose schema in the registry has changed. Leaves out
    sources that are in only one of the two configurations.
    """
    known = {each.data.topic: each.recipe.schema.id for each in before}
    said = (
        f"source of topic {each.data.topic}: schema {known[each.data.topic]} became "
        f"{each.recipe.schema.id}"
        for each in after
        if known.get(each.data.topic, each.recipe.schema.id) != each.recipe.schema.id
    )
    return list(dict.fromkeys(said))  # a source and its ReplaySource give the same sentence


def _topic_ids(destinations: Iterable[Destination]) -> dict[str, str]:
    sources = (source for each in destinations for source in (each.data, each.rejected))
    return {source.topic: source.topic_id for source in sources}
