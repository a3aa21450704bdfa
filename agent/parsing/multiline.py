"""Joins lines into records of several lines, such as a log message with its stack trace.

A pattern (RE2) decides for each line whether a record begins or ends there:

    start           a record begins at each line that matches
    continuation    a line that matches belongs to the record of the line before it
    end             a record ends after each line that matches

The pattern is searched in the line, without its line end. If bytes of the line are not in the
source's encoding, they count as U+FFFD. The runtime of a container may divide a line into parts.
The kinds `start` and `continuation` search the pattern only in the line's first part, and the kind
`end` only in the last part. So where a record begins or ends never depends on a part that is in
another range. A byte order mark at the beginning of a line is not part of the searched text.

A record also ends before a line if the record would otherwise have more than `lines_max` lines, or
more bytes than the source's `max.line.bytes`. And a record ends where its range (the bytes that are
framed together) ends. If the file does not change for `timeout.ms`, or if the record has been
unfinished for minutes, the agent ends the range; lines that come later become another record. One
of these limits or a range's end may divide a record. The agent then counts as pieces those parts of
the record whose own lines show that they are only parts. With the kinds `start` and `continuation`,
these are all parts after the first; with the kind `end`, all parts before the last.

Lines are joined only within a range, and a range always begins with a new record. So if the range
is read again, its records are the same. The records also stay the same if the range is divided in
two at the end of a record, because the lines before a record do not change where it ends.

A hole (a run of NUL bytes, see the module `framing`) is a record of its own.

A record's value contains the line ends between its lines as they are in the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from skidway.agent.parsing.framing import READ_LINES, Frames, Int64s, LineFramer
from skidway.agent.parsing.joins import Rule
from skidway.agent.parsing.joints import Joins, Joints
from skidway.agent.parsing.lines import UTF_8, slices

LOOK_BACK_BYTES: Final = 1 << 16
"""To find the last record of a range, the framer (which divides bytes into records) first looks
only at this many bytes at the range's end. If no record begins in these bytes, the framer looks at
all bytes of the range.
"""


class JoiningFramer:
    """The framer that joins lines: each of its records has one or several lines."""

    def __init__(
        self,
        rule: Rule,
        bytes_max: int,
        encoding: str = UTF_8,
        lines_max: int = READ_LINES,
        *,
        has_colours: bool = False,
    ) -> None:
        """rule: says by patterns which lines belong together. bytes_max: the highest number of
        bytes of a record of several lines, without the last line's end. encoding: the encoding of
        the lines. has_colours: whether the patterns are searched in the lines without their codes
        for terminals.
        """
        self._joins = Joins(rule, bytes_max, encoding, has_colours=has_colours)
        self.lines = LineFramer(encoding, lines_max)

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """Returns the records of one or several byte ranges, which follow one another in `data`."""
        lines = self.lines.frame(data, range_ends)
        if not len(lines):
            return lines
        joints = self._joints(data, lines)
        begins = joints.begins.copy()
        begins[np.searchsorted(lines.first, np.append(0, range_ends[:-1]))] = True
        begins = self._joins.divided(lines, begins)
        if begins.all():
            pieces = int(np.count_nonzero(~(joints.is_beginning & joints.is_end)))
            return replace(lines, are_lines=False, pieces=pieces)
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(lines)) - 1
        is_hole = None if lines.is_hole is None else lines.is_hole[first]
        return Frames(
            lines.first[first],
            lines.content_end[last],
            lines.end[last],
            are_lines=False,
            pieces=int(np.count_nonzero(~(joints.is_beginning[first] & joints.is_end[last]))),
            is_hole=is_hole,
            unit=lines.unit,
        )

    def whole_records_end(self, data: bytes) -> int:
        """Returns the end of the last record to which no line after `data` can belong; 0 if there
        is no such record.
        """
        end = self.lines.whole_records_end(data)
        if end == 0:
            return 0
        lines, joints = self._last_lines(data, end)
        # Only the beginning of the last record matters here. So it does no harm to mark the first
        # line as a beginning even if it continues a record, because the last record then begins at
        # a later line.
        begins = joints.begins.copy()
        begins[0] = True
        last = int(np.flatnonzero(self._joins.divided(lines, begins))[-1])
        is_closed = (
            bool(joints.closes[-1])
            or len(lines) - last >= self._joins.lines_max
            or self.lines.content_least(data) - int(lines.first[last]) > self._joins.bytes_max
            or self.lines.has_hole(data, end)
        )
        return end if is_closed else int(lines.first[last])

    def _last_lines(self, data: bytes, end: int) -> tuple[Frames, Joints]:
        """Returns lines up to `end`: only the last ones if a record begins in them."""
        tail = self.lines.last_lines(data, end, LOOK_BACK_BYTES)
        joints = self._joints(data, tail)
        if not tail.first[0] or joints.begins[1:].any():
            return tail, joints
        lines = self.lines.last_lines(data, end, end)
        return lines, self._joints(data, lines)

    def _joints(self, data: bytes, lines: Frames) -> Joints:
        values = slices(data, lines.first, lines.content_end)
        joints = self._joins.joints(values, np.zeros(len(values), np.bool_))
        if lines.is_hole is None:
            return joints
        hole = lines.is_hole
        return Joints(
            joints.begins | hole | np.append(False, hole[:-1]),
            joints.closes | hole,
            joints.is_beginning | hole,
            joints.is_end | hole,
        )
