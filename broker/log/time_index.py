"""The file `.timeindex`: the offset at which a search for an event time begins.

    entry, 12 bytes big-endian    timestamp int64 (ms) | relative offset int32

The timestamp of an entry is the largest timestamp in the segment so far. The offset is the offset
of the last record in the batch with this timestamp. Entries are in ascending order. A search for a
time begins at the last entry whose timestamp is *below* this time, because all records before this
entry's offset are earlier than the time. When a segment is closed, the last entry of its index has
the largest timestamp of the segment.
"""

from __future__ import annotations

from pathlib import Path

from skidway.broker.log.sparse_file import Entry, SparseFile

ENTRY_BYTES = 12
NO_TIMESTAMP = -1


class TimeIndex:
    """The entries of one index. New entries are only in memory until `save` writes them."""

    __slots__ = ("_base_offset", "_entries", "_last_timestamp")

    def __init__(self, path: Path, base_offset: int) -> None:
        self._base_offset = base_offset
        self._entries = SparseFile(path, ">qi")
        self._last_timestamp = self.last()[0]

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def path(self) -> Path:
        """The path of the file `.timeindex`."""
        return self._entries.path

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all entries, including those that are not written yet."""
        return self._entries.size_bytes

    @property
    def is_whole(self) -> bool:
        """Whether the file exists and has no partial entry."""
        return self._entries.is_whole

    def append(self, timestamp: int, offset: int) -> None:
        """Adds an entry for the largest timestamp so far. If the last entry already has this
        timestamp, adds nothing."""
        if timestamp > self._last_timestamp:
            self._entries.append(timestamp, offset - self._base_offset)
            self._last_timestamp = timestamp

    def last(self) -> tuple[int, int]:
        """Returns (largest timestamp, offset) of the last entry; (-1, base offset) if there is
        none.
        """
        entry = self._entries.last()
        if entry is None:
            return NO_TIMESTAMP, self._base_offset
        return entry[0], entry[1] + self._base_offset

    def offset_before(self, timestamp: int) -> int:
        """Returns an offset at which a search for `timestamp` can begin: all records of the segment
        before this offset are earlier than `timestamp`.
        """
        entry = self._entries.floor(timestamp - 1, _timestamp)
        return self._base_offset if entry is None else entry[1] + self._base_offset

    def cut_tail(self, offset: int) -> None:
        """Removes the entries for `offset` and later offsets. Called if the write of the batches
        with these offsets has failed. At that time their entries are only in memory.
        """
        tail = self._entries.tail
        while tail and tail[-1][1] + self._base_offset >= offset:
            tail.pop()
        self._last_timestamp = self.last()[0]

    def save(self, *, sync: bool = False) -> None:
        """Writes the entries that are only in memory. Raises OSError."""
        self._entries.save(sync=sync)

    def clear(self) -> None:
        """Deletes every entry, in memory and in the file. Raises OSError."""
        self._entries.clear()
        self._last_timestamp = NO_TIMESTAMP


def _timestamp(entry: Entry) -> int:
    return entry[0]
