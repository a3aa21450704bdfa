"""A file of fixed-size entries in ascending order. The newest entries are still in memory.

Both indexes of a segment use a `SparseFile`. If entries are lost, they can be made again from the
log. So the newest entries may stay in memory for long. The first flush after a segment was closed
syncs its entries; a clean stop and recovery also sync entries. Recovery checks each file and makes
it again if necessary. A search for an old entry opens the file, bisects it and closes it. So old
entries need no memory and no open descriptor.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TAIL_MAX = 512
"""When this many entries are in memory, they are written to the file, where they fill 4 or 6
KiB."""

Entry = tuple[int, int]


class SparseFile:
    """A file of entries, each a pair of numbers (a, b). In each entry, both numbers are higher than
    in the entry before. On disk, the entries are packed by `layout`."""

    __slots__ = ("_entry", "_saved", "path", "tail")

    def __init__(self, path: Path, layout: str) -> None:
        self.path = path
        self._entry = struct.Struct(layout)
        try:
            self._saved = path.stat().st_size // self._entry.size
        except FileNotFoundError:
            self._saved = 0
        self.tail: list[Entry] = []

    def __len__(self) -> int:
        return self._saved + len(self.tail)

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all entries, including those that are not written yet."""
        return (self._saved + len(self.tail)) * self._entry.size

    @property
    def is_whole(self) -> bool:
        """Whether the file exists and consists of whole entries."""
        try:
            return self.path.stat().st_size % self._entry.size == 0
        except FileNotFoundError:
            return False

    def append(self, a: int, b: int) -> None:
        """Adds an entry. Both numbers must be higher than those of the last entry."""
        self.tail.append((a, b))

    def last(self) -> Entry | None:
        """Returns the last, that is, greatest entry; None if there is none."""
        if self.tail:
            return self.tail[-1]
        if not self._saved:
            return None
        with self._opened() as descriptor:
            return self._read(descriptor, self._saved - 1)

    def floor(self, target: int, key: Callable[[Entry], int]) -> Entry | None:
        """Returns the greatest entry whose key is at most `target`; None if all keys are above
        `target`.
        """
        if self.tail and key(self.tail[0]) <= target:
            return self.tail[bisect_right(self.tail, target, key=key) - 1]
        if not self._saved:
            return None
        with self._opened() as descriptor:
            return self._floor_saved(descriptor, target, key)

    def save(self, *, sync: bool = False) -> None:
        """Writes the entries that are only in memory. If `sync` is true, also makes them durable.
        Raises OSError."""
        if not self.tail and not sync:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o644)
        try:
            data = b"".join(self._entry.pack(*entry) for entry in self.tail)
            at = self._saved * self._entry.size
            while data:
                written = os.pwrite(descriptor, data, at)
                data, at = data[written:], at + written
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self._saved += len(self.tail)
        self.tail = []

    def clear(self) -> None:
        """Deletes all entries, in memory and in the file. Raises OSError."""
        self.tail = []
        self._saved = 0
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        os.close(descriptor)

    def _floor_saved(
        self, descriptor: int, target: int, key: Callable[[Entry], int]
    ) -> Entry | None:
        low, high = 0, self._saved
        best: Entry | None = None
        while low < high:
            middle = (low + high) // 2
            entry = self._read(descriptor, middle)
            if entry is not None and key(entry) <= target:
                best, low = entry, middle + 1
            else:
                high = middle
        return best

    def _read(self, descriptor: int, number: int) -> Entry | None:
        data = os.pread(descriptor, self._entry.size, number * self._entry.size)
        if len(data) < self._entry.size:
            return None  # the file was shortened; the caller then scans from the segment's start
        a, b = self._entry.unpack(data)
        return a, b

    @contextmanager
    def _opened(self) -> Iterator[int]:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
