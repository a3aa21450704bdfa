r"""Compiles date patterns of Java (DateTimeFormatter, SimpleDateFormat, and the names that log4j
and Logback have for patterns) to a regular expression and a format of `timestamp`.

    yyyy-MM-dd'T'HH:mm:ss,SSS  ->  \d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2},\d{3}  %Y-%m-%dT%H:%M:%S,%f

A number that is written without leading zeros, and a fraction of a second, have no fixed number of
digits when they are read, so no number may follow them directly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from skidway.agent.parsing.times.directives import FRACTION_DIGITS_MAX
from skidway.errors import SkidwayError

_NAMES: Final = {
    "ABSOLUTE": "HH:mm:ss,SSS",
    "ABSOLUTE_PERIOD": "HH:mm:ss.SSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
    "DATE_PERIOD": "dd MMM yyyy HH:mm:ss.SSS",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_BASIC_PERIOD": "yyyyMMdd'T'HHmmss.SSS",
    "ISO8601_OFFSET_DATE_TIME_HH": "yyyy-MM-dd'T'HH:mm:ss,SSSX",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXX",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "US_MONTH_DAY_YEAR2_TIME": "dd/MM/yy HH:mm:ss.SSS",
    "US_MONTH_DAY_YEAR4_TIME": "dd/MM/yyyy HH:mm:ss.SSS",
}
_ISO: Final = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[.,]\d{3,9}"
_ISO_NAMES: Final = (
    "", "ISO8601", "DEFAULT", "ISO8601_PERIOD", "DEFAULT_PERIOD", "DEFAULT_MICROS", "DEFAULT_NANOS"
)  # fmt: skip
_GMT: Final = r"GMT(?:[+-]\d{1,2}(?::?\d{2})?)?"
_NAMED_ZONE: Final = rf"(?:{_GMT}|[A-Z]{{1,6}}|[+-]\d{{2}}(?::?\d{{2}})?)"
_LETTERS: Final = {
    "y": {1: (r"\d{4}", "%Y"), 2: (r"\d{2}", "%y"), 4: (r"\d{4}", "%Y")},
    "M": {
        1: (r"\d{1,2}", "%m"),
        2: (r"\d{2}", "%m"),
        3: (r"[A-Za-z]{3,4}\.?", "%b"),
        4: (r"[A-Za-z]+", "%B"),
    },
    "d": {1: (r"\d{1,2}", "%d"), 2: (r"\d{2}", "%d")},
    "D": {1: (r"\d{1,3}", "%j"), 3: (r"\d{3}", "%j")},
    "E": {
        1: (r"[A-Za-z]{3}", "%a"),
        2: (r"[A-Za-z]{3}", "%a"),
        3: (r"[A-Za-z]{3}", "%a"),
        4: (r"[A-Za-z]+", "%A"),
    },
    "H": {1: (r"\d{1,2}", "%H"), 2: (r"\d{2}", "%H")},
    "h": {1: (r"\d{1,2}", "%I"), 2: (r"\d{2}", "%I")},
    "a": {1: (r"[AaPp]\.?[Mm]\.?", "%p")},
    "m": {1: (r"\d{1,2}", "%M"), 2: (r"\d{2}", "%M")},
    "s": {1: (r"\d{1,2}", "%S"), 2: (r"\d{2}", "%S")},
    "S": {count: (rf"\d{{{count}}}", "%f") for count in range(3, FRACTION_DIGITS_MAX + 1)},
    "z": dict.fromkeys((1, 2, 3), (_NAMED_ZONE, "%z")),
    "Z": {
        **dict.fromkeys((1, 2, 3), (r"[+-]\d{4}", "%z")),
        4: (_GMT, "%z"),
        5: (r"(?:Z|[+-]\d{2}:\d{2})", "%z"),
    },
    "O": dict.fromkeys((1, 4), (_GMT, "%z")),
    "X": {
        1: (r"(?:Z|[+-]\d{2}(?:\d{2})?)", "%z"),
        2: (r"(?:Z|[+-]\d{4})", "%z"),
        3: (r"(?:Z|[+-]\d{2}:\d{2})", "%z"),
    },
    "x": {
        1: (r"[+-]\d{2}(?:\d{2})?", "%z"),
        2: (r"[+-]\d{4}", "%z"),
        3: (r"[+-]\d{2}:\d{2}", "%z"),
    },
}
_ZONES: Final = {
    "PST": "America/Los_Angeles", "CST": "America/Chicago", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
}  # fmt: skip
_AHEAD: Final = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?00)?")
_SAME: Final = {"u": "y", "L": "M", "n": "S"}
_NUMBERS: Final = frozenset("yMdDHhmsS")
_BLANK_BEFORE_HALF: Final = "[ \u00a0\u202f]?"
_WHY: Final = {
    "z": "let the log write an offset (XXX), or the letters of the zone (z)",
    "S": "programs disagree on what a fraction of one or two digits means; use SSS",
}


class DateRefused(SkidwayError):
    """Raised for a date pattern if the dates that it writes cannot be parsed. at: the index in the
    pattern at which the refused part begins.
    """

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at


@dataclass(frozen=True, slots=True)
class Date:
    """A compiled date pattern. pattern: a regular expression (RE2) for the time. format: the time's
    format, as in the setting `timestamp`; None if the date pattern has no
    day, because a time without a day names no moment.
    """

    pattern: str
    format: str | None = None


def compiled(text: str) -> Date:
    """Compiles a date pattern, or the name of one, such as ISO8601. Raises DateRefused."""
    if text in _ISO_NAMES:
        return Date(_ISO, format="rfc3339")
    if text in ("UNIX", "UNIX_MILLIS"):
        return Date(r"\d+", format="epoch" if text == "UNIX" else "epoch_ms")
    pattern, form = "", ""
    runs = _runs(_NAMES.get(text, text))
    for (at, letters, is_literal), following in zip(runs, [*runs[1:], None], strict=True):
        if is_literal:
            if not (letters.isascii() or letters.isspace()):
                raise DateRefused(at, f"{letters!r} is not ASCII")
            is_before_half = letters.isspace() and following is not None and following[1][0] == "a"
            pattern += _BLANK_BEFORE_HALF if is_before_half else escaped(letters)
            form += letters.replace("%", "%%")
            continue
        letter = _SAME.get(letters[0], letters[0])
        count = len(letters)
        if letter == "S" and following is not None and _is_number(following):
            raise DateRefused(following[0], "no number can directly follow a fraction")
        found = _LETTERS.get(letter, {}).get(count)
        if found is None:
            why = _WHY.get(letter, "these letters cannot be read back")
            raise DateRefused(at, f"{letters} in a date: {why}")
        if r"\d{1," in found[0] and following is not None and _is_number(following):
            raise DateRefused(following[0], f"no number can directly follow {letters}")
        pattern += found[0]
        form += found[1]
    if "%I" in form and "%p" not in form:
        raise DateRefused(0, "hours from 1 to 12 (h) need the half of the day (a)")
    return Date(pattern, form if _has_day(form) else None)


def zone_of(name: str) -> str:
    """Returns the name by which zones are known here of one that Java knows."""
    if ahead := _AHEAD.fullmatch(name):
        sign = "-" if ahead[1] == "+" else "+"  # here, zones east of Greenwich have a minus
        return f"Etc/GMT{sign}{int(ahead[2])}"
    return _ZONES.get(name, name)


def escaped(text: str) -> str:
    """Returns a regular expression (RE2) that matches exactly this text."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


def _is_number(run: tuple[int, str, bool]) -> bool:
    _, letters, is_literal = run
    first = letters[0]
    return first.isdigit() if is_literal else _SAME.get(first, first) in _NUMBERS


def _has_day(form: str) -> bool:
    return "%j" in form or ("%d" in form and any(name in form for name in ("%m", "%b", "%B")))


def _runs(text: str) -> list[tuple[int, str, bool]]:
    """Returns the parts of a date pattern, each one a sequence of one letter (`yyyy`) or literal
    text. For each part, returns its index in the pattern, its text, and whether it is literal text.
    """
    found: list[tuple[int, str, bool]] = []
    at = 0
    while at < len(text):
        if text[at] == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise DateRefused(at, "a quotation mark in a date is not closed")
            found.append((at, text[at + 1 : end] or "'", True))
            at = end + 1
            continue
        run = "".join(next(groupby(text[at:]))[1])
        found.append((at, run, not (run[0].isascii() and run[0].isalpha())))
        at += len(run)
    return found
