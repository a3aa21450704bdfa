"""A segment: a file of batches and its two indexes. The files are named after the segment's base
offset.

All offsets in a segment are equal to its base offset or higher, and lower than the base offset of
the next segment. Only the last segment of a log (the active segment) grows. A read of the log does
not return bytes, but a range of a segment's file, which the network layer passes to sendfile.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from skidway.broker.log import descriptors, names, scan, time_index
from skidway.broker.log.files import PASSING, OpenFile
from skidway.broker.log.offset_index import OffsetIndex
from skidway.broker.log.time_index import NO_TIMESTAMP, TimeIndex
from skidway.kafka.batch import HEADER_BYTES, BatchHeader

RELATIVE_OFFSET_MAX = (1 << 31) - 1


class LogPosition(NamedTuple):
    """An offset, and where its batch is: the base offset of the segment, and the position in the
    segment's file."""

    offset: int
    segment: int
    position: int


class Boundary(NamedTuple):
    """A position between two batches, and the base offset of the batch after this position."""

    position: int
    offset: int


class Segment:
    """One segment. `size` includes bytes that were appended in this turn of the loop and are not
    written yet."""

    __slots__ = (
        "__weakref__",
        "_file",
        "base_offset",
        "directory",
        "first_append_ms",
        "indexed_size",
        "last_append_ms",
        "max_timestamp",
        "max_timestamp_offset",
        "offset_index",
        "size",
        "time_index",
    )

    def __init__(self, directory: Path, base_offset: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self._file: OpenFile | None = None
        self.offset_index = OffsetIndex(self.path_of(names.OFFSET_INDEX), base_offset)
        self.time_index = TimeIndex(self.path_of(names.TIME_INDEX), base_offset)
        status = self.path.stat()
        self.size = status.st_size
        self.indexed_size = self.offset_index.last()[1]
        self.first_append_ms: int | None = None
        self.last_append_ms = status.st_mtime_ns // 1_000_000
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last()

    @classmethod
    def create(cls, directory: Path, base_offset: int) -> Segment:
        """Returns a new, empty segment. Raises OSError."""
        path = directory / names.segment_file(base_offset, names.LOG)
        # The file may exist already: a roll that failed before its end may have left an empty file
        # behind.
        file = OpenFile(path, os.O_RDWR | os.O_CREAT)
        if file.size:
            raise FileExistsError(17, "it holds data that no segment knows", str(path))
        for suffix in (names.OFFSET_INDEX, names.TIME_INDEX):
            (directory / names.segment_file(base_offset, suffix)).unlink(missing_ok=True)
        segment = cls(directory, base_offset)
        segment._file = file
        descriptors.OPEN.opened(segment)
        return segment

    @property
    def path(self) -> Path:
        """The `.log` file."""
        return self.path_of(names.LOG)

    def path_of(self, suffix: str) -> Path:
        """Returns the path of the file of this segment that has this suffix, for example
        `.index`.
        """
        return self.directory / names.segment_file(self.base_offset, suffix)

    @property
    def file(self) -> OpenFile:
        """The segment's `.log` file, which is opened if necessary. The descriptor stays open as
        long as there is a reference to the returned object. Raises OSError.
        """
        if self._file is None:
            self._file = OpenFile(self.path, os.O_RDWR)
            descriptors.OPEN.opened(self)
        return self._file

    @property
    def is_open(self) -> bool:
        """Whether this object refers to an open file."""
        return self._file is not None

    def let_go(self) -> None:
        """Drops this object's reference to the open file. The descriptor is closed when no reader
        uses it any more. The next use of `file` opens the file again.
        """
        if self._file is not None:
            self._file = None
            descriptors.OPEN.closed(self)

    @property
    def index_bytes(self) -> int:
        """The number of bytes of the larger index."""
        return max(self.offset_index.size_bytes, self.time_index.size_bytes)

    def index_room(self, limit_bytes: int) -> int:
        """Returns how many more entries each index may get until the larger index has
        `limit_bytes`; 0 if it has that many bytes already. Assumes that every entry has the size of
        an entry of the time index (those of the offset index are smaller).
        """
        left = limit_bytes - self.index_bytes
        return max(-(-left // time_index.ENTRY_BYTES), 0)

    def note(self, header: BatchHeader, offset: int, position: int, interval_bytes: int) -> bool:
        """Adds an index entry for the batch that begins at `position`, if the batch of the last
        entry begins more than `interval_bytes` earlier. The time index gets the entry only if the
        largest timestamp has increased since its last entry. offset: the batch's base offset.
        Returns whether the batch got an entry.
        """
        last_offset = offset + header.last_offset_delta
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
            self.max_timestamp_offset = last_offset
        # The first batch of a segment needs no entry, because a search that finds no entry begins
        # at position 0.
        if position - self.indexed_size > interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self.indexed_size = position
            return True
        return False

    def find(self, offset: int) -> int | None:
        """Returns the position of the batch that contains `offset`. If no batch contains this
        offset, returns the position of the first batch after it, or None if there is no such batch.
        If the index is damaged, the search only takes longer. Raises scan.InvalidBatch and OSError.
        """
        last_offset, start = self.offset_index.entry_before(offset)
        try:
            if start:
                self._check_entry(last_offset, start)
            return self._find_from(start, offset)
        except scan.InvalidBatch:
            if not start:
                raise
            return self._find_from(0, offset)

    def boundary_before(self, position: int) -> Boundary:
        """Returns the beginning of a batch that begins at `position` or before it: the last such
        batch that has an index entry. If there is none, returns the segment's beginning.

        Raises OSError.
        """
        last_offset, boundary = self.offset_index.boundary_before(position)
        try:
            if boundary:
                header = self._check_entry(last_offset, boundary)
                return Boundary(boundary, header.base_offset)
        except scan.InvalidBatch:
            pass
        return Boundary(0, self.base_offset)

    def _check_entry(self, last_offset: int, position: int) -> BatchHeader:
        if 0 <= position < self.size:
            header = scan.Window(self.file.descriptor, HEADER_BYTES).header(position)
            if header.last_offset == last_offset:
                return header
        raise scan.InvalidBatch(position, "the index leads to no batch")

    def _find_from(self, start: int, offset: int) -> int | None:
        window = scan.Window(self.file.descriptor, scan.HEADER_WINDOW_BYTES)
        position = start
        while position < self.size:
            header = window.header(position)
            if header.last_offset >= offset:
                return position
            position += header.size_bytes
        return None

    def end_of_batches(self, position: int, max_bytes: int, *, at_least_one: bool) -> Boundary:
        """Returns the end of the last batch that ends at most `max_bytes` after `position`.

        With `at_least_one`, the first batch is included even if it is larger than `max_bytes`. If
        no batch is included, the end is the position itself. Raises scan.InvalidBatch and OSError.
        """
        window = scan.Window(self.file.descriptor, scan.HEADER_WINDOW_BYTES)
        end, offset = position, self.base_offset
        while end < self.size:
            header = window.header(end)
            after = end + header.size_bytes
            if after - position > max_bytes and not (at_least_one and end == position):
                return Boundary(end, header.base_offset)
            end, offset = after, header.last_offset + 1
            if after - position > max_bytes:
                break
        return Boundary(end, offset)

    def file_cut(self, size: int) -> None:
        """Shortens the file to `size` bytes. Raises OSError."""
        os.ftruncate(self.file.descriptor, size)

    def cut_unwritten(self, offset: int, size: int, timestamps: tuple[int, int]) -> None:
        """Undoes the appends whose write failed: the segment ends at `offset` and has `size` bytes
        again. `timestamps`: the largest timestamp before these appends, and its offset.
        """
        self.size = size
        self.offset_index.cut_tail(size)
        self.time_index.cut_tail(offset)
        self.indexed_size = self.offset_index.last()[1]
        self.max_timestamp, self.max_timestamp_offset = timestamps

    def save_indexes(self, *, closing: bool = False, sync: bool = False) -> bool:
        """Writes index entries. When the segment is closed, its largest timestamp becomes the last
        entry of the time index. Returns whether the entries are written. If an error that may pass
        (such as a full disk) prevents this, they stay in memory, and a later call writes them.
        Raises OSError for all other errors.
        """
        if closing and self.max_timestamp != NO_TIMESTAMP:
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        try:
            # The offset index comes last: if it is complete at the next start, both are.
            self.time_index.save(sync=sync)
            self.offset_index.save(sync=sync)
        except OSError as error:
            if error.errno not in PASSING:
                raise
            return False
        return True

    def rename_deleted(self) -> list[Path]:
        """Adds `.deleted` to the name of every file of this segment. Returns the new paths. Raises
        OSError.
        """
        renamed = []
        for suffix in names.SEGMENT_SUFFIXES:
            path = self.path_of(suffix)
            target = path.with_name(path.name + names.DELETED)
            try:
                path.rename(target)
            except FileNotFoundError:
                continue
            renamed.append(target)
        return renamed
