"""The log of one partition: its segments in order. The log appends batches, reads them, and writes,
flushes, rolls and removes segments.

The offsets are always in this order::

    log start offset <= flushed offset <= written offset <= log end offset

During a turn of the loop, `append` writes the offset and leader epoch into a batch's header and
remembers the batch's bytes. It writes to files only if it begins a segment. At the end of the turn,
`write` writes all these batches into the active segment with one `pwritev`. If this `pwritev`
fails, the log undoes everything that was appended since the last write: offsets, index entries and
producers. So the offset that `append` returns for a batch can still be taken back. The offset is
final when it is below `written`.

`begin_flush` returns the files to fsync, and `finish_flush` notes that the fsync is done. Between
the two calls the loop continues to append. `PartitionLog` starts no thread and uses no connections.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skidway.broker.log import names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import OpenFile, StorageFailed, write_all_at
from skidway.broker.log.leader_epochs import LeaderEpochs
from skidway.broker.log.offset_lookup import OffsetLookup, OffsetOutside
from skidway.broker.log.producer_state import ProducerState, encode_snapshot
from skidway.broker.log.segment import RELATIVE_OFFSET_MAX, LogPosition, Segment
from skidway.broker.log.torn_tail import TornTail
from skidway.broker.log.undo import Undo
from skidway.files import write_atomically
from skidway.kafka.batch import BatchHeader, stamp, stamp_append_time
from skidway.kafka.protocol.pieces import FileSlice
from skidway.kafka.types import TopicPartition

INDEX_CHECKED_EVERY = 100
"""After at most this many index entries, the log compares the sizes of the indexes with their limit
again, because the limit may have changed.
"""


class Appended(NamedTuple):
    """The offsets that a batch got. If the batch is a duplicate, these are the offsets of the
    original batch."""

    base_offset: int
    last_offset: int
    is_duplicate: bool


@dataclass(frozen=True, slots=True)
class Flush:
    """The files to fsync. When all of them are synced, the log is durable up to the position
    `end`."""

    files: tuple[OpenFile, ...]
    indexes: tuple[Path, ...]
    directory: Path | None
    end: LogPosition
    epochs: tuple[Path, bytes] | None = None
    """The file of leader epochs and its new content; None if the file need not be written."""


# This class has many methods, because reading, appending, flushing and rolling all use the same two
# facts: which records are written, and which are flushed.
class PartitionLog:
    """The log of one partition. `recovery.open_log` makes it. Only the loop's thread may use it."""

    def __init__(
        self,
        partition: TopicPartition,
        directory: Path,
        config: LogConfig,
        segments: Sequence[Segment],
        *,
        log_start_offset: int,
        log_end_offset: int,
        producers: ProducerState,
        epochs: LeaderEpochs,
        torn_tail: TornTail | None = None,
    ) -> None:
        # This constructor has nine parameters, because its only caller, recovery, passes
        # everything that it found.
        assert segments
        assert segments[0].base_offset <= log_start_offset <= log_end_offset
        self.partition = partition
        self.directory = directory
        self.config = config
        self.segments = list(segments)
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.producers = producers
        self.epochs = epochs
        self.torn_tail = torn_tail
        """What recovery could not remove, because the disk was full. The log removes it before it
        appends anything."""
        end = LogPosition(log_end_offset, self.active.base_offset, self.active.size)
        self.written = end
        self.flushed = end
        self.flush_running = False
        self.closed_at: int | None = None
        """The log end offset at the last clean stop. None in three cases: if the last stop was not
        clean, if a file that a clean stop writes is missing, or if the log has begun a new segment
        since then.
        """
        self._pending: list[memoryview] = []
        self._undo: Undo | None = None
        self._refusal: StorageFailed | None = None
        self._index_full = False
        self._index_room = 0
        self._unflushed: list[Segment] = []
        self._new_names = False
        self._lookup = OffsetLookup(self.segments, end)

    @property
    def active(self) -> Segment:
        """The last segment, which is the only segment that grows."""
        return self.segments[-1]

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all segments, including appended bytes that are not written
        yet."""
        return sum(segment.size for segment in self.segments)

    @property
    def has_new_segment(self) -> bool:
        """Whether the active segment was begun after the last finished flush began, so that a crash
        may still lose its file."""
        return self.flushed.segment != self.active.base_offset

    @property
    def unflushed_messages(self) -> int:
        """How many records are written, but not yet flushed."""
        return self.written.offset - self.flushed.offset

    def append(
        self, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Appends a valid batch: writes its offset and leader epoch into its header, and remembers
        its bytes, which must stay unchanged until `write`.

        Raises SequenceRefused. Raises StorageFailed if the log could not begin a new segment. In
        this case, later appends in the same turn, and the next `write`, also raise StorageFailed.
        """
        if self._refusal is not None:
            raise self._refusal
        if header.producer_id >= 0:
            stored = self.producers.check(header)
            if stored is not None:
                return Appended(stored.base_offset, stored.last_offset, True)
        base = self.log_end_offset
        segment = self._prepare(len(batch), base, base + header.last_offset_delta, now_ms)
        stamp(batch, 0, base, leader_epoch)
        if header.producer_id >= 0:
            self._update_producer(header, base, now_ms)
        if self.config.append_time:
            header = stamp_append_time(batch, 0, header, now_ms)
        if leader_epoch > self.epochs.latest:
            self.epochs.begin(leader_epoch, base)
        self._put(segment, batch, header, base)
        return Appended(base, self.log_end_offset - 1, False)

    def append_mirrored(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        """Appends a batch of another cluster's log unchanged, with its offsets and leader epoch.

        The batch's base offset is the log end or higher. If it is higher, the caller has already
        recorded in the topic's config that the offsets between the log end and the base offset are
        missing (a gap). The sequence numbers of producers are not checked. The batch's bytes must
        stay unchanged until `write`. Raises StorageFailed.
        """
        assert header.base_offset >= self.log_end_offset
        if self._refusal is not None:
            raise self._refusal
        segment = self._prepare(len(batch), header.base_offset, header.last_offset, now_ms)
        if header.leader_epoch > self.epochs.latest:
            self.epochs.begin(header.leader_epoch, header.base_offset)
        self._put(segment, batch, header, header.base_offset)

    def write(self) -> None:
        """Writes the appended batches into the file. If `write` raises StorageFailed, the log has
        undone the appends whose batches were not written. A batch is written if all its offsets are
        below `written`.
        """
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal
        if self._pending:
            self._write_pending()

    def read(
        self, offset: int, max_bytes: int, end: LogPosition, *, at_least_one: bool
    ) -> FileSlice | None:
        """Returns a range of bytes in one segment's file. The range has whole batches: it begins
        with the batch that contains `offset`, and ends at `end` or before it.

        The batches together have at most `max_bytes`. But with `at_least_one`, the first batch is
        included even if it is larger. Returns None if the range would have no batch. Raises
        OffsetOutside, StorageFailed and DamagedLog.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutside
        if offset >= end.offset:
            return None
        return self._lookup.batches(offset, max_bytes, end, at_least_one=at_least_one)

    def bytes_between(self, offset: int, end: LogPosition, enough: int) -> int:
        """Returns the number of bytes from an offset up to the position `end`, for a fetch that
        waits. If there are more than `enough` bytes, the method may return any number above
        `enough`.
        """
        if offset >= end.offset or offset < self.log_start_offset:
            return 0
        return self._lookup.bytes_between(offset, end, enough)

    def segment_of(self, offset: int) -> Segment:
        """Returns the segment whose range of offsets includes `offset`."""
        return self._lookup.segment_of(offset)

    def begin_flush(self) -> Flush | None:
        """Returns the files to fsync; None if everything is flushed, or if a flush is running.

        A new segment without records also needs a flush, because a crash may still lose its file.
        Raises StorageFailed.
        """
        if self.flush_running or self.written == self.flushed:
            return None
        closed = tuple(self._unflushed)
        try:
            files = (*(segment.file for segment in closed), self.active.file)
        except OSError as error:
            raise StorageFailed("open for flushing", self.directory, error) from error
        indexes = tuple(
            path for each in closed for path in (each.offset_index.path, each.time_index.path)
        )
        directory = self.directory if self._new_names else None
        epochs = None
        if self.epochs.changed:
            epochs = self.directory / names.LEADER_EPOCHS, self.epochs.encode()
            self.epochs.changed = False
        self.flush_running = True
        self._unflushed = []
        self._new_names = False
        return Flush(files, indexes, directory, self.written, epochs)

    def finish_flush(self, flush: Flush) -> None:
        """Notes that everything in `flush` is on disk."""
        self.flush_running = False
        assert self.flushed.offset <= flush.end.offset <= self.written.offset
        self.flushed = flush.end
        self._lookup.remember(flush.end)

    def roll(self, now_ms: int) -> None:
        """If the active segment is not empty, closes it and begins a new segment. Raises
        StorageFailed."""
        if not self.active.size:
            return
        self.write()
        try:
            self._roll(now_ms, self.log_end_offset)
        except StorageFailed:
            # Everything is written, so the refusal is not needed for a batch of this turn. If it
            # stayed, the next append would be refused, perhaps hours later.
            self._refusal = None
            raise

    def take_out(self, count: int) -> list[Segment]:
        """Removes the `count` oldest segments from the log. The log then starts after these
        segments.

        None of these segments may be the active segment. A flush must have made the segment after
        them durable. Otherwise a crash might lose this segment although the others are deleted.
        """
        assert 0 < count < len(self.segments)
        assert self.segments[count].base_offset <= self.flushed.segment
        gone = self.segments[:count]
        del self.segments[:count]
        self.start_at(max(self.log_start_offset, self.segments[0].base_offset))
        return gone

    def start_at(self, offset: int) -> None:
        """Moves the log start offset up to `offset`; retention later deletes the segments below
        this offset."""
        assert self.log_start_offset <= offset <= self.flushed.offset
        self.log_start_offset = offset
        self.epochs.cut_front(offset)
        self._lookup.forget_below(offset)

    def save_producers(self, offset: int, first_append_ms: int) -> None:
        """Writes the `.producers` file for `offset`. The file has the state of the producers before
        this offset, and the time of the first append to a segment. This segment is the one that
        begins at `offset`; at a clean stop, it is the active segment. Raises OSError.
        """
        path = self.directory / names.segment_file(offset, names.PRODUCERS)
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(encode_snapshot(self.producers, first_append_ms))
        temporary.rename(path)

    def close_cleanly(self) -> None:
        """Writes the indexes, the leader epochs and the producer state, so that the next start need
        not read the log. Every record must already be flushed. Raises OSError.
        """
        assert self.flushed.offset == self.log_end_offset
        if self.closed_at == self.log_end_offset and not self.epochs.changed:
            return  # nothing was appended since the last clean stop: its files are still correct
        self._remove_torn_tail()
        self.active.save_indexes(closing=True, sync=True)
        if self.epochs.changed:
            write_atomically(self.directory / names.LEADER_EPOCHS, self.epochs.encode())
        self.save_producers(self.log_end_offset, self.active.first_append_ms or 0)

    def _prepare(self, size: int, base: int, last_offset: int, now_ms: int) -> Segment:
        """Returns the segment to which to append a batch with this size and these offsets. Begins a
        new segment if necessary."""
        segment, config = self.segments[-1], self.config
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX or (
            segment.size
            and (
                segment.size + size > config.segment_bytes
                or self._index_full
                or now_ms - (segment.first_append_ms or now_ms) >= config.segment_ms
            )
        ):
            segment = self._roll(now_ms, base)
        if self._undo is None:
            self._undo = self._begin_writing(segment, now_ms)
        return segment

    def _put(self, segment: Segment, batch: memoryview, header: BatchHeader, base: int) -> None:
        if segment.note(header, base, segment.size, self.config.index_interval_bytes):
            self._index_room -= 1
            if self._index_room <= 0:
                room = segment.index_room(self.config.segment_index_bytes)
                self._index_full = not room
                self._index_room = min(room, INDEX_CHECKED_EVERY)
        self._pending.append(batch)
        segment.size += len(batch)
        self.log_end_offset = base + header.last_offset_delta + 1

    def _roll(self, now_ms: int, base_offset: int) -> Segment:
        """Begins a new active segment at `base_offset`. `base_offset` is the log end offset, or in
        a mirror's log the offset after a gap (missing offsets).
        """
        try:
            self._remove_torn_tail()
            if self._pending:
                self._write_pending()
            old = self.active
            self.closed_at = None
            old.save_indexes(closing=True)
            new = Segment.create(self.directory, base_offset)
            self.log_end_offset = base_offset
            new.first_append_ms = now_ms
        except StorageFailed as error:
            self._refusal = error
            raise
        except OSError as error:
            self._refusal = StorageFailed("roll a segment in", self.directory, error)
            raise self._refusal from error
        # the next flush must include the old segment's indexes, even if its records are flushed
        self._unflushed.append(old)
        self.segments.append(new)
        self._index_full = False
        self._index_room = 0
        self._new_names = True
        self.written = LogPosition(self.log_end_offset, new.base_offset, 0)
        self._lookup.remember(self.written)
        return new

    def _begin_writing(self, segment: Segment, now_ms: int) -> Undo:
        undo = Undo(self.written, segment, self.producers, self.epochs)
        try:
            self._remove_torn_tail()
            if not segment.size:
                self.save_producers(segment.base_offset, now_ms)
        except OSError as error:
            self._refusal = StorageFailed("append to", segment.path, error)
            raise self._refusal from error
        if not segment.size:
            segment.first_append_ms = now_ms
        segment.last_append_ms = now_ms
        return undo

    def _remove_torn_tail(self) -> None:
        if self.torn_tail is not None:
            self.torn_tail.remove()
            self.torn_tail = None

    def _update_producer(self, header: BatchHeader, base: int, now_ms: int) -> None:
        assert self._undo is not None
        self._undo.keep(header.producer_id)
        self.producers.update(header, base, now_ms)

    def _write_pending(self) -> None:
        segment, start = self.active, self.written.position
        file = None
        try:
            file = segment.file
            write_all_at(file.descriptor, self._pending, start)
        except OSError as error:
            self._take_back(segment, file)
            raise StorageFailed("append to", segment.path, error) from error
        self._pending = []
        self._undo = None
        self.written = LogPosition(self.log_end_offset, segment.base_offset, segment.size)
        if segment.offset_index.wants_saving:
            self._save_indexes(segment)

    def _take_back(self, segment: Segment, file: OpenFile | None) -> None:
        """Undoes the appends since the last successful write. file: the segment's file; None if the
        file could not be opened, so that no byte of these appends was written.
        """
        undo = self._undo
        assert undo is not None
        self._undo = None
        self._pending = []
        self.log_end_offset = undo.end.offset
        undo.take_back()
        if file is None:
            return
        try:
            # A part of the failed write may be in the file. This part is cut off, so that it is
            # never read as a batch.
            os.ftruncate(file.descriptor, undo.end.position)
        except OSError as error:
            raise StorageFailed("cut", segment.path, error, final=True) from error

    def _save_indexes(self, segment: Segment) -> None:
        try:
            segment.save_indexes()
        except OSError as error:
            raise StorageFailed("write the index of", segment.path, error) from error
