"""Makes the agent's turns. An intent is a durable promise to send the records of a byte range. Each
turn makes intents for the bytes that it reads, and then sends the records of these bytes. When
brokers have acknowledged an intent's records, the checkpoint moves past the intent.

    deliveries -> settle
    logs       -> inquiry, refused                       (while records are looked for in logs)
    patterns   -> files, announcements, losses           (when due)
    flights    -> checkpoint, counts                     (when due)
    counts     -> deltas; files -> seals                 (when due)
    files      -> readings -> intents
                    ONE TRANSACTION for all of this
    readings   -> press -> producer

In this picture, a flight is an intent that is being sent, a delta reports new counts to the audit,
and a seal tells the audit up to which time the counts are complete. A reading is an intent with its
bytes, and the press makes batches of readings. The inquiry and `refused` read the logs of the
brokers to find out which records have arrived.

The loop runs in one thread. The loop owns every part whose state lasts longer than a turn; the
module `parts` makes these parts. The loop sends a record only after the transaction with the
record's intent is durable. If the disk is full, the loop keeps the transaction unchanged and tries
to commit it again. Until the commit succeeds, the loop reads no further bytes, and does not send
the records of the transaction's intents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from skidway.agent import events
from skidway.agent.accounts.leaving import obstacles
from skidway.agent.cluster.destinations import Destination
from skidway.agent.cluster.known_schemas import known_schemas
from skidway.agent.files.ignored import Left
from skidway.agent.files.reading import Taken
from skidway.agent.loop.held_seals import HeldSeals
from skidway.agent.loop.parts import Surroundings, make_parts
from skidway.agent.loop.schedule import Schedule
from skidway.agent.loop.unreadable_paths import UnreadablePaths
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.settings import AgentSettings
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase, StateFull
from skidway.agent.values.identity import FINGERPRINT_BYTES
from skidway.agent.values.tracked import FileState
from skidway.dataclass import dataclass
from skidway.kafka.client import Delivery
from skidway.kafka.codecs import BY_NAME
from skidway.kafka.types import TopicPartition

LOOK_AGAIN_S = 0.05
"""If a file had new bytes lately, the loop tries to read it again after this many seconds, even if
no event comes.
"""

PATIENCE_S = 0.2
"""The longest time (s) for which the loop sleeps after a turn. While it has nothing to do,
PATIENCE_QUIET_S applies instead."""

PATIENCE_QUIET_S = 1.0
"""The longest time (s) for which the loop sleeps while it has nothing to read or send and nothing
is due. An event wakes the loop earlier.
"""


@dataclass(slots=True)
class _Turn:
    """The changes and readings of one turn. One transaction writes the changes, and then the press
    makes batches of the readings.
    """

    changes: Changes
    taken: list[Taken] = field(default_factory=list)


class Loop:
    """Owns all state of a running agent except sockets, watches of directories and the clock."""

    def __init__(
        self,
        settings: AgentSettings,
        state: StateDatabase,
        surroundings: Surroundings,
        destinations: Sequence[Destination],
    ) -> None:
        self._settings = settings
        self._state = state
        self._clock = surroundings.clock
        parts = make_parts(settings, state, surroundings, destinations)
        self.mail = parts.mail
        self.tracker = parts.tracker
        self.reader = parts.reader
        self._labels = parts.labels
        self.outbound = parts.outbound
        self.rejections = parts.rejections
        self.fieldless = parts.fieldless
        self._topics = parts.topics
        self._handles = parts.handles
        self._numbers = parts.numbers
        self._presses = parts.presses
        self._progress = parts.progress
        self._inquiry = parts.inquiry
        self._refused = parts.refused
        self._replay = parts.replay
        self._accounts = parts.accounts
        self._backlogs = parts.backlogs
        self._fieldless_notes = parts.fieldless_notes
        self.source_reports = parts.source_reports
        self._register = parts.register
        self._first: Changes | None = parts.first
        self._unwritten: _Turn | None = None
        self.update(destinations)
        self._looks = Schedule(settings.reconcile_interval_ms / 1000)
        self._unreadable = UnreadablePaths()
        self._held_seals = HeldSeals()
        self._checkpoint_at = self._look_at = self._read_at = 0.0
        self.is_stopping = False
        self.full_reason: str | None = None

    # --- called by the program -----------------------------------------------------------------

    def update(self, destinations: Sequence[Destination]) -> None:
        """Replaces the destinations (topics with their partitions and recipes), because topics may
        have more partitions than before. Bytes that the agent reads from now on are sent with the
        new recipes.
        """
        self.tracker.sources[:] = [destination.tailed() for destination in destinations]
        self._sealed = self._topics.sealed(destinations)
        self.rejections.take_topics(each.data.topic for each in destinations)
        labels = (source.labels for source in self.tracker.sources)
        self._labels.take_locations({each.location for each in labels if each is not None})
        for destination in destinations:
            for recipe in (destination.recipe, destination.recipe_of_big_endian):
                if recipe is not None:
                    self._presses.learn(recipe)

    @property
    def topics(self) -> frozenset[str]:
        """The topics to which the agent may have sent records."""
        return self._topics.names

    def refusal(self, destinations: Sequence[Destination]) -> str | None:
        """Returns a sentence that says why the running agent cannot use these destinations now;
        None if it can."""
        if self.is_stopping or self._accounts.leaving.is_asked:
            return "the agent is ending"
        if self.full_reason is not None:
            return f"the state cannot be written now ({self.full_reason})"
        if made_again := self._topics.made_again(destinations):
            return f"topic {made_again[0]} was deleted and made again: restart the agent"
        return None

    def reload(
        self,
        settings: AgentSettings,
        destinations: Sequence[Destination],
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """Takes changed settings between two turns. The effect is that of a restart with these
        settings. Must only be called if `refusal` returns None. The next turn looks through all
        patterns before it reads, and its transaction stores the new destinations. Bytes that
        already have an intent are sent as the intent says.

        ends: for new topics (those that are not in `topics` yet), the log end offsets of their
        partitions.
        """
        changes = self._first or Changes()
        self._settings = settings
        new = {each.data.topic for each in destinations} - self._state.since().keys()
        for topic in sorted(new):
            changes.put_since(topic, self._clock.time_ms())
        changes.put_schemas(known_schemas(settings.schema_registry_url, destinations))
        self._topics.keep_former(self._sealed)
        self._topics.take_ids(destinations, changes)
        self._progress.take_floors(ends, changes)
        self._first = changes
        self.update(destinations)
        self.tracker.take_sources([each.tailed() for each in destinations])
        self._accounts.take_settings(settings)
        self._handles.take_limit(settings.max_open_files)
        self._presses.take_codec(BY_NAME[settings.compression_type])
        self.rejections.share_max = settings.rejected_share_max
        self.fieldless.forget()
        self.reader.take_intervals(
            idle_flush_s=settings.idle_flush_ms / 1000,
            close_rotated_s=settings.close_rotated_ms / 1000,
        )
        self._looks.take_longest(settings.reconcile_interval_ms / 1000)

    def touch(self, paths: Iterable[str], *, everything: bool = False) -> None:
        """Examines the files at these paths, for which the operating system reported events.
        everything: whether to look through all patterns, because the changed paths are unknown.
        """
        now, now_ms = self._clock.monotonic(), self._clock.time_ms()
        for path in paths:
            everything |= self.tracker.look(path, now, now_ms)
        if everything:
            self._looks.ask(now)

    def leave(self) -> None:
        """Begins to leave for good, as for `skidway agent drain`: the agent sends a last word for
        each topic. The last word of a topic is a seal after which the audit waits for nothing more
        from this agent. The agent sends it as soon as all bytes of the topic's files are read and
        acknowledged.
        """
        self._accounts.leaving.is_asked = True

    @property
    def has_left(self) -> bool:
        """Whether every topic's last word (its last seal, see `leave`) is published, and the agent
        has found no new bytes since it sent the last words."""
        return not self.unsaid and self.is_settled

    @property
    def last_words(self) -> int:
        """How many topics have a last word (see `leave`) that the agent has sent since it started
        and that is still valid. If the agent finds new bytes of a topic, the topic's last word is
        no longer valid.
        """
        return len(self._accounts.leaving.kept)

    @property
    def unsaid(self) -> set[str]:
        """The topics without a last word (see `leave`). A last word counts only if it is durable,
        if it was sent after the agent started, and if the agent has found no new bytes of the topic
        since then.
        """
        return self._sealed.keys() - self._accounts.leaving.kept

    def obstacles(self) -> list[str]:
        """Returns sentences that tell an operator what still prevents the agent from sending last
        words (see `leave`)."""
        tracker = self.tracker
        return list(obstacles(self.unsaid, tracker.files.values(), tracker.unreadable))

    def turn(self, deliveries: Sequence[Delivery]) -> None:
        """Makes one turn. Raises SkidwayError, for example StateRefused if the state is damaged. A
        full disk raises no error."""
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
        """Returns how long the loop may wait for an event before the next turn (s)."""
        now = self._clock.monotonic()
        if self._unwritten is not None:
            return PATIENCE_S
        if self.is_quiet and not self.is_stopping:
            return min(max(self._looks.in_s(now), 0.0), PATIENCE_QUIET_S)
        if self.outbound.has_room and not self.is_stopping:
            if self._replay.can_go_on or self._inquiry.has_news or self._refused.has_news:
                return 0.0
            if self.reader.has_ready:
                return max(self._read_at - now, 0.0)
        is_busy = self.reader.is_active or not (self._inquiry.is_over and self._refused.is_over)
        return LOOK_AGAIN_S if is_busy else PATIENCE_S

    @property
    def is_quiet(self) -> bool:
        """Whether the loop has nothing to read and nothing to send."""
        return self.is_settled and self.reader.is_quiet

    @property
    def reading_back(self) -> dict[str, object] | None:
        """For /health: facts about the records that the agent looks for in the brokers' logs; None
        if it looks for no records.
        """
        now = self._clock.monotonic()
        said, refused = self._inquiry.status(now) or {}, self._refused.status(now)
        return said | ({} if refused is None else {"refused": refused}) or None

    @property
    def not_read_back(self) -> dict[TopicPartition, float]:
        """For each partition that a search of the brokers' logs has not read up to its high
        watermark, the time (s) since this search last made progress.
        """
        now = self._clock.monotonic()
        return {**self._refused.silent_s(now), **self._inquiry.silent_s(now)}

    @property
    def stopped(self) -> Mapping[str, str]:
        """For /health: the topics whose records cannot be made, each with the reason. The agent
        reads no more of their files until it starts again."""
        return self._presses.stopped

    @property
    def held_seals(self) -> dict[str, dict[str, str]]:
        """For /health: the topics whose seal has waited for long, each with some of the files for
        which it waits: by path, what is missing.
        """
        return self._accounts.held_seals(self._clock.monotonic(), self.tracker)

    @property
    def held_back(self) -> dict[str, int]:
        """For /health: the topics whose files are not read now, or whose intents are not sent again
        now, because brokers have not acknowledged the topic's earlier batches. For each topic, how
        many bytes of batches are not acknowledged.
        """
        topics, held = self.reader.held_back | self._replay.held_back, self.outbound.held_bytes
        return {topic: held.get(topic, 0) for topic in sorted(topics)}

    @property
    def is_settled(self) -> bool:
        """Whether all bytes that have an intent are settled and counted, and all messages to the
        audit are published. Bytes are settled if, for example, their records are acknowledged, or
        they are declared lost.
        """
        return (
            self._unwritten is None
            and self._replay.is_over
            and self._inquiry.is_over
            and self.mail.is_empty
            and self._accounts.is_settled
            and not self.tracker.flying
        )

    @property
    def offsets(self) -> Mapping[TopicPartition, int]:
        """The last acknowledged offset of each partition."""
        return self._progress.offsets

    @property
    def pending_bytes(self) -> int:
        """How many bytes of all files together are not accounted for yet. Any thread may read this
        property.

        No lock protects the numbers that are added up. So while the loop changes them, the result
        may be wrong by the bytes of one reading.
        """
        return sum(tracked.pending for tracked in list(self.tracker.files.values()))

    def close(self) -> None:
        """Closes the log files that the agent has open."""
        self._handles.close()

    # --- a turn ---------------------------------------------------------------------------------

    def _settle(self, deliveries: Sequence[Delivery]) -> None:
        settled = self.outbound.settle(deliveries)
        self._progress.acknowledged(settled.offsets)
        events.acknowledged(settled.acknowledged)
        self._refused.take(settled.refusals, self._clock.monotonic())

    def _gather(self, now: float) -> _Turn:
        self._handles.now = now
        changes, self._first = self._first or Changes(), None
        now_ms = self._clock.time_ms()
        self._accounts.read_clock(now_ms, self._sealed)
        if self._accounts.leaving.is_asked:
            self._looks.ask(now)
        if self._looks.is_due(now) and not self.is_stopping:
            self._reconcile(now, now_ms, changes)
        self._accounts.review(self.tracker)
        self._register.mind_published()
        self._refused.write(changes)
        self._presses.flag_failed(changes)
        if now >= self._checkpoint_at:
            self._checkpoint_at = now + self._settings.checkpoint_interval_ms / 1000
            self._pass_flights(changes, now_ms)
        self._inquiry.turn(now)
        self._refused.turn(now)
        turn = _Turn(changes, self._take(now, now_ms))
        self._inquiry.write(changes)
        self._presses.promise(changes, turn.taken)
        events.labels_news(self._labels.take_news(), self._labels.unreadable)
        self._mind_news(changes, now_ms)
        fileless = self.tracker.matches.never_matched()
        self._accounts.take_back(changes, now_ms, self._sealed, self._progress.offsets, fileless)
        self._account(changes, now, now_ms)
        changes.put_files(self.tracker.take_changed())
        if (unopened := self.tracker.take_unopened()) is not None:
            changes.put_unopened(unopened)
        if (unbegun := self.tracker.take_unbegun()) is not None:
            changes.put_unbegun(*unbegun)
        self.mail.write(changes)
        return turn

    def _write(self, turn: _Turn) -> bool:
        """Writes the turn's transaction. Returns whether the transaction is durable now."""
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
        self._accounts.committed()
        self._refused.committed()
        return True

    def _take(self, now: float, now_ms: int) -> list[Taken]:
        """Returns the readings of this turn. A starting agent first sends the bytes of the intents
        that an earlier process stored. Until this is done, the turns read no new bytes. Intents
        that cannot be sent yet, because their files cannot be opened or their records are looked
        for in the brokers' logs, delay only their own files. A topic without room delays only its
        own files and intents.
        """
        if not self.outbound.has_room or self._refused.is_full:
            return []
        room = self.outbound.room(self._presses.stopped)
        taken = [*self._replay.take(now, room), *self._inquiry.take(now, room)]
        if taken or self._replay.can_go_on:
            return taken
        if self.is_stopping:
            return []
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            self.reader.look_again(now)
        self.reader.go_on(room)
        if now < self._read_at or not self.reader.has_ready:
            return []
        taken = self.reader.take(now, now_ms, self._numbers.last, room)
        self._numbers.last += len(taken)
        has_backlog = sum(len(one.reading.data) for one in taken) >= READ_BYTES // 2
        self._read_at = now if has_backlog else now + self._settings.linger_ms / 1000
        return taken

    def _pass_flights(self, changes: Changes, now_ms: int) -> None:
        """Moves the checkpoint: writes the files' new positions and counts the records that the
        checkpoint passed. If a file id has ended (the agent reads no more bytes under it), and the
        file's position has reached the file's final length, closes the file id.
        """
        passed = self._progress.pass_flights(self.tracker, changes)
        for tracked, before in passed.moved:
            if before < FINGERPRINT_BYTES <= tracked.position:
                self._register.announce_grown(tracked, now_ms)
        self._register.close_ended(now_ms)
        self._accounts.passed(passed.counts, changes)
        for record in self._refused.passed(passed.intents):
            self._accounts.lose(record, now_ms, changes, lines=1)

    def _account(self, changes: Changes, now: float, now_ms: int) -> None:
        number = self._accounts.number
        self._accounts.account(changes, now, now_ms, at_once=self.is_stopping)
        self._register.repeat(now, now_ms)
        self._accounts.seal(changes, now_ms, self.tracker, self._sealed, self._progress.offsets)
        self._accounts.prove_life(number, now, now_ms)
        self._backlogs.tell(self._accounts.number, now, now_ms)
        self._fieldless_notes.tell(self._accounts.number, now, now_ms)
        self.source_reports.tell(self._accounts.number, now, now_ms)

    # --- files ----------------------------------------------------------------------------------

    def _reconcile(self, now: float, now_ms: int, changes: Changes) -> None:
        noted = self._accounts.begin_seal(now, now_ms, changes)
        self.tracker.reconcile(now, now_ms)
        for topic, pattern, exclude in self.tracker.first_looks.take_new():
            changes.put_looked(topic, pattern, exclude)
        for source, match in self.tracker.matches.take_changed():
            changes.put_match(source, match)
        self._unreadable.name(self.tracker)
        self.source_reports.look(now, changes)
        self._held_seals.name(self.held_seals)
        if noted is not None:
            self._accounts.note_sizes(*noted, self._sealed, self.tracker)
        for topic in self.tracker.ignored.end_look():
            events.files_ignored(topic, *self.tracker.ignored.by_topic.get(topic, Left()))
        open_ids = sum(t.state is FileState.OPEN for t in self.tracker.files.values())
        unreadable = sum(len(paths) for paths in self.tracker.unreadable.values())
        events.sizes(open_ids, unreadable)
        self._looks.took(now, self._clock.monotonic())

    def _mind_news(self, changes: Changes, now_ms: int) -> None:
        """Announces the new file ids, declares the losses that the tracker noticed, and removes the
        file ids that the tracker forgot."""
        news = self.tracker.news.take()
        for tracked in news.born:
            birth = tracked.birth
            events.file_began(birth.path, birth.file, birth.begin, birth.predecessor)
            events.bytes_skipped(birth.topic, birth.skipped)
            self._register.announce(tracked, now_ms)
        for range_ in news.set_apart:
            self._accounts.lose(range_, now_ms, changes)
        for unseen in news.unseen:
            self._accounts.lose_unseen(unseen, now_ms, changes)
        self._accounts.forget({tracked.file for tracked in news.forgotten}, changes)
        self._backlogs.gone(news.gone, now_ms)
        self._backlogs.forget(news.forgotten)
