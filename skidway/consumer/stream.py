"""One stream of a consumer: an endless iterator over the records of its partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Self, TypeVar

import pyarrow as pa

from skidway.consumer.chunk import Chunk, Record
from skidway.consumer.reader import StreamReader
from skidway.consumer.reading import Reading
from skidway.consumer.registry import Fenced
from skidway.errors import SkidwayError, UsageError
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import EARLIEST, LATEST
from skidway.kafka.types import TopicPartition
from skidway.own_process import OwnProcess

LOOK_EVERY_S = 1.0
T = TypeVar("T")


class NotOwned(SkidwayError):
    """The stream's reader does not own the partition now: another reader owns it, or will own it
    soon.

    The records that this stream has handed out but not committed are delivered again, to the other
    reader.
    """


class Stream:
    """Iterates over the records of the partitions that its reader owns. Only one thread may
    iterate. When the application requests the next record, the previous record counts as finished.
    Auto commit commits only the offsets of finished records. After a fork, the methods that read,
    commit, seek or close raise UsageError in the child.

    Records of a partition come in offset order. `for record in stream`, `batches` and `poll` may be
    mixed; each continues after the last record that was handed out.
    """

    def __init__(self, reader: StreamReader, *, timeout_ms: int | None) -> None:
        """Called by `Consumer`. `timeout_ms` is the setting consumer_timeout_ms."""
        self._reader = reader
        self._process = OwnProcess("consumer")
        self._timeout_s = None if timeout_ms is None else timeout_ms / 1000
        self._lock = threading.RLock()
        self._closing = False
        self._closed = False
        self._chunk: Chunk | None = None
        self._rows: Iterator[Record] | None = None
        self._in_hand: set[Reading] = set()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        """Returns the next record. The iteration ends after consumer_timeout_ms without a record,
        and after `close`.

        Raises NoOffset, CorruptBatch or KafkaError for a partition that cannot be read. A later
        call tries to read the partition again. Raises GroupCoordinated if stock Kafka clients are
        members of the group.
        """
        self._process.require()
        self._finish()
        while (record := self._next_row()) is None:
            if self._next_chunk(self._timeout_s) is None:
                raise StopIteration
        return record

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the records of one record batch after another, without those that the application
        already has, as Arrow columns: topic, partition, offset, timestamp, key, value.

        The records of a batch count as finished when the next batch is requested. Raises the same
        errors as `__next__`. An error ends the iterator; to read on, call this method again.
        """
        while True:
            self._process.require()
            self._finish()
            chunk = self._current() or self._next_chunk(self._timeout_s)
            if chunk is None:
                return
            table = chunk.table()
            self._chunk, self._rows = None, None
            chunk.reading.hand_out(chunk.end)
            self._in_hand.add(chunk.reading)
            if table is not None:
                yield table

    def poll(self, timeout_ms: int = 0, *, max_records: int = 500) -> list[Record]:
        """Returns at most `max_records` records of one record batch, or an empty list if no record
        came in time."""
        self._process.require()
        self._finish()
        found: list[Record] = []
        while len(found) < max_records:
            # The records in `found` are not finished yet, so no partition may be released here.
            record = self._next_row(may_turn=not found)
            if record is not None:
                found.append(record)
            elif found or self._next_chunk(timeout_ms / 1000) is None:
                break
        return found

    def commit(self) -> None:
        """Commits all records that were handed out, including the last record.

        Raises NotOwned if a partition has another owner or the session has ended. Raises
        Unreachable if ZooKeeper does not answer.
        """
        self._process.require()
        with self._lock:
            gone = [each.tp for each in self._in_hand if each.tp not in self._reader.readings]
            self._finish()
            if gone:
                raise NotOwned(f"{gone[0]} has passed on to another reader")
            try:
                self._reader.commit()
            except Fenced as error:
                raise NotOwned(str(error)) from error

    def assignment(self) -> list[TopicPartition]:
        """Returns the partitions that are read now. Any thread may call this method."""
        # Another thread may add a partition at any time, so `list` first copies all partitions in
        # one step.
        return sorted(list(self._reader.readings))  # noqa: C414

    @property
    def is_settled(self) -> bool:
        """Whether the stream reads every partition of its newest assignment."""
        return self._reader.is_settled

    def position(self, tp: TopicPartition) -> int:
        """Returns the offset of the partition's next record to hand out. Raises NotOwned."""
        return self._owned(tp).handed

    def committed(self, tp: TopicPartition) -> int | None:
        """Returns the committed offset of a partition that this stream reads, or None if no offset
        is committed. Raises NotOwned."""
        return self._owned(tp).committed

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continues to read a partition at the given offset, which may be before or after the
        present position. If the application commits before it gets the next record, the commit
        stores the given offset. Raises NotOwned if this stream does not read the partition now, and
        UsageError for a negative offset."""
        if offset < 0:
            raise UsageError("an offset is 0 or more")
        self._process.require()
        with self._lock:
            self._owned(tp)
            self._reader.seek(tp, offset)

    def rewind(self, timestamp_ms: int | None = None) -> None:
        """Sets the position in every partition of this stream to the first record at or after
        `timestamp_ms`. If a partition has only older records, sets the position to the partition's
        end. If `timestamp_ms` is None, sets all positions to the partitions' beginnings.

        Source: the 2011 Kafka paper, section 3.1.
        """
        self._process.require()
        with self._lock:
            tps = list(self._reader.readings)
            where = EARLIEST if timestamp_ms is None else timestamp_ms
            found = self._reader.client.list_offsets(dict.fromkeys(tps, where))
            late = [tp for tp, listed in found.items() if listed.offset < 0]
            found.update(self._reader.client.list_offsets(dict.fromkeys(late, LATEST)))
            for tp, listed in found.items():
                self._reader.seek(tp, listed.offset)

    def close(self, *, done: bool = False) -> None:
        """Commits finished records (with auto commit), and releases all partitions.

        `done` says whether the last record that was handed out counts as finished. Any thread may
        call this method; the iteration then ends.
        """
        self._process.require()
        self._closing = True
        self._reader.interrupt()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if done:
                self._finish()
            self._chunk, self._rows = None, None
            try:
                self._reader.leave()
            finally:
                self._reader.close()

    # handing out

    def _finish(self) -> None:
        """Called when the application asks for more records. Notes that the application has
        finished the records that were handed to it."""
        for reading in self._in_hand:
            reading.finish()
        self._in_hand.clear()

    def _next_row(self, *, may_turn: bool = True) -> Record | None:
        chunk = self._current(may_turn=may_turn)
        if chunk is None:
            return None
        # `close` on another thread may reset `self._chunk` and `self._rows` at any time, so this
        # method works with its own references.
        rows = self._rows
        if rows is None:
            rows = self._rows = chunk.records()
        record = next(rows, None)
        self._in_hand.add(chunk.reading)
        if record is None:
            chunk.reading.hand_out(chunk.end)
            self._chunk, self._rows = None, None
        else:
            chunk.reading.hand_out(record.offset + 1)
        return record

    def _current(self, *, may_turn: bool = True) -> Chunk | None:
        """Returns the batch that is being handed out. Returns None if there is no such batch, or if
        this stream may no longer hand out its records.

        If work for the group is due, such as claiming a partition, this method does the work first.
        But if `may_turn` is False, this method leaves the work undone and returns None.
        """
        chunk = self._chunk
        if chunk is None or self._closing:
            return None
        if not self._reader.is_clear and not (may_turn and self._locked(self._reader.holds)):
            return None
        if chunk.reading.is_live:
            return chunk
        self._chunk, self._rows = None, None
        return None

    def _next_chunk(self, timeout_s: float | None) -> Chunk | None:
        """Returns the next batch. Returns None if no batch came in time, and after `close`.

        If an earlier call held a batch back, because ZooKeeper had not confirmed the session
        recently, this method returns that batch before it fetches another.
        """
        clock = self._reader.clock
        until = float("inf") if timeout_s is None else clock.monotonic() + timeout_s
        while not self._closing:
            pause_s = min(until - clock.monotonic(), LOOK_EVERY_S)
            with self._lock:
                taken = self._advance(max(pause_s, 0.0))
            if taken is not None:
                return taken
            if clock.monotonic() >= until:
                return None
        return None

    def _advance(self, timeout_s: float) -> Chunk | None:
        if self._closed:
            return None
        # First comes the chunk that was held back because the registration was not confirmed in
        # time.
        if self._chunk is not None and self._chunk.reading.is_live:
            return self._chunk if self._reader.wait_for_lease(timeout_s) else None
        taken = self._reader.take(timeout_s)
        self._chunk, self._rows = None, None
        if taken is not None:
            self._chunk = self._open(*taken)
        return self._chunk

    def _open(self, reading: Reading, raw: memoryview) -> Chunk:
        try:
            return Chunk(reading, raw)
        except CorruptBatch:
            # The position stays before the damaged batch, so that the next call reads it again.
            # Only a seek by the application may skip records.
            self._reader.seek(reading.tp, reading.handed)
            raise

    def _owned(self, tp: TopicPartition) -> Reading:
        reading = self._reader.readings.get(tp)
        if reading is None:
            raise NotOwned(f"{tp} is not read here now")
        return reading

    def _locked(self, ask: Callable[[], T]) -> T:
        with self._lock:
            return ask()
