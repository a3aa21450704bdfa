"""One reader of a group: fetches the partitions that it owns, and hands their batches out.

All work is done on the thread that calls the reader's methods, during these calls. A reader hands
out records of a partition only while it can prove that it owns the partition (`holds`).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Mapping

from skidway import log
from skidway.consumer.positions import reset_offset
from skidway.consumer.reading import Reading
from skidway.consumer.registration import Registration
from skidway.consumer.settings import ConsumerSettings
from skidway.consumer.share import Share, Subscription
from skidway.errors import Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.errors import KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition

_log = log.get(__name__)


class StreamReader:
    """Gets the batches for a stream. Only one thread at a time may use this object."""

    def __init__(
        self,
        client: Client,
        registration: Registration,
        settings: ConsumerSettings,
        subscription: Subscription,
        *,
        fetcher: Fetcher | None = None,
        random: Callable[[], float] = random.random,
    ) -> None:
        """The new reader owns the client: the reader's `close` closes the client."""
        self._registration = registration
        self._settings = settings
        self.clock = registration.clock
        self._client = client
        self._fetcher = fetcher or Fetcher(
            client,
            max_bytes=settings.fetch_max_bytes,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
        )
        self._share = Share(client, self._fetcher, registration, settings, subscription, random)
        self.bell = self._share.bell
        self._buffer: deque[tuple[Reading, memoryview]] = deque()
        self._paused = False
        self.is_closing = False

    def interrupt(self) -> None:
        """Ends the wait of a `take` that is waiting for a batch. Later calls of `take` do not wait
        for a batch. Any thread may call this method.
        """
        self.is_closing = True
        self.bell.ring()

    @property
    def is_settled(self) -> bool:
        """Whether the reader owns and reads every partition of its newest assignment."""
        return self._share.is_settled

    @property
    def readings(self) -> Mapping[TopicPartition, Reading]:
        """The partitions that are read now, each with its `Reading`."""
        return self._share.readings

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The high watermark of each partition, as the broker last reported it."""
        return self._fetcher.high_watermarks

    @property
    def client(self) -> Client:
        """The client, for other requests on the thread that uses this reader."""
        return self._client

    @property
    def is_clear(self) -> bool:
        """Whether records may be handed out and no work for the group (such as a claim) is due. Any
        thread may read this property."""
        now = self.clock.monotonic()
        return not self.bell.rings and now < self._share.due_at and now < self._registration.until

    def holds(self) -> bool:
        """Does the work for the group that is due now; for example, claims a partition. Then
        returns whether records may be handed out now."""
        if self.bell.rings or self.clock.monotonic() >= self._share.due_at:
            self._share.turn()
        return self.clock.monotonic() < self._registration.until

    def take(self, timeout_s: float) -> tuple[Reading, memoryview] | None:
        """Returns the next batch of a partition that this reader owns. Waits at most `timeout_s`
        for a batch. Returns None if no batch has come by then, or after `interrupt`.

        Raises NoOffset, CorruptBatch or KafkaError if a partition cannot be read. A later call
        tries to read the partition again. Raises GroupCoordinated if stock Kafka clients are
        members of the group.
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
            self._fetch(max(min(until, self._share.due_at) - now, 0.0))
            last_look = self.clock.monotonic() >= until
        return None

    def wait_for_lease(self, timeout_s: float) -> bool:
        """Waits until records may be handed out, but at most `timeout_s`. Returns whether records
        may be handed out."""
        until = self.clock.monotonic() + timeout_s
        while not self.holds():
            now = self.clock.monotonic()
            if now >= until or self.is_closing:
                return False
            self._tell_pause()
            self._client.wait(max(min(until, self._share.due_at) - now, 0.0), (self.bell.fd,))
        if self._paused:
            self._paused = False
            _log.info("consumer_goes_on", group=self._registration.group)
        return True

    def commit(self) -> None:
        """Commits the offsets of finished records. Raises Unreachable if ZooKeeper does not answer,
        and Fenced if the registration or a partition's owner node is gone.
        """
        self._share.commit()

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continues to read a partition at the given offset. This reader must own the partition."""
        self._share.seek(tp, offset)

    def leave(self) -> None:
        """Releases all partitions, one after the other."""
        self._share.leave()

    def close(self) -> None:
        """Closes the connections. Call `leave` first."""
        for reading in self.readings.values():
            reading.is_live = False
        self._client.close()
        self.bell.close()

    # fetching

    def _fetch(self, timeout_s: float) -> None:
        try:
            found = self._fetcher.poll(math.ceil(timeout_s * 1000), self.bell.fd)
        except OffsetOutOfRange as error:
            self._out_of_range(error)
            return
        except (CorruptBatch, KafkaError):
            self._fetch_again()
            raise
        for fetched in found:
            reading = self.readings.get(fetched.tp)
            if reading is not None:
                self._buffer.extend((reading, raw) for raw in fetched.batches)

    def _fetch_again(self) -> None:
        """Makes the fetcher read the partition of its last error again, from the same offset on.

        The fetcher raises an error once and then leaves the partition out. Without this method, the
        reader would keep the partition, and nobody would read it.
        """
        tp = self._fetcher.stopped
        assert tp is not None, "the fetcher names the partition of an error"
        self._fetcher.seek(tp, self._fetcher.positions[tp])

    def _out_of_range(self, error: OffsetOutOfRange) -> None:
        """Called if a partition's next offset to fetch is before the log start (because of
        retention) or after the log end (because of data loss). Continues to read the partition at
        the offset that `auto.offset.reset` chooses.
        """
        if error.tp not in self.readings:
            return
        try:
            to = reset_offset(self._client, error.tp, self._settings.auto_offset_reset, str(error))
        except (Unreachable, KafkaError) as failure:
            # The next fetch asks for the same offset, and reports the same error again. Without
            # this `seek`, nobody would fetch this partition any more.
            self._fetcher.seek(error.tp, error.requested)
            if isinstance(failure, KafkaError) and not failure.retriable:
                raise
            _log.warning("consumer_offset_not_reset", tp=str(error.tp), reason=str(failure))
            return
        _log.warning(
            "consumer_offset_reset", tp=str(error.tp), requested=error.requested, offset=to
        )
        self.seek(error.tp, to)

    def _tell_pause(self) -> None:
        if not (self._paused or self._registration.is_connected):
            self._paused = True
            why = "ZooKeeper does not answer"
            _log.warning("consumer_paused", group=self._registration.group, why=why)
