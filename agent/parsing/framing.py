"""Finds where each record begins and ends in a range of bytes. Here a record is a line; the module
`multiline` joins several lines to one record. The methods of a framer are pure functions: a framer
remembers nothing between calls.

    first                 content end   end = next first
      |                       |           |
      a  b  c  d  e  f  g  h  CR  LF      ...

LF and CRLF both end a line, and do not belong to its value. A blank line is a record. The last line
of a range may lack its terminator: if the file has not changed for `idle.flush.ms`, or if the line
has been unfinished for minutes, the agent reads such a line too. A record without a terminator ends
where its range ends, or where a hole (see below) begins. The length in a record's origin includes
the terminator. So if this length equals the length of the value, the record has no terminator. The
framing of a range does not depend on other ranges. So if the agent reads a range again, the range
yields the same records.

A hole is a run of NUL bytes that takes the place of lines. A power loss can leave a hole. A program
can also leave a hole if it continues to write at its old position after its log was truncated. A
run is a hole if it is at the beginning of a line, or if it has at least HOLE_BYTES bytes. Other NUL
bytes belong to their line. A hole is a record of its own; the next line begins where the hole ends.

In UTF-16, CR, LF and NUL are code units of two bytes. The first unit of a range begins with the
range's first byte. If a range ends with half a unit (one byte), this byte belongs to the range's
last record.

Positions here count from the start of the buffer. If a change to this module makes other records
from the same bytes, FRAMING_VERSION must change. If the intent of a range was made under another
version, the agent does not simply send the range again: it first searches the brokers' logs for
those of the intent's records that have arrived.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from skidway.agent.parsing.byte_order import UTF_8, UTF_16LE, unit_bytes
from skidway.dataclass import dataclass

FRAMING_VERSION = 2

READ_BYTES = 1 << 20
"""One read of a file returns at most this many bytes. A longer line counts as too long, even if the
source's `max.line.bytes` is higher.
"""

READ_LINES: Final = 1 << 15
"""One reading, and one call of the press, get at most about this many lines, because each line
needs memory of its own, however short it is: a rejected line needs about a thousand bytes.
"""

HOLE_BYTES: Final = 256
"""A run of at least this many NUL bytes is a hole, even if it is not at the beginning of a line."""

LF = 10
CR = 13

HIGH_SURROGATES: Final = range(0xD800, 0xDC00)
"""In UTF-16, a character outside of the basic plane begins with one of these code units."""

Int64s = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Frames:
    """Where records are, as arrays with one entry for each record: [first, end) is the record with
    its terminator, [first, content_end) is the record without it.

    are_lines: whether each record is one line, so that line ends are only at the ends of records.
    pieces: how many of these records begin or end where a record of the source's multiline settings
    does not, so that they are only a part of such a record. is_hole: for each record whether it is
    a hole; None if there are no holes. unit: how many bytes a code unit has.

    woven: the bytes in which the records are, if these are the bytes of the ranges in another
    order; None if the records are in the ranges as they are. is_border: for each record whether a
    range may be divided after it; None if it may be divided after each record.
    """

    first: Int64s
    content_end: Int64s
    end: Int64s
    are_lines: bool = True
    pieces: int = 0
    is_hole: Booleans | None = None
    unit: int = 1
    woven: bytes | None = None
    is_border: Booleans | None = None

    def __len__(self) -> int:
        return len(self.first)

    @property
    def length(self) -> Int64s:
        """The number of bytes of each record, with its terminator."""
        return self.end - self.first

    @property
    def borders(self) -> Int64s:
        """The ends of those records after which a range may be divided. The records of its parts
        are then those of the whole range."""
        return self.end if self.is_border is None else self.end[self.is_border]

    def behind(self, row: int) -> Frames:
        """Returns the records from index `row` on."""
        is_hole = None if self.is_hole is None else self.is_hole[row:]
        first, content_end, end = self.first[row:], self.content_end[row:], self.end[row:]
        return replace(self, first=first, content_end=content_end, end=end, is_hole=is_hole)


class Framer(Protocol):
    """Divides bytes into records."""

    @property
    def lines(self) -> LineFramer:
        """A framer that divides bytes in the same encoding into lines, and never into records of
        several lines."""
        ...

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """Returns the records of one or several ranges, which follow one another in `data`.

        range_ends: where each range ends, in rising order; the last element is len(data). No record
        crosses the end of a range.
        """
        ...

    def whole_records_end(self, data: bytes) -> int:
        """Returns the end of the last record that is certainly whole, whichever bytes follow
        `data`; 0 if no record is certainly whole.
        """
        ...


class LineFramer:
    """The framer that makes a record of each line."""

    def __init__(self, encoding: str = UTF_8, lines_max: int = READ_LINES) -> None:
        """lines_max: how many lines one reading gets at most."""
        self.lines_max: Final = lines_max
        self.unit: Final = unit_bytes(encoding)
        self._encoding: Final = encoding
        order = "little" if encoding == UTF_16LE or self.unit == 1 else "big"
        self._type = np.dtype(np.uint8 if self.unit == 1 else "<u2" if order == "little" else ">u2")
        self._lf = LF.to_bytes(self.unit, order)  # type: ignore[arg-type]
        self._cr = CR.to_bytes(self.unit, order)  # type: ignore[arg-type]

    @property
    def lines(self) -> LineFramer:
        """The framer itself."""
        return self

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """Returns the lines and holes of one or several ranges, which follow one another in
        `data`."""
        if self.unit > 1 or b"\0" in data:
            return self._frame_each(data, range_ends)
        array = np.frombuffer(data, np.uint8)
        end = np.flatnonzero(array == LF).astype(np.int64) + 1
        if (array[range_ends - 1] != LF).any():  # a range's last line has no terminator
            end = np.union1d(end, range_ends)
        content_end = end - (array[end - 1] == LF)
        return self._frames(data, content_end, end)

    def whole_records_end(self, data: bytes) -> int:
        """Returns the position at which the last terminated line ends. If holes follow this line,
        returns the end of the last hole, or its beginning if the hole may continue after `data`.
        """
        at = self._last_line_end(data)
        if b"\0" not in data[at:]:
            return at
        units = self._units(data, at, len(data))
        first, end = _holes(units, self.unit)
        if not len(first):
            return at
        is_over = end[-1] < len(units)  # other bytes follow the hole, so it is complete
        return at + self.unit * int(end[-1] if is_over else first[-1])

    def last_lines(self, data: bytes, end: int, size: int) -> Frames:
        """Returns the lines and holes of `data` up to `end`, where a line ends, from the last line
        on that begins before the last `size` bytes."""
        begin = self.whole_records_end(data[: max(end - max(size, 1), 0)])
        found = self.frame(data[begin:end], np.array([end - begin]))
        first, content_end = found.first + begin, found.content_end + begin
        return replace(found, first=first, content_end=content_end, end=found.end + begin)

    def first_lines_end(self, data: bytes) -> int:
        """Returns where the first `lines_max` lines of `data` end; the length of `data` if it has
        fewer lines."""
        most = self.lines_max
        if count_lines(data) <= most:
            return len(data)
        ends = np.flatnonzero(self._units(data, 0, len(data)) == LF)
        return self.unit * (int(ends[most - 1]) + 1) if len(ends) > most else len(data)

    def weight(self, data: bytes) -> int:
        """Returns for how many lines of READ_LINES the lines of `data` count."""
        return count_lines(data) * (READ_LINES // self.lines_max)

    def end_inside(self, data: bytes) -> int | None:
        """For `data` that begins inside a line, returns where this line ends: after its terminator,
        or at the beginning of a hole. Returns None if the line does not end in `data`.
        """
        at = self._find(data, self._lf, 0)
        text = data if at < 0 else data[:at]
        first, end = _runs(self._units(text, 0, len(text)) == 0) if b"\0" in text else ((), ())
        holes = (
            self.unit * int(begin)
            for begin, behind in zip(first, end, strict=True)
            if (behind - begin) * self.unit >= HOLE_BYTES
        )
        return next(holes, None if at < 0 else at + self.unit)

    def size_before_nuls(self, data: bytes) -> int:
        """For `data` that ends inside a line, returns how many of its bytes are before the NULs at
        its end. These NULs may be the beginning of a hole. Half a code unit at the end of `data` is
        not counted either.
        """
        whole = len(data) - len(data) % self.unit
        size = len(data[:whole].rstrip(b"\0"))
        return size + -size % self.unit

    def content_least(self, data: bytes) -> int:
        """For `data` that ends inside a line, returns how many of its bytes are certainly not part
        of a line end. (A CR at the end of `data` may be part of a line end.)
        """
        whole = len(data) - len(data) % self.unit
        return whole - self.unit * (data[max(whole - self.unit, 0) : whole] == self._cr)

    def part_end(self, data: bytes) -> int:
        """For `data` that begins and ends inside a line, returns where to divide the line: as far
        back as possible, but neither inside a character nor between CR and LF. If that leaves
        nothing, returns the end of the last whole code unit.
        """
        whole = len(data) - len(data) % self.unit
        end = self.content_least(data)
        if self._encoding == UTF_8:
            end -= _begun_bytes(data[max(end - 4, 0) : end])
        elif self.unit == 2 and end:
            last = int(np.frombuffer(data, self._type, 1, end - 2)[0])
            end -= 2 * (last in HIGH_SURROGATES)
        return end or whole

    def holes(self, data: bytes) -> list[tuple[int, int]]:
        """Returns where the holes in `data` begin and end. `data` begins where a record begins."""
        if b"\0" not in data:
            return []
        first, end = _holes(self._units(data, 0, len(data)), self.unit)
        edges = zip((self.unit * first).tolist(), (self.unit * end).tolist(), strict=True)
        return list(edges)

    def has_hole(self, data: bytes, at: int) -> bool:
        """Whether a hole begins at `at`, where a record ends."""
        return len(data) >= at + self.unit and not any(data[at : at + self.unit])

    # --- code units -----------------------------------------------------------------------------

    def _frame_each(self, data: bytes, range_ends: Int64s) -> Frames:
        """Finds the lines and holes of each range separately, because a range may end with half a
        code unit."""
        line_ends, ends, holes = [], [range_ends], []
        begin = 0
        for end in range_ends.tolist():
            units = self._units(data, begin, end)
            line_ends.append(begin + self.unit * (np.flatnonzero(units == LF) + 1))
            first, behind = _holes(units, self.unit)
            holes.append(begin + self.unit * first)
            ends += [holes[-1], begin + self.unit * behind]
            begin = end
        lines, hole = np.concatenate(line_ends), np.concatenate(holes)
        end_ = np.unique(np.concatenate([lines, *ends]))
        end_ = end_[end_ > 0]
        content_end = end_ - self.unit * np.isin(end_, lines)
        frames = self._frames(data, content_end, end_)
        if not len(hole):
            return frames
        return replace(frames, is_hole=np.isin(frames.first, hole))

    def _frames(self, data: bytes, content_end: Int64s, end: Int64s) -> Frames:
        """Makes the `Frames` (where each record begins and ends) of records that follow one
        another. A CR belongs to the terminator only if an LF of the same record follows it.
        """
        first = np.empty_like(end)
        first[:1], first[1:] = 0, end[:-1]
        if b"\r" in data:
            array = np.frombuffer(data, np.uint8)
            rows = np.flatnonzero((content_end < end) & (content_end > first))
            is_cr = np.ones(len(rows), np.bool_)
            for at, byte in enumerate(self._cr):
                is_cr &= array[content_end[rows] - self.unit + at] == byte
            content_end[rows[is_cr]] -= self.unit
        return Frames(first, content_end, end, unit=self.unit)

    def _units(self, data: bytes, begin: int, end: int) -> npt.NDArray[np.integer]:
        count = (end - begin) // self.unit
        return np.frombuffer(data, self._type, count, begin) if count else np.empty(0, self._type)

    def _last_line_end(self, data: bytes) -> int:
        end = len(data)
        while (at := data.rfind(self._lf, 0, end)) >= 0 and at % self.unit:
            end = at + self.unit - 1
        return at + self.unit if at >= 0 else 0

    def _find(self, data: bytes, wanted: bytes, at: int) -> int:
        while (at := data.find(wanted, at)) >= 0 and at % self.unit:
            at += 1
        return at


def count_lines(data: bytes) -> int:
    """Returns how many lines end in `data`; in UTF-16, this may be more than there are."""
    return data.count(b"\n")


def nul_bytes(data: bytes) -> int:
    """Returns how many NUL bytes are at the beginning of `data`."""
    return len(data) - len(data.lstrip(b"\0"))


def _holes(units: npt.NDArray[np.integer], unit: int) -> tuple[Int64s, Int64s]:
    """Returns, for each hole in a range, the index of the hole's first code unit, and the index of
    the first code unit after the hole."""
    is_nul = units == 0
    if not is_nul.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, end = _runs(is_nul)
    begins_line = (first == 0) | (units[first - 1] == LF)
    is_hole = begins_line | ((end - first) * unit >= HOLE_BYTES)
    return first[is_hole], end[is_hole]


def _runs(is_nul: Booleans) -> tuple[Int64s, Int64s]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_nul.view(np.int8), [0]))))
    return edges[0::2].astype(np.int64), edges[1::2].astype(np.int64)


def _begun_bytes(data: bytes) -> int:
    """Returns how many bytes at the end of UTF-8 data belong to a character that does not end in
    the data."""
    for count, byte in enumerate(reversed(data), 1):
        if byte & 0xC0 != 0x80:  # the first byte of a character
            size = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return count if size > count else 0
    return 0
