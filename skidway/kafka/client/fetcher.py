"""The blocking fetcher: reads whole batches of many partitions, from offsets that its caller
sets."""

from __future__ import annotations

from collections.abc import Mapping

from skidway.kafka.client.client import Client
from skidway.kafka.client.fetching import Fetched, Fetching, LogEnd
from skidway.kafka.client.pump import FetchPump
from skidway.kafka.client.transactions import OpenTransaction
from skidway.kafka.types import TopicPartition


class Fetcher:
    """Reads partitions from given offsets up to their high watermarks, and waits there for more.
    The client's isolation level says whether it leaves out the records of aborted transactions, and
    ends where a transaction is open.

    While the caller works on the batches of a `poll`, the next response is already requested.
    """

    def __init__(
        self,
        client: Client,
        *,
        max_bytes: int = 8 * 1024 * 1024,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
    ) -> None:
        """`max_bytes` limits the size of a response. If a response has only a part of the batch
        that a partition needs next, the limit is raised until the whole batch has come."""
        self._client = client
        self._fetching = Fetching(
            max_bytes=max_bytes,
            max_wait_ms=min(max_wait_ms, client.request_timeout_ms // 2),
            min_bytes=min_bytes,
            random=client.random,
            isolation_level=client.isolation_level,
        )
        self._pump = FetchPump(self._fetching, client.session, client.picture)
        self.stopped: TopicPartition | None = None
        """The partition of the last error that `poll` raised."""
        self._errors_due = 0
        """How many errors were queued when `poll` last returned batches. `poll` raises these errors
        before it returns further batches, so that the error of a partition that stopped does not
        wait until the other partitions have no batches left.
        """

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of every partition: after the last batch that `poll` returned, or from
        `seek`."""
        return self._fetching.positions

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        """The end of what can be read of each partition, from the last answer for that partition:
        the high watermark, or the last stable offset if a transaction is open."""
        return self._fetching.high_watermarks

    @property
    def ends(self) -> Mapping[TopicPartition, LogEnd]:
        """The high watermark of each partition, from the last answer for that partition, whether a
        transaction is open or not."""
        return self._fetching.ends

    @property
    def open_transactions(self) -> Mapping[TopicPartition, OpenTransaction]:
        """The partitions in which an open transaction keeps records back, from their last
        answers."""
        return self._fetching.open_transactions

    @property
    def refusals(self) -> Mapping[TopicPartition, tuple[float, str]]:
        """The partitions of which the brokers send nothing now: since when (monotonic seconds), and
        why. The fetcher still requests these partitions."""
        return self._fetching.refusals

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Reads a partition from an offset on, even if the partition was not read before."""
        self._fetching.seek(tp, offset)
        self._client.picture.want(tp.topic)

    def remove(self, tp: TopicPartition) -> None:
        """Stops reading a partition."""
        self._fetching.remove(tp)

    def take_interruptions(self) -> dict[TopicPartition, str]:
        """Returns the partitions that were interrupted since the last call, and why (see
        `Fetching.take_interruptions`)."""
        return self._fetching.take_interruptions()

    def poll(self, timeout_ms: int, *wake: int) -> list[Fetched]:
        """Returns the batches that have arrived, and moves the positions past them. Waits at most
        `timeout_ms` for the first batch.

        Returns early when one of the descriptors `wake` is readable. If a partition cannot be read
        any further, raises OffsetOutOfRange, CorruptBatch or KafkaError once. To read that
        partition again, the caller has to call `seek` for it. The other partitions are still read.
        """
        while self._errors_due:
            self._errors_due -= 1
            self._raise_error()
        clock, client = self._client.clock, self._client
        until = clock.monotonic() + timeout_ms / 1000
        last_look = False
        while True:
            now = clock.monotonic()
            self._pump.advance(now)
            if self._fetching.has_something or last_look:
                break
            due = self._pump.next_deadline(now)
            pause_s = until - now if due is None else min(until, due) - now
            last_look = client.wait(pause_s, wake) or clock.monotonic() >= until
        found, self._errors_due = self._fetching.take(), self._fetching.error_count
        if found:  # request the next batches while the caller works on these
            self._pump.advance(clock.monotonic())
            client.push()
            return found
        self._errors_due = 0
        self._raise_error()
        return []

    def _raise_error(self) -> None:
        stopped = self._fetching.take_error()
        if stopped is not None:
            self.stopped = stopped[0]
            raise stopped[1]
