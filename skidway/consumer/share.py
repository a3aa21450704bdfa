"""One reader's part in its group: claims and releases partitions, finds start positions, and
commits.

`membership` decides the next step. This module carries out each step on the thread that calls
`turn`. The module `reader` fetches records and hands them out. A release, a seek, or the loss of
the registration ends a partition's `Reading` (`is_live` is then False); after that, `reader` must
hand out no more records of this `Reading`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skidway import log
from skidway.consumer.guard import Guard
from skidway.consumer.membership import Claim, Look, Membership, Step
from skidway.consumer.nodes import reader_name
from skidway.consumer.positions import beginning
from skidway.consumer.reading import Reading
from skidway.consumer.registration import Bell, Registration
from skidway.consumer.registry import Fenced
from skidway.consumer.settings import ConsumerSettings, Listener
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition

LOOK_AGAIN_S = 0.1
"""Seconds between two requests to a ZooKeeper or a broker that does not answer."""
TURN_LEAST_S = 0.01

_log = log.get(__name__)


class Subscription(NamedTuple):
    """The topics of a reader. `number` is the index of this reader among the readers of its
    consumer."""

    topics: tuple[str, ...]
    number: int


class Share:
    """The partitions that a reader owns, and the methods that claim, release and commit them. Only
    one thread at a time may use a `Share`."""

    def __init__(
        self,
        client: Client,
        fetcher: Fetcher,
        registration: Registration,
        settings: ConsumerSettings,
        subscription: Subscription,
        random: Callable[[], float],
    ) -> None:
        self.bell = Bell()
        self.readings: dict[TopicPartition, Reading] = {}
        self.due_at = 0.0
        """The time (monotonic seconds) at which to call `turn` next. If another thread rings the
        `bell` earlier, call `turn` at once.
        """
        self.clock = registration.clock
        self._client = client
        self._fetcher = fetcher
        self._registration = registration
        self._settings = settings
        self._topics, self._number = subscription
        self._registry = registration.registry()
        self._membership = Membership(random, look_every_s=settings.metadata_max_age_ms / 1000)
        self._guard: Guard | None = None
        self._counts: dict[str, int] = {}
        # For each owned partition that is not read yet: the time at which to ask for its start
        # position.
        self._unplaced: dict[TopicPartition, float] = {}
        self._commit_at = 0.0

    @property
    def is_settled(self) -> bool:
        """Whether the reader owns and reads every partition of its newest assignment."""
        return self._membership.is_settled and not self._unplaced

    def turn(self) -> None:
        """Does everything that is due in the group: reads who is registered, claims and releases
        partitions, finds start positions, and commits."""
        now = self.clock.monotonic()
        self.due_at = now + LOOK_AGAIN_S
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
            self.due_at = self._next_due(now)

    def commit(self) -> None:
        """Commits the offsets of finished records. Raises Unreachable if ZooKeeper does not answer,
        and Fenced if the registration or a partition's owner node is gone.
        """
        due = [each for each in self.readings.values() if each.is_live and each.is_dirty]
        if due:
            if self._guard is None:
                raise Fenced(f"not registered in group {self._registration.group} now")
            offsets = {each.tp: each.finished for each in due}
            self._registry.commit(self._guard, offsets)
            for each in due:
                each.committed = offsets[each.tp]

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continues to read a partition at the given offset. This reader must own the partition."""
        before = self.readings[tp]
        before.is_live = False
        self.readings[tp] = Reading(tp, offset, before.committed)
        self._fetcher.seek(tp, offset)

    def leave(self) -> None:
        """Releases all partitions, one after the other. If ZooKeeper stops answering, this method
        ends early. ZooKeeper then removes the remaining owner nodes when the session ends.

        Without this early end, this method would wait for the answer about each remaining
        partition, and the consumer's next stream would be released late.
        """
        if not self._registration.is_connected:
            _log.warning("consumer_left_without_release", why="ZooKeeper does not answer")
            return
        try:
            for tp in sorted(self._membership.owned):
                self._release(tp)
        except Fenced:
            self._fenced()
        except Unreachable as error:
            _log.warning("consumer_left_without_release", why=str(error))

    def _hear(self, now: float) -> None:
        notes = self.bell.take()
        if self._guard is not None and self._registration.guard is not self._guard:
            self._stop_all()
        if notes.changed:
            self._membership.changed(now)
        for tp in notes.vacated:
            self._membership.vacated(tp, now)

    def _take_part(self, now: float) -> bool:
        """Registers the consumer if it is not registered. Returns whether the consumer is
        registered and ZooKeeper is connected. If the lease is over (see `Registration.until`),
        first waits until ZooKeeper says whether the registration still exists.
        """
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
        """Asks how many partitions each topic has. A topic that does not exist has 0 partitions. If
        the brokers answer with any other error for a topic, keeps the last known number."""
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
        """Finds the start position of each claimed partition, and begins to read the partition."""
        for tp in [tp for tp, at in self._unplaced.items() if at <= now]:
            if tp not in self._membership.owned:
                del self._unplaced[tp]
                continue
            self._unplaced[tp] = now + 1.0  # the time to ask again if no answer comes now
            reset = self._settings.auto_offset_reset
            count = self._counts.get(tp.topic, 0)
            start, committed = beginning(self._client, self._registry, tp, count, reset)
            del self._unplaced[tp]
            self.readings[tp] = Reading(tp, start, committed)
            self._fetcher.seek(tp, start)
            if committed is None:
                # The start position is committed soon, because after a restart without a committed
                # offset, "latest" could skip records.
                self._commit_at = now
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
        """Stops reading all partitions, because the registration is gone. Hands out no more
        records, and commits no more offsets."""
        for tp, reading in self.readings.items():
            reading.is_live = False
            self._fetcher.remove(tp)
        self.readings.clear()
        self._unplaced.clear()
        self._membership.lost()
        self._guard = None

    def _next_due(self, now: float) -> float:
        times = [self._membership.wake_at(), self._registration.renew_at, *self._unplaced.values()]
        if self._settings.enable_auto_commit:
            times.append(max(self._commit_at, now + LOOK_AGAIN_S))
        return min(self._registration.until, max(min(times), now + TURN_LEAST_S))


def _tell(listener: Listener | None, tp: TopicPartition) -> None:
    if listener is not None:
        listener([tp])


def _raise_unless_temporary(error: SkidwayError) -> None:
    if isinstance(error, KafkaError) and not error.retriable:
        raise error
