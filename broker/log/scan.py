"""Reads the batches of a segment's file one by one. The caller chooses whether CRCs are checked.

The file is read in windows: one system call reads one window, which may contain many small batches.
Of a large batch, only one window is in memory at a time. The length field of a batch may be wrong,
so before a CRC is computed, the length is compared with the number of bytes that remain in the
file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import google_crc32c

from skidway.kafka.batch import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    read_header,
)

Holes = Callable[[int, int], bool]
"""A function that says whether a hole is allowed: whether all offsets [first, end) may be missing
between two batches."""

WINDOW_BYTES = 1 << 18
HEADER_WINDOW_BYTES = 1 << 13
PAGE_BYTES = 4096
"""The unit in which a file system writes to disk. An unwritten page is read as zeros."""
_ZEROS = bytes(PAGE_BYTES)
_MAGIC_POSITION = 16


class InvalidBatch(Exception):
    """Raised if the bytes at a position are no batch, or are a batch that does not belong at this
    position."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"position {position}: {reason}")
        self.position = position
        self.reason = reason


class Window:
    """A part of a file in memory. When a caller asks for a header outside this part, the window
    reads the part of the file that begins with this header."""

    __slots__ = ("_bytes", "_data", "_descriptor", "_start")

    def __init__(self, descriptor: int, size_bytes: int = WINDOW_BYTES) -> None:
        self._descriptor = descriptor
        self._bytes = size_bytes
        self._data = b""
        self._start = 0

    def header(self, position: int) -> BatchHeader:
        """Returns the batch header at a position. Raises InvalidBatch and OSError."""
        at = position - self._start
        if at < 0 or at + HEADER_BYTES > len(self._data):
            self._data = os.pread(self._descriptor, self._bytes, position)
            self._start, at = position, 0
        try:
            return read_header(self._data, at)
        except CorruptBatch as error:
            raise InvalidBatch(position, str(error)) from error

    def crc(self, position: int, header: BatchHeader) -> int:
        """Returns the CRC-32C of the batch at a position, computed over the bytes that the CRC in
        its header covers.
        """
        start, end = position + CRC_START, position + header.size_bytes
        if self._start <= start and end <= self._start + len(self._data):
            covered = self._data[start - self._start : end - self._start]
            return int(google_crc32c.value(covered))
        crc = 0
        while start < end:
            chunk = os.pread(self._descriptor, min(self._bytes, end - start), start)
            if not chunk:
                break
            crc = google_crc32c.extend(crc, chunk)
            start += len(chunk)
        return int(crc)


def headers(
    descriptor: int, start: int, end: int, *, first_offset: int, holes: Holes, crc: bool
) -> Iterator[tuple[int, BatchHeader]]:
    """Yields the position and header of each batch from `start` to `end`. Raises InvalidBatch for
    the first bad batch. A batch that is cut off at the end of the file is also bad.

    The first batch must begin at `first_offset`. Each later batch must begin where the batch before
    it ended. Any batch may instead begin after a hole that `holes` allows. A batch's leader epoch
    must not be lower than that of the batch before. crc: whether a batch with a wrong CRC is bad.
    """
    window = Window(descriptor, WINDOW_BYTES if crc else HEADER_WINDOW_BYTES)
    position, expected, epoch = start, first_offset, -1
    while position < end:
        header = window.header(position)
        problem = _implausible(header, end - position, expected, epoch, holes)
        if problem is None and crc and window.crc(position, header) != header.crc:
            problem = f"the CRC-32C is not the header's {header.crc:08x}"
        if problem is not None:
            raise InvalidBatch(position, problem)
        yield position, header
        position += header.size_bytes
        expected, epoch = header.last_offset + 1, header.leader_epoch


def _implausible(
    header: BatchHeader, left: int, expected: int, epoch: int, holes: Holes
) -> str | None:
    if header.size_bytes > left:
        return f"a batch of {header.size_bytes} bytes where {left} are left"
    if header.last_offset_delta < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        return f"{header.count} records for the last offset delta {header.last_offset_delta}"
    base = header.base_offset
    if base < expected or (base > expected and not holes(expected, base)):
        return f"base offset {base} where {expected} is next"
    if header.leader_epoch < epoch:
        return f"leader epoch {header.leader_epoch} behind {epoch}"
    return None


def is_whole(descriptor: int, position: int, end: int) -> bool:
    """Returns whether the bytes at a position are a batch with the right length and CRC. Other
    fields are not checked.

    Recovery calls this function for each invalid batch. If length and CRC are right, the batch is
    invalid for another reason, for example its offset. In this case the whole batch was written. So
    no crash has interrupted the write, and recovery treats the batch as damage.
    """
    data = os.pread(descriptor, HEADER_BYTES, position)
    if len(data) < HEADER_BYTES:
        return False
    header = BatchHeader._make(HEADER.unpack(data))
    if not HEADER_BYTES <= header.size_bytes <= end - position:
        return False
    return Window(descriptor).crc(position, header) == header.crc


def is_cut_short(descriptor: int, position: int, end: int) -> bool:
    """Returns whether the file ends within the batch at a position.

    The result is False if only the length field of the batch is damaged. In this case the length
    points beyond the end of the file, but the CRC matches the bytes up to the end of the file.
    """
    data = os.pread(descriptor, HEADER_BYTES, position)
    if len(data) < HEADER_BYTES:
        return True
    try:
        header = read_header(data, 0)
    except CorruptBatch:
        return False
    if header.size_bytes <= end - position:
        return False
    there = header._replace(length=end - position - LENGTH_END)
    return Window(descriptor).crc(position, there) != header.crc


def was_never_written(descriptor: int, position: int, end: int) -> bool:
    """Returns whether a part of the batch at a position never reached the disk. The result is true
    if a page of the batch contains only zeros. Of the first page, only the bytes from `position` on
    matter.

    A flush of the file would have written such a page to the disk. So neither the page nor the
    bytes after it were ever flushed. The first page counts only if it has at least twelve bytes of
    the batch. A valid batch never begins with twelve zero bytes, because these bytes contain its
    length, which is never zero.
    """
    page_end = (position // PAGE_BYTES + 1) * PAGE_BYTES
    head = os.pread(descriptor, page_end - position, position)
    if len(head) >= LENGTH_END and head == _ZEROS[: len(head)]:
        return True
    try:
        header = read_header(os.pread(descriptor, HEADER_BYTES, position), 0)
        stop = min(position + header.size_bytes, end)
    except CorruptBatch:
        stop = min(page_end + 1, end)  # the batch's length is unknown: reads one page
    return any(
        os.pread(descriptor, PAGE_BYTES, at) == _ZEROS for at in range(page_end, stop, PAGE_BYTES)
    )


def valid_batch_after(descriptor: int, start: int, end: int, least_offset: int) -> int | None:
    """Returns the position of the first whole, valid batch from `start` on; None if there is none.
    Ignores batches whose base offset is below `least_offset`.

    The result distinguishes damage from a torn tail (bytes at the end of a file that a crash left):
    valid batches follow damage, but no valid batch follows a torn tail. The function tries every
    position, because the length of a batch may be damaged.
    """
    position = start
    while end - position >= HEADER_BYTES:
        data = os.pread(descriptor, WINDOW_BYTES + HEADER_BYTES, position)
        found = _candidate(descriptor, data, position, end, least_offset)
        if found is not None:
            return found
        position += WINDOW_BYTES
    return None


def _candidate(descriptor: int, data: bytes, start: int, end: int, least_offset: int) -> int | None:
    at = data.find(MAGIC, _MAGIC_POSITION)
    while at >= 0:
        position = start + at - _MAGIC_POSITION
        at_header = at - _MAGIC_POSITION
        if at_header + HEADER_BYTES <= len(data):
            try:
                header = read_header(data, at_header)
            except CorruptBatch:
                header = None
            if header is not None and _is_batch(descriptor, position, end, header, least_offset):
                return position
        at = data.find(MAGIC, at + 1)
    return None


def _is_batch(
    descriptor: int, position: int, end: int, header: BatchHeader, least_offset: int
) -> bool:
    if _implausible(header, end - position, least_offset, -1, _any) is not None:
        return False
    return Window(descriptor).crc(position, header) == header.crc


def _any(_first: int, _end: int) -> bool:
    """A `Holes` function that allows all holes: the batch that `valid_batch_after` finds may begin
    with any offset."""
    return True
