r"""Compiles date patterns of Java (DateTimeFormatter, SimpleDateFormat, and the names that log4j
and Logback have for patterns) to a regular expression and a format of `timestamp`.

    yyyy-MM-dd'T'HH:mm:ss,SSS  ->  \d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2},\d{3}  %Y-%m-%dT%H:%M:%S,%f

A fraction of a second with more than six digits must be the end of the pattern. Only its first six
digits are used for the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from skidway.errors import SkidwayError

FRACTION_MAX: Final = 9
_MICROS: Final = 6

_NAMES: Final = {
    "ABSOLUTE": "HH:mm:ss,SSS",
    "ABSOLUTE_PERIOD": "HH:mm:ss.SSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
    "DATE_PERIOD": "dd MMM yyyy HH:mm:ss.SSS",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_BASIC_PERIOD": "yyyyMMdd'T'HHmmss.SSS",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXX",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "US_MONTH_DAY_YEAR2_TIME": "dd/MM/yy HH:mm:ss.SSS",
    "US_MONTH_DAY_YEAR4_TIME": "dd/MM/yyyy HH:mm:ss.SSS",
}
_ISO: Final = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}[.,]\d{3,9}"
_LETTERS: Final = {
    "y": {1: (r"\d{4}", "%Y"), 2: (r"\d{2}", "%y"), 4: (r"\d{4}", "%Y")},
    "M": {
        1: (r"\d{1,2}", "%m"),
        2: (r"\d{2}", "%m"),
        3: (r"[A-Za-z]{3}", "%b"),
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
    "a": {1: (r"[AaPp][Mm]", "%p")},
    "m": {1: (r"\d{1,2}", "%M"), 2: (r"\d{2}", "%M")},
    "s": {1: (r"\d{1,2}", "%S"), 2: (r"\d{2}", "%S")},
    "S": {count: (rf"\d{{{count}}}", "%f") for count in range(3, _MICROS + 1)},
    "Z": dict.fromkeys((1, 2, 3), (r"[+-]\d{4}", "%z")),
    "X": {2: (r"(?:Z|[+-]\d{4})", "%z"), 3: (r"(?:Z|[+-]\d{2}:\d{2})", "%z")},
    "x": {2: (r"[+-]\d{4}", "%z"), 3: (r"[+-]\d{2}:\d{2}", "%z")},
}
_SAME: Final = {"u": "y", "L": "M", "n": "S"}
_WHY: Final = {
    "X": "an offset needs its minutes (XX or XXX)",
    "x": "an offset needs its minutes (xx or xxx)",
    "z": "names of zones are not unique; let the log write an offset (XXX)",
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
    """A compiled date pattern. pattern: a regular expression (RE2) for the time. rest: a regular
    expression for further digits of the second's fraction, which come after the time and are not
    used. format: the time's format, as in the setting `timestamp`; None if the date pattern has no
    day, because a time without a day names no moment.
    """

    pattern: str
    rest: str = ""
    format: str | None = None


def compiled(text: str) -> Date:
    """Compiles a date pattern, or the name of one, such as ISO8601. Raises DateRefused."""
    if text in ("", "ISO8601", "DEFAULT", "ISO8601_PERIOD", "DEFAULT_PERIOD", "DEFAULT_MICROS"):
        return Date(_ISO, format="rfc3339")
    if text in ("UNIX", "UNIX_MILLIS"):
        return Date(r"\d+", format="epoch" if text == "UNIX" else "epoch_ms")
    pattern, form, rest = "", "", ""
    for at, letters, is_literal in _runs(_NAMES.get(text, text)):
        if rest:
            raise DateRefused(at, "a fraction of more than six digits must end the date")
        if is_literal:
            if not letters.isascii():
                raise DateRefused(at, f"{letters!r} is not ASCII")
            pattern += escaped(letters)
            form += letters.replace("%", "%%")
            continue
        letter = _SAME.get(letters[0], letters[0])
        count = len(letters)
        if letter == "S" and _MICROS < count <= FRACTION_MAX:
            rest, count = rf"\d{{{count - _MICROS}}}", _MICROS
        found = _LETTERS.get(letter, {}).get(count)
        if found is None:
            why = _WHY.get(letter, "these letters cannot be read back")
            raise DateRefused(at, f"{letters} in a date: {why}")
        pattern += found[0]
        form += found[1]
    if "%I" in form and "%p" not in form:
        raise DateRefused(0, "hours from 1 to 12 (h) need the half of the day (a)")
    return Date(pattern, rest, form if _has_day(form) else None)


def escaped(text: str) -> str:
    """Returns a regular expression (RE2) that matches exactly this text."""
    return re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", text)


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
