"""Finds where each record begins and ends in a range of bytes. A record is a line here;
`multiline` joins several lines to one record. A framer is pure, and remembers nothing between
calls.

    first                 content end   end = next first
      |                       |           |
      a  b  c  d  e  f  g  h  CR  LF      ...

LF and CRLF both end a line, and do not belong to its value. A blank line is a record. The last line
of a range may lack its terminator: if the file has not changed for `idle.flush.ms`, the agent reads
such a line too. In this case the record ends where the range ends. A record without a terminator
needs no mark: readers recognise it because it is exactly as long as its value. The framing of a
range does not depend on other ranges. So if the agent reads a range again, the range yields the
same records.

Positions here count from the start of the buffer. If a change to this module makes other records
from the same bytes, FRAMING_VERSION must change. If a range was promised under another version, the
agent does not send it again unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

FRAMING_VERSION = 1

READ_BYTES = 1 << 20
"""How many bytes of a file are read at once. A line that does not end within this many bytes is
over-long, whatever the settings say.
"""

LF = 10
CR = 13

Int64s = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Frames:
    """One entry per record: [first, end) is the record with its terminator, [first, content_end)
    without it.

    are_lines: whether each record is one line, so that line ends are only at the ends of records.
    pieces: how many records are only a part of what a source's multiline settings call a record.
    """

    first: Int64s
    content_end: Int64s
    end: Int64s
    are_lines: bool = True
    pieces: int = 0

    def __len__(self) -> int:
        return len(self.first)

    @property
    def length(self) -> Int64s:
        """The number of bytes of each record, with its terminator."""
        return self.end - self.first


class Framer(Protocol):
    """Divides bytes into records."""

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """The records of one or several ranges, which follow one another in `data`.

        range_ends: where each range ends, in rising order; the last element is len(data). No record
        crosses the end of a range.
        """
        ...

    def whole_records_end(self, data: bytes) -> int:
        """The position at which the last record ends that certainly has its end in `data`, whatever
        follows; 0 if there is no such record.
        """
        ...


class LineFramer:
    """Makes a record of each line."""

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """The lines of one or several ranges."""
        array = np.frombuffer(data, np.uint8)
        end = np.flatnonzero(array == LF).astype(np.int64) + 1
        if (array[range_ends - 1] != LF).any():  # a last line without a terminator
            end = np.union1d(end, range_ends)
        first = np.empty_like(end)
        first[:1], first[1:] = 0, end[:-1]
        content_end = end - (array[end - 1] == LF)
        if b"\r" in data:
            # A CR belongs to the terminator only if an LF of the same record follows it.
            candidates = np.flatnonzero((content_end < end) & (content_end > first))
            with_cr = candidates[array[content_end[candidates] - 1] == CR]
            content_end[with_cr] -= 1
        return Frames(first, content_end, end)

    def whole_records_end(self, data: bytes) -> int:
        """The position at which the last terminated line ends."""
        return data.rfind(b"\n") + 1
