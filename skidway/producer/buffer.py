"""A buffer of limited size for accepted messages that are not delivered yet. The messages are in
batches, and each send has a future.

One lock protects the buffer. Threads that call `send` take this lock to add messages. The sender's
thread takes the lock to remove batches from the buffer (`sender.Batches`).
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.client.delivery import BufferFull
from skidway.kafka.types import TopicPartition
from skidway.producer.accumulator import Accumulator, Messages, PendingBatch, as_many
from skidway.producer.directory import KnownTopic
from skidway.producer.partitioner import Segment, StickyPartitions
from skidway.producer.sending import Sending
from skidway.producer.settings import ProducerSettings


class Buffer:
    """The accepted messages. Any thread may add messages; the sender's thread removes batches. The
    function `wake` wakes the sender's thread."""

    def __init__(self, settings: ProducerSettings, clock: Clock, wake: Callable[[], None]) -> None:
        self.end: BaseException | None = None
        """The reason why no more messages are accepted. None while messages are accepted."""
        self._settings = settings
        self._clock = clock
        self._wake = wake
        self._changed = threading.Condition()
        self._accumulator = Accumulator(settings.linger_ms / 1000)
        self._sticky = StickyPartitions(random.choice)
        self._buffered_bytes = 0
        self._flushing = 0
        self._numbers = itertools.count()
        self._sendings: dict[int, Sending] = {}  # calls of `send` with undelivered messages
        self._abandoned = 0

    @property
    def size_bytes(self) -> int:
        """The bytes of all undelivered messages, including their keys and a fixed number of bytes
        for each message's other fields."""
        return self._buffered_bytes

    def queue(
        self,
        topic: str,
        known: KnownTopic,
        messages: Messages,
        where: Iterable[Segment],
        *,
        single: bool,
    ) -> Future[Any]:
        """Adds the messages to batches. If the buffer has no room for the next message, waits for
        room. Raises BufferFull if there is still no room after `max.block.ms`, and SkidwayError if
        the buffer accepts no more messages. After BufferFull, the messages that are already in
        batches are still sent.
        """
        sizes, count = messages.sizes(), len(messages.values)
        with self._changed:
            sending = Sending(next(self._numbers), count, single=single)
            if count:
                self._sendings[sending.number] = sending
            for partition, start, end in where:
                while start < end:
                    try:
                        self._wait_for_room(sizes[start])
                    # An interruption (KeyboardInterrupt) is reported to `sending`, too: otherwise a
                    # flush would wait for these messages forever.
                    except BaseException as error:
                        why = error if isinstance(error, Exception) else SkidwayError("interrupted")
                        if sending.failed(count - start, why):
                            self._sendings.pop(sending.number, None)
                        raise
                    tp, room = self._batch(topic, known, partition, sizes[start])
                    room = min(room, self._settings.buffer_memory - self._buffered_bytes)
                    stop, size_bytes = as_many(sizes, start, end, room)
                    self._accumulator.extend(tp, messages, start, stop, size_bytes, sending)
                    self._buffered_bytes += size_bytes
                    start = stop
            return sending.future

    def flush(self, timeout_s: float) -> tuple[bool, int]:
        """Waits at most `timeout_s` until all earlier sends are done, or the buffer accepts no more
        messages. Returns whether one of the two happened in time, and how many sends of the
        producer are not done."""
        with self._changed:
            last = next(reversed(self._sendings), -1)
            self._flushing += 1
            self._wake()
            try:
                done = self._changed.wait_for(lambda: self._is_done_to(last), timeout_s)
            finally:
                self._flushing -= 1
            return done, len(self._sendings) + self._abandoned

    def require_open(self) -> None:
        """Raises SkidwayError if the buffer accepts no more messages."""
        if self.end is not None:
            raise SkidwayError(f"the producer has ended: {self.end}")

    def close(self, why: BaseException) -> None:
        """Stops accepting messages. Threads that wait for room raise an error with the reason
        `why`."""
        with self._changed:
            self.end = self.end or why
            self._changed.notify_all()

    def abandon(self, why: str) -> None:
        """Lets all remaining sends fail, so that no thread waits for them forever."""
        with self._changed:
            left, self._sendings = list(self._sendings.values()), {}
            self._abandoned += len(left)
            self._changed.notify_all()
        for sending in left:
            sending.abandon(SkidwayError(why))

    # methods that the sender's thread calls

    def ready(self) -> Iterable[PendingBatch]:
        """See `sender.Batches`."""
        with self._changed:
            everything = self._flushing > 0
            return list(self._accumulator.take(self._clock.monotonic(), everything=everything))

    def next_deadline(self) -> float:
        with self._changed:
            return self._accumulator.next_deadline()

    def delivered(self, batch: PendingBatch, base_offset: int) -> None:
        self._finished(batch, batch.delivered(base_offset))

    def failed(self, batch: PendingBatch, error: Exception) -> None:
        self._finished(batch, batch.failed(error))

    def died(self, error: BaseException) -> None:
        self.close(error)
        self.abandon(f"the producer has ended: {error}")

    def _finished(self, batch: PendingBatch, complete: list[Sending]) -> None:
        with self._changed:
            self._buffered_bytes -= batch.size_bytes
            for sending in complete:
                self._sendings.pop(sending.number, None)
            self._changed.notify_all()

    # internal methods

    def _batch(
        self, topic: str, known: KnownTopic, partition: int | None, size_bytes: int
    ) -> tuple[TopicPartition, int]:
        """Returns a partition whose open batch (the batch that is being filled) can take a message
        of `size_bytes`, and how many bytes this batch can still take. If there is no such batch,
        begins one."""
        limit, accumulator = known.limit_bytes, self._accumulator
        chosen = self._sticky.present(topic) if partition is None else partition
        if chosen is not None:
            tp = TopicPartition(topic, chosen)
            room = accumulator.room(tp, limit)
            if room >= size_bytes:
                return tp, room
        if partition is None:
            chosen = self._sticky.next(topic, known.available)
        assert chosen is not None, "given or chosen"
        tp = TopicPartition(topic, chosen)
        if accumulator.room(tp, limit) < size_bytes:
            accumulator.begin(tp, self._clock.monotonic())
            self._wake()
        return tp, max(accumulator.room(tp, limit), size_bytes)

    def _wait_for_room(self, size_bytes: int) -> None:
        """Waits until the buffer has room for a message. A message that is larger than the whole
        buffer is accepted when the buffer is empty."""
        most = self._settings.buffer_memory

        def has_room() -> bool:
            used = self._buffered_bytes
            return self.end is not None or used == 0 or used + size_bytes <= most

        if not has_room() and not self._wait_for(has_room):
            raise BufferFull(
                f"{most} bytes of messages wait to be acknowledged; no room came free "
                f"within {self._settings.max_block_ms} ms"
            )
        self.require_open()

    def _wait_for(self, has_room: Callable[[], bool]) -> bool:
        """Waits at most `max.block.ms` for room. Returns whether there is room. Meanwhile all
        batches are sent without waiting for `linger.ms`, to make room."""
        self._flushing += 1
        self._wake()
        try:
            return self._changed.wait_for(has_room, self._settings.max_block_ms / 1000)
        finally:
            self._flushing -= 1

    def _is_done_to(self, number: int) -> bool:
        if self.end is not None:
            return True
        return next(iter(self._sendings), number + 1) > number
