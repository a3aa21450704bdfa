"""Lines in bytes: where each record begins and ends. Pure, and without memory from call to call.

    first                 content end   end = next first
      |                       |           |
      a  b  c  d  e  f  g  h  CR  LF      ...

LF and CRLF both end a line and are no part of its value; a blank line is a record. The last line of
a range may lack its terminator (the file stood still for `idle.flush.ms`): then the record ends
where the range ends. Such a record needs no mark: its length is the length of its value. Nothing of
one range is needed to frame the next, so a range is framed the same way whenever it is read again.

Positions here count from the start of the buffer. A change to what this module makes of the same
bytes needs a new FRAMING_VERSION: ranges promised under another version are not replayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FRAMING_VERSION = 1

READ_BYTES = 1 << 20
"""Bytes read at once. A line that does not end within them is over-long, whatever the settings."""

LF = 10
CR = 13

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Frames:
    """One entry per record: [first, end) with its terminator, [first, content_end) without."""

    first: Int64s
    content_end: Int64s
    end: Int64s

    def __len__(self) -> int:
        return len(self.first)

    @property
    def length(self) -> Int64s:
        """Bytes of each record, terminator included."""
        return self.end - self.first


def frame(data: bytes, range_ends: Int64s) -> Frames:
    """The records of one or more ranges that lie one after the other in `data`.

    range_ends: where each range ends, rising; the last one is len(data). No record crosses an end.
    """
    array = np.frombuffer(data, np.uint8)
    end = np.flatnonzero(array == LF).astype(np.int64) + 1
    if (array[range_ends - 1] != LF).any():  # a last line without its end
        end = np.union1d(end, range_ends)
    first = np.empty_like(end)
    first[:1], first[1:] = 0, end[:-1]
    content_end = end - (array[end - 1] == LF)
    if b"\r" in data:
        # A CR belongs to the terminator only in front of an LF of the same record.
        candidates = np.flatnonzero((content_end < end) & (content_end > first))
        with_cr = candidates[array[content_end[candidates] - 1] == CR]
        content_end[with_cr] -= 1
    return Frames(first, content_end, end)


def whole_records_end(data: bytes) -> int:
    """Where the last terminated line in `data` ends; 0 when none does."""
    return data.rfind(b"\n") + 1
