"""Decides which lines become one record, by a rule and by limits. The framers `multiline` and
`streams` (which divide bytes into records) use these decisions.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing.byte_order import UTF_8, mark_of
from skidway.agent.parsing.framing import Booleans, Frames
from skidway.agent.parsing.joins import END, START, Rule, own_beginning
from skidway.agent.parsing.lines import repaired
from skidway.agent.values.terminals import plain
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

PARTS_MAX: Final = 1_000
"""Without a rule, at most this many parts of a container's line are joined."""

HEAD_BYTES: Final = 16
_SOME: Final = 64

_ASKS_BEHIND: Final = re.compile(r"[$]|\\[bBz]")
"""Matches patterns that may ask what follows a match, or that only look like this."""


def check_rule(rule: Rule) -> None:
    """Raises ConfigurationRefused if RE2 refuses the rule's pattern."""
    try:
        _matches(pa.array([b""], pa.binary()), rule.pattern)
    except pa.ArrowInvalid as error:
        raise ConfigurationRefused(f"multiline.pattern {rule.pattern!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class Joints:
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


class Joins:
    """The rule and the limits of a source. rule: None if only the parts of a container's line are
    joined."""

    def __init__(
        self, rule: Rule | None, bytes_max: int, encoding: str = UTF_8, *, has_colours: bool = False
    ) -> None:
        if rule is not None:
            check_rule(rule)
        self._rule, self.bytes_max = rule, bytes_max
        self.lines_max: Final = PARTS_MAX if rule is None else rule.lines_max
        self._encoding, self._has_colours = encoding, has_colours

    def joints(self, texts: pa.BinaryArray, is_part: Booleans) -> Joints:
        """Returns where records begin and end in lines with these texts, if only the rule decides
        (see `Joints`). is_part: for each line, whether the next part of its text is in the line
        after it."""
        yes = np.ones(len(texts), np.bool_)
        if self._rule is None:
            return Joints(yes, ~is_part, yes, ~is_part)
        searched = _unmarked(repaired(texts, self._encoding)[0])
        if self._has_colours:
            searched = plain(searched.view(pa.string()))[0].view(pa.binary())
        said = _matches(searched, self._rule.pattern)
        if self._rule.kind == END:
            ends = said & ~is_part
            return Joints(np.append(True, ends[:-1]), ends, yes, ends)
        begins = said if self._rule.kind == START else ~said
        return Joints(begins, ~yes, begins, ~is_part)

    def divided(self, lines: Frames, begins: Booleans) -> Booleans:
        """Divides records that are too large. begins: for each line, whether a record begins there;
        the first value is true. Returns the values of `begins` after the division.
        """
        first = np.flatnonzero(begins)
        if len(first) == len(lines):
            return begins
        last = np.append(first[1:], len(lines)) - 1
        large = (last - first >= self.lines_max) | (
            (lines.content_end[last] - lines.first[first] > self.bytes_max) & (last > first)
        )
        if not large.any():
            return begins
        begins = begins.copy()
        for at in np.flatnonzero(large).tolist():
            record = int(first[at])
            for line in range(record + 1, int(last[at]) + 1):
                size = int(lines.content_end[line] - lines.first[record])
                if line - record >= self.lines_max or size > self.bytes_max:
                    begins[line] = True
                    record = line
        return begins


def _unmarked(texts: pa.BinaryArray) -> pa.BinaryArray:
    has_mark = pc.starts_with(texts, mark_of(UTF_8))
    if not pc.any(has_mark, min_count=0).as_py():
        return texts
    unmarked = pc.replace_substring_regex(texts.view(pa.string()), "\\A\\x{FEFF}", "")
    return unmarked.view(pa.binary())


def _matches(values: pa.BinaryArray, pattern: str) -> Booleans:
    """Returns in which texts the pattern is found. If a simpler pattern, that is found nowhere
    else, is found in the head of a text, and does not ask what follows, it is found in all texts
    with this head. So of neighbouring texts with the same head, such as the same minute, only the
    first one's head is searched."""
    simple = own_beginning(pattern)
    if _ASKS_BEHIND.search(simple) or _new_heads(values[:_SOME]) is None:
        return _found(values, pattern)
    is_new = _new_heads(values)
    if is_new is None:
        return _found(values, pattern)
    first = np.flatnonzero(is_new)
    heads = pc.binary_slice(values.take(pa.array(first)), 0, HEAD_BYTES)
    found = np.repeat(_found(heads, simple), np.diff(np.append(first, len(values))))
    others = np.flatnonzero(~found)
    if len(others):
        found[others] = _found(values.take(pa.array(others)), pattern)
    return found


def _found(values: pa.BinaryArray, pattern: str) -> Booleans:
    return np.array(pc.match_substring_regex(values.view(pa.string()), pattern), np.bool_)


def _new_heads(values: pa.BinaryArray) -> Booleans | None:
    """Returns which texts do not have the head of the text before them; None if these are more than
    a quarter of the texts."""
    bounds = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1]
    data, begin = values.buffers()[2], bounds[:-1]
    if data is None or data.size < HEAD_BYTES:
        return None
    # NumPy would copy all of `data` to take words that are not aligned, but not to take bytes.
    everywhere = np.ndarray((data.size - HEAD_BYTES + 1,), f"V{HEAD_BYTES}", data, strides=(1,))
    taken = everywhere[np.minimum(begin, data.size - HEAD_BYTES)]
    left, right = taken.view("<u8").reshape(-1, 2).T
    is_short = bounds[1:] - begin < HEAD_BYTES
    is_new = np.ones(len(values), np.bool_)
    is_new[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1]) | is_short[1:] | is_short[:-1]
    return is_new if 4 * np.count_nonzero(is_new) <= len(values) else None
