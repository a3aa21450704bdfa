"""One reader of a group at work: its steps in the group, its fetches, its commits.

Everything happens on the caller's thread, in `turn` and `take`. The rest of this package decides;
this module does what was decided, in the order that `membership` asks for, and lets nothing be
handed out that it cannot prove to own (`holds`).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable

from skidway import log
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.consumer.guard import Guard
from skidway.kafka.consumer.membership import Claim, Look, Membership, Step
from skidway.kafka.consumer.nodes import reader_name
from skidway.kafka.consumer.positions import beginning, reset_offset
from skidway.kafka.consumer.reading import Reading
from skidway.kafka.consumer.registration import Bell, Registration
from skidway.kafka.consumer.registry import Fenced
from skidway.kafka.consumer.settings import ConsumerSettings, Listener
from skidway.kafka.errors import ErrorCode, KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition

LOOK_AGAIN_S = 0.1
"""While ZooKeeper or a broker does not answer, they are asked again this often."""
TURN_LEAST_S = 0.01

_log = log.get(__name__)


class Reader:
    """What a stream stands on. Not for several threads at once."""

    def __init__(
        self,
        client: Client,
        registration: Registration,
        settings: ConsumerSettings,
        topics: tuple[str, ...],
        number: int,
        *,
        fetcher: Fetcher | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Owns the client from now on."""
        self.bell = Bell()
        self.readings: dict[TopicPartition, Reading] = {}
        self._registration = registration
        self._settings = settings
        self._topics = topics
        self._number = number
        self.clock = registration.clock
        self._client = client
        self._fetcher = fetcher or Fetcher(
            client,
            max_bytes=settings.fetch_max_bytes,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
        )
        self._registry = registration.registry()
        self._membership = Membership(random, look_every_s=settings.metadata_max_age_ms / 1000)
        self._guard: Guard | None = None
        self._counts: dict[str, int] = {}
        self._unplaced: dict[TopicPartition, float] = {}  # owned; when to look for the position
        self._buffer: deque[tuple[Reading, memoryview]] = deque()
        self._commit_at = 0.0
        self._due_at = 0.0
        self._paused = False
        self.is_closing = False

    def interrupt(self) -> None:
        """Ends a `take` that waits, and every later one, without anything; from any thread."""
        self.is_closing = True
        self.bell.ring()

    @property
    def is_settled(self) -> bool:
        """Whether it owns and reads what it should, by its newest view of the group."""
        return self._membership.is_settled and not self._unplaced

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermark of each partition in the last answer about it."""
        return self._fetcher.high_watermarks

    @property
    def client(self) -> Client:
        """For questions of the same thread."""
        return self._client

    @property
    def is_clear(self) -> bool:
        """Whether nothing is due and records may be handed out. From any thread."""
        now = self.clock.monotonic()
        return not self.bell.rings and now < self._due_at and now < self._registration.until

    def holds(self) -> bool:
        """Whether records may be handed out now; does first what is due."""
        if self.bell.rings or self.clock.monotonic() >= self._due_at:
            self.turn()
        return self.clock.monotonic() < self._registration.until

    def take(self, timeout_s: float) -> tuple[Reading, memoryview] | None:
        """The next batch of a partition that we own; waits at most so long for one.

        Raises what stops a partition for good: NoOffset, CorruptBatch, KafkaError.
        """
        until = self.clock.monotonic() + timeout_s
        last_look = False
        while self.wait_for_lease(until - self.clock.monotonic()):
            while self._buffer:
                reading, raw = self._buffer.popleft()
                if reading.is_live:
                    return reading, raw
            if last_look or self.is_closing:
                break
            now = self.clock.monotonic()
            self._fetch(max(min(until, self._due_at) - now, 0.0))
            last_look = self.clock.monotonic() >= until
        return None

    def wait_for_lease(self, timeout_s: float) -> bool:
        """Whether records may be handed out; waits at most so long for it."""
        until = self.clock.monotonic() + timeout_s
        while not self.holds():
            now = self.clock.monotonic()
            if now >= until or self.is_closing:
                return False
            self._tell_pause()
            self._client.wait(max(min(until, self._due_at) - now, 0.0), (self.bell.fd,))
        if self._paused:
            self._paused = False
            _log.info("consumer_goes_on", group=self._registration.group)
        return True

    def turn(self) -> None:
        """Does what is due in the group: steps, positions, commits."""
        now = self.clock.monotonic()
        self._due_at = now + LOOK_AGAIN_S
        self._hear(now)
        try:
            if not self._take_part(now):
                return
            while (step := self._membership.next_step(now)) is not None:
                self._do(step, now)
                now = self.clock.monotonic()
            self._place(now)
            if self._settings.enable_auto_commit and now >= self._commit_at:
                self._commit_at = now + self._settings.auto_commit_interval_ms / 1000
                self.commit()
        except Fenced:
            self._fenced()
        except (Unreachable, KafkaError) as error:
            _raise_unless_temporary(error)
            _log.warning("consumer_unanswered", group=self._registration.group, why=str(error))
        else:
            self._due_at = self._next_due(now)

    def commit(self) -> None:
        """Commits what is finished. Raises Unreachable, Fenced."""
        due = [each for each in self.readings.values() if each.is_live and each.is_dirty]
        if due:
            if self._guard is None:
                raise Fenced(f"not registered in group {self._registration.group} now")
            offsets = {each.tp: each.finished for each in due}
            self._registry.commit(self._guard, offsets)
            for each in due:
                each.committed = offsets[each.tp]

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Reads a partition that we own from an offset on."""
        before = self.readings[tp]
        before.is_live = False
        self.readings[tp] = Reading(tp, offset, before.committed)
        self._fetcher.seek(tp, offset)

    def leave(self) -> None:
        """Releases everything, as far as somebody answers; what is not released ends with us."""
        try:
            for tp in sorted(self._membership.owned):
                self._release(tp)
        except Fenced:
            self._fenced()
        except Unreachable as error:
            _log.warning("consumer_left_without_release", why=str(error))

    def close(self) -> None:
        """Closes connections; `leave` first."""
        for reading in self.readings.values():
            reading.is_live = False
        self._client.close()
        self.bell.close()

    # in the group

    def _hear(self, now: float) -> None:
        notes = self.bell.take()
        if self._guard is not None and self._registration.guard is not self._guard:
            self._stop_all()
        if notes.changed:
            self._membership.changed(now)
        for tp in notes.vacated:
            self._membership.vacated(tp, now)

    def _take_part(self, now: float) -> bool:
        """Whether we are registered and ZooKeeper answers; asks where our lease is over."""
        registration = self._registration
        if not registration.is_connected:
            return False
        guard = registration.ensure()
        if guard is None:
            return False
        if guard is not self._guard:
            self._guard = guard
            self._membership.registered(reader_name(guard.name, self._number), now)
        if now >= registration.until:
            if not registration.confirm():
                self._stop_all()
                return False
        elif now >= registration.renew_at:
            registration.renew()
        return True

    def _do(self, step: Step, now: float) -> None:
        try:
            if isinstance(step, Look):
                self._look(now)
            elif isinstance(step, Claim):
                self._claim(step.tp, now)
            else:
                self._release(step.tp)
        except (Unreachable, KafkaError):
            self._membership.unanswered(step, self.clock.monotonic())
            raise

    def _look(self, now: float) -> None:
        watch = self.bell.on_change
        self._registry.watch_cluster(self._topics, watch)
        readers = self._registry.readers(watch)
        self._count_partitions()
        if not self._membership.looked(readers, self._counts, now):
            raise Fenced(f"we are not registered in {self._registration.group} any more")

    def _count_partitions(self) -> None:
        """How many partitions each topic has; what was known of it where nobody can tell now."""
        for name, topic in self._client.metadata(self._topics).topics.items():
            if topic.error is ErrorCode.NONE:
                self._counts[name] = len(topic.partitions)
            elif topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if self._counts.get(name) != 0:
                    _log.warning("consumer_topic_missing", topic=name)
                self._counts[name] = 0

    def _claim(self, tp: TopicPartition, now: float) -> None:
        assert self._guard is not None, "claims follow a registration"
        if self._registry.claim(self._guard, self._reader(), tp, self.bell.on_owner):
            self._membership.claimed(tp)
            self._unplaced[tp] = now
        else:
            self._membership.held(tp, now)

    def _release(self, tp: TopicPartition) -> None:
        assert self._guard is not None, "releases follow a registration"
        if tp not in self._membership.owned:
            self._registry.disclaim(self._guard, self._reader(), tp)
            self._membership.released(tp)
            return
        self._unplaced.pop(tp, None)
        reading = self.readings.get(tp)
        offset = None
        if reading is not None:
            if reading.is_live:
                _tell(self._settings.on_partitions_revoked, tp)
            reading.is_live = False
            self._fetcher.remove(tp)
            if self._settings.enable_auto_commit and reading.is_dirty:
                offset = reading.finished
        self._registry.release(self._guard, tp, offset)
        self._membership.released(tp)
        self.readings.pop(tp, None)
        _log.info("consumer_released", group=self._registration.group, tp=str(tp))

    def _place(self, now: float) -> None:
        """Begins to read what has been claimed."""
        for tp in [tp for tp, at in self._unplaced.items() if at <= now]:
            if tp not in self._membership.owned:
                del self._unplaced[tp]
                continue
            self._unplaced[tp] = now + 1.0  # again then, should nobody answer
            reset = self._settings.auto_offset_reset
            count = self._counts.get(tp.topic, 0)
            start, committed = beginning(self._client, self._registry, tp, count, reset)
            del self._unplaced[tp]
            self.readings[tp] = Reading(tp, start, committed)
            self._fetcher.seek(tp, start)
            if committed is None:
                self._commit_at = now  # so that "latest" is not another place for who follows us
            _log.info("consumer_claimed", group=self._registration.group, tp=str(tp), offset=start)
            _tell(self._settings.on_partitions_assigned, tp)

    def _reader(self) -> str:
        assert self._guard is not None, "who takes part has a name"
        return reader_name(self._guard.name, self._number)

    def _fenced(self) -> None:
        if self._guard is not None:
            self._registration.lost(self._guard.name)
        self._stop_all()

    def _stop_all(self) -> None:
        """Our registration is gone: nothing more is handed out, and nothing committed."""
        for tp, reading in self.readings.items():
            reading.is_live = False
            self._fetcher.remove(tp)
        self.readings.clear()
        self._unplaced.clear()
        self._buffer.clear()
        self._membership.lost()
        self._guard = None

    def _next_due(self, now: float) -> float:
        times = [self._membership.wake_at(), self._registration.renew_at, *self._unplaced.values()]
        if self._settings.enable_auto_commit:
            times.append(max(self._commit_at, now + LOOK_AGAIN_S))
        return min(self._registration.until, max(min(times), now + TURN_LEAST_S))

    # fetching

    def _fetch(self, timeout_s: float) -> None:
        try:
            found = self._fetcher.poll(math.ceil(timeout_s * 1000), self.bell.fd)
        except OffsetOutOfRange as error:
            self._out_of_range(error)
            return
        for fetched in found:
            reading = self.readings.get(fetched.tp)
            if reading is not None:
                self._buffer.extend((reading, raw) for raw in fetched.batches)

    def _out_of_range(self, error: OffsetOutOfRange) -> None:
        """The log does not hold the position any more (retention), or not yet (data loss)."""
        if error.tp not in self.readings:
            return
        to = reset_offset(self._client, error.tp, self._settings.auto_offset_reset, str(error))
        _log.warning(
            "consumer_offset_reset", tp=str(error.tp), requested=error.requested, offset=to
        )
        self.seek(error.tp, to)

    def _tell_pause(self) -> None:
        if not (self._paused or self._registration.is_connected):
            self._paused = True
            why = "ZooKeeper does not answer"
            _log.warning("consumer_paused", group=self._registration.group, why=why)


def _tell(listener: Listener | None, tp: TopicPartition) -> None:
    if listener is not None:
        listener([tp])


def _raise_unless_temporary(error: SkidwayError) -> None:
    if isinstance(error, KafkaError) and not error.retriable:
        raise error
