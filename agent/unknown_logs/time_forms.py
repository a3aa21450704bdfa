"""Composes the form in which a time is written from its parts: weekday, date, time of day, fraction
of the second, half of the day, zone and year.

A time is composed whole or not at all. What stands directly before or behind the parts, and looks
like one more part (digits, AM, an offset, the letters of a zone, a year), belongs to the time: then
the parts alone are no form of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from skidway.agent.parsing.times.directives import FRACTION_DIGITS_MAX
from skidway.agent.unknown_logs import zone_letters
from skidway.agent.unknown_logs.time_neighbours import OFFSET, YEAR, Lacks, more

_MONTH: Final = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[A-Za-z]*\.?"
_ANY_MONTH: Final = r"[A-Za-z]{3,9}\.?"
_HALF: Final = "[ \u00a0\u202f]*[AaPp]\\.?[Mm]\\.?"
_ZONE: Final = (
    rf"[Zz]|{OFFSET}|(?:UTC|GMT|utc|gmt)(?:[+-]\d{{1,2}}(?::?\d\d)?)?|{zone_letters.PATTERN}"
)
_END: Final = r"(?![\w/]|[.:]\d|[+-]\d)"

_DATES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r"\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", ("%Y.%m.%d",)),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y", "%m/%d/%Y")),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%y/%m/%d", "%d/%m/%y", "%m/%d/%y")),
    (r"\d{1,2}-\d{1,2}-\d{2}", ("%y-%m-%d", "%d-%m-%y", "%m-%d-%y")),
    *((rf"\d{{4}}{x}MONTH{x}+\d{{1,2}}", (f"%Y{x}%b{x}%d",)) for x in " -/"),
    *((rf"\d{{1,2}}{x}MONTH{x}\d{{4}}", (f"%d{x}%b{x}%Y",)) for x in " -/"),
    *((rf"\d{{1,2}}{x}MONTH{x}\d{{2}}", (f"%d{x}%b{x}%y",)) for x in "-/"),
    (r"\d{1,2}\. MONTH \d{4}", ("%d. %b %Y",)),
    (r"MONTH +\d{1,2}, \d{4}", ("%b %d, %Y",)),
    (r"MONTH +\d{1,2} \d{4}", ("%b %d %Y",)),
    (r"\d{6}", ("%y%m%d",)),
)
_YEARLESS: Final = (
    (r"MONTH +\d{1,2}", ("%b %d",)),
    (r"\d{1,2} MONTH", ("%d %b",)),
    (r"\d\d-\d\d", ("%m-%d", "%d-%m")),
    (r"\d\d/\d\d", ("%m/%d", "%d/%m")),
)
_COMPACT: Final = ((r"(?:19|20)\d{6}", ("%Y%m%d",)),)
_CLOCK: Final = r"(?P<clock>\d{1,2}:\d\d(?::\d\d)?)"
_COMPACT_CLOCK: Final = r"(?P<clock>\d{6})"
_FRACTION: Final = r"(?P<fraction>[.,]\d+|:\d{3,9})?"
_WEEKDAY: Final = r"(?P<weekday>(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
_OF_CLOCK: Final = (
    rf"{_FRACTION}(?P<half>{_HALF}(?!(?!Z\b)[a-zA-Z]))?(?P<zone> *(?:{_ZONE}){_END})?"
)
_BETWEEN: Final = r"(?P<between>[Tt_:-]|,? +| - | at )"
_LAST_ZONE: Final = rf"(?(zone)|(?P<last_zone> *(?:{_ZONE}){_END})?)"


@dataclass(frozen=True, slots=True)
class Form:
    """How times are written. pattern: a regular expression for the text of a time. formats: the
    formats that may read this text. behind: a regular expression for a text that may follow and
    says the zone once more, such as `(CET)` behind an offset.
    """

    pattern: str
    formats: tuple[str, ...]
    behind: str = ""

    def matches(self, text: str) -> bool:
        """Whether a text is a time in this form."""
        return compiled(self.pattern).fullmatch(text) is not None


compiled = cache(re.compile)  # there are more patterns than re's own cache has room for

RFC3339: Final = Form(
    r"\d{4}-\d\d-\d\d[Tt ] ?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d(?::?\d\d)?)?",
    ("rfc3339",),
)
EPOCHS: Final = (
    Form(r"1[4-9]\d{8}(?:\.\d{1,9})?", ("epoch",)),
    *(
        Form(rf"1[4-9]\d{{{digits}}}", (name,))
        for name, digits in (("epoch_ms", 11), ("epoch_us", 14), ("epoch_ns", 17))
    ),
)
"""Times as numbers of seconds, milliseconds and so on since 1970. Only times from 2014 to 2033
match, so that `guess` seldom takes another number for a time."""


@dataclass(frozen=True, slots=True)
class _Order:
    """An order of a time's parts. parts: a regular expression that divides a time into them. date:
    a regular expression for the date, and formats that may read it."""

    parts: re.Pattern[str]
    date: str
    formats: tuple[str, ...]
    has_year: bool = True


@cache
def _orders() -> tuple[_Order, ...]:
    found = []
    for date, formats in (*_DATES, *_YEARLESS):
        has_year = (date, formats) in _DATES
        day = f"(?P<date>{date.replace('MONTH', _MONTH)})"
        year = "" if has_year else rf"(?P<year>,? {YEAR}(?!\d))?"
        parts = [f"{_WEEKDAY}{day}{_BETWEEN}{_CLOCK}{_OF_CLOCK}{year}{_LAST_ZONE}"]
        if has_year:
            parts.append(f"{_CLOCK}{_OF_CLOCK}{_BETWEEN}{_WEEKDAY}{day}{_LAST_ZONE}")
        any_date = date.replace("MONTH", _ANY_MONTH)
        found += [_Order(re.compile(each), any_date, formats, has_year) for each in parts]
    for date, formats in _COMPACT:
        day = f"(?P<date>{date})"
        for clock in (f"(?P<between>[-T_ ]?){_COMPACT_CLOCK}", f"{_BETWEEN}{_CLOCK}"):
            found.append(_Order(re.compile(f"{day}{clock}{_OF_CLOCK}"), date, formats))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Composed:
    """A time in a text. form: how it is written. end: where it ends in the text. rest: what stands
    directly behind or before it, and belongs to it; empty if the time is whole."""

    form: Form
    end: int
    rest: str = ""


def composed(text: str, at: int = 0) -> Composed | None:
    """Returns the time that begins at this place of a text; None if there is none. Of several
    forms, the one that takes the most of the text counts."""
    best: Composed | None = None
    for found in _candidates(text, at):
        if best is None or (not found.rest, found.end) > (not best.rest, best.end):
            best = found
    return best


def _candidates(text: str, at: int) -> Iterator[Composed]:
    whole = compiled(RFC3339.pattern).match(text, at)
    if whole is not None:
        has_zone = re.search(r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)$", whole[0][len("2026-11-21") :])
        yield _ended(text, at, whole.end(), RFC3339, Lacks(zone=has_zone is None))
    for form in EPOCHS:
        whole = compiled(form.pattern).match(text, at)
        if whole is not None:
            yield _ended(text, at, whole.end(), form, Lacks(zone=False, half=False))
    for order in _orders():
        match = order.parts.match(text, at)
        if match is not None and _has_sound_fraction(match):
            yield _of_parts(match, order)


def _has_sound_fraction(match: re.Match[str]) -> bool:
    fraction, clock = match["fraction"] or "", match["clock"]
    return len(fraction) <= FRACTION_DIGITS_MAX + 1 and not (fraction and clock.count(":") == 1)


def _of_parts(match: re.Match[str], order: _Order) -> Composed:
    parts = match.groupdict()
    names = sorted((name for name, text in parts.items() if text), key=match.start)
    pieces = [_piece(name, parts) for name in names]
    pattern = "".join(regex for regex, _ in pieces).replace("DATE", order.date)
    directives = "".join(directive for _, directive in pieces)
    formats = tuple(
        directives.replace("DATE", date.replace("%b", month))
        for date in order.formats
        for month in (("%b", "%B") if "%b" in date else ("",))
    )
    lacks = Lacks(
        zone=not (parts["zone"] or parts.get("last_zone")),
        half=not parts["half"],
        year=not (order.has_year or parts.get("year")),
    )
    return _ended(match.string, match.start(), match.end(), Form(pattern, formats), lacks)


def _piece(name: str, parts: dict[str, str | None]) -> tuple[str, str]:
    """Returns the regular expression and the directives of one part of a time."""
    text = parts[name] or ""
    blank = " " if text[:1].isspace() else ""
    blanks = " +" if blank else ""
    match name:
        case "date":
            return "DATE", "DATE"
        case "weekday":
            comma = "," if "," in text else ""
            is_short = len(text.rstrip(", ")) == 3
            return rf"[A-Za-z]{{3,9}}{comma} +", f"{'%a' if is_short else '%A'}{comma} "
        case "clock":
            hour = "%I" if parts["half"] else "%H"
            if ":" not in text:
                return r"\d{6}", f"{hour}%M%S"
            if text.count(":") == 1:
                return r"\d{1,2}:\d\d", f"{hour}:%M"
            return r"\d{1,2}:\d\d:\d\d", f"{hour}:%M:%S"
        case "fraction":
            return rf"{re.escape(text[0])}\d{{1,9}}", f"{text[0]}%f"
        case "half":
            # `\W` also matches the blanks that are not ASCII, and does not hide them in a pattern.
            return r"\W{0,2}[AaPp]\.?[Mm]\.?", " %p" if blank else "%p"
        case "year":
            comma = "," if "," in text else ""
            return rf"{comma} \d{{4}}", f"{comma} %Y"
        case "zone" | "last_zone":
            return f"{blanks}{_zone_pattern(text.strip())}", f"{blank}%z"
    assert name == "between"
    return re.sub(" +", " +", text), re.sub(" +", " ", text)


def _zone_pattern(text: str) -> str:
    if text[0] in "Zz+-":
        return r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)"
    if text[:3].upper() in ("UTC", "GMT"):
        return r"(?:(?:UTC|GMT|utc|gmt)(?:[+-]\d{1,2}(?::?\d\d)?)?|[A-Z]{3,5})"
    return "[A-Za-z]{2,5}"


_AGAIN: Final = (
    rf"(?: (?:{zone_letters.PATTERN}|UTC|GMT|[+-]\d\d(?:\d\d)?)\b"
    rf"| ?\((?:{zone_letters.PATTERN}|UTC|GMT|[A-Z][A-Za-z ]* Time)\)| ?\[{zone_letters.REGION}\])"
)
_AGAIN_IN_LINES: Final = {
    "": r" [A-Z]{3,5}\b", "(": r" ?\([A-Z][A-Za-z ]+\)", "[": r" ?\[[A-Z]\w+/[\w/+-]+\]",
    "+": r" [+-]\d{2,4}\b", "-": r" [+-]\d{2,4}\b",
}  # fmt: skip
_AGAIN_COMPILED: Final = re.compile(_AGAIN)
_MAY_BE_A_COLUMN: Final = re.compile(r",\S")


def _ended(text: str, begin: int, end: int, form: Form, lacks: Lacks) -> Composed:
    """Returns a time whose parts end at this place of a text, with what belongs to it, too."""
    if not lacks.zone and (again := _AGAIN_COMPILED.match(text, end)) is not None:
        kind = "" if again[0].strip()[0].isalnum() else again[0].strip()[0]
        end, form = again.end(), Form(form.pattern, form.formats, _AGAIN_IN_LINES[kind])
    rest = more(text, begin, end, lacks)
    if not rest and _MAY_BE_A_COLUMN.match(text, end) and re.search(r",\d+$", text[begin:end]):
        rest = text[begin:end].rpartition(",")[2]  # a fraction, or a column of numbers
    return Composed(form, end, rest)
