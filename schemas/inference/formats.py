"""Splits lines into values (JSON objects, CSV rows, logfmt pairs), and detects the format of a
sample.

logfmt is `key=value key="some words"` (Brandur Leach, "logfmt", 2013). A key without a value has
the value true. CSV is RFC 4180 without line ends inside a value, because each line of a log is a
record.
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Any, ClassVar, Final, NoReturn, Protocol

from skidway.errors import SkidwayError

NESTING_MAX: Final = 16
"""Objects and arrays may be nested to at most this many levels. A line with more levels counts as a
line that does not have the format."""
DELIMITERS: Final = ",;\t|"
GROUP: Final = "skidway.line_formats"
"""The group of the entry points that return formats."""
_PAIR = re.compile(r'([^\s="]+)(?:=("(?:[^"\\]|\\.)*"|[^\s"]*))?(?:\s+|\Z)')
_NAME = re.compile(r"\s*[^\W\d][\w .-]{0,63}\Z")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")


class FormatUnknown(SkidwayError):
    """Raised if the lines of a sample have none of the formats that inference knows."""


class Unfit(Exception):
    """Raised if a line does not have the log's format. The message is one of a few fixed reasons,
    so that lines can be counted by reason."""


class LineReader(Protocol):
    """Reads the lines of one file, in order."""

    typed: bool
    """Whether the values of this format have types, as in JSON. Otherwise all values are texts, and
    inference guesses their types."""

    def values(self, line: str) -> dict[str, Any] | None:
        """Returns the values of a line by name. Returns None if the line is a header and not a
        record. Raises `Unfit`."""


class LineFormat(ABC):
    """A format of lines that inference knows.

    name: its name in commands. share_least: a log counts as written in it if at least this share of
    the first lines fits. has_extra: whether a line may have values that have no field, which the
    map `_extra` takes.
    """

    name: ClassVar[str]
    share_least: ClassVar[float] = 0.5
    has_extra: ClassVar[bool] = True

    @abstractmethod
    def reader(self, sample: Sequence[str]) -> LineReader:
        """Returns a reader for a file that begins with this sample."""

    def share(self, lines: Sequence[str]) -> float:
        """Returns how large a share of the lines, none of which is blank, fits."""
        made, good = self.reader(lines), 0
        for line in lines:
            try:
                made.values(line)
            except Unfit:
                continue
            good += 1
        return good / len(lines)


def known() -> dict[str, LineFormat]:
    """Returns all formats by name. They are those of the agent's parsers."""
    found = entry_points(group=GROUP)
    return {each.name: each for point in found for each in point.load()()}


def detect(sample: Sequence[str]) -> LineFormat:
    """Returns a format that enough of the sample's lines have: of those that need the smallest
    share, the first. Raises `FormatUnknown`.
    """
    lines = [line for line in sample if line.strip()]
    formats = known()
    for each in sorted(formats.values(), key=lambda x: x.share_least):
        if lines and each.share(lines) >= each.share_least:
            return each
    raise FormatUnknown(
        f"Most lines are in none of the formats {', '.join(formats)}: name the format, or describe "
        "the lines to the agent with a regular expression."
    )


class JsonLines:
    """Reads one JSON object from each line."""

    typed = True

    def values(self, line: str) -> dict[str, Any]:
        try:
            value = _DECODER.decode(line)
        except (ValueError, RecursionError):
            raise Unfit("not JSON") from None
        if not isinstance(value, dict):
            raise Unfit("JSON, but no object")
        if _depth(value) > NESTING_MAX:
            raise Unfit(f"nested more than {NESTING_MAX} levels deep")
        return value


class Logfmt:
    """Reads pairs of key and value. Up to half of the keys of a line may have no value."""

    typed = False

    def values(self, line: str) -> dict[str, Any]:
        text, at, pairs = line.strip(), 0, 0
        found: dict[str, Any] = {}
        while at < len(text):
            pair = _PAIR.match(text, at)
            if pair is None:
                raise Unfit("not logfmt")
            at, (key, value) = pair.end(), pair.groups()
            pairs += value is not None
            found[key] = "true" if value is None else _unquoted(value)
        if pairs * 2 < len(found) or not pairs:
            raise Unfit("not logfmt")
        return found


class CsvRows:
    """Reads rows that have as many values as the first line. The first line may have the column
    names."""

    typed = False

    def __init__(self, sample: Sequence[str]) -> None:
        lines = [line for line in sample if line.strip()]
        self._delimiter = _delimiter(lines)
        first = next(filter(None, _rows(lines, self._delimiter)), [])
        self._has_header = _is_header(first)
        self._names = (
            first if self._has_header else [f"column_{at + 1}" for at in range(len(first))]
        )
        self._is_first = True

    def values(self, line: str) -> dict[str, Any] | None:
        row = _row(line, self._delimiter)
        is_header, self._is_first = self._is_first and self._has_header, False
        if is_header:
            return None
        if len(row) != len(self._names):
            raise Unfit(f"not {len(self._names)} columns")
        return {name: value or None for name, value in zip(self._names, row, strict=True)}


class JsonFormat(LineFormat):
    """Each line is a JSON object."""

    name = "json"

    def reader(self, sample: Sequence[str]) -> LineReader:
        return JsonLines()


class LogfmtFormat(LineFormat):
    """Each line has pairs of key and value."""

    name = "logfmt"

    def reader(self, sample: Sequence[str]) -> LineReader:
        return Logfmt()


class CsvFormat(LineFormat):
    """Each line has as many values as the first. Prose with commas looks like CSV, so a log counts
    as CSV only if its first line has column names, and most lines fit."""

    name = "csv"
    share_least = 0.7
    has_extra = False

    def reader(self, sample: Sequence[str]) -> LineReader:
        return CsvRows(sample)

    def share(self, lines: Sequence[str]) -> float:
        delimiter = _delimiter(lines)
        if not delimiter or not all(map(_NAME.match, _rows(lines, delimiter)[0])):
            return 0.0
        return super().share(lines)


JSON: Final = JsonFormat()
LOGFMT: Final = LogfmtFormat()
CSV: Final = CsvFormat()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _depth(value: Any) -> int:
    deepest, level = 0, [value]
    while level and deepest <= NESTING_MAX:
        deepest += 1
        inside = [
            part
            for each in level
            if isinstance(each, dict | list)
            for part in (each.values() if isinstance(each, dict) else each)
        ]
        level = [each for each in inside if isinstance(each, dict | list)]
    return deepest


def _unquoted(value: str) -> str | None:
    if not value.startswith('"'):
        return value or None
    return re.sub(
        r"\\(.)", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), value[1:-1]
    )


def _row(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter or ",", strict=True), [])
    except csv.Error:
        raise Unfit("not CSV") from None


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Returns a list of values for each line. The list is empty for a line that is not valid
    CSV."""
    rows: list[list[str]] = []
    for line in lines:
        try:
            rows.append(_row(line, delimiter))
        except Unfit:
            rows.append([])
    return rows


def _delimiter(lines: Sequence[str]) -> str:
    """Returns the delimiter that divides the first line into at least two columns, and most lines
    into the same number of columns as the first line. Returns "" if no delimiter does this."""
    best, most = "", len(lines) / 2
    for delimiter in DELIMITERS:
        counts = [len(row) for row in _rows(lines, delimiter)]
        same = counts.count(counts[0]) if counts and counts[0] > 1 else 0
        if same > most:
            best, most = delimiter, same
    return best


def _is_header(row: Sequence[str]) -> bool:
    """Returns whether the values can be column names: every value has characters, occurs only once,
    and is not a number."""
    names = [each.strip() for each in row]
    return all(names) and len(set(names)) == len(names) and not any(map(_NUMBER.match, names))
