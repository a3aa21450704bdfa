"""Recognizes how the times of an unknown log are written, for `guess`.

In `03/04/2026`, 03 or 04 may be the day. If every time of a log can be read in several ways,
`guess` takes the order of day and month that puts the times closer together. (A log usually has the
times of a few days.) If that decides nothing, `guess` proposes no time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.agent.parsing.timestamps import TimeFormat
from skidway.agent.unknown_logs import time_forms
from skidway.agent.unknown_logs.time_forms import EPOCHS, RFC3339, Composed, Form, composed
from skidway.agent.unknown_logs.time_neighbours import continued, rest_beside
from skidway.agent.unknown_logs.zone_letters import ZONES

COLUMNS_MAX: Final = 6
"""A time may be divided into at most this many columns, such as day, time of day and zone."""

NEARLY: Final = 0.95
"""The times of lines are read if at least this share of them has the same form and can be read."""

TRIED_MAX: Final = 20
"""The form of a time is composed from at most this many of the texts or lines that may have it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How times are read. form: how they are written. format: the format that reads them. timezone:
    the zone whose letters they have; None if they have no letters that need a zone. others: formats
    that read the same texts as other times.
    """

    form: Form
    format: str
    timezone: str | None = None
    others: tuple[str, ...] = ()

    def settings(self, fields: Sequence[str]) -> dict[str, Any]:
        """Returns the setting `timestamp` for times in these fields."""
        zone = {} if self.timezone is None else {"timezone": self.timezone}
        return {"fields": list(fields), "format": self.format, **zone}

    @property
    def group(self) -> str:
        """A regular expression, whose group `time` has the time in a line. The group also takes
        what some lines have behind the time and the format does not read."""
        return f"(?P<time>{_whole(self.form, self.format)}){self.form.behind}"


def of_texts(texts: Sequence[str]) -> Reading | None:
    """Returns how all texts, each of which is one time, are read; None if they cannot be read."""
    for text in texts[:TRIED_MAX]:
        found = composed(text)
        if found is None or found.rest or found.end < len(text):
            return None
        if all(map(found.form.matches, texts)):
            return _reading(found.form, texts)
    return None


def format_of(texts: Sequence[str]) -> str | None:
    """Returns the format by which all texts can be read as times; None if there is none."""
    found = of_texts(texts)
    return None if found is None else found.format


def of_columns(
    columns: Sequence[str], rows: Sequence[Sequence[str]], delimiter: str, *, are_named: bool
) -> dict[str, Any] | None:
    """Returns the setting `timestamp` for rows of values: the first column, or the first columns
    side by side, whose values are times, perhaps with blanks around them. Returns None if there are
    no such columns, or if a part of the times seems to be in the next column. are_named: whether
    the log names the columns, so that a number behind a time is no fraction of its second.
    """
    rows = [[value.strip() for value in row] for row in rows]
    glues = {" "} if are_named else {" ", delimiter}
    for first in range(len(columns)):
        for last in range(min(first + COLUMNS_MAX, len(columns)), first, -1):
            found = of_texts([" ".join(row[first:last]) for row in rows])
            if found is not None:
                is_cut = any(
                    _goes_on(row[first:last], glue, row[last:]) for row in rows for glue in glues
                )
                return None if is_cut else found.settings(columns[first:last])
    return None


def _goes_on(time: Sequence[str], glue: str, following: Sequence[str]) -> bool:
    """Whether a time, which has one or several columns, may be another time if `glue` is a part of
    it, or if the columns that follow are."""
    other = composed(glue.join(time))
    if len(time) > 1 and glue != " " and other is not None and not other.rest:
        return True
    width = len(" ".join(time))
    found = composed(glue.join([" ".join(time), *following]))
    return found is not None and (found.end > width or bool(found.rest))


def of_value(values: Sequence[object]) -> Reading | None:
    """Returns how the times in a member of JSON objects are read: all values or, if that is not
    possible, the first value. Returns None if the first value is no time, or if a value is neither
    a text nor a number. values: the member's values without null.
    """
    texts = [x if isinstance(x, str) else repr(x) for x in values if type(x) in (str, int, float)]
    if not texts or len(texts) < len(values):
        return None
    return of_texts(texts) or of_texts(texts[:1])


def inside(texts: Sequence[str]) -> Reading | None:
    """Finds times that come after a short text, such as a level. Returns None if the first line has
    no such time.
    """
    found = _commonest(texts, _inside)
    return None if found is None else _of_lines(texts, BEFORE, found)


BEFORE_MAX: Final = 99
_LAST_BEFORE: Final = r"[^\w\n.:+/" "\u2212-]"
BEFORE: Final = rf"[^\n]{{0,{BEFORE_MAX}}}?{_LAST_BEFORE}"
"""A regular expression for the text before a time. The text ends with a character that is no part
of a number.
"""


def leading(texts: Sequence[str]) -> Reading | None:
    """Finds times with which the lines of a log begin. Returns None if the first line does not
    begin with a time. Later lines without a time, such as those of a stack trace, do not matter.
    """
    found = _commonest(texts, _first)
    return None if found is None else _of_lines(texts, r"\[?", found)


def first_time(texts: Sequence[str]) -> str:
    """Returns the first time with which a line begins, or that comes after a short text; empty if
    there is none, or if it cannot be read whole."""
    found, before = leading(texts), r"\[?"
    if found is None:
        found, before = inside(texts), BEFORE
    if found is None:
        return ""
    pattern = time_forms.compiled(f"{before}({found.form.pattern})")
    return next((match[1] for match in map(pattern.match, texts) if match), "")


def doubts(texts: Sequence[str]) -> Iterator[str]:
    """Yields sentences about the time with which the first text begins, for a proposal that does
    not read the times."""
    found = _first(texts)
    if found is None:
        return
    if found.rest:
        yield (
            f"The lines have times, but {found.rest!r} seems to be a part of the first one, "
            "and no format reads it, so the times are not proposed."
        )
        return
    text = texts[0][texts[0].startswith("[") : found.end]
    formats = [each for each in found.form.formats if _is_read(each, text)]
    if len(formats) > 1:
        yield (
            f"Day and month of the times may be {' or '.join(formats)}: set the right one as "
            "`timestamp.format`."
        )
    if len(formats) == 1:
        others = ((each, _first([each])) for each in texts)
        other = next((each for each, time in others if time and time.form != found.form), "")
        if other:
            begins = f"{text!r} and {other[: len(text) + _MORE_SHOWN]!r}"
            yield f"The lines have times in several forms, such as {begins}; no times are proposed."
    form = found.form.formats
    zones = [zone for zone in ZONES if any(_is_read(each, text, zone) for each in form)]
    if not formats:
        readers = f"{' or '.join(zones)} shows them" if zones else "no common zone shows them"
        yield (
            f"The letters of the zone in {text!r} count only if clocks of the `timezone` show them "
            f"then: {readers}."
        )


_MORE_SHOWN: Final = 8


def notes(format_: str, texts: Sequence[str], timezone: str | None) -> Iterator[str]:
    """Yields sentences about the times of a proposal. texts: some of the times."""
    found = of_texts(texts)
    if timezone is not None:
        yield (
            f"The letters of the zone in the times count because clocks of {timezone} show them. "
            "If the host is elsewhere, name its zone."
        )
    if found is not None and found.others:
        yield (
            f"Day and month of the times may be exchanged: {' or '.join(found.others)} reads them, "
            f"too. {format_} puts them closer together."
        )


def _whole(form: Form, format_: str) -> str:
    return form.pattern if form.behind else form.pattern + continued(format_)


def _is_read(format_: str, text: str, timezone: str = "UTC") -> bool:
    return bool(TimeFormat(format_, timezone).parse(pa.array([text]), 0)[1][0])


def _inside(texts: Sequence[str]) -> Composed | None:
    """Returns the time that comes after a short text in the first line."""
    first = texts[0] if texts else ""
    clock = re.search(r"\d:\d\d", first)
    for at in range(1, min(len(first), BEFORE_MAX + 2)):
        found = composed(first, at) if re.match(_LAST_BEFORE, first[at - 1]) else None
        if found is not None and found.form not in EPOCHS:
            # If there is a time of day before, the time that was found may be the end of a time.
            return None if clock is not None and clock.end() < at else found
    return None


def _first(texts: Sequence[str]) -> Composed | None:
    first = texts[0] if texts else ""
    return composed(first, at=int(first.startswith("[")))


def _commonest(
    texts: Sequence[str], time_in: Callable[[Sequence[str]], Composed | None]
) -> Composed | None:
    """Returns the first time of the form that most times in the first lines have; None if the first
    line has no time. time_in: returns the time in the first of the lines that it gets."""
    first = time_in(texts)
    if first is None:
        return None
    others = (time_in([text]) for text in texts[1:TRIED_MAX])
    found = [first, *(each for each in others if each is not None)]
    counts = Counter(each.form for each in found)
    return max(found, key=lambda each: counts[each.form])


def _of_lines(texts: Sequence[str], before: str, first: Composed) -> Reading | None:
    """Returns how nearly all times in the lines are read; None if something that belongs to one of
    these times stands beside it. before: a regular expression for the text before a time. first:
    a time in one of the lines."""
    if first.rest:
        return None
    form = first.form
    whole = _whole(form, form.formats[0])  # all formats of a form lack the same parts
    pattern = time_forms.compiled(f"{before}({whole}){form.behind}")
    begun = [match for match in map(pattern.match, texts) if match is not None]
    found = [match for match in begun if form.matches(match[1])]
    if len(found) < NEARLY * len(begun):
        return None
    reading = _reading(form, [match[1] for match in found], NEARLY) if found else None
    if reading is None:
        return None
    for match in found:
        begin, end = match.start(1), match.end()
        if rest_beside(match.string, begin, end, reading.format):
            return None
    return reading


@dataclass(frozen=True, slots=True)
class _Tried:
    """What a format makes of a column of times. timezone: the zone whose letters the times have;
    None if they have no letters that need one. moments: 0 for each time that cannot be read."""

    format: str
    timezone: str | None
    moments: np.ndarray
    good: np.ndarray

    @property
    def span(self) -> int:
        return int(np.ptp(self.moments[self.good]))


def _reading(form: Form, texts: Sequence[str], least: float = 1) -> Reading | None:
    """Returns the format that reads the most texts, and puts them closest together; None if no
    format reads at least the share `least` of them, or if nothing decides between two formats or
    two zones."""
    column = pa.array(texts, pa.string())
    tried = [each for format_ in form.formats for each in _readers(format_, column)]
    most = max((each.good.sum() for each in tried), default=0)
    if not most or most < least * len(texts):
        return None
    found: dict[bytes, _Tried] = {}
    for each in tried:
        if each.good.sum() == most:
            found.setdefault(each.moments.tobytes(), each)
    by_span = sorted(found.values(), key=lambda each: each.span)
    has_zones = len({each.format for each in by_span}) < len(by_span)
    if has_zones or (len(by_span) > 1 and by_span[0].span == by_span[1].span):
        return None
    best, *others = by_span
    return Reading(form, best.format, best.timezone, tuple(each.format for each in others))


def _readers(format_: str, column: pa.StringArray) -> Iterator[_Tried]:
    form = TimeFormat(format_)
    moments, good = form.parse(column, 0)
    yield _Tried(format_, None, np.where(good, moments, 0), good)
    if good.all() or not any(form.foreign_letters(column, 0)):
        return
    for zone in ZONES:
        moments, good = TimeFormat(format_, zone).parse(column, 0)
        yield _Tried(format_, zone, np.where(good, moments, 0), good)


is_rfc3339 = RFC3339.matches
