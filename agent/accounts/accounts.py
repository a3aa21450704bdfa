"""Reports the agent's counts (in deltas), losses and seals to the audit, each when it is due. A
seal says up to which wall time the deltas contain the counts of all lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from skidway.agent import events
from skidway.agent.accounts import sealing
from skidway.agent.accounts.deltas import Deltas
from skidway.agent.accounts.leaving import Leaving
from skidway.agent.accounts.mail import Mail
from skidway.agent.accounts.sealing import Noted
from skidway.agent.accounts.set_backs import SetBacks
from skidway.agent.cluster.topics import Topics
from skidway.agent.files.host import shown
from skidway.agent.files.tracking import Tracker
from skidway.agent.settings import AgentSettings
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.identity import new_id
from skidway.agent.values.set_apart import SetApart, Unseen
from skidway.audit.counts import bucket
from skidway.audit.counts.counts import Counts
from skidway.audit.topic.messages import Certainty, Loss, Sender
from skidway.audit.topic.seal_columns import NEVER_SEALED, SealedTopic
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition


class Accounts:
    """Owns the deltas (messages with counts), the declared losses, the seals that are not sent yet,
    and the last words (the final seals of an agent that leaves for good). Each turn of the agent's
    loop has one transaction; the methods write into `changes` what this transaction must store.
    """

    def __init__(
        self,
        settings: AgentSettings,
        state: StateDatabase,
        sender: Sender,
        topics: Topics,
        mail: Mail,
    ) -> None:
        self._settings = settings
        self._agent = state.agent
        self._topics = topics
        self._sender = sender
        self._mail = mail
        self._declared = {(x.file, x.first, x.end, x.certainty) for x in state.losses()}
        self._noted: list[Noted] = []
        self._waiting_since: dict[str, float] = {}  # by topic, when its first unsent seal began
        # The topics that the agent has reported to the audit because it cannot seal them yet.
        self._named: set[str] = set()
        self.leaving = Leaving(state.left)
        self._set_backs = SetBacks()
        self._cut_at = self._seal_at = self._life_at = 0.0
        self._begun_at = 0.0  # when `begin_seal` last began a seal
        size = settings.audit_bucket_ms
        self._deltas = Deltas(sender, state.number, size, mail, state.touched)

    def open(self, state: StateDatabase, now_ms: int, changes: Changes) -> None:
        """Takes over, from the state, the counts and losses that no delta contains yet. If the
        setting for the bucket size was changed, makes deltas of these counts at once, with the old
        bucket size.
        """
        size = self._settings.audit_bucket_ms
        sums, losses = state.sums(), state.losses(undeclared=True)
        number = state.number
        if state.bucket_ms != size:
            before = state.bucket_ms or size
            old = Deltas(self._sender, number, before, self._mail, state.touched, sums, losses)
            old.cut(now_ms, changes)
            number, sums, losses = old.number, [], []
            changes.forget_touched()
            changes.put_meta("bucket_ms", size)
        self._deltas = Deltas(self._sender, number, size, self._mail, state.touched, sums, losses)

    def take_settings(self, settings: AgentSettings) -> None:
        """Uses the intervals of the reloaded settings from now on. The bucket size and
        `lateness.ms` must not have changed.
        """
        self._settings = settings
        self._cut_at = self._seal_at = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether the deltas contain all counts and all declared losses, so that nothing waits for
        a new delta."""
        return self._deltas.is_empty

    def committed(self) -> None:
        """Notes that the transaction of this turn of the agent's loop is durable."""
        self._deltas.committed()
        self.leaving.committed()

    def passed(self, counts: Iterable[Counts], changes: Changes) -> None:
        """Adds counts of records that the checkpoint passes in this turn's transaction."""
        self._deltas.passed(counts, changes)

    # --- losses ---------------------------------------------------------------------------------

    def read_clock(self, now_ms: int, topics: Iterable[str]) -> None:
        """Notes the time that the clock shows in this turn, and whether the clock was set back.
        topics: all topics."""
        self._set_backs.read(now_ms, topics)

    def lose(
        self, range_: SetApart, now_ms: int, changes: Changes, lines: int | None = None
    ) -> None:
        """Declares a byte range of a file lost or uncertain. If the range was declared already,
        does nothing.

        lines: the number of lines in the range; None if the number is unknown.
        """
        declared = (range_.tracked.file, range_.first, range_.end, range_.certainty)
        if declared in self._declared:
            return  # an earlier turn or process has declared the range
        self._declared.add(declared)
        events.set_apart(range_, lines)
        loss = Loss(
            source=self._topics.source_of(range_.tracked),
            agent=self._agent,
            file=range_.tracked.file,
            first=range_.first,
            end=range_.end,
            certainty=range_.certainty,
            reason=range_.reason,
            from_bucket=self._first_unsealed(range_.tracked.birth.topic),
            to_bucket=self._last_unsealed(range_.tracked.birth.topic, now_ms),
        )
        self._deltas.lost(loss, now_ms, changes)

    def lose_unseen(self, unseen: Unseen, now_ms: int, changes: Changes) -> None:
        """Declares the loss of files or bytes that never got a file id. The loss names one new file
        id for all of them.
        """
        events.unseen(unseen)
        loss = Loss(
            source=self._topics.named(unseen.topic, unseen.topic_id),
            agent=self._agent,
            file=new_id(),
            first=0,
            end=None,
            certainty=Certainty.LOST,
            reason=f"{shown(unseen.path)}: {unseen.reason}",
            from_bucket=self._first_unseen(unseen),
            to_bucket=self._last_unsealed(unseen.topic, now_ms),
        )
        self._deltas.lost(loss, now_ms, changes)

    def has_lost(self, file: int) -> bool:
        """Whether bytes of the file id were declared lost or uncertain."""
        return any(file == each[0] for each in self._declared)

    def forget(self, files: Collection[int], changes: Changes) -> None:
        """Removes these file ids from memory and state. The caller must know that no more records
        or losses can come from these files.
        """
        if files:
            changes.forget_files(files)
            changes.forget_losses()
            self._declared = {each for each in self._declared if each[0] not in files}

    def _first_unsealed(self, topic: str) -> int | None:
        """Returns the bucket of the time up to which the topic is sealed; None if the topic has no
        seal. Lines that the agent has not read yet can have event times that are earlier than this
        time by up to `lateness.ms`. This method does not subtract `lateness.ms`; the audit does so
        later. Each audit message states the agent's `lateness.ms`. The audit subtracts that value
        or its own setting, whichever is larger.
        """
        sealed_until = self._topics.sealed_until(topic)
        return None if sealed_until is None else self._bucket(sealed_until)

    def _first_unseen(self, unseen: Unseen) -> int | None:
        """Returns the earlier of two buckets: the bucket of the topic's last seal, and the bucket
        of the oldest line in files that the agent never read. This line can be earlier than the
        seal if the clock was set back after the seal. Returns None if the topic has no seal.
        """
        first = self._first_unsealed(unseen.topic)
        if first is None or unseen.oldest_ms is None:
            return first
        return min(first, self._bucket(unseen.oldest_ms))

    def _last_unsealed(self, topic: str, now_ms: int) -> int:
        """Returns the latest time that an unread line can have, the maximum of three times: the
        present time, the greatest time that the clock showed before it was set back, and the time
        of the last seal. Returns this time itself, not the start of its bucket: if
        `audit.bucket.ms` was changed, the line may belong to a bucket of the earlier size, and that
        bucket may begin later than the bucket of the present size.
        """
        latest_ms = self._set_backs.greatest(topic, now_ms)
        return max(latest_ms, self._topics.sealed_until(topic) or now_ms)

    def _bucket(self, moment_ms: int) -> int:
        return bucket.start_of(moment_ms, self._settings.audit_bucket_ms)

    # --- deltas and heartbeats ------------------------------------------------------------------

    def account(self, changes: Changes, now: float, now_ms: int, *, at_once: bool) -> None:
        """If deltas are due, makes deltas of all counts and losses that are in no delta yet.
        at_once: whether to make these deltas even if they are not due."""
        if now >= self._cut_at or at_once:
            self._cut_at = now + self._settings.audit_interval_ms / 1000
            self._deltas.cut(now_ms, changes)

    def prove_life(self, number: int, now: float, now_ms: int) -> None:
        """Sends a heartbeat to the audit if a whole heartbeat interval has passed since the last
        delta, seal or heartbeat, and at the first call. number: the last number that a delta or a
        seal had got before this turn's calls of `account` and `seal`."""
        if self._deltas.number != number:
            self._life_at = now + self._settings.heartbeat_interval_ms / 1000
        elif now >= self._life_at:
            self._life_at = now + self._settings.heartbeat_interval_ms / 1000
            self._deltas.prove_life(now_ms)

    @property
    def number(self) -> int:
        """The last number used for deltas and seals."""
        return self._deltas.number

    # --- seals ----------------------------------------------------------------------------------

    def begin_seal(self, now: float, now_ms: int, changes: Changes) -> tuple[int, int] | None:
        """Begins a new seal: returns its wall time W, and `at`, the last number that was used for
        deltas and seals. Returns None if no seal is due; otherwise, first makes deltas with all
        counts that are in no delta yet. After this call, the caller must make a look, so that the
        look finds every line that was in a file at W.
        """
        if now < self._seal_at and not self.leaving.is_asked:
            return None
        self._seal_at = now + self._settings.seal_interval_ms / 1000
        self._begun_at = now
        self._deltas.cut(now_ms, changes)
        return now_ms, self._deltas.number

    def note_sizes(self, wall_ms: int, at: int, topics: Iterable[str], tracker: Tracker) -> None:
        """Notes, for each topic, the positions in its files that the checkpoint must pass before
        the topic's seal is sent. The seal has the wall time `wall_ms` and the number `at`. If an
        earlier seal of a topic is not sent yet, the positions that were noted for that seal stay.
        Leaves out topics that have an unreadable path or already have their last word.
        """
        topics, waiting = set(topics), {noted.topic for noted in self._noted}
        for gone in self._waiting_since.keys() - topics:
            del self._waiting_since[gone]
        for topic in sorted(topics):
            if topic in waiting or self.leaving.is_done_with(topic):
                continue
            if sealing.held_back_by(topic, tracker.unreadable):
                continue
            noted = _note(topic, wall_ms, at, tracker)
            final = self.leaving.judge(noted, tracker.files)
            since = self._waiting_since.setdefault(topic, self._begun_at)
            fileless = tracker.matches.never_matched().get(topic)
            self._noted.append(replace(noted, final=final, since=since, fileless_since=fileless))
            self._set_backs.noted(topic)

    def held_seals(self, now: float, tracker: Tracker) -> dict[str, dict[str, str]]:
        """Returns, for each topic of which the agent began a seal more than HELD_S ago and has sent
        no seal since, some of the files for which the seal waits: by path, what is missing.
        """
        held = {
            noted.topic: sealing.waits_for(noted, tracker.files)
            for noted in self._noted
            if now - noted.since > sealing.HELD_S
        }
        return {topic: files for topic, files in held.items() if files}

    def review(self, tracker: Tracker) -> None:
        """Checks the files of each topic with a last word (the final seal of a leaving agent). If
        the files have more bytes to read, cannot be read, or may no longer have the bytes that the
        agent read, the agent will take the topic's last word back.
        """
        for topic in self.leaving.at_rest:
            if sealing.held_back_by(topic, tracker.unreadable):
                self.leaving.disturbed(topic)
            else:
                self.leaving.review(_note(topic, 0, 0, tracker), tracker.files)

    def seal(
        self,
        changes: Changes,
        now_ms: int,
        tracker: Tracker,
        topics: Mapping[str, tuple[Source, Source]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Sends the seals that are ready, and drops those whose noted positions do not apply any
        more. For each topic, `note_sizes` has noted a position in each file. The topic's seal is
        ready when all bytes up to these positions are accounted for: acknowledged, left out by
        rules, or declared lost or uncertain. Before the seals, makes deltas with all counts that
        are in no delta yet.
        """
        self._name_unsealed(changes, now_ms, tracker, topics)
        files, doubts = tracker.files, tracker.doubts
        for noted in list(self._noted):
            if sealing.is_void(noted, files, doubts[noted.topic]):
                self._noted.remove(noted)
                self.leaving.disturbed(noted.topic)
        ready = [noted for noted in self._noted if sealing.is_complete(noted, files)]
        if not ready:
            return
        self._deltas.cut(now_ms, changes)
        self._noted = [noted for noted in self._noted if noted not in ready]
        for noted in ready:
            self._set_backs.sealed(noted.topic)
            self._waiting_since.pop(noted.topic, None)
        self._say(ready, changes, now_ms, topics, offsets)

    def _name_unsealed(
        self,
        changes: Changes,
        now_ms: int,
        tracker: Tracker,
        topics: Mapping[str, tuple[Source, Source]],
    ) -> None:
        """Reports to the audit each topic that the agent reads, but could never seal because one of
        the topic's files cannot be read. Without this report, the audit would not know of the
        topic, and would treat the host as if all its topics were sealed. A process reports each
        topic only once.
        """
        held = [
            topic
            for topic in tracker.unreadable
            if topic in topics
            and topic not in self._named
            and self._topics.sealed_until(topic) is None
            and sealing.held_back_by(topic, tracker.unreadable)
        ]
        if held:
            self._named.update(held)
            self._deltas.cut(now_ms, changes)
            at = self._deltas.number
            named = [SealedTopic(topics[each][0], NEVER_SEALED, at) for each in sorted(held)]
            self._deltas.seal(named, now_ms, changes)

    def take_back(
        self,
        changes: Changes,
        now_ms: int,
        topics: Mapping[str, tuple[Source, Source]],
        offsets: Mapping[TopicPartition, int],
        fileless: Mapping[str, int],
    ) -> None:
        """Takes back each last word that is no longer true: sends an ordinary seal in its place. A
        last word is the final seal of an agent that leaves for good. A last word is no longer true
        if the agent continues to read the topic. If the topic was made again, it has no seal yet
        that could be replaced. fileless: for each topic with a source that has never matched a
        file, since when (ms).
        """
        again = self.leaving.take_back()
        if not again:
            return
        changes.put_left(self.leaving.left)
        seals = [
            Noted(topic, word.wall_ms, word.at, 0, {}, fileless_since=fileless.get(topic))
            for topic, word in sorted(again.items())
            if topic in topics and word.wall_ms == self._topics.sealed_until(topic)
        ]
        if seals:
            self._say(seals, changes, now_ms, topics, offsets)

    def _say(
        self,
        seals: Iterable[Noted],
        changes: Changes,
        now_ms: int,
        topics: Mapping[str, tuple[Source, Source]],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        sealed: list[SealedTopic] = []
        for noted in seals:
            for source in topics[noted.topic]:
                last = tuple(
                    (tp.partition, offset)
                    for tp, offset in sorted(offsets.items())
                    if tp.topic == source.topic
                )
                until = noted.vouches_until
                sealed.append(SealedTopic(source, until, noted.at, last, noted.final))
            data, _ = topics[noted.topic]
            self._topics.seal(noted.topic, data.topic_id, noted.wall_ms, changes)
            if self.leaving.said(noted):
                changes.put_left(self.leaving.left)
        self._deltas.seal(sealed, now_ms, changes)


def _note(topic: str, wall_ms: int, at: int, tracker: Tracker) -> Noted:
    files = [tracked for tracked in tracker.files.values() if tracked.birth.topic == topic]
    return sealing.note(topic, wall_ms, at, tracker.doubts[topic], files)
