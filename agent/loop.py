"""The turn: what is read becomes an intent, is sent, is acknowledged, is passed by the checkpoint.

    deliveries -> settle
    logs       -> inquiry, refused                       (while something is read back)
    patterns   -> files, announcements, losses           (when due)
    flights    -> checkpoint, counts                     (when due)
    counts     -> deltas; files -> seals                 (when due)
    files      -> readings -> intents
                    ONE TRANSACTION for all of this
    readings   -> press -> producer

One object, one thread; every part that keeps something has one owner here. Nothing is sent before
the transaction that promises it is durable. When the disk is full the transaction is kept as it is
and tried again; until it goes through, nothing new is gathered and nothing of it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skidway.agent import beginning, events
from skidway.agent.accounts.books import Books
from skidway.agent.accounts.leaving import obstacles
from skidway.agent.accounts.mail import Mail
from skidway.agent.accounts.register import Register
from skidway.agent.delivery.inquiry import Inquiry
from skidway.agent.delivery.intents import Numbers
from skidway.agent.delivery.outbound import Outbound, Sink
from skidway.agent.delivery.press import AHEAD_MS_MAX
from skidway.agent.delivery.presses import Presses
from skidway.agent.delivery.progress import Progress
from skidway.agent.delivery.refused import Refused
from skidway.agent.delivery.replay import Replay
from skidway.agent.delivery.search import Logs
from skidway.agent.destinations import Cluster, Destination
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import FileKey, Host
from skidway.agent.files.reading import Reader, Taken
from skidway.agent.files.tracked import FileState, TrackedFile
from skidway.agent.files.tracking import Tracker
from skidway.agent.framing import READ_BYTES
from skidway.agent.identity import FINGERPRINT_BYTES
from skidway.agent.rejections import Rejections
from skidway.agent.schedule import Schedule
from skidway.agent.settings import AgentSettings
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import State, StateFull
from skidway.agent.topics import Topics
from skidway.audit.topic.messages import Bounds, Sender, Tier
from skidway.clock import Clock
from skidway.kafka.client import Delivery
from skidway.kafka.compression import Codec
from skidway.kafka.types import TopicPartition

LOOK_AGAIN_S = 0.05
"""How often files that were read lately are looked at without being told."""

PATIENCE_S = 0.2
"""The longest sleep of a turn."""

PATIENCE_QUIET_S = 1.0
"""The same while nothing is read, sent or due: what happens wakes the loop, or comes with time."""


@dataclass(slots=True)
class _Turn:
    """What one turn gathered: written in one transaction, then pressed."""

    changes: Changes
    taken: list[Taken] = field(default_factory=list)


class Loop:
    """Owns everything of a running agent but sockets, watches and the clock."""

    def __init__(
        self,
        settings: AgentSettings,
        state: State,
        host: Host,
        clock: Clock,
        sink: Sink,
        cluster: Cluster,
        destinations: Sequence[Destination],
        host_name: str,
        logs: Callable[[], Logs],
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """logs: new ones at each call. ends: where partitions end, of which
        `beginning.without_floor` did not know a floor."""
        self._settings = settings
        self._state = state
        self._clock = clock
        intents, recipes, files = state.intents(), state.recipes(), state.files()
        self.mail = Mail(state.outbox())
        self._topics = Topics(cluster, state.topics(), same_cluster=state.cluster_id == cluster.id)
        beginning.check_cluster(
            state, cluster, destinations, beginning.open_topics(intents, recipes)
        )
        self._handles = Handles(host, settings.max_open_files)
        tailed = [destination.tailed() for destination in destinations]
        self.tracker = Tracker(host, self._handles, tailed, host_name)
        promised = {intent.file: intent.end for intent in intents}
        self.tracker.load(files, promised, beginning.since(state), state.unopened())
        self.reader = Reader(
            self.tracker,
            self._handles,
            idle_flush_s=settings.idle_flush_ms / 1000,
            close_rotated_s=settings.close_rotated_ms / 1000,
            may_read=self._may_read,
        )
        self.outbound = Outbound(sink)
        self._numbers = Numbers(state.last_sequence())
        self.rejections = Rejections(settings.rejected_share_max)
        self._presses = Presses(
            state.agent,
            Codec[settings.compression_type.upper()],
            settings.audit_bucket_ms,
            self._topics,
            recipes,
            {intent.recipe for intent in intents},
            self.rejections,
        )
        self._first: Changes | None = beginning.first_changes(
            state, cluster, destinations, clock.time_ms()
        )
        self._topics.take_ids(destinations, self._first)
        floors = beginning.floors(state, destinations, ends or {}, self._first)
        before = [intent.sequence for intent in intents]
        self._progress = Progress(
            state.offsets(), floors, before, lambda topic: self._topics.source(topic).topic_id
        )
        wait_s = settings.read_back_wait_ms / 1000
        self._inquiry = Inquiry(
            self.tracker, self._handles, self._presses, self._progress, self._numbers, logs(),
            state.agent, clock.monotonic() + wait_s,
        )  # fmt: skip
        self._refused = Refused(
            self.tracker, self._presses, self._progress, logs(), state.agent, wait_s
        )
        self._replay = Replay(intents, recipes, self.tracker, self._handles, self._inquiry)
        bounds = Bounds(settings.lateness_ms, AHEAD_MS_MAX)
        sender = Sender(Tier.AGENT, cluster.name, str(state.agent), host_name, state.epoch, bounds)
        self._books = Books(settings, state, sender, self._topics, self.mail)
        self._books.open(state, clock.time_ms(), self._first)
        self.tracker.has_lost = self._books.has_lost
        self._register = Register(
            state.agent, self._topics, self.mail, self.tracker, self.reader, self._handles
        )
        self.tracker.news.born += beginning.unannounced(files, self.mail)
        self._unwritten: _Turn | None = None
        self.update(destinations)
        self._looks = Schedule(settings.reconcile_interval_ms / 1000)
        self._checkpoint_at = self._look_at = self._read_at = 0.0
        self._known_unreadable: set[tuple[str, str]] = set()
        self.is_stopping = False
        self.full_reason: str | None = None

    # --- what the program calls -----------------------------------------------------------------

    def update(self, destinations: Sequence[Destination]) -> None:
        """Topics may have more partitions now: new recipes for what is read from here on."""
        self.tracker.sources = [destination.tailed() for destination in destinations]
        self._sealed = self._topics.sealed(destinations)
        for destination in destinations:
            self._presses.learn(destination.recipe)

    def touch(self, paths: Iterable[str], *, everything: bool = False) -> None:
        """Something happened to these paths; `everything`: nobody knows to which."""
        now = self._clock.monotonic()
        for path in paths:
            everything |= self.tracker.look(path, now)
        if everything:
            self._looks.ask(now)

    def limit(self, limits: Mapping[FileKey, int]) -> None:
        """Files are read up to these positions, all others not at all."""
        self.reader.limits = limits

    def leave(self) -> None:
        """From here on each topic gets its last word as soon as nothing of it is under way."""
        self._books.leaving.is_asked = True

    @property
    def has_left(self) -> bool:
        """Whether every topic's last word is said and published, and nothing was seen since."""
        return not self.unsaid and self.is_settled

    @property
    def last_words(self) -> int:
        """On how many topics the last word was said since the start, and holds."""
        return len(self._books.leaving.kept)

    @property
    def unsaid(self) -> set[str]:
        """The topics whose last word was not said since the start, durably, or holds no more."""
        return self._sealed.keys() - self._books.leaving.kept

    def obstacles(self) -> list[str]:
        """What still stands in the way of a last word, in sentences."""
        tracker = self.tracker
        return list(obstacles(self.unsaid, tracker.files.values(), tracker.unreadable))

    def turn(self, deliveries: Sequence[Delivery]) -> None:
        """One turn. Raises StateRefused, SkidwayError; a full disk is no error."""
        now = self._clock.monotonic()
        self._settle(deliveries)
        if self._unwritten is None:
            self._unwritten = self._gather(now)
        if self._write(self._unwritten):
            taken, self._unwritten = self._unwritten.taken, None
            self._presses.press(taken, self.outbound, now)
        if not self._refused.has_unwritten:
            self._progress.sent(self.outbound.pump())
        for untold in self.rejections.due(now):
            events.lines_rejected(untold)

    def patience_s(self) -> float:
        """How long the next turn can wait, if nothing happens."""
        now = self._clock.monotonic()
        if self._unwritten is not None:
            return PATIENCE_S
        if self.is_settled and self.reader.is_quiet and not self.is_stopping:
            return min(max(self._looks.in_s(now), 0.0), PATIENCE_QUIET_S)
        if self.outbound.has_room and not self.is_stopping:
            if self._replay.can_go_on or self._inquiry.has_news or self._refused.has_news:
                return 0.0
            if self.reader.has_ready:
                return max(self._read_at - now, 0.0)
        is_busy = self.reader.is_active or not (self._inquiry.is_over and self._refused.is_over)
        return LOOK_AGAIN_S if is_busy else PATIENCE_S

    @property
    def reading_back(self) -> dict[str, object] | None:
        """What is read back from the brokers, for people; None if nothing is."""
        now = self._clock.monotonic()
        said, refused = self._inquiry.status(now) or {}, self._refused.status(now)
        return said | ({} if refused is None else {"refused": refused}) or None

    @property
    def not_read_back(self) -> dict[TopicPartition, float]:
        """The partitions that are to be read back and do not come, and for how long (s)."""
        now = self._clock.monotonic()
        return {**self._refused.silent_s(now), **self._inquiry.silent_s(now)}

    @property
    def is_settled(self) -> bool:
        """Whether all that was promised is settled, counted, said and published."""
        return (
            self._unwritten is None
            and self._replay.is_over
            and self._inquiry.is_over
            and self.mail.is_empty
            and self._books.is_settled
            and not self.tracker.flying
        )

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The last acknowledged offset of each partition."""
        return self._progress.offsets

    @property
    def pending_bytes(self) -> int:
        """Bytes of all files that are not settled, as it is now. Any thread may ask.

        Nothing is locked: of a file in the middle of a step it may be off by one reading.
        """
        return sum(tracked.pending for tracked in list(self.tracker.files.values()))

    def close(self) -> None:
        """Gives descriptors back."""
        self._handles.close()

    # --- a turn ---------------------------------------------------------------------------------

    def _settle(self, deliveries: Sequence[Delivery]) -> None:
        settled = self.outbound.settle(deliveries)
        self._progress.acknowledged(settled.offsets)
        events.acknowledged(settled.acknowledged)
        self._refused.take(settled.refusals, self._clock.monotonic())

    def _gather(self, now: float) -> _Turn:
        changes, self._first = self._first or Changes(), None
        now_ms = self._clock.time_ms()
        self._books.read_clock(now_ms, self._sealed)
        if self._books.leaving.is_asked:
            self._looks.ask(now)
        if self._looks.is_due(now) and not self.is_stopping:
            self._reconcile(now, now_ms, changes)
        self._books.review(self.tracker, self.reader)
        self._register.mind_published()
        self._refused.write(changes)
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + self._settings.checkpoint_interval_ms / 1000
            self._pass_flights(changes, now_ms)
        self._inquiry.turn(now)
        self._refused.turn(now)
        turn = _Turn(changes, self._take(now, now_ms))
        self._inquiry.write(changes)
        self._presses.promise(changes, turn.taken)
        self._mind_news(changes, now_ms)
        self._books.take_back(changes, now_ms, self._sealed, self._progress.offsets)
        self._account(changes, now, now_ms)
        changes.put_files(self.tracker.take_changed())
        if (unopened := self.tracker.take_unopened()) is not None:
            changes.put_unopened(unopened)
        self.mail.write(changes)
        return turn

    def _write(self, turn: _Turn) -> bool:
        """Whether the turn is durable now."""
        if turn.changes:
            begin = self._clock.monotonic()
            try:
                self._state.commit(turn.changes)
            except StateFull as error:
                self.full_reason = str(error)
                events.state_full(str(error))
                return False
            events.committed(self._clock.monotonic() - begin)
        if self.full_reason is not None:
            self.full_reason = None
            events.state_has_room()
        self.mail.committed()
        self._books.committed()
        self._refused.committed()
        return True

    def _take(self, now: float, now_ms: int) -> list[Taken]:
        """Readings: promises of before the start first, then what is new."""
        if not self.outbound.has_room or self._refused.is_full:
            return []
        taken = [*self._replay.take(now), *self._inquiry.take(now)]
        if taken or self._replay.can_go_on:
            return taken
        if self.is_stopping:
            return []
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            self.reader.look_again(now)
        if now < self._read_at or not self.reader.has_ready:
            return []
        taken = self.reader.take(now, now_ms, self._numbers.last)
        self._numbers.last += len(taken)
        has_backlog = sum(len(one.reading.data) for one in taken) >= READ_BYTES // 2
        self._read_at = now if has_backlog else now + self._settings.linger_ms / 1000
        return taken

    def _may_read(self, tracked: TrackedFile) -> bool:
        return tracked.announced and not self._books.leaving.is_done_with(tracked.birth.topic)

    def _pass_flights(self, changes: Changes, now_ms: int) -> None:
        """The checkpoint: positions, what they passed, and which files are at their end."""
        passed = self._progress.pass_flights(self.tracker, changes)
        for tracked, before in passed.moved:
            if before < FINGERPRINT_BYTES <= tracked.position:
                self._register.announce_grown(tracked, now_ms)
        self._register.close_ended(now_ms)
        self._books.passed(passed.counts, changes)
        for record in self._refused.passed(passed.intents):
            self._books.lose(record, now_ms, changes, lines=1)

    def _account(self, changes: Changes, now: float, now_ms: int) -> None:
        """Deltas, daily announcements, seals and heartbeats, each when it is due."""
        number = self._books.number
        self._books.account(changes, now, now_ms, at_once=self.is_stopping)
        self._register.repeat(now, now_ms)
        self._books.seal(changes, now_ms, self.tracker, self._sealed, self._progress.offsets)
        self._books.prove_life(number, now, now_ms)

    # --- files ----------------------------------------------------------------------------------

    def _reconcile(self, now: float, now_ms: int, changes: Changes) -> None:
        noted = self._books.begin_seal(now, now_ms, changes)
        self.tracker.reconcile(now, now_ms)
        self._name_unreadable()
        if noted is not None:
            self._books.note_sizes(*noted, self._sealed, self.tracker, self.reader)
        open_ids = sum(t.state is FileState.OPEN for t in self.tracker.files.values())
        unreadable = sum(len(paths) for paths in self.tracker.unreadable.values())
        events.sizes(open_ids, unreadable)
        self._looks.took(now, self._clock.monotonic())

    def _name_unreadable(self) -> None:
        found = {
            (topic, path): reason
            for topic, reasons in self.tracker.unreadable.items()
            for path, reason in reasons.items()
        }
        for (topic, path), reason in found.items():
            if (topic, path) not in self._known_unreadable:
                is_passing = (topic, path) in self.tracker.passing
                events.unreadable(topic, path, reason, is_passing=is_passing)
        self._known_unreadable = set(found)

    def _mind_news(self, changes: Changes, now_ms: int) -> None:
        """What the tracker found becomes announcements and losses."""
        news = self.tracker.news.take()
        for tracked in news.born:
            birth = tracked.birth
            events.file_began(birth.path, birth.file, birth.begin, birth.predecessor)
            self._register.announce(tracked, now_ms)
        for range_ in news.set_apart:
            self._books.lose(range_, now_ms, changes)
        for unseen in news.unseen:
            self._books.lose_unseen(unseen, now_ms, changes)
        self._books.forget(set(news.forgotten), changes)
