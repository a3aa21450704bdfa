"""Divides the log of a container's runtime into records. A container writes two streams, stdout and
stderr, and their lines are mixed in the log. The lines of each stream are joined as if they were
alone in the log: the parts of a line, and the lines that the setting `multiline` joins.

    line   stream  tag  text          records
    1      stdout  P    aaa           aaabbb    the bytes of the lines 1 and 3
    2      stderr  F    oops          oops      the bytes of the line 2
    3      stdout  F    bbb

So the lines of a record may not follow one another in the file. The framer then puts the lines in
another order: a record's lines follow one another, and records are in the order of their first
lines. The positions of records are those in this order (`Frames.woven`). So each byte still belongs
to one record, and the records follow one another without gaps. The order changes only between two
borders. At a border, no record has lines both before it and after it. A range may be divided only
at a border: then the records of its parts are those of the whole range.

A record ends if the next line of its stream begins more than APART_BYTES behind it in the file.
Lines that the runtime has not written, and holes, are records of their own and borders.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skidway.agent.parsing import containers
from skidway.agent.parsing.containers import Unwrapped
from skidway.agent.parsing.framing import (
    READ_BYTES,
    READ_LINES,
    Booleans,
    Frames,
    Int64s,
    LineFramer,
)
from skidway.agent.parsing.joins import Rule
from skidway.agent.parsing.joints import Joins
from skidway.agent.parsing.lines import UTF_8, slices
from skidway.dataclass import dataclass

APART_BYTES: Final = 1 << 16
"""Between two lines of a record, the lines of the other stream have at most this many bytes."""

LOOK_BACK_BYTES: Final = APART_BYTES
"""To find the last border of a range, the framer (which divides bytes into records) first looks
only at this many bytes at the range's end, which are at least APART_BYTES: if a stream has no line
in them, its last record has ended.
"""


@dataclass(frozen=True, slots=True)
class _Heads:
    """Which lines belong together. Each field is an array with one entry for each line.

    head: the index of the first line of the line's record. natural: the same, without the limits
    for the size of records. section: the number of the part of the log to which the line belongs;
    no record belongs to two sections. is_whole_before, is_whole_behind: whether the line can be the
    first, or the last, line of a whole record. closes: whether a record certainly ends there.
    """

    head: Int64s
    natural: Int64s
    section: Int64s
    stream: Int64s
    is_whole_before: Booleans
    is_whole_behind: Booleans
    closes: Booleans


class StreamsFramer:
    """The framer for the log of a container's runtime."""

    def __init__(
        self,
        rule: Rule | None,
        bytes_max: int,
        container: str,
        lines_max: int = READ_LINES,
        *,
        has_colours: bool = False,
    ) -> None:
        """rule: says by patterns which lines of a stream belong together; the patterns are searched
        in the text that the container wrote. None if only the parts of a line are joined.
        bytes_max: the highest number of bytes of a record of several lines. container: the runtime.
        has_colours: whether the patterns are searched in texts without their codes for terminals.
        """
        self._joins = Joins(rule, bytes_max, has_colours=has_colours)
        self._container, self.lines = container, LineFramer(UTF_8, lines_max)

    def frame(self, data: bytes, range_ends: Int64s) -> Frames:
        """Returns the records of one or several byte ranges, which follow one another in `data`."""
        lines = self.lines.frame(data, range_ends)
        if not len(lines):
            return lines
        found = self._heads(data, lines, np.isin(lines.first, np.append(0, range_ends[:-1])))
        order = np.argsort(found.head, kind="stable")
        head = found.head[order]
        first = np.flatnonzero(np.append(True, head[1:] != head[:-1]))
        last = np.append(first[1:], len(lines)) - 1
        is_whole = found.is_whole_before[order[first]] & found.is_whole_behind[order[last]]
        is_mixed = bool((order[1:] < order[:-1]).any())
        woven = _in_order(lines, order) if is_mixed else lines
        return Frames(
            woven.first[first],
            woven.content_end[last],
            woven.end[last],
            are_lines=False,
            pieces=int(np.count_nonzero(~is_whole)),
            is_hole=None if lines.is_hole is None else lines.is_hole[order[first]],
            woven=_bytes_of(data, lines, order) if is_mixed else None,
            is_border=_is_border(found.head, last + 1) if is_mixed else None,
        )

    def whole_records_end(self, data: bytes) -> int:
        """Returns the last border before which all records are certainly whole, whichever bytes
        follow `data`; 0 if there is none. If records follow one another so that there is no border
        in READ_BYTES, returns where the last line ends.
        """
        end = self.lines.whole_records_end(data)
        if end == 0:
            return 0
        for size in (LOOK_BACK_BYTES, end):
            lines = self.lines.last_lines(data, end, size)
            border = self._last_border(data, lines)
            if border:
                return border
            if not lines.first[0]:
                break
        return end if len(data) >= READ_BYTES else 0

    def _last_border(self, data: bytes, lines: Frames) -> int:
        """Returns the position of the last certain border behind the first of the lines; 0 if there
        is none. If other lines come before these lines, they may belong to the same records as the
        first lines of the two streams.
        """
        count = len(lines)
        found = self._heads(data, lines, np.arange(count) == 0)
        head, limit = found.head.copy(), count
        for stream in np.unique(found.stream).tolist():
            mine = np.flatnonzero(found.stream == stream)
            last = int(mine[-1])
            if lines.first[0] and found.section[mine[0]] == found.section[0]:
                head[found.natural == mine[0]] = -1  # nobody knows where this record begins
            is_full = head[last] >= 0 and self._is_full(lines, found.head == head[last])
            if not is_full and self._may_go_on(data, lines, found, last):
                limit = min(limit, int(head[last]))
        at = np.arange(1, max(limit, 0) + 1)
        borders = at[_is_border(head, at)]
        if not len(borders):
            return 0
        return int(lines.end[borders[-1] - 1])

    def _is_full(self, lines: Frames, mine: Booleans) -> bool:
        size = int((lines.end - lines.first)[mine].sum())
        return int(mine.sum()) >= self._joins.lines_max or size > self._joins.bytes_max

    def _may_go_on(self, data: bytes, lines: Frames, found: _Heads, last: int) -> bool:
        """Whether a line that follows may belong to the record of the line `last`, which is the
        last line of its stream, if the record is not full."""
        end = int(lines.end[-1])
        return not (
            found.closes[last]
            or found.section[last] != found.section[-1]
            or end - int(lines.end[last]) > APART_BYTES
            or self.lines.has_hole(data, end)
        )

    def _heads(self, data: bytes, lines: Frames, is_first: Booleans) -> _Heads:
        """is_first: for each line whether it is the first of its range."""
        wrapped = containers.unwrap(self._container, slices(data, lines.first, lines.content_end))
        is_alone = ~wrapped.is_good
        if lines.is_hole is not None:
            is_alone |= lines.is_hole
        section = np.cumsum(is_first | is_alone | np.append(False, is_alone[:-1]))
        stream = containers.stream_numbers(wrapped)
        key = 2 * section + stream
        order = np.argsort(key, kind="stable")
        key, is_part = key[order], wrapped.is_part[order] & ~is_alone[order]
        distance = lines.first[order][1:] - lines.end[order][:-1]
        is_next = np.append(False, (key[1:] == key[:-1]) & (distance <= APART_BYTES))
        is_sorted = bool((order[1:] > order[:-1]).all())
        texts = wrapped.texts if is_sorted else wrapped.texts.take(order)
        joints = self._joins.joints(texts, is_part)
        begins = ~is_next | (joints.begins & ~np.append(False, is_part[:-1]))
        divided = self._joins.divided(_in_order(lines, order), begins)
        before, behind = np.empty_like(begins), np.empty_like(begins)
        before[order], behind[order] = joints.is_beginning, joints.is_end
        closes = np.empty_like(begins)
        closes[order] = joints.closes
        return _Heads(
            _heads_of(divided, order),
            _heads_of(begins, order),
            section,
            stream,
            is_alone | (before & ~_continues(wrapped, stream, np.cumsum(is_first))),
            is_alone | behind,
            is_alone | closes,
        )


def _heads_of(begins: Booleans, order: Int64s) -> Int64s:
    """Returns, for each line of a file, the index of the first line of its record. begins: whether
    a record begins with the line, for each line in the given order.
    """
    heads = np.empty(len(order), np.int64)
    heads[order] = order[np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    return heads


def _continues(lines: Unwrapped, stream: Int64s, ranges: Int64s) -> Booleans:
    """Returns, for each line, whether it is the next part of the text of an earlier line in its
    range. ranges: for each line the number of its range."""
    found = np.zeros(len(stream), np.bool_)
    for number in (0, 1):
        mine = np.flatnonzero((stream == number) & lines.is_good)
        same = ranges[mine[1:]] == ranges[mine[:-1]]
        found[mine[1:]] = lines.is_part[mine[:-1]] & same
    return found


def _is_border(head: Int64s, at: Int64s) -> Booleans:
    """Returns, for each index of a line in `at`, whether no record has lines both before this line
    and from it on. head: for each line, the first line of its record."""
    least = np.append(np.minimum.accumulate(head[::-1])[::-1], len(head))
    found: Booleans = least[at] >= at
    return found


def _in_order(lines: Frames, order: Int64s) -> Frames:
    size = (lines.end - lines.first)[order]
    end = np.cumsum(size)
    return Frames(end - size, end - (lines.end - lines.content_end)[order], end)


def _bytes_of(data: bytes, lines: Frames, order: Int64s) -> bytes:
    bounds = zip(lines.first[order].tolist(), lines.end[order].tolist(), strict=True)
    return b"".join([data[first:end] for first, end in bounds])
