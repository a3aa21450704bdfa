"""The file `.index`: the approximate positions of offsets in a segment.

    entry, 8 bytes big-endian    relative offset int32 | position int32

The relative offset is the offset of a batch's last record minus the segment's base offset. The
position is where this batch begins. Kafka writes the same two numbers, and Kafka's tools verify
them. The index has about one entry for every `index.interval.bytes` of log. A search for an offset
begins at the last entry whose offset is not above the wanted offset. The wanted offset is in the
batch to which this entry points, or in one of the next few batches.
"""

from __future__ import annotations

from pathlib import Path

from skidway.broker.log.sparse_file import TAIL_MAX, Entry, SparseFile


class OffsetIndex:
    """The entries of one index. New entries are only in memory until `save` writes them."""

    __slots__ = ("_base_offset", "_entries")

    def __init__(self, path: Path, base_offset: int) -> None:
        self._base_offset = base_offset
        self._entries = SparseFile(path, ">ii")

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def path(self) -> Path:
        """The path of the file `.index`."""
        return self._entries.path

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all entries, including those that are not written yet."""
        return self._entries.size_bytes

    @property
    def is_whole(self) -> bool:
        """Whether the file exists and has no partial entry."""
        return self._entries.is_whole

    @property
    def wants_saving(self) -> bool:
        """Whether TAIL_MAX entries or more are only in memory, so that the caller should write them
        to the file."""
        return len(self._entries.tail) >= TAIL_MAX

    def append(self, last_offset: int, position: int) -> None:
        """Adds an entry for the batch that begins at the byte `position` and whose last record has
        the offset `last_offset`."""
        self._entries.append(last_offset - self._base_offset, position)

    def entry_before(self, offset: int) -> tuple[int, int]:
        """Looks for the last entry for a batch whose last offset is not above `offset`. Returns the
        batch's last offset and position. If there is no such entry, returns the segment's base
        offset and 0.
        """
        return self._absolute(self._entries.floor(offset - self._base_offset, _relative_offset))

    def boundary_before(self, position: int) -> tuple[int, int]:
        """Looks for the last entry for a batch that begins at `position` or before it. Returns the
        batch's last offset and position. If there is no such entry, returns the segment's base
        offset and 0.
        """
        return self._absolute(self._entries.floor(position, _position))

    def last(self) -> tuple[int, int]:
        """Returns last offset and position of the batch in the newest entry. If there is no entry,
        returns the segment's base offset and 0.
        """
        return self._absolute(self._entries.last())

    def cut_tail(self, position: int) -> None:
        """Removes the entries of batches that begin at `position` or later. Called if the write of
        these batches has failed. At that time their entries are only in memory.
        """
        tail = self._entries.tail
        while tail and tail[-1][1] >= position:
            tail.pop()

    def save(self, *, sync: bool = False) -> None:
        """Writes the entries that are only in memory. Raises OSError."""
        self._entries.save(sync=sync)

    def clear(self) -> None:
        """Deletes every entry, in memory and in the file. Raises OSError."""
        self._entries.clear()

    def _absolute(self, entry: Entry | None) -> tuple[int, int]:
        return (self._base_offset, 0) if entry is None else (entry[0] + self._base_offset, entry[1])


def _relative_offset(entry: Entry) -> int:
    return entry[0]


def _position(entry: Entry) -> int:
    return entry[1]
