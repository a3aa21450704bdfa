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

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing import containers
from skidway.agent.parsing.byte_order import mark_of
from skidway.agent.parsing.framing import Booleans, Frames, Int64s, LineFramer
from skidway.agent.parsing.joins import END, START, Rule
from skidway.agent.parsing.lines import UTF_8, repaired, slices
from skidway.agent.values.terminals import plain
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

LOOK_BACK_BYTES: Final = 1 << 16
"""To find the last record of a range, the framer (which divides bytes into records) first looks
only at this many bytes at the range's end. If no record begins in these bytes, the framer looks at
all bytes of the range.
"""

CONTAINER_LINES_MAX: Final = 1_000
"""Without a rule for joining lines, at most this many parts of a container's line are joined."""


def check_rule(rule: Rule) -> None:
    """Raises ConfigurationRefused if RE2 refuses the rule's pattern."""
    try:
        _matches(pa.array([b""], pa.binary()), rule.pattern)
    except pa.ArrowInvalid as error:
        raise ConfigurationRefused(f"multiline.pattern {rule.pattern!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Joints:
    """What each line by itself, without the lines beside it, says about where records begin and
    end. Each field is an array with one entry for each line.

    begins: whether a record begins with the line. closes: whether the line's record certainly ends
    with the line. is_beginning, is_end: whether the line can be the first, or the last, line of a
    whole record.
    """

    begins: Booleans
    closes: Booleans
    is_beginning: Booleans
    is_end: Booleans


class JoiningFramer:
    """The framer that joins lines: each of its records has one or several lines."""

    def __init__(
        self,
        rule: Rule | None,
        bytes_max: int,
        container: str | None = None,
        encoding: str = UTF_8,
        *,
        has_colours: bool = False,
    ) -> None:
        """rule: says by patterns which lines belong together; None if only the parts of a
        container's line are joined. bytes_max: the highest number of bytes of a record of several
        lines, without the last line's end. container: the format in which a container's runtime
        wraps the lines (see `containers`); the rule's patterns are searched in the text that the
        container wrote. encoding: the encoding of the lines. has_colours: whether the patterns are
        searched in the lines without their codes for terminals.
        """
        if rule is not None:
            check_rule(rule)
        self._rule, self._bytes_max, self._container = rule, bytes_max, container
        self._lines_max = CONTAINER_LINES_MAX if rule is None else rule.lines_max
        self._encoding, self.lines = encoding, LineFramer(encoding)
        self._has_colours = has_colours

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """Returns the records of one or several byte ranges, which follow one another in `data`."""
        lines = self.lines.frame(data, range_ends)
        if not len(lines):
            return lines
        joints = self._joints(data, lines)
        forced = np.isin(lines.first, np.append(0, range_ends[:-1]))
        first = np.flatnonzero(self._divided(lines, joints.begins | forced))
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
        lines = self.lines.frame(data[:end], np.array([end]))
        tail = lines.behind(int(np.searchsorted(lines.first, end - LOOK_BACK_BYTES)))
        joints = self._joints(data, tail)
        if len(tail) == len(lines) or joints.begins[1:].any():
            lines = tail
        else:
            joints = self._joints(data, lines)
        # Only the beginning of the last record matters here. So it does no harm to mark the first
        # line as a beginning even if it continues a record, because the last record then begins at
        # a later line.
        begins = joints.begins.copy()
        begins[0] = True
        last = int(np.flatnonzero(self._divided(lines, begins))[-1])
        is_closed = (
            bool(joints.closes[-1])
            or len(lines) - last >= self._lines_max
            or self.lines.content_least(data) - int(lines.first[last]) > self._bytes_max
            or self.lines.has_hole(data, end)
        )
        return end if is_closed else int(lines.first[last])

    def _joints(self, data: bytes, lines: Frames) -> _Joints:
        joints = self._joints_of_lines(data, lines)
        if lines.is_hole is None:
            return joints
        hole = lines.is_hole
        return _Joints(
            joints.begins | hole | np.append(False, hole[:-1]),
            joints.closes | hole,
            joints.is_beginning | hole,
            joints.is_end | hole,
        )

    def _joints_of_lines(self, data: bytes, lines: Frames) -> _Joints:
        values = slices(data, lines.first, lines.content_end)
        if self._container is None:
            return self._by_rule(values, np.zeros(len(values), np.bool_))
        wrapped = containers.unwrap(self._container, values)
        joints, follows = self._by_rule(wrapped.texts, wrapped.is_part), containers.follows(wrapped)
        return _Joints(
            (joints.begins & ~follows) | containers.is_alone(wrapped),
            joints.closes | ~wrapped.is_good,
            joints.is_beginning & ~follows,
            joints.is_end,
        )

    def _by_rule(self, texts: pa.BinaryArray, is_part: Booleans) -> _Joints:
        """Returns where records begin and end in lines with these texts, if only the rule decides
        (see `_Joints`). is_part: for each line, whether the next part of its text is in the line
        after it."""
        yes = np.ones(len(texts), np.bool_)
        if self._rule is None:
            return _Joints(yes, ~is_part, yes, ~is_part)
        searched = _unmarked(repaired(texts, self._encoding)[0])
        if self._has_colours:
            searched = plain(searched.view(pa.string()))[0].view(pa.binary())
        said = _matches(searched, self._rule.pattern)
        if self._rule.kind == END:
            ends = said & ~is_part
            return _Joints(np.append(True, ends[:-1]), ends, yes, ends)
        begins = said if self._rule.kind == START else ~said
        return _Joints(begins, ~yes, begins, ~is_part)

    def _divided(self, lines: Frames, begins: Booleans) -> Booleans:
        """Divides records that are too large. begins: for each line, whether a record begins there;
        the first value is true. Returns the values of `begins` after the division.
        """
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(lines)) - 1
        large = (last - first >= self._lines_max) | (
            (lines.content_end[last] - lines.first[first] > self._bytes_max) & (last > first)
        )
        if not large.any():
            return begins
        begins = begins.copy()
        for at in np.flatnonzero(large).tolist():
            record = int(first[at])
            for line in range(record + 1, int(last[at]) + 1):
                size = int(lines.content_end[line] - lines.first[record])
                if line - record >= self._lines_max or size > self._bytes_max:
                    begins[line] = True
                    record = line
        return begins


def _unmarked(texts: pa.BinaryArray) -> pa.BinaryArray:
    """Returns the UTF-8 texts. If a text begins with a byte order mark, returns it without this
    mark."""
    has_mark = pc.starts_with(texts, mark_of(UTF_8))
    if not pc.any(has_mark, min_count=0).as_py():
        return texts
    unmarked = pc.replace_substring_regex(texts.view(pa.string()), "\\A\\x{FEFF}", "")
    return unmarked.view(pa.binary())


def _matches(values: pa.BinaryArray, pattern: str) -> Booleans:
    return np.array(pc.match_substring_regex(values.view(pa.string()), pattern), np.bool_)
