"""Reads all datums of a chunk at once, with a cursor that has a position in each datum.

    data    | datum 0 | datum 1 | ... | datum n-1 | 0 0 0 ... (PADDING zero bytes) |
              at^  end^                              ^ sink

A cursor has one position per datum. If a datum is bad, or has to be decoded alone, the cursor marks
the datum as bad. The position that was in this datum moves to the sink, the zero bytes after the
data. At the sink, every number reads as zero and every text as empty. So the cursor can continue
with the other datums, and a length in a bad datum never causes an allocation. Of a cursor's
methods, only `length` and `finish` compare a position with the end of its datum. Between two of
these calls, the position of a bad datum may move a few bytes into the following datum. This does no
harm, because the next `length` or `finish` marks the datum as bad.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.dataclass import dataclass

Ints = np.ndarray[Any, np.dtype[np.int64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

PADDING: Final = 64
"""This many zero bytes follow the data. No number, double or decimal takes more bytes."""
_MORE: Final = 0x80
_WORD_BYTES: Final = 8
_CONTINUES: Final = np.uint64(0x8080808080808080)
_PAYLOAD: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE: Final = np.uint64(1)
_SQUEEZES: Final = tuple(
    (np.uint64(high), np.uint64(shift), np.uint64(low))
    for high, shift, low in (
        (0x7F007F007F007F00, 1, 0x007F007F007F007F),
        (0x3FFF00003FFF0000, 2, 0x00003FFF00003FFF),
        (0x0FFFFFFF00000000, 4, 0x000000000FFFFFFF),
    )
)


class Chunk:
    """The bytes of all datums that are decoded together. The positions of cursors are positions in
    these bytes."""

    def __init__(self, datums: pa.BinaryArray) -> None:
        offsets = np.frombuffer(datums.buffers()[1], np.int32)[
            datums.offset : datums.offset + len(datums) + 1
        ].astype(np.int64)
        first, last = int(offsets[0]), int(offsets[-1])
        self.sink = last - first
        self.data: Bytes = np.zeros(self.sink + PADDING, np.uint8)
        if self.sink:
            self.data[: self.sink] = np.frombuffer(datums.buffers()[2], np.uint8)[first:last]
        self._buffer = pa.py_buffer(self.data)
        offsets -= first
        self.bounds: tuple[Ints, Ints] = (offsets[:-1].copy(), offsets[1:].copy())

    @cached_property
    def words(self) -> Words:
        """Returns, for every position, the eight bytes that begin at this position, as a
        little-endian number."""
        return np.ndarray((len(self.data) - _WORD_BYTES + 1,), "<u8", self.data, strides=(1,))

    @cached_property
    def raw(self) -> bytes:
        """Returns a copy of `data`, for code that reads values one by one without this cursor."""
        return self.data.tobytes()

    @cached_property
    def last_bytes(self) -> Ints:
        """Returns the positions of all bytes whose highest bit is zero, which is the case for the
        last byte of every varint."""
        return np.flatnonzero(self.data < _MORE)

    def slices(self, starts: Ints, ends: Ints) -> pa.BinaryArray:
        """Returns, for each pair of `starts` and `ends`, the bytes from start to end. For this
        purpose, makes an Arrow array whose offsets are starts and ends in turn. The elements 0, 2,
        4 ... of this array are the wanted bytes; the result leaves out the other elements."""
        count = len(starts)
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[0:-1:2], bounds[1::2] = starts, ends
        bounds[-1] = self.sink  # Arrow needs a last offset, which is the end of the data
        every = pa.BinaryArray.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(bounds), self._buffer]
        )
        return every.take(pa.array(np.arange(0, 2 * count, 2)))


@dataclass(slots=True)
class Cursor:
    """A cursor with one position per row. A row is a datum, or an item of an array or map. `bad`
    marks the rows that are bad or have to be decoded alone."""

    chunk: Chunk
    at: Ints
    end: Ints
    bad: Mask

    @classmethod
    def over(cls, chunk: Chunk) -> Cursor:
        """Returns a cursor at the first byte of every datum."""
        at, end = chunk.bounds
        return cls(chunk, at, end, np.zeros(len(at), bool))

    def __len__(self) -> int:
        return len(self.at)

    def select(self, rows: Ints) -> Cursor:
        """Returns a new cursor for some rows of this cursor. Later, `merge` copies the positions of
        the new cursor back."""
        return Cursor(self.chunk, self.at[rows], self.end[rows], self.bad[rows])

    def merge(self, rows: Ints, other: Cursor) -> None:
        """Copies the positions and `bad` of `other`, a cursor that `select(rows)` made, to this
        cursor."""
        self.at[rows], self.end[rows], self.bad[rows] = other.at, other.end, other.bad

    def fail(self, mask: Mask) -> None:
        """Marks as bad the rows where the mask is true, and moves their positions to the sink (the
        zero bytes after the data)."""
        if mask.any():
            self.bad |= mask
            self.at[mask] = self.end[mask] = self.chunk.sink

    def finish(self) -> None:
        """Marks a datum as bad if the cursor has not stopped exactly at the end of the datum."""
        self.fail((self.at != self.end) & ~self.bad)

    def byte(self) -> Bytes:
        """Returns the next byte of each datum, and moves the positions past it."""
        found: Bytes = self.chunk.data.take(self.at, mode="clip")
        self.at += 1
        return found

    def fixed(self, size: int) -> Bytes:
        """Reads `size` bytes of each datum, as rows of a matrix. `size` must be small, because the
        matrix also has a row for each bad datum."""
        places = self.at[:, None] + np.arange(size)
        found: Bytes = self.chunk.data.take(places, mode="clip")
        self.at += size
        return found

    def word(self, size: int) -> Words:
        """Returns the next eight bytes of each datum as a number. Moves the positions forward by
        only `size` bytes."""
        words = self.chunk.words
        found: Words = words[np.minimum(self.at, len(words) - 1)]
        self.at += size
        return found

    def number(self) -> Ints:
        """Reads a zigzag varint of each datum. If a varint has more than 64 bits, marks its datum
        as bad."""
        first: Bytes = self.chunk.data.take(self.at, mode="clip")
        self.at += 1
        rows = np.flatnonzero(first >= _MORE)
        if not rows.size:  # every number takes only one byte
            return ((first >> 1) ^ -(first & 1)).view(np.int8).astype(np.int64)
        raw = first.astype(np.uint64)
        self._long_numbers(rows, raw)
        return (raw >> _ONE).view(np.int64) ^ -(raw & _ONE).view(np.int64)

    def length(self) -> Ints:
        """Reads, in each datum, the length of the value that follows (a zigzag varint). If this
        length exceeds the rest of the datum, marks the datum as bad, and returns zero for it."""
        found = self.number()
        wrong = (found < 0) | (found > self.end - self.at)
        if wrong.any():
            self.fail(wrong)
            found[wrong] = 0
        return found

    def index(self, count: int) -> Ints:
        """Reads the number of a branch or symbol of each datum. If the number is not below `count`,
        marks the datum as bad, and returns zero as its number."""
        found = self.number()
        wrong = (found < 0) | (found >= count)
        if wrong.any():
            self.fail(wrong)
            found[wrong] = 0
        return found

    def _long_numbers(self, rows: Ints, raw: Words) -> None:
        """Reads the varints of the rows `rows`, each from eight bytes at once (`Chunk.words`), and
        writes them to `raw`. Leaves varints of more than eight bytes to `_longest_numbers`."""
        words = self.chunk.words
        begin = np.minimum(self.at[rows] - 1, len(words) - 1)
        word = words[begin]
        stops = ~word & _CONTINUES
        below = (stops & (~stops + _ONE)) - _ONE  # mask: the bits below the last byte's highest bit
        value = word & below & _PAYLOAD
        for high, shift, low in _SQUEEZES:
            value = ((value & high) >> shift) | (value & low)
        raw[rows] = value
        self.at[rows] = begin + ((np.bitwise_count(below) + 1) >> 3)
        longer = stops == 0
        if longer.any():
            self._longest_numbers(rows[longer], begin[longer], value[longer], raw)

    def _longest_numbers(self, rows: Ints, begin: Ints, value: Words, raw: Words) -> None:
        """Reads varints of nine and ten bytes. A number of 64 bits takes at most ten bytes."""
        data = self.chunk.data
        ninth = data.take(begin + 8, mode="clip").astype(np.uint64)
        tenth = data.take(begin + 9, mode="clip").astype(np.uint64)
        is_ten = ninth >= _MORE
        value |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        raw[rows] = value | np.where(is_ten, tenth << np.uint64(63), np.uint64(0))
        self.at[rows] = begin + 9 + is_ten
        wrong = np.zeros(len(self), bool)
        wrong[rows] = is_ten & (tenth > 1)
        self.fail(wrong)
