"""Recognizes how the times of an unknown log are written, for `guess`.

A form is a regular expression for the text of a time, and the `timestamp.format` that reads it. If
day and month can be exchanged in all times (`03/04/2026`), the reading wins in which the times lie
closer together, because a log has the times of a few days.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.agent.parsing.timestamps import TimeFormat

_CLOCK: Final = r"\d{1,2}:\d\d:\d\d"
_FRACTION: Final = r"\.\d{1,6}"
_COMMA: Final = r",\d{1,6}"
_DATES: Final = (
    (r"\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y", "%m/%d/%Y")),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (r"\d{1,2}-[A-Z][a-z]{2}-\d{4}", ("%d-%b-%Y",)),
    (r"\d{1,2} [A-Z][a-z]{2} \d{4}", ("%d %b %Y",)),
    (r"\d{1,2}/[A-Z][a-z]{2}/\d{4}", ("%d/%b/%Y",)),
    (r"[A-Z][a-z]{2} +\d{1,2} \d{4}", ("%b %d %Y",)),
    (r"[A-Z][a-z]{2} +\d{1,2}, \d{4}", ("%b %d, %Y",)),
    (r"\d{4}-\d\d-\d\d", ("%Y-%m-%d",)),
)
_TIMES: Final = (
    (_CLOCK + _FRACTION, "%H:%M:%S.%f"),
    (_CLOCK + _COMMA, "%H:%M:%S,%f"),
    (_CLOCK, "%H:%M:%S"),
    (r"\d{1,2}:\d\d", "%H:%M"),
)


@dataclass(frozen=True, slots=True)
class Form:
    """How times are written. pattern: a regular expression for the text. formats: the formats by
    which it can be read.
    """

    pattern: str
    formats: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether a text is written so."""
        return re.fullmatch(self.pattern, text) is not None

    def format_of(self, texts: Sequence[str]) -> str | None:
        """The format that reads all texts; None if no format does."""
        best: tuple[int, str] | None = None
        for format_ in self.formats:
            moments, good = TimeFormat(format_).parse(pa.array(texts, pa.string()), 0)
            if good.all() and len(good):
                span = int(np.ptp(moments))
                best = min(best or (span + 1, format_), (span, format_), key=lambda each: each[0])
        return None if best is None else best[1]


RFC3339: Final = Form(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?", ("rfc3339",)
)
_ZONE: Final = r"(?:Z|[+-]\d\d:?\d\d)"
FORMS: Final = (
    *(
        Form(rf"{date} {clock} {_ZONE}", tuple(f"{each} {time} %z" for each in dates))
        for date, dates in _DATES
        for clock, time in _TIMES
    ),
    RFC3339,
    Form(r"\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}", ("%d/%b/%Y:%H:%M:%S %z",)),
    *(
        Form(rf"{date} {clock}", tuple(f"{each} {time}" for each in dates))
        for date, dates in _DATES
        for clock, time in _TIMES
    ),
    *(
        Form(rf"{clock} {date}", tuple(f"{time} {each}" for each in dates))
        for date, dates in _DATES
        for clock, time in _TIMES
    ),
)
"""Times with a day. The first form that fits wins, so forms with a zone come first."""

_EPOCHS: Final = (
    Form(r"1\d{9}(?:\.\d{1,9})?", ("epoch",)),
    Form(r"1\d{12}", ("epoch_ms",)),
)
_DAYS: Final = tuple(Form(date, dates) for date, dates in _DATES)
_CLOCKS: Final = tuple((Form(clock, (time,)), time) for clock, time in _TIMES)


def of_columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """The setting `timestamp` for rows of values: the first column whose values are all times, or a
    column of days followed by a column of times of day. None if there are none.
    """
    values = [[row[place] for row in rows] for place in range(len(columns))]
    for name, texts in zip(columns, values, strict=True):
        if (found := format_of(texts, (*FORMS, *_EPOCHS))) is not None:
            return {"fields": [name], "format": found}
    for place in range(len(columns) - 1):
        day = format_of(values[place], _DAYS)
        form = _first_form(values[place + 1], [form for form, _ in _CLOCKS])
        if day is not None and form is not None:
            return {"fields": [*columns[place : place + 2]], "format": f"{day} {form.formats[0]}"}
    return None


def format_of(texts: Sequence[str], forms: Sequence[Form] = FORMS) -> str | None:
    """The format by which all texts can be read as times; None if there is none."""
    form = _first_form(texts, forms)
    return None if form is None else form.format_of(texts)


def names_zone(format_: str, texts: Sequence[str]) -> bool:
    """Whether times say their zone. texts: some of the times."""
    if format_ == "rfc3339":
        return all(re.search(_ZONE + "$", text) for text in texts)
    return format_ in ("epoch", "epoch_ms") or "%z" in format_


def inside(texts: Sequence[str]) -> tuple[Form, str] | None:
    """The form of the times that the lines of a log have behind a short text, such as a level, and
    the format that reads them; None if the first line has no such time.
    """
    return _times(texts, BEFORE, r"(?![\w:])")


BEFORE: Final = r"[^\n]{0,99}?[^\w\n.:+-]"
"""A regular expression for the text before a time, which ends with a character that is no part of
a number.
"""


def leading(texts: Sequence[str]) -> tuple[Form, str] | None:
    """The form of the times with which the lines of a log begin, and the format that reads them;
    None if the first line does not begin with a time. Lines of a stack trace have no time.
    """
    return _times(texts, r"\[?", r"(?![\d:])")


def _times(texts: Sequence[str], before: str, after: str) -> tuple[Form, str] | None:
    """The form of the times in the lines, and the format that reads them. before, after: regular
    expressions for what is around a time."""
    for form in FORMS if texts else ():
        pattern = re.compile(f"{before}({form.pattern}){after}")
        found = [match[1] for match in map(pattern.match, texts) if match is not None]
        if found and pattern.match(texts[0]):
            format_ = form.format_of(found)
            if format_ is not None:
                return form, format_
    return None


def _first_form(texts: Sequence[str], forms: Sequence[Form]) -> Form | None:
    matching = (form for form in forms if all(map(form.matches, texts)))
    return next(matching, None) if texts else None
