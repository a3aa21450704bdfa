"""The public face of the producer."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, Unpack, overload

from skidway.clock import Clock, SystemClock
from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.kafka import client as core
from skidway.kafka.client.cluster import parse_bootstrap
from skidway.kafka.client.delivery import BufferFull
from skidway.kafka.producer.accumulator import Accumulator, Messages, PendingBatch, as_many
from skidway.kafka.producer.directory import Directory, KnownTopic
from skidway.kafka.producer.partitioner import Partitioner, Segment, StickyPartitions, segments
from skidway.kafka.producer.sender import Outgoing, Sender
from skidway.kafka.producer.sending import RecordMetadata, Sending
from skidway.kafka.producer.settings import ProducerOptions, ProducerSettings
from skidway.kafka.types import TopicPartition

Value = bytes | None


class Producer:
    """Sends messages to topics; for several threads.

        with Producer("broker:9092") as producer:
            where = producer.send("clicks", b"a message", key=b"user-7").result()

    Leaving the block waits until everything is delivered. Settings are those of `ProducerSettings`.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        clock: Clock | None = None,
        **settings: Unpack[ProducerOptions],
    ) -> None:
        """Connects when it is first used. UsageError for settings that make no sense."""
        parse_bootstrap(bootstrap_servers)
        self._bootstrap = bootstrap_servers
        self._settings = _settings(settings)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._changed = threading.Condition()
        self._accumulator = Accumulator(self._settings.linger_ms / 1000)
        self._sticky = StickyPartitions(random.choice)
        self._buffered_bytes = 0
        self._flushing = 0
        self._numbers = itertools.count()
        self._sendings: dict[int, Sending] = {}  # not complete, in their order
        self._end: BaseException | None = None
        self._abandoned = 0
        self._closed = False
        self._directory = Directory(
            self._client(asked_within_ms=max(self._settings.max_block_ms, ASKED_LEAST_MS)),
            batch_size=self._settings.batch_size,
            age_max_s=self._settings.metadata_max_age_ms / 1000,
            clock=self._clock,
        )
        self._sender = Sender(self._connect, self)

    @overload
    def send(
        self,
        topic: str,
        messages: Value,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[RecordMetadata]: ...

    @overload
    def send(
        self,
        topic: str,
        messages: Sequence[Value],
        *,
        key: bytes | Sequence[bytes | None] | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[list[RecordMetadata]]: ...

    def send(
        self,
        topic: str,
        messages: Value | Sequence[Value],
        *,
        key: bytes | Sequence[bytes | None] | None = None,
        partition: int | None = None,
        partitioner: Partitioner | None = None,
        timestamp_ms: int | None = None,
    ) -> Future[Any]:
        """Queues one message, or a set of messages; the future tells where they are, or why not.

        A message goes to `partition` if given, where `partitioner` says if given, else by its key
        as Kafka does, else to any partition. `key`: of all messages, or one for each.
        `timestamp_ms`: now, if not given.

        Waits while the buffer is full; BufferFull after max_block_ms. KafkaError for a topic or
        partition that does not exist, Unreachable where no broker tells of it, both after
        max_block_ms as well. UsageError for what is no message.
        """
        if self._end is not None:
            raise SkidwayError(f"the producer has ended: {self._end}")
        single = messages is None or isinstance(messages, bytes | bytearray | memoryview)
        values: Sequence[Any] = [messages] if single else messages  # type: ignore[assignment]
        keys = _keys_of(key, len(values))
        known = self._directory.topic(topic, self._settings.max_block_ms / 1000, partition or 0)
        where = segments(topic, known.partitions, keys, values, partition, partitioner)
        timestamp = self._clock.time_ms() if timestamp_ms is None else timestamp_ms
        own_keys = None if key is None else keys
        messages_ = Messages(own_keys, [_bytes(value) for value in values], timestamp)
        return self._queue(topic, known, messages_, where, single=single)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Waits until all that was sent before is delivered or refused; futures say which.

        Raises Unreachable when that takes longer than `timeout_ms` (delivery_timeout_ms).
        """
        timeout_ms = self._settings.delivery_timeout_ms if timeout_ms is None else timeout_ms
        with self._changed:
            last = next(reversed(self._sendings), -1)
            self._flushing += 1
            self._sender.wake()
            done = self._changed.wait_for(lambda: self._is_done_to(last), timeout_ms / 1000)
            self._flushing -= 1
            left = len(self._sendings) + self._abandoned
            end = self._end
        if end is not None and left:
            raise SkidwayError(f"{left} sends not delivered, the producer has ended: {end}")
        if not done:
            trouble = next(iter(self._sender.troubles().values()), "no broker answers")
            raise Unreachable(f"{left} sends not acknowledged after {timeout_ms} ms: {trouble}")

    def close(self, timeout_ms: int | None = None) -> None:
        """Flushes, and ends; what is not delivered by then is failed. Raises as `flush` does."""
        try:
            if not self._closed:
                self.flush(timeout_ms)
        finally:
            self._shut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # for the sender's thread

    def ready(self) -> Iterable[PendingBatch]:
        """See `sender.Batches`."""
        with self._changed:
            everything = self._flushing > 0
            return list(self._accumulator.take(self._clock.monotonic(), everything=everything))

    def next_deadline(self) -> float:
        """See `sender.Batches`."""
        with self._changed:
            return self._accumulator.next_deadline()

    def delivered(self, batch: PendingBatch, base_offset: int) -> None:
        """See `sender.Batches`."""
        self._finished(batch, batch.delivered(base_offset))

    def failed(self, batch: PendingBatch, error: Exception) -> None:
        """See `sender.Batches`."""
        self._finished(batch, batch.failed(error))

    def died(self, error: BaseException) -> None:
        """See `sender.Batches`."""
        with self._changed:
            self._end = self._end or error
            self._changed.notify_all()
        self._abandon(f"the producer has ended: {error}")

    def _finished(self, batch: PendingBatch, complete: list[Sending]) -> None:
        with self._changed:
            self._buffered_bytes -= batch.size_bytes
            for sending in complete:
                self._sendings.pop(sending.number, None)
            self._changed.notify_all()

    # inside

    def _queue(
        self,
        topic: str,
        known: KnownTopic,
        messages: Messages,
        where: Iterable[Segment],
        *,
        single: bool,
    ) -> Future[Any]:
        sizes, count = messages.sizes(), len(messages.values)
        with self._changed:
            sending = Sending(next(self._numbers), count, single=single)
            if count:
                self._sendings[sending.number] = sending
            for partition, start, end in where:
                while start < end:
                    try:
                        self._wait_for_room(sizes[start])
                    except BaseException as error:  # also Ctrl-C: a flush would wait for the rest
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

    def _batch(
        self, topic: str, known: KnownTopic, partition: int | None, size_bytes: int
    ) -> tuple[TopicPartition, int]:
        """A batch that takes at least one message of a size, and how many bytes it takes."""
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
            self._sender.wake()
        return tp, max(accumulator.room(tp, limit), size_bytes)

    def _wait_for_room(self, size_bytes: int) -> None:
        """A message larger than the whole buffer is let in alone."""
        most = self._settings.buffer_memory

        def has_room() -> bool:
            used = self._buffered_bytes
            return self._end is not None or used == 0 or used + size_bytes <= most

        if not has_room() and not self._wait_for(has_room):
            raise BufferFull(
                f"{most} bytes of messages wait to be acknowledged, for "
                f"{self._settings.max_block_ms} ms now"
            )
        if self._end is not None:
            raise SkidwayError(f"the producer has ended: {self._end}")

    def _wait_for(self, has_room: Callable[[], bool]) -> bool:
        """Whatever linger says, all that is there goes: nothing else makes room."""
        self._flushing += 1
        self._sender.wake()
        try:
            return self._changed.wait_for(has_room, self._settings.max_block_ms / 1000)
        finally:
            self._flushing -= 1

    def _is_done_to(self, number: int) -> bool:
        if self._end is not None:
            return True
        return next(iter(self._sendings), number + 1) > number

    def _shut(self) -> None:
        """Ends the thread; what is not delivered is failed."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._end = self._end or SkidwayError("the producer was closed")
            self._changed.notify_all()
        self._sender.stop()
        self._directory.close()
        self._abandon("the producer was closed before the broker acknowledged")

    def _abandon(self, why: str) -> None:
        """Nobody may wait for ever for what will never be told."""
        with self._changed:
            left, self._sendings = list(self._sendings.values()), {}
            self._abandoned += len(left)
            self._changed.notify_all()
        for sending in left:
            sending.abandon(SkidwayError(why))

    def _client(self, *, asked_within_ms: int | None = None) -> core.Client:
        timeout_ms = self._settings.request_timeout_ms
        return core.Client(
            self._bootstrap,
            client_id=self._settings.client_id,
            request_timeout_ms=min(timeout_ms, asked_within_ms or timeout_ms),
            clock=self._clock,
        )

    def _connect(self) -> tuple[core.Client, Outgoing]:
        """On the sender's thread."""
        settings, client = self._settings, self._client()
        producer = core.Producer(
            client,
            acks=settings.acks_number,
            idempotent=settings.enable_idempotence,
            max_in_flight=settings.max_in_flight_requests_per_connection,
            max_buffered_bytes=_UNBOUNDED,  # `buffer.memory` bounds it before
        )
        return client, Outgoing(producer, self, settings.codec)


_UNBOUNDED = 1 << 62
ASKED_LEAST_MS = 100
"""How long a broker has for an answer about a topic, however short `max.block.ms` is."""


def _settings(options: ProducerOptions) -> ProducerSettings:
    try:
        return ProducerSettings(**options)
    except TypeError as error:
        raise UsageError(f"producer settings: {error}") from error


def _keys_of(key: Any, count: int) -> Sequence[bytes | None]:
    if key is None or isinstance(key, bytes | bytearray | memoryview):
        return [_bytes(key)] * count
    if len(key) != count:
        raise UsageError(f"{len(key)} keys for {count} messages")
    return list(key)


def _bytes(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    raise UsageError(f"messages and keys are bytes or None, not {type(data).__name__}")
