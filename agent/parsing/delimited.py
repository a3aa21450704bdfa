r"""Finds the groups of simple patterns by their delimiters, several times faster than RE2.

A pattern is simple if it is a sequence of named groups with literal text between them, and if each
group can end in one way only:

    \S+, \d+, [^x]+    with a literal after it that has a character which the group cannot contain,
                       or at the end of the pattern
    .*, .+             at the end of the pattern

The group's stop is the literal's first character that the group cannot contain. In
`(?P<name>[^:]+):-`, the stop is the colon. In a line, the first stop after the group's beginning
cannot be in the group, so it belongs to the literal. So there is only one place where the group can
end and the literal can begin. The result is always the result of RE2; a property test compares the
two results. For patterns that are not simple, the regex parser uses RE2. (`[^\]+` is not simple:
for RE2, the backslash makes the bracket a part of the class, and the class continues after the
bracket.)

All lines are scanned together. One comparison finds all positions of a delimiter in the buffer of
all lines. For each line, the scan then takes the first of these positions after the part of the
line that is already matched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing.framing import Booleans, Int64s
from skidway.agent.parsing.lines import slices, spans
from skidway.dataclass import dataclass

_NOT_BLANK: Final = r"\S+"
_DIGITS: Final = r"\d+"
_REST: Final = ".*"
_SOME_REST: Final = ".+"
_BLANK: Final = b" \t\n\f\r"
_PRINTABLE: Final = 32

_GROUP = re.compile(
    r"\(\?P?<(?P<name>[A-Za-z_]\w*)>"
    r"(?P<kind>\\S\+|\\d\+|\.\*|\.\+|\[\^(?:\\?[!-/:-@\[\]-`{-~ ]|\\\\|\w)\]\+)\)",
    re.ASCII,
)
_LITERAL = re.compile(r"(?:[\w <>:;,=/\"'@#%&!~`-]|\\[\]\[(){}.*+?|^$/\\\"'-])+", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Group:
    """A group. kind: its pattern, such as `\\d+`. after: the literal that follows the group; empty
    if the group is at the end of the pattern. stop: the index in `after` of the first character
    that the group cannot contain; None if there is no such character.
    """

    name: str
    kind: str
    after: bytes
    stop: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """What a pattern finds in lines. columns: the groups by name; in lines that do not match, they
    are empty. matched: which lines match.
    """

    columns: dict[str, pa.StringArray]
    matched: Booleans


class DelimitedPattern:
    """A compiled pattern that is simple (see the module's docstring)."""

    def __init__(self, before: bytes, groups: Sequence[_Group], *, dot_all: bool) -> None:
        self._before, self._groups, self._dot_all = before, groups, dot_all

    def find(self, lines: pa.StringArray) -> Found:
        """Finds the groups in each line. A null never matches."""
        data, first, end = spans(lines)
        scan = _Scan(data, first, end, np.array(lines.is_valid()))
        scan.take(self._before)
        bounds = [self._group(scan, group) for group in self._groups]
        scan.good &= scan.at == end
        columns = {}
        for group, (begin, until) in zip(self._groups, bounds, strict=True):
            begins, ends = (np.where(scan.good, each, first) for each in (begin, until))
            columns[group.name] = slices(data, begins, ends).view(pa.string())
        return Found(columns, scan.good)

    def _group(self, scan: _Scan, group: _Group) -> tuple[Int64s, Int64s]:
        begin, until = scan.at, scan.end
        if group.stop is not None:
            until = np.maximum(scan.next(group.after[group.stop]) - group.stop, begin)
        if group.kind != _REST:
            scan.good &= until > begin
        if group.kind == _NOT_BLANK:
            stop = b"" if group.stop is None else group.after[group.stop :][:1]
            # `\S+` matches no blank, so a line with a tab, for example, in this group does not
            # match
            scan.refuse(_BLANK.replace(stop, b""), begin, until)
        elif group.kind in (_REST, _SOME_REST) and not self._dot_all:
            scan.refuse(b"\n", begin, until)
        elif group.kind == _DIGITS:
            scan.require_digits(begin, until)
        elif group.kind[:2] == "[^" and group.stop is None:
            scan.refuse(group.kind[-3].encode(), begin, until)
        scan.at = until
        if group.stop is not None:
            scan.take(group.after[: group.stop])
            scan.take_stop()
            scan.take(group.after[group.stop + 1 :])
        return begin, until


def compiled(pattern: str, *, dot_all: bool = False) -> DelimitedPattern | None:
    """Returns the compiled pattern; None if it is not simple. dot_all: whether `.` matches line
    ends."""
    text = pattern.removeprefix("^")
    if text.endswith("$") and not text.endswith("\\$"):
        text = text[:-1]
    before, at = _literal(text, 0)
    groups: list[_Group] = []
    while at < len(text):
        found = _GROUP.match(text, at)
        if found is None:
            return None
        after, at = _literal(text, found.end())
        groups.append(_Group(found["name"], found["kind"], after, _stop(found["kind"], after)))
        if groups[-1].stop is None and (after or at < len(text)):
            return None
    names = {group.name for group in groups}
    return DelimitedPattern(before, groups, dot_all=dot_all) if len(names) == len(groups) else None


def _literal(text: str, at: int) -> tuple[bytes, int]:
    found = _LITERAL.match(text, at)
    if found is None:
        return b"", at
    return re.sub(r"\\(.)", r"\1", found[0]).encode(), found.end()


def _stop(kind: str, after: bytes) -> int | None:
    """Finds the first character of the literal `after` that a group of this kind cannot contain.
    Returns its index; None if the group can contain all characters of the literal."""
    if kind == _NOT_BLANK:
        stops = _BLANK
    elif kind == _DIGITS:
        stops = bytes(set(after) - set(b"0123456789"))
    elif kind in (_REST, _SOME_REST):
        return None
    else:
        stops = kind[-3].encode()
    return next((index for index, char in enumerate(after) if char in stops), None)


class _Scan:
    """A scan of all lines: for each line, the position from which it is scanned next, and whether
    it has matched so far.
    """

    def __init__(self, data: bytes, at: Int64s, end: Int64s, good: Booleans) -> None:
        self._text, self._data = data, np.frombuffer(data, np.uint8)
        self.at, self.end, self.good = at, end, good
        self._found: dict[int, Int64s] = {}
        self._stop: int | None = None
        self._index = at  # for each line: the index in `_places(stop)` of the line's next stop

    def next(self, stop: int) -> Int64s:
        """Returns, for each line, the first position of the byte `stop` at or after the position
        that the scan of the line has reached. A line without such a byte does not match; for such a
        line, returns the line's end.
        """
        places = self._places(stop)
        if stop != self._stop:
            self._stop, self._index = stop, np.searchsorted(places, self.at)
        found = np.minimum(places.take(self._index, mode="clip"), self.end)
        self.good &= found < self.end
        return found

    def take_stop(self) -> None:
        self.at = np.minimum(self.at + 1, self.end)
        self._index = self._index + 1

    def take(self, literal: bytes) -> None:
        for byte in literal:
            self.good &= self.at < self.end
            self.good &= self._data.take(self.at, mode="clip") == byte
            self.at = np.minimum(self.at + 1, self.end)
            if byte == self._stop:
                self._index = self._index + 1

    def refuse(self, bytes_: bytes, first: Int64s, end: Int64s) -> None:
        controls = self._controls()
        if len(controls):
            table = np.zeros(_PRINTABLE, np.bool_)
            table[[each for each in bytes_ if each < _PRINTABLE]] = True
            self._refuse(controls[table[self._data[controls]]], first, end)
        for byte in bytes_:
            if byte >= _PRINTABLE:
                self._refuse(self._places(byte), first, end)

    def _refuse(self, places: Int64s, first: Int64s, end: Int64s) -> None:
        if len(places):
            self.good &= np.searchsorted(places, first) == np.searchsorted(places, end)

    def _places(self, byte: int) -> Int64s:
        """Returns all positions of a byte in the buffer, in rising order, and then the position
        after the last line."""
        places = self._found.get(byte)
        if places is None:
            places = np.append(np.flatnonzero(self._data == byte), len(self._data))
            self._found[byte] = places
        return places

    def _controls(self) -> Int64s:
        places = self._found.get(-1)
        if places is None:
            # the last byte of the buffer is left out: it belongs to no line
            is_control = self._data[:-1] < _PRINTABLE
            # Most logs have no control characters, and `any` shows this faster than `flatnonzero`.
            places = np.flatnonzero(is_control) if is_control.any() else np.empty(0, np.int64)
            self._found[-1] = places
        return places

    def require_digits(self, first: Int64s, end: Int64s) -> None:
        first, end = (np.where(self.good, each, self.end) for each in (first, end))
        texts = slices(self._text, first, end).view(pa.string())
        self.good &= np.asarray(pc.ascii_is_decimal(texts), np.bool_)
