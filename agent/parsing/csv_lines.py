r"""Parses lines of values with a delimiter between them (CSV, RFC 4180).

    4711,"Smith, John","5"" disk",         ->  4711 | Smith, John | 5" disk | (empty)

A value that begins with a quotation mark ends at the next quotation mark that is not doubled. A
delimiter or a line end between these two quotation marks belongs to the value. If a value does not
begin with a quotation mark, quotation marks inside the value stand for themselves. If a quoted
value does not end in its record, only this record is rejected. So a quotation mark that is never
closed does not change the values of later records.

If the setting `parser.header` is set, a line with exactly this text is a header. Without this
setting, a line is a header if its values are the names of the columns. So only a line's own bytes
decide whether it is a header, and not its position in the file. A header is no data: it is left
out, and counted as filtered by the rule CSV_HEADER, because the agent must account for every line.

A line is regular if each of its quotation marks is at the edge of a value or is doubled. In such a
line, a delimiter is inside a value if the number of quotation marks before the delimiter is odd.
All regular lines are cut together with Arrow's functions; other lines are cut one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing.framing import Booleans, Int64s
from skidway.agent.parsing.left_out import CSV_HEADER
from skidway.agent.parsing.lines import slices, spans
from skidway.agent.parsing.parser import ENCODING, NO_MATCH, Parsed, Reject
from skidway.agent.parsing.text_fields import TextFields
from skidway.dataclass import dataclass

QUOTE: Final = '"'
_QUOTE_BYTE: Final = ord(QUOTE)
_BLANK_LINES: Final = r"(?:\r?\n[ \t\r]*)+\z"
"""Matches blank lines at the end of a record of several lines, which belong to no value."""

OPEN_VALUE: Final = (
    "a quoted value does not end in this record; if values have line ends, set multiline"
)
AFTER_QUOTE: Final = "a quoted value has text behind its last quotation mark"


class CsvParser:
    """Cuts lines into the values of named columns. header: the text of a header line; None if a
    header consists of the names of the columns.
    """

    def __init__(
        self,
        columns: Sequence[str],
        delimiter: str,
        fields: TextFields,
        header: str | None = None,
    ) -> None:
        self._columns, self._delimiter = list(columns), delimiter
        self._fields, self._header = fields, header

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines that have as many values as there are columns, if the values fit
        the fields. Makes rejects of the other lines, and of headers."""
        strings, not_utf8 = line_columns.text(lines)
        rejects = [Reject(int(row), ENCODING, "the line is not UTF-8") for row in not_utf8]
        valid = np.array(strings.is_valid())
        strings = _without_blank_lines(strings)
        cuts = _cut(strings, self._delimiter)
        odd = {
            row: split(strings[row].as_py(), self._delimiter)
            for row in np.flatnonzero(cuts.is_odd & valid).tolist()
        }
        counts = cuts.counts.copy()
        for row, values in odd.items():
            counts[row] = len(values) if type(values) is list else -1
        if self._header is not None:
            is_header = valid & _is(strings, self._header)
            rejects += _headers(is_header)
            valid &= ~is_header
        good = valid & (counts == len(self._columns))
        for row in np.flatnonzero(valid & ~good).tolist():
            wrong = odd.get(row)
            detail = wrong if type(wrong) is str else self._miscount(counts[row])
            rejects.append(Reject(row, NO_MATCH, detail))
        found = cuts.columns(self._columns, good & ~cuts.is_odd)
        whole = {row: each for row, each in odd.items() if good[row] and type(each) is list}
        if whole:
            found = _with_rows(found, whole)
        if self._header is None:
            is_header = good
            for name in self._columns:
                is_header = is_header & _is(found[name], name)
                if not is_header.any():
                    break
            rejects += _headers(is_header)
            good = np.logical_and(good, ~is_header)
        return self._fields.rows(found, good, now_ms, rejects)

    def _miscount(self, count: int) -> str:
        return f"number of values: {count}; parser.columns has {len(self._columns)} names"


def _headers(is_header: Booleans) -> list[Reject]:
    rows = np.flatnonzero(is_header).tolist()
    return [Reject(row, CSV_HEADER, "the line is a header") for row in rows]


def _is(texts: pa.StringArray, text: str) -> Booleans:
    found: Booleans = np.asarray(pc.fill_null(pc.equal(texts, text), False), np.bool_)
    return found


def split(line: str, delimiter: str) -> list[str] | str:
    """Returns the values of one line, or a sentence that says why the line cannot be cut into
    values."""
    values: list[str] = []
    at = 0
    while True:
        if line[at : at + 1] == QUOTE:
            value, at = _quoted(line, at + 1)
            if at < 0:
                return OPEN_VALUE
            if at < len(line) and line[at] != delimiter:
                return AFTER_QUOTE
        else:
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
            value, at = line[at:end], end
        values.append(value)
        if at == len(line):
            return values
        at += 1


def _quoted(line: str, at: int) -> tuple[str, int]:
    parts = []
    while True:
        end = line.find(QUOTE, at)
        if end < 0:
            return "", -1
        parts.append(line[at:end])
        if line[end + 1 : end + 2] != QUOTE:
            return QUOTE.join(parts), end + 1
        at = end + 2


@dataclass(frozen=True, slots=True)
class _Cuts:
    """Where the values of lines begin and end. delimiters: the positions of all delimiters between
    values (not of those inside quoted values). counts: the number of values of each line. is_odd:
    which lines have a quotation mark that is neither at the edge of a value nor doubled; these
    lines are not cut here, but one by one.
    """

    data: bytes
    first: Int64s
    end: Int64s
    delimiters: Int64s
    counts: Int64s
    is_odd: Booleans

    def columns(self, names: Sequence[str], good: Booleans) -> dict[str, pa.StringArray]:
        """Returns the values of each column. Lines for which `good` is false get empty values."""
        rows = np.flatnonzero(good)
        text = np.frombuffer(self.data, np.uint8)
        has_quotes = QUOTE.encode() in self.data
        before = np.searchsorted(self.delimiters, self.first[rows])
        begin = self.first[rows]
        found = {}
        for index, name in enumerate(names):
            is_last = index == len(names) - 1
            end = self.end[rows] if is_last else self.delimiters[before + index]
            inside = text[begin] == _QUOTE_BYTE if has_quotes else np.zeros(1, np.bool_)
            is_quoted = bool(inside.any())
            cut = self._slices(
                rows,
                begin + (inside & (begin < end)) if is_quoted else begin,
                end - (inside & (begin < end)) if is_quoted else end,
            )
            if is_quoted:
                cut = pc.replace_substring(cut, QUOTE * 2, QUOTE)
            found[name] = cut
            begin = end + 1
        return found

    def _slices(self, rows: Int64s, begin: Int64s, end: Int64s) -> pa.StringArray:
        if len(rows) < len(self.first):
            begins, ends = self.first.copy(), self.first.copy()
            begins[rows], ends[rows] = begin, end
            begin, end = begins, ends
        return slices(self.data, begin, end).view(pa.string())


def _without_blank_lines(records: pa.StringArray) -> pa.StringArray:
    data, _, end = spans(records)
    last = np.frombuffer(data, np.uint8)[end - 1]
    if (last > ord(" ")).all() or data.find(b"\n") == len(data) - 1:
        return records
    return pc.replace_substring_regex(records, _BLANK_LINES, "")


def _cut(lines: pa.StringArray, delimiter: str) -> _Cuts:
    data, first, end = spans(lines)
    text = np.frombuffer(data, np.uint8)[:-1]
    delimiters = np.flatnonzero(text == ord(delimiter))
    is_odd = np.zeros(len(first), np.bool_)
    quotes = np.flatnonzero(text == _QUOTE_BYTE)
    if len(quotes):
        is_odd = _odd_lines(data, quotes, first, end, ord(delimiter))
        before = np.searchsorted(quotes, delimiters)
        before -= np.repeat(np.searchsorted(quotes, first), _counts(delimiters, first, end))
        delimiters = delimiters[before % 2 == 0]
    counts = _counts(delimiters, first, end) + 1
    return _Cuts(data, first, end, delimiters, counts, is_odd)


def _counts(places: Int64s, first: Int64s, end: Int64s) -> Int64s:
    found: Int64s = np.searchsorted(places, end) - np.searchsorted(places, first)
    return found


def _odd_lines(data: bytes, quotes: Int64s, first: Int64s, end: Int64s, delimiter: int) -> Booleans:
    """Returns which lines have a quotation mark that is neither at the edge of a value nor doubled.

    In a line without such a quotation mark, the first, third, fifth quotation mark and so on begin
    a quoted part, and the quotation mark after each of them ends the part. A doubled quotation mark
    counts as two: the first ends a part, the second begins the next part.
    """
    text = np.frombuffer(data, np.uint8)
    line = np.searchsorted(end, quotes, side="right")
    before = np.searchsorted(quotes, first)
    begins = (np.arange(len(quotes)) - before[line]) % 2 == 0
    left, right = text[quotes - 1], text[quotes + 1]
    good_left = (quotes == first[line]) | (left == delimiter) | (left == _QUOTE_BYTE)
    good_right = (quotes + 1 == end[line]) | (right == delimiter) | (right == _QUOTE_BYTE)
    is_odd: Booleans = (np.searchsorted(quotes, end) - before) % 2 == 1
    is_odd[line[~np.where(begins, good_left, good_right)]] = True
    return is_odd


def _with_rows(
    found: Mapping[str, pa.StringArray], rows: Mapping[int, Sequence[str]]
) -> dict[str, pa.StringArray]:
    result = {}
    for index, (name, column) in enumerate(found.items()):
        mask = np.zeros(len(column), np.bool_)
        mask[list(rows)] = True
        values = pa.array([rows[row][index] for row in sorted(rows)], pa.string())
        result[name] = pc.replace_with_mask(column, pa.array(mask), values)
    return result
