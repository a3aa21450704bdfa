"""The turn: what is read becomes an intent, is sent, is acknowledged, is passed by the checkpoint.

    deliveries -> settle
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

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agent import events
from agent.accounts import announcements, sealing
from agent.accounts.deltas import Deltas
from agent.accounts.mail import Mail
from agent.accounts.sealing import Noted
from agent.delivery.intents import Intent
from agent.delivery.outbound import Outbound, Sink
from agent.delivery.press import Press
from agent.delivery.recipe import Recipe
from agent.delivery.replay import Replay
from agent.destinations import Cluster, Destination
from agent.files.handles import Handles
from agent.files.host import FileKey, Host
from agent.files.reading import Reader, Taken
from agent.files.rotations import Unseen
from agent.files.tracked import FileState, TrackedFile
from agent.files.tracking import SetApart, Tracker, shown
from agent.framing import READ_BYTES
from agent.identity import FINGERPRINT_BYTES, fingerprint_of, new_id
from agent.settings import AgentSettings
from agent.state.changes import Changes
from agent.state.database import State, StateFull, TopicState
from audit import bucket
from audit.messages import Certainty, Loss, SealedTopic, Sender, Tier
from skidway.clock import Clock
from skidway.errors import StateRefused
from skidway.kafka.client import Delivery
from skidway.kafka.compression import Codec
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

PRESSES_MAX = 64
LOOK_AGAIN_S = 0.05
"""How often files that were read lately are looked at without being told."""

PATIENCE_S = 0.2
"""The longest sleep of a turn."""

SCAN_SHARE = 400
"""Looking through the patterns may take one part of so many of the time."""

SCAN_SHARE_ASKED = 20
"""The same, where events ask for it."""

SCAN_INTERVAL_MIN_S = 1.0
REPEAT_S = 600.0
"""How often it is looked which announcements are a day old."""

LATENESS_MS = 120_000
"""Event times of bytes that nobody saw are taken to be no older than this before the last seal."""


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
    ) -> None:
        self._settings = settings
        self._state = state
        self._clock = clock
        self._cluster = cluster
        self._topics = dict(state.topics())
        self._codec = Codec[settings.compression_type.upper()]
        intents, recipes = state.intents(), state.recipes()
        files = state.files()
        self.mail = Mail(state.outbox())
        check_cluster(state, cluster, destinations, _topics_of(intents, recipes))
        self._recipes: dict[bytes, Recipe] = dict(recipes)
        self._presses: OrderedDict[bytes, Press] = OrderedDict()
        self._handles = Handles(host, settings.max_open_files)
        tailed = [destination.tailed() for destination in destinations]
        self.tracker = Tracker(host, self._handles, tailed, host_name)
        promised = {intent.file: intent.end for intent in intents}
        self.tracker.load(files, promised, _since(state, self._topics))
        self._replay = Replay(intents, recipes, self.tracker, self._handles)
        self.reader = Reader(
            self.tracker,
            self._handles,
            idle_flush_s=settings.idle_flush_ms / 1000,
            close_rotated_s=settings.close_rotated_ms / 1000,
            may_read=lambda tracked: tracked.announced,
        )
        self.outbound = Outbound(sink)
        self._sequence = state.last_sequence()
        self._offsets: dict[TopicPartition, int] = {}
        self._all_offsets = state.offsets()
        self._first: Changes | None = _first_changes(
            state, cluster, destinations, self._topics, clock.time_ms()
        )
        sender = Sender(Tier.AGENT, cluster.name, str(state.agent), host_name, state.epoch)
        self._deltas = self._open_accounts(sender, self._first)
        self._declared = {(x.file, x.first, x.end, x.certainty) for x in state.losses()}
        self._unwritten: _Turn | None = None
        self._kept_recipes = {intent.recipe for intent in intents}
        for tracked in unannounced(files, self.mail):
            self.tracker.news.born.append(tracked)
        self._by_topic: dict[str, Destination] = {}
        self.update(destinations)
        self._noted: list[Noted] = []
        self._reconcile_not_before = 0.0
        self._reconcile_at = self._checkpoint_at = self._look_at = self._read_at = 0.0
        self._cut_at = self._seal_at = self._life_at = self._repeat_at = 0.0
        self.pending_bytes = 0
        self._known_unreadable: set[tuple[str, str]] = set()
        self.is_stopping = False
        self.full_reason: str | None = None

    # --- what the program calls -----------------------------------------------------------------

    def update(self, destinations: Sequence[Destination]) -> None:
        """Topics may have more partitions now: new recipes for what is read from here on."""
        self.tracker.sources = [destination.tailed() for destination in destinations]
        self._by_topic = {}
        for destination in destinations:
            self._by_topic.setdefault(destination.data.topic, destination)
            self._recipes[destination.recipe.fingerprint] = destination.recipe

    def touch(self, paths: Iterable[str], *, everything: bool = False) -> None:
        """Something happened to these paths; `everything`: nobody knows to which."""
        now = self._clock.monotonic()
        for path in paths:
            everything |= self.tracker.look(path, now)
        if everything:
            self._reconcile_at = min(self._reconcile_at, max(now + 0.1, self._reconcile_not_before))

    def limit(self, limits: Mapping[FileKey, int]) -> None:
        """Files are read up to these positions, all others not at all."""
        self.reader.limits = limits

    def turn(self, deliveries: Sequence[Delivery]) -> None:
        """One turn. Raises StateRefused, SkidwayError; a full disk is no error."""
        now = self._clock.monotonic()
        self._settle(deliveries)
        if self._unwritten is None:
            self._unwritten = self._gather(now)
        if self._write(self._unwritten):
            taken, self._unwritten = self._unwritten.taken, None
            self._press(taken)
        self.outbound.pump()

    def patience_s(self) -> float:
        """How long the next turn can wait, if nothing happens."""
        now = self._clock.monotonic()
        if self._unwritten is not None:
            return PATIENCE_S
        if self.outbound.has_room and not self.is_stopping:
            if self._replay.can_go_on:
                return 0.0
            if self.reader.has_ready:
                return max(self._read_at - now, 0.0)
        return PATIENCE_S if not self.reader.is_active else LOOK_AGAIN_S

    @property
    def is_settled(self) -> bool:
        """Whether all that was promised is settled, counted, said and published."""
        return (
            self._unwritten is None
            and self._replay.is_over
            and self.mail.is_empty
            and self._deltas.is_empty
            and not self.tracker.flying
        )

    def close(self) -> None:
        """Gives descriptors back."""
        self._handles.close()

    # --- a turn ---------------------------------------------------------------------------------

    def _settle(self, deliveries: Sequence[Delivery]) -> None:
        settled = self.outbound.settle(deliveries)
        self._offsets.update(settled.offsets)
        events.acknowledged(settled.acknowledged)
        for refusal in settled.refusals:
            intent = refusal.flight.intent
            self.tracker.news.set_apart.append(
                SetApart(
                    self.tracker.files[intent.file],
                    refusal.first,
                    refusal.first + refusal.length,
                    Certainty.UNCERTAIN,
                    f"the broker refuses the record: {refusal.reason}",
                )
            )

    def _gather(self, now: float) -> _Turn:
        changes, self._first = self._first or Changes(), None
        now_ms = self._clock.time_ms()
        if now >= self._reconcile_at and not self.is_stopping:
            self._reconcile(now, now_ms, changes)
        self._mind_published()
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + self._settings.checkpoint_interval_ms / 1000
            self._pass_flights(changes, now_ms)
        turn = _Turn(changes, self._take(now, now_ms))
        self._promise(changes, turn.taken)
        self._mind_news(changes, now_ms)
        self._account(changes, now, now_ms)
        changes.put_files(self.tracker.take_changed())
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
        self._deltas.committed()
        return True

    def _take(self, now: float, now_ms: int) -> list[Taken]:
        """Readings: promises of before the start first, then what is new."""
        if not self.outbound.has_room:
            return []
        if not self._replay.is_over:
            taken = self._replay.take(now)
            if taken or self._replay.can_go_on:
                return taken
        if self.is_stopping:
            return []
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            self.reader.look_again(now)
        if now < self._read_at or not self.reader.has_ready:
            return []
        taken = self.reader.take(now, now_ms, self._sequence)
        self._sequence += len(taken)
        has_backlog = sum(len(one.reading.data) for one in taken) >= READ_BYTES // 2
        self._read_at = now if has_backlog else now + self._settings.linger_ms / 1000
        return taken

    def _promise(self, changes: Changes, taken: list[Taken]) -> None:
        new = [one.reading.intent for one in taken if one.is_new]
        for fingerprint in {intent.recipe for intent in new} - self._kept_recipes:
            changes.put_recipe(self._recipes[fingerprint])
            self._kept_recipes.add(fingerprint)
        changes.put_intents(new)

    def _press(self, taken: list[Taken]) -> None:
        for group in _groups(taken):
            press = self._press_of(group[0].reading.intent.recipe)
            sources = self._sources_of(press.recipe)
            readings = [one.reading for one in group]
            pressed = press.press(
                self._state.agent, readings, sources, self._settings.audit_bucket_ms
            )
            events.pressed(pressed)
            self.outbound.add(pressed, [one.flight for one in group], sources)

    # --- the checkpoint -------------------------------------------------------------------------

    def _pass_flights(self, changes: Changes, now_ms: int) -> None:
        """Moves every file's position over what is done, and counts it."""
        passed: list[int] = []
        counts = []
        for tracked in list(self.tracker.flying.values()):
            before = tracked.position
            while tracked.flights and tracked.flights[0].is_done:
                flight = tracked.flights.pop(0)
                outcome = flight.outcome
                assert outcome is not None
                tracked.checkpoint = flight.after
                tracked.tally.acknowledged += outcome.delivered_bytes
                tracked.tally.rejected += outcome.rejected_bytes
                tracked.tally.uncertain += flight.uncertain_bytes
                passed.append(flight.intent.sequence)
                counts.append(outcome.counts)
            if before < FINGERPRINT_BYTES <= tracked.position:
                self._announce_grown(tracked, now_ms)
            if tracked.position != before:
                self.tracker.note(tracked)
                events.settled(tracked.position - before)
            if not tracked.flights:
                del self.tracker.flying[tracked.file]
        for tracked in list(self.tracker.ended.values()):
            self._close(tracked, now_ms)
        if passed:
            changes.forget_intents(passed)
            self._deltas.passed(counts, changes)
        if self._offsets:
            changes.put_offsets(self._offsets.items())
            self._all_offsets.update(self._offsets)
            self._offsets = {}

    def _close(self, tracked: TrackedFile, now_ms: int) -> None:
        """Says the final length, in the transaction in which the position stands there."""
        if tracked.flights or tracked.position != tracked.length:
            return
        tracked.state = FileState.CLOSED
        del self.tracker.ended[tracked.file]
        self.tracker.note(tracked)
        source = self._source_of(tracked)
        self.mail.stage(
            announcements.announcement(tracked, self._state.agent, source, now_ms, closing=True)
        )
        events.file_closed(tracked.birth.path, tracked.file, tracked.length)

    # --- files ----------------------------------------------------------------------------------

    def _reconcile(self, now: float, now_ms: int, changes: Changes) -> None:
        noted = self._begin_seal(now, now_ms, changes)
        self.tracker.reconcile(now, now_ms)
        self._name_unreadable()
        if noted is not None:
            self._note_sizes(*noted)
        self.pending_bytes = sum(t.pending for t in self.tracker.files.values())
        open_ids = sum(t.state is FileState.OPEN for t in self.tracker.files.values())
        unreadable = sum(len(paths) for paths in self.tracker.unreadable.values())
        events.sizes(open_ids, self.pending_bytes, unreadable)
        took_s = self._clock.monotonic() - now
        longest_s = self._settings.reconcile_interval_ms / 1000
        self._reconcile_at = now + min(max(took_s * SCAN_SHARE, SCAN_INTERVAL_MIN_S), longest_s)
        self._reconcile_not_before = now + took_s * SCAN_SHARE_ASKED

    def _name_unreadable(self) -> None:
        found = {
            (topic, path): reason
            for topic, reasons in self.tracker.unreadable.items()
            for path, reason in reasons.items()
        }
        for (topic, path), reason in found.items():
            if (topic, path) not in self._known_unreadable:
                events.unreadable(topic, path, reason)
        self._known_unreadable = set(found)

    def _mind_news(self, changes: Changes, now_ms: int) -> None:
        """What the tracker found becomes announcements and losses."""
        news = self.tracker.take_news()
        for tracked in news.born:
            birth = tracked.birth
            events.file_began(birth.path, birth.file, birth.begin, birth.predecessor)
            self._announce(tracked, now_ms)
        for range_ in news.set_apart:
            declared = (range_.tracked.file, range_.first, range_.end, range_.certainty)
            if declared in self._declared:
                continue  # before a start that came in between
            self._declared.add(declared)
            events.set_apart(range_)
            self._deltas.lost(self._loss(range_, now_ms), now_ms, changes)
        for unseen in news.unseen:
            events.unseen(unseen)
            self._deltas.lost(self._unseen_loss(unseen, now_ms), now_ms, changes)
        changes.forget_files(news.forgotten)

    def _announce(self, tracked: TrackedFile, now_ms: int) -> None:
        tracked.announced_ms = now_ms
        source = self._source_of(tracked)
        self.mail.stage(announcements.announcement(tracked, self._state.agent, source, now_ms))

    def _announce_grown(self, tracked: TrackedFile, now_ms: int) -> None:
        """With the fingerprint of a file that had fewer bytes when it was found."""
        handle = self._handles.held(tracked.file)
        if handle is None or tracked.birth.fingerprint.length == FINGERPRINT_BYTES:
            return
        try:
            fingerprint = fingerprint_of(handle.read, FINGERPRINT_BYTES)
        except OSError as error:
            self.tracker.cannot_read(tracked, error)
            return
        source = self._source_of(tracked)
        self.mail.stage(
            announcements.announcement(
                tracked, self._state.agent, source, now_ms, fingerprint=fingerprint
            )
        )

    def _mind_published(self) -> None:
        """A file may be read once the cluster has its announcement."""
        for message in self.mail.take_published():
            tracked = self.tracker.files.get(message.file) if message.file else None
            if tracked is not None and not tracked.announced:
                tracked.announced = True
                self.tracker.note(tracked)
                self.reader.wake(tracked)

    def _loss(self, range_: SetApart, now_ms: int) -> Loss:
        """With the buckets that the bytes can belong to, by what is known of their age."""
        return Loss(
            source=self._source_of(range_.tracked),
            agent=self._state.agent,
            file=range_.tracked.file,
            first=range_.first,
            end=range_.end,
            certainty=range_.certainty,
            reason=range_.reason,
            from_bucket=self._first_unsealed(range_.tracked.birth.topic),
            to_bucket=self._bucket(now_ms),
        )

    def _unseen_loss(self, unseen: Unseen, now_ms: int) -> Loss:
        """Of files that never got an id: this one stands for all of them."""
        return Loss(
            source=Source(self._cluster.name, self._cluster.id, unseen.topic, unseen.topic_id),
            agent=self._state.agent,
            file=new_id(),
            first=0,
            end=None,
            certainty=Certainty.LOST,
            reason=f"{shown(unseen.path)}: {unseen.reason}",
            from_bucket=self._first_unsealed(unseen.topic),
            to_bucket=self._bucket(now_ms),
        )

    def _first_unsealed(self, topic: str) -> int | None:
        """The first bucket that bytes which nobody saw can belong to; None: any."""
        known = self._topics.get(topic)
        if known is None or known.sealed_until is None:
            return None
        return self._bucket(known.sealed_until - LATENESS_MS)

    def _bucket(self, moment_ms: int) -> int:
        return bucket.start_of(moment_ms, self._settings.audit_bucket_ms)

    # --- accounts -------------------------------------------------------------------------------

    def _account(self, changes: Changes, now: float, now_ms: int) -> None:
        """Deltas, seals, heartbeats and daily announcements, each when it is due."""
        number = self._deltas.number
        if now >= self._cut_at or self.is_stopping:
            self._cut_at = now + self._settings.audit_interval_ms / 1000
            self._deltas.cut(now_ms, changes)
        if now >= self._repeat_at:
            self._repeat_at = now + REPEAT_S
            for tracked in self.tracker.files.values():
                if tracked.state is FileState.OPEN and announcements.is_due(tracked, now_ms):
                    self._announce(tracked, now_ms)
                    self.tracker.note(tracked)
        self._seal(changes, now_ms)
        if self._deltas.number != number:
            self._life_at = now + self._settings.heartbeat_interval_ms / 1000
        elif now >= self._life_at:
            self._life_at = now + self._settings.heartbeat_interval_ms / 1000
            self._deltas.prove_life(now_ms)

    def _begin_seal(self, now: float, now_ms: int, changes: Changes) -> tuple[int, int] | None:
        """W and `at`, noted before the patterns are looked through; None if no seal is due."""
        if now < self._seal_at:
            return None
        self._seal_at = now + self._settings.seal_interval_ms / 1000
        self._deltas.cut(now_ms, changes)
        return now_ms, self._deltas.number

    def _note_sizes(self, wall_ms: int, at: int) -> None:
        """How far each topic's files must be settled; a topic that waits keeps its older note."""
        waiting = {noted.topic for noted in self._noted}
        for topic in self._by_topic:
            if topic in waiting or sealing.held_back_by(topic, self.tracker.unreadable):
                continue
            files = [
                (tracked, self.reader.limit_of(tracked))
                for tracked in self.tracker.files.values()
                if tracked.birth.topic == topic
            ]
            doubts = self.tracker.doubts[topic]
            self._noted.append(sealing.note(topic, wall_ms, at, doubts, files))

    def _seal(self, changes: Changes, now_ms: int) -> None:
        """Sends the seals whose noted bytes are settled and in deltas."""
        files = self.tracker.files
        doubts = self.tracker.doubts
        self._noted = [n for n in self._noted if not sealing.is_void(n, files, doubts[n.topic])]
        ready = [noted for noted in self._noted if sealing.is_complete(noted, files)]
        if not ready:
            return
        self._deltas.cut(now_ms, changes)
        self._noted = [noted for noted in self._noted if noted not in ready]
        sealed: list[SealedTopic] = []
        for noted in ready:
            destination = self._by_topic[noted.topic]
            for source in (destination.data, destination.rejected):
                offsets = tuple(
                    (tp.partition, last)
                    for tp, last in sorted(self._all_offsets.items())
                    if tp.topic == source.topic
                )
                sealed.append(SealedTopic(source, noted.wall_ms, noted.at, offsets))
            topic_id = destination.data.topic_id
            self._topics[noted.topic] = TopicState(topic_id, noted.wall_ms)
            changes.put_topic(noted.topic, topic_id, noted.wall_ms)
        self._deltas.seal(sealed, now_ms, changes)

    def _open_accounts(self, sender: Sender, changes: Changes) -> Deltas:
        """What was counted before goes on; of buckets of another size, into deltas of its own."""
        state, size = self._state, self._settings.audit_bucket_ms
        sums, losses = state.sums(), state.losses(undeclared=True)
        number = state.number
        if state.bucket_ms != size:
            old = Deltas(
                sender, number, state.bucket_ms or size, self.mail, state.touched, sums, losses
            )
            old.cut(self._clock.time_ms(), changes)
            number, sums, losses = old.number, [], []
            changes.forget_touched()
            changes.put_meta("bucket_ms", size)
        return Deltas(sender, number, size, self.mail, state.touched, sums, losses)

    # --- small things ---------------------------------------------------------------------------

    def _press_of(self, fingerprint: bytes) -> Press:
        press = self._presses.get(fingerprint)
        if press is None:
            press = Press(self._recipes[fingerprint], self._codec)
            self._presses[fingerprint] = press
            if len(self._presses) > PRESSES_MAX:
                self._presses.popitem(last=False)
        self._presses.move_to_end(fingerprint)
        return press

    def _sources_of(self, recipe: Recipe) -> tuple[Source, Source]:
        return self._source(recipe.data.name), self._source(recipe.rejected.name)

    def _source(self, topic: str) -> Source:
        known = self._topics.get(topic)
        topic_id = "" if known is None else known.topic_id
        return Source(self._cluster.name, self._cluster.id, topic, topic_id)

    def _source_of(self, tracked: TrackedFile) -> Source:
        birth = tracked.birth
        return Source(self._cluster.name, self._cluster.id, birth.topic, birth.topic_id)


def check_cluster(
    state: State, cluster: Cluster, destinations: Sequence[Destination], open_topics: set[str]
) -> None:
    """Raises StateRefused where something unacknowledged belongs to another cluster or topic."""
    if not open_topics:
        return
    if state.cluster_id and cluster.id and state.cluster_id != cluster.id:
        raise StateRefused(
            f"the state has lines on their way to cluster {state.cluster_id}, and "
            f"bootstrap.servers leads to cluster {cluster.id}; let them arrive there first"
        )
    known = state.topics()
    for destination in destinations:
        for source in (destination.data, destination.rejected):
            before = known.get(source.topic)
            if before is None or destination.data.topic not in open_topics:
                continue
            if before.topic_id and source.topic_id and before.topic_id != source.topic_id:
                raise StateRefused(
                    f"topic {source.topic} was made again (its id was {before.topic_id}, is "
                    f"{source.topic_id}) while lines were on their way to it; what became of them "
                    "an operator has to decide"
                )


def unannounced(files: Iterable[TrackedFile], mail: Mail) -> list[TrackedFile]:
    """Open files whose announcement is neither acknowledged nor waiting in the outbox."""
    waiting = mail.announced_files()
    return [
        tracked
        for tracked in files
        if tracked.state is FileState.OPEN and not tracked.announced and tracked.file not in waiting
    ]


def _first_changes(
    state: State,
    cluster: Cluster,
    destinations: Sequence[Destination],
    topics: dict[str, TopicState],
    now_ms: int,
) -> Changes:
    """What a start writes down: the cluster, the topics' ids, and what is not needed any more."""
    changes = Changes()
    changes.forget_recipes()
    for topic in {each.data.topic for each in destinations} - state.since().keys():
        changes.put_since(topic, now_ms)
    if (state.cluster, state.cluster_id) != (cluster.name, cluster.id):
        changes.put_meta("cluster", cluster.name)
        changes.put_meta("cluster_id", cluster.id)
    for destination in destinations:
        for source in (destination.data, destination.rejected):
            before = topics.get(source.topic)
            if before is not None and before.topic_id == source.topic_id:
                continue
            topics[source.topic] = TopicState(source.topic_id, None)
            changes.forget_offsets(source.topic)
            changes.put_topic(source.topic, source.topic_id, None)
    return changes


def _since(state: State, topics: Mapping[str, TopicState]) -> dict[str, int]:
    """By topic: its last seal, or its first start. Files changed since may be unknown."""
    since = state.since()
    for name, topic in topics.items():
        if topic.sealed_until is not None:
            since[name] = max(since.get(name, 0), topic.sealed_until)
    return since


def _topics_of(intents: Iterable[Intent], recipes: Mapping[bytes, Recipe]) -> set[str]:
    """Data topics that something is on its way to."""
    named = (recipes.get(intent.recipe) for intent in intents)
    return {recipe.data.name for recipe in named if recipe is not None}


def _groups(taken: Iterable[Taken]) -> Iterator[list[Taken]]:
    """Neighbours that can be pressed together: same recipe and moment; over-long lines alone."""
    group: list[Taken] = []
    for one in taken:
        if group and not _go_together(group[-1], one):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _go_together(left: Taken, right: Taken) -> bool:
    if left.reading.is_overlong or right.reading.is_overlong:
        return False
    a, b = left.reading.intent, right.reading.intent
    return (a.recipe, a.read_ms) == (b.recipe, b.read_ms)
