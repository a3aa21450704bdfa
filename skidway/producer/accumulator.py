"""Gathers messages into batches. A batch is ready to be sent when it is full, when `linger.ms` has
passed, or while a flush is running or a `send` waits for room in the buffer.

This module does no I/O, reads no clock, and has no lock. The producer's lock protects the objects
of this module.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from skidway.kafka.batch import EncodedBatch
from skidway.kafka.codecs import Codec
from skidway.kafka.columns import RECORD_OVERHEAD_MAX, encode
from skidway.kafka.types import TopicPartition
from skidway.producer.sending import Sending

AHEAD = 1_000
"""`as_many` adds the sizes of this many messages at once, as long as all these messages fit into
the parameter `room`. Then it adds the size of one message after the other.
"""


class Messages(NamedTuple):
    """Messages to send. `keys` is None if no message has a key; otherwise it has an entry for each
    message, which may be None. All messages have the same timestamp (ms)."""

    keys: Sequence[bytes | None] | None
    values: Sequence[bytes | None]
    timestamp: int

    def sizes(self) -> list[int]:
        """Returns, for each message, the largest number of bytes that the message can take in an
        uncompressed batch."""
        if self.keys is None:
            values = [value or b"" for value in self.values]
            return [size + RECORD_OVERHEAD_MAX for size in map(len, values)]
        pairs = zip(self.keys, self.values, strict=True)
        return [len(key or b"") + len(value or b"") + RECORD_OVERHEAD_MAX for key, value in pairs]


class _Run(NamedTuple):
    """Consecutive messages in a batch that come from one sending (the messages of one `send`). The
    first of these messages has the index `first` in the sending, and the index `start` in the
    batch."""

    sending: Sending
    first: int
    start: int
    length: int


class PendingBatch:
    """Messages of one partition that will become one batch."""

    __slots__ = ("_runs", "keys", "opened_at", "size_bytes", "timestamps", "tp", "values")

    def __init__(self, tp: TopicPartition, opened_at: float) -> None:
        self.tp = tp
        self.opened_at = opened_at
        self.size_bytes = 0
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self._runs: list[_Run] = []

    def __len__(self) -> int:
        return len(self.values)

    def extend(
        self, messages: Messages, start: int, end: int, size_bytes: int, sending: Sending
    ) -> None:
        """Adds those messages of one `send` that have the indexes `start` to `end` (excluded).
        `size_bytes` is the sum of their sizes."""
        keys, count = messages.keys, end - start
        self._runs.append(_Run(sending, start, len(self.values), count))
        self.keys += [None] * count if keys is None else keys[start:end]
        self.values += messages.values[start:end]
        self.timestamps += [messages.timestamp] * count
        self.size_bytes += size_bytes

    def encode(self, codec: Codec) -> EncodedBatch:
        """Returns the messages as a record batch."""
        has_keys = self.keys.count(None) < len(self.keys)
        keys = pa.array(self.keys, pa.binary()) if has_keys else None
        times = np.array(self.timestamps, np.int64)
        return encode(pa.array(self.values, pa.binary()), times, keys=keys, codec=codec)

    def halves(self) -> tuple[Self, Self]:
        """Returns two batches that together have the messages of this batch. There must be at least
        two messages."""
        middle = len(self.values) // 2
        return self._part(0, middle), self._part(middle, len(self.values))

    def _part(self, start: int, end: int) -> Self:
        part = type(self)(self.tp, self.opened_at)
        part.keys, part.values = self.keys[start:end], self.values[start:end]
        part.timestamps = self.timestamps[start:end]
        for run in self._runs:
            low, high = max(run.start, start), min(run.start + run.length, end)
            if low < high:
                first = run.first + low - run.start
                part._runs.append(_Run(run.sending, first, low - start, high - low))
        whole = Messages(part.keys, part.values, 0)
        part.size_bytes = sum(whole.sizes())
        return part

    def delivered(self, base_offset: int) -> list[Sending]:
        """Notes that the broker has the batch. Returns the sendings (calls of `send`) whose
        messages are now all delivered or failed.
        """
        return [
            run.sending
            for run in self._runs
            if run.sending.delivered(
                run.first,
                self.tp,
                base_offset + run.start if base_offset >= 0 else -1,
                self.timestamps[run.start : run.start + run.length],
            )
        ]

    def failed(self, error: Exception) -> list[Sending]:
        """Notes that the batch will not be delivered. Returns the sendings whose messages are now
        all delivered or failed.
        """
        return [run.sending for run in self._runs if run.sending.failed(run.length, error)]


class Accumulator:
    """The batches that are not sent yet: at most one open batch per partition, which is being
    filled, and the full batches."""

    def __init__(self, linger_s: float) -> None:
        self._linger_s = linger_s
        self._open: dict[TopicPartition, PendingBatch] = {}
        self._full: deque[PendingBatch] = deque()

    def room(self, tp: TopicPartition, limit_bytes: int) -> int:
        """Returns how many more bytes the partition's open batch (the batch that is being filled)
        can take, or 0 if the partition has no open batch."""
        batch = self._open.get(tp)
        return 0 if batch is None else max(limit_bytes - batch.size_bytes, 0)

    def begin(self, tp: TopicPartition, now: float) -> None:
        """Begins a batch of a partition. From now on the partition's previous batch gets no more
        messages, as if it were full."""
        before = self._open.pop(tp, None)
        if before is not None:
            self._full.append(before)
        self._open[tp] = PendingBatch(tp, now)

    def extend(
        self,
        tp: TopicPartition,
        messages: Messages,
        start: int,
        end: int,
        size_bytes: int,
        sending: Sending,
    ) -> None:
        """Adds those messages of one `send` that have the indexes `start` to `end` (excluded) to
        the partition's open batch. `size_bytes` is the sum of their sizes."""
        self._open[tp].extend(messages, start, end, size_bytes, sending)

    def take(self, now: float, *, everything: bool = False) -> Iterator[PendingBatch]:
        """Yields the batches that are ready: first the full batches, in the order in which they
        became full, then the open batches, in the order in which they were begun. So the batches of
        one partition come in order. With `everything`, all batches are ready."""
        while self._full:
            yield self._full.popleft()
        for tp, batch in list(self._open.items()):
            if not (everything or now >= batch.opened_at + self._linger_s):
                break  # the batches are sorted by the time at which they were begun
            del self._open[tp]
            yield batch

    def next_deadline(self) -> float:
        """Returns the time at which the next batch is ready. If a batch is full, the time is -inf.
        If there is no batch, the time is inf. Otherwise the time is `linger.ms` after the oldest
        batch was begun."""
        if self._full:
            return float("-inf")
        first = next(iter(self._open.values()), None)
        return float("inf") if first is None else first.opened_at + self._linger_s

    def drain(self) -> list[PendingBatch]:
        """Removes all batches without sending them, and returns these batches."""
        return list(self.take(0.0, everything=True))


def as_many(sizes: list[int], start: int, end: int, room: int) -> tuple[int, int]:
    """Finds how many messages from `start` on fit into `room` bytes. The first message counts as
    fitting even if it is larger. Returns the index after the last message that fits, and the total
    size in bytes of the messages that fit."""
    stop, used = start, 0
    while stop < end:
        ahead = min(stop + AHEAD, end)
        more = sum(sizes[stop:ahead])
        if used + more > room:
            break
        stop, used = ahead, used + more
    while stop < end and (stop == start or used + sizes[stop] <= room):
        used += sizes[stop]
        stop += 1
    return stop, used
