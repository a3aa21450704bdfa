r"""Cuts lines in the format logfmt into keys and values.

    level=info msg="a \"b\"\n" dur=3ms url=/a?b=c slow

A pair is a key, `=` and a value. Blanks (the space and all control characters) separate pairs. A
value that begins with a quotation mark ends at the next quotation mark that no backslash escapes.
In such a value, `\n`, `\r`, `\t`, `\b`, `\f`, `\\`, `\"`, `\/` and `\uXXXX` mean the same as in
JSON, and a backslash before another character stands for itself. Any other value ends at the next
blank. A word without `=` is a key with the value `true`.

Most lines are cut together with NumPy and Arrow. A line is cut separately, by slower code with the
same result, if it has two backslashes in a row, or a quotation mark that is not at the edge of a
value.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing.framing import Booleans, Int64s
from skidway.agent.parsing.lines import slices, spans
from skidway.dataclass import dataclass

NO_PAIR: Final = "the line has no key=value"
NO_KEY: Final = "the line has a value without a key"
OPEN_VALUE: Final = "a quoted value does not end in this record"
AFTER_QUOTE: Final = "a quoted value has text behind its last quotation mark"

_FLAG: Final = "true"
_BLANK_MAX: Final = 32
_QUOTE, _EQUALS, _BACKSLASH = ord('"'), ord("="), ord("\\")

_BLANKS: Final = "".join(map(chr, range(_BLANK_MAX + 1)))
_WORD: Final = re.compile(f"[^{re.escape(_BLANKS)}]*")
_KEY: Final = re.compile(f'[^={re.escape(_BLANKS)}"]*')
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})"
    r'|([nrtbf\\"/]))'
)
_MEANINGS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of all lines, in the order in which they are in the lines. line: for each pair the
    index of its line. faults: for each line that cannot be cut into pairs, a sentence that says
    why.
    """

    line: Int64s
    keys: pa.StringArray
    values: pa.StringArray
    faults: dict[int, str]


def pairs_of(lines: pa.StringArray) -> Pairs:
    """Cuts lines into pairs. A null has no pairs."""
    scan = _Scan(lines)
    begin, end, line = scan.words()
    equals = scan.equals_after(begin)
    has_value = equals < end
    value = np.where(has_value, equals + 1, end)
    is_quoted = has_value & (scan.text[value] == _QUOTE) & (value < end)
    is_odd = scan.odd_lines(value[is_quoted])
    faults = _faults(line, has_value, equals == begin, lines.is_valid(), is_odd)
    bad = is_odd.copy()
    bad[list(faults)] = True
    kept = ~bad[line] if bad.any() else np.ones(len(line), np.bool_)
    keys = slices(scan.data, begin[kept], np.where(has_value, equals, end)[kept]).view(pa.string())
    quoted, flags = is_quoted[kept], ~has_value[kept]
    cut = slices(scan.data, (value + is_quoted)[kept], (end - is_quoted)[kept])
    values = _with_meanings(cut.view(pa.string()), quoted, flags)
    found = Pairs(line[kept], keys, values, faults)
    odd = np.flatnonzero(is_odd & np.asarray(lines.is_valid())).tolist()
    return _with_lines(found, {row: split(lines[row].as_py()) for row in odd}) if odd else found


def split(line: str) -> list[tuple[str, str]] | str:
    """Returns the pairs of one line, or a sentence that says why the line cannot be cut into
    pairs."""
    pairs: list[tuple[str, str]] = []
    at, has_value = 0, False
    while True:
        while line[at : at + 1] and line[at] in _BLANKS:
            at += 1
        if at == len(line):
            return pairs if has_value else NO_PAIR
        key = _at(_KEY, line, at)
        at += len(key)
        if line[at : at + 1] == '"' or not key:
            return NO_KEY
        if line[at : at + 1] != "=":
            pairs.append((key, _FLAG))
            continue
        at, has_value = at + 1, True
        if line[at : at + 1] == '"':
            found = _QUOTED.match(line, at)
            if found is None:
                return OPEN_VALUE
            pairs.append((key, unescaped(found[1])))
            at = found.end()
            if line[at : at + 1] and line[at] not in _BLANKS:
                return AFTER_QUOTE
        else:
            value = _at(_WORD, line, at)
            pairs.append((key, value))
            at += len(value)


def unescaped(text: str) -> str:
    """Returns the text, with each escape replaced by the character that it means. Unpaired
    surrogates become `?`, because UTF-8 cannot encode them.
    """
    return _ESCAPE.sub(_meaning, text)


def _at(pattern: re.Pattern[str], line: str, at: int) -> str:
    found = pattern.match(line, at)
    assert found is not None  # the pattern also matches an empty text
    return found[0]


def _meaning(found: re.Match[str]) -> str:
    high, low, code, letter = found.groups()
    if letter is not None:
        return _MEANINGS.get(letter, letter)
    if code is not None:
        char = chr(int(code, 16))
        return "?" if "\ud800" <= char <= "\udfff" else char
    return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))


class _Scan:
    """The bytes of all lines, and the positions of blanks and quotation marks in them."""

    def __init__(self, lines: pa.StringArray) -> None:
        self.data, self.first, self.end = spans(lines)
        self.text = np.frombuffer(self.data, np.uint8)
        body = self.text[:-1]
        quotes = np.flatnonzero(body == _QUOTE)
        self._has_backslash = b"\\" in self.data
        self._escaped = np.empty(0, np.int64)
        if self._has_backslash and len(quotes):
            is_behind = quotes > self.first[self._line_of(quotes)]
            is_escaped = is_behind & (self.text[quotes - 1] == _BACKSLASH)
            self._escaped, quotes = quotes[is_escaped], quotes[~is_escaped]
        self._quotes = quotes
        self._before = np.searchsorted(quotes, self.first)
        blanks = np.flatnonzero(body <= _BLANK_MAX)
        if len(quotes) and len(blanks):
            count = np.searchsorted(quotes, blanks) - self._before[self._line_of(blanks)]
            blanks = blanks[count % 2 == 0]
        self._blanks = blanks

    def words(self) -> tuple[Int64s, Int64s, Int64s]:
        begin = np.sort(np.concatenate((self.first, self._blanks + 1)), kind="stable")
        end = np.sort(np.concatenate((self._blanks, self.end)), kind="stable")
        there = begin < end
        begin, end = begin[there], end[there]
        return begin, end, self._line_of(begin)

    def equals_after(self, begin: Int64s) -> Int64s:
        """Returns, for each position in `begin`, the position of the first `=` at or after it; if
        there is none, a position after all lines.
        """
        equals = np.append(np.flatnonzero(self.text[:-1] == _EQUALS), len(self.data))
        return equals[np.searchsorted(equals, begin)]

    def odd_lines(self, quoted: Int64s) -> Booleans:
        """Returns which lines must be cut one by one, because of their quotation marks or
        backslashes. quoted: the positions of the quotation marks with which values begin.

        In all other lines, the first, third, fifth quotation mark and so on begin a value; the
        second, fourth, sixth and so on end this value, and a blank or the end of the line follows.
        """
        quotes = self._quotes
        odd: Booleans = (np.searchsorted(quotes, self.end) - self._before) % 2 == 1
        if len(quotes):
            line = self._line_of(quotes)
            begins = (np.arange(len(quotes)) - self._before[line]) % 2 == 0
            ends = (quotes + 1 == self.end[line]) | (self.text[quotes + 1] <= _BLANK_MAX)
            odd[line[np.where(begins, ~np.isin(quotes, quoted), ~ends)]] = True
        if self._has_backslash:
            count = np.searchsorted(quotes, self._escaped)
            line = self._line_of(self._escaped)
            odd[line[(count - self._before[line]) % 2 == 0]] = True  # backslash outside of quotes
            slashes = np.flatnonzero(self.text == _BACKSLASH)
            odd[self._line_of(slashes[self.text[slashes + 1] == _BACKSLASH])] = True
        return odd

    def _line_of(self, places: Int64s) -> Int64s:
        return np.searchsorted(self.end, places, side="right")


def _faults(
    line: Int64s, has_value: Booleans, lacks_key: Booleans, valid: pa.Array, is_odd: Booleans
) -> dict[int, str]:
    """Returns, by line, a sentence that says why the line cannot be cut into pairs. Leaves out the
    lines that are cut one by one."""
    count = len(is_odd)
    is_cut = np.asarray(valid) & ~is_odd
    without = is_cut & (np.bincount(line[has_value], minlength=count) == 0)
    keyless = is_cut & (np.bincount(line[lacks_key], minlength=count) > 0)
    faults = dict.fromkeys(np.flatnonzero(without).tolist(), NO_PAIR)
    return faults | dict.fromkeys(np.flatnonzero(keyless).tolist(), NO_KEY)


def _with_meanings(
    values: pa.StringArray, is_quoted: Booleans, is_flag: Booleans
) -> pa.StringArray:
    if is_flag.any():
        values = pc.if_else(pa.array(is_flag), _FLAG, values)
    if not is_quoted.any():
        return values
    escaped = is_quoted & np.asarray(pc.match_substring(values, "\\"))
    if not escaped.any():
        return values
    mask = pa.array(escaped)
    texts = [unescaped(each) for each in values.filter(mask).to_pylist()]
    return pc.replace_with_mask(values, mask, pa.array(texts, pa.string()))


def _with_lines(found: Pairs, lines: dict[int, list[tuple[str, str]] | str]) -> Pairs:
    faults = found.faults | {row: each for row, each in lines.items() if type(each) is str}
    pairs = [(row, *pair) for row, each in lines.items() if type(each) is list for pair in each]
    line = np.concatenate((found.line, np.array([row for row, _, _ in pairs], np.int64)))
    order = np.argsort(line, kind="stable")
    keys = pa.concat_arrays([found.keys, pa.array([key for _, key, _ in pairs], pa.string())])
    values = pa.concat_arrays([found.values, pa.array([each for _, _, each in pairs], pa.string())])
    taken = pa.array(order)
    return Pairs(line[order], keys.take(taken), values.take(taken), faults)
