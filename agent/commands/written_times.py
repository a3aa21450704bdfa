"""Recognizes how the times of an unknown log are written, for `guess`.

In `03/04/2026`, 03 or 04 may be the day. If every time of a log can be read in several ways,
`guess` takes the order of day and month that puts the times closer together. (A log usually has the
times of a few days.) If that decides nothing, `guess` proposes no time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.agent.commands import time_forms
from skidway.agent.commands.time_forms import EPOCHS, RFC3339, Composed, Form, composed
from skidway.agent.commands.time_neighbours import continued, rest_beside
from skidway.agent.commands.zone_letters import ZONES
from skidway.agent.parsing.timestamps import TimeFormat

COLUMNS_MAX: Final = 6
"""A time may be divided into at most this many columns, such as day, time of day and zone."""

TRIED_MAX: Final = 20
"""The form of a time is composed from at most this many of the texts that must all have it."""


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
    found = _inside(texts)
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
    found = _first(texts)
    return None if found is None else _of_lines(texts, r"\[?", found)


def first_time(texts: Sequence[str]) -> str:
    """Returns the time with which the first line begins, or that comes after a short text; empty if
    there is none, or if it cannot be read whole."""
    found, before = leading(texts), r"\[?"
    if found is None:
        found, before = inside(texts), BEFORE
    match = found and time_forms.compiled(f"{before}({found.form.pattern})").match(texts[0])
    return match[1] if match else ""


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
    form = found.form.formats
    zones = [zone for zone in ZONES if any(_is_read(each, text, zone) for each in form)]
    if not formats:
        readers = f"{' or '.join(zones)} shows them" if zones else "no common zone shows them"
        yield (
            f"The letters of the zone in {text!r} count only if clocks of the `timezone` show them "
            f"then: {readers}."
        )


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
    """Returns the time with which the first line begins."""
    first = texts[0] if texts else ""
    return composed(first, at=int(first.startswith("[")))


def _of_lines(texts: Sequence[str], before: str, first: Composed) -> Reading | None:
    """Returns how the times in the lines are read; None if something that belongs to one of them
    stands beside it. before: a regular expression for the text before a time. first: the time in
    the first line."""
    if first.rest:
        return None
    pattern = time_forms.compiled(f"{before}({first.form.pattern}){first.form.behind}")
    found = [match for match in map(pattern.match, texts) if match is not None]
    reading = _reading(first.form, [match[1] for match in found]) if found else None
    if reading is None:
        return None
    for match in found:
        begin, end = match.start(1), match.end()
        if rest_beside(match.string, begin, end, reading.format):
            return None
    return reading


def _reading(form: Form, texts: Sequence[str]) -> Reading | None:
    """Returns the format that reads all texts, and puts them closest together; None if no format
    does, or if nothing decides between two formats or two zones."""
    column = pa.array(texts, pa.string())
    found: dict[bytes, tuple[int, str, str | None]] = {}
    for format_ in form.formats:
        readers = _readers(format_, column)
        if len(readers) > 1:
            return None
        for timezone, moments in readers:
            found.setdefault(moments.tobytes(), (int(np.ptp(moments)), format_, timezone))
    by_span = sorted(found.values(), key=lambda each: each[0])
    if not by_span or (len(by_span) > 1 and by_span[0][0] == by_span[1][0]):
        return None
    (_, format_, timezone), *others = by_span
    return Reading(form, format_, timezone, tuple(each[1] for each in others))


def _readers(format_: str, column: pa.StringArray) -> list[tuple[str | None, np.ndarray]]:
    """Returns the different moments that a column of times may mean, each with the zone whose
    letters the times have; with None for the zone if they have no letters that need one."""
    form = TimeFormat(format_)
    moments, good = form.parse(column, 0)
    if good.all():
        return [(None, moments)]
    found: dict[bytes, tuple[str | None, np.ndarray]] = {}
    for zone in ZONES if any(form.foreign_letters(column, 0)) else ():
        moments, good = TimeFormat(format_, zone).parse(column, 0)
        if good.all():
            found.setdefault(moments.tobytes(), (zone, moments))
    return list(found.values())


is_rfc3339 = RFC3339.matches
