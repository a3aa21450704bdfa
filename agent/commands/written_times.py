"""Recognizes how the times of an unknown log are written, for `guess`.

A form is a regular expression for the text of a time, and the `timestamp.format` that reads it. In
`03/04/2026`, 03 or 04 may be the day. If every time of a log can be read in both ways, `guess`
takes the order of day and month that puts the times closer together. (A log usually has the times
of a few days.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.agent.parsing.timestamps import EPOCHS, TimeFormat

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


_compiled = cache(re.compile)  # there are more forms than re's own cache has room for


@dataclass(frozen=True, slots=True)
class Form:
    """How times are written. pattern: a regular expression for the text of a time. formats: the
    formats that may read this text.
    """

    pattern: str
    formats: tuple[str, ...]

    def matches(self, text: str) -> bool:
        """Whether a text is a time in this form."""
        return _compiled(self.pattern).fullmatch(text) is not None

    def format_of(self, texts: Sequence[str]) -> str | None:
        """Returns the format that reads all texts; None if no format does."""
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
_WORDS: Final = ("UTC", "GMT")
"""Words after a time that name its zone. In a format, such a word stands for itself."""

_SPACED: Final = ((f" {_ZONE}", " %z"), *((f" {word}", f" {word}") for word in _WORDS))
_ATTACHED: Final = ((_ZONE, "%z"),)
_NO_ZONE: Final = (("", ""),)


def _day_first(
    dates: Sequence[tuple[str, Sequence[str]]],
    zones: Sequence[tuple[str, str]],
    times: Sequence[tuple[str, str]] = _TIMES,
    between: str = " ",
) -> Iterator[Form]:
    for zone, directive in zones:
        for date, formats in dates:
            for clock, time in times:
                pattern = f"{date}{between}{clock}{zone}"
                yield Form(pattern, tuple(f"{x}{between}{time}{directive}" for x in formats))


_COMPACT_DATES: Final = ((r"(?:19|20)\d{6}", ("%Y%m%d",)),)
_COMPACT_TIMES: Final = (
    (r"\d{6}" + _FRACTION, "%H%M%S.%f"), (r"\d{6}" + _COMMA, "%H%M%S,%f"), (r"\d{6}", "%H%M%S"),
)  # fmt: skip
_YEARLESS: Final = (
    (r"[A-Z][a-z]{2} +\d{1,2}", ("%b %d",)),
    (r"\d{1,2} [A-Z][a-z]{2}", ("%d %b",)),
    (r"\d\d-\d\d", ("%m-%d", "%d-%m")),
)
_CTIME: Final = r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
FORMS: Final = (
    *_day_first(_DATES, _SPACED),
    RFC3339,
    Form(r"\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}", ("%d/%b/%Y:%H:%M:%S %z",)),
    *_day_first(_DATES, _ATTACHED),
    *_day_first(_DATES, _NO_ZONE),
    *(
        Form(rf"{clock} {date}", tuple(f"{time} {each}" for each in dates))
        for date, dates in _DATES
        for clock, time in _TIMES
    ),
    *(Form(f"{_CTIME} {word} \\d{{4}}", (f"%a %b %d %H:%M:%S {word} %Y",)) for word in _WORDS),
    Form(rf"{_CTIME} \d{{4}}", ("%a %b %d %H:%M:%S %Y",)),
    *(
        form
        for zones in (_SPACED, _ATTACHED, _NO_ZONE)
        for between in ("-", "T", " ", "_", "")
        for form in _day_first(_COMPACT_DATES, zones, _COMPACT_TIMES, between)
    ),
    *_day_first(_YEARLESS, _NO_ZONE),
)
"""The forms of times that contain a date. `guess` takes the first form that fits. So forms with a
zone come before the same forms without a zone, and forms without a year come last.
"""

_EPOCHS: Final = (
    Form(r"1[4-9]\d{8}(?:\.\d{1,9})?", ("epoch",)),
    *(
        Form(rf"1[4-9]\d{{{digits}}}", (name,))
        for name, digits in (("epoch_ms", 11), ("epoch_us", 14), ("epoch_ns", 17))
    ),
)
"""Times as numbers of seconds, milliseconds and so on since 1970. Only times from 2014 to 2033
match, so that `guess` seldom takes another number for a time."""

_DAYS: Final = tuple(Form(date, dates) for date, dates in _DATES)
_CLOCKS: Final = tuple((Form(clock, (time,)), time) for clock, time in _TIMES)


def of_columns(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    """Returns the setting `timestamp` for rows of values: the first column whose values are all
    times, or a column of days followed by a column of times of day. Returns None if there are no
    such columns.
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
    """Returns the format by which all texts can be read as times; None if there is none."""
    form = _first_form(texts, forms)
    return None if form is None else form.format_of(texts)


def of_value(values: Sequence[object]) -> str | None:
    """Returns the format of the times in a member of JSON objects: the format that reads all values
    or, if there is none, a format that reads the first value. Returns None if the first value is no
    time, or if a value is neither a text nor a number. values: the member's values without null.
    """
    texts = [x if isinstance(x, str) else repr(x) for x in values if type(x) in (str, int, float)]
    if not texts or len(texts) < len(values):
        return None
    forms = (*FORMS, *_EPOCHS)
    return format_of(texts, forms) or format_of(texts[:1], forms)


def names_zone(format_: str, texts: Sequence[str]) -> bool:
    """Whether times in this format name their zone. texts: some of these times, as in the log."""
    if format_ == "rfc3339":
        return all(re.search(_ZONE + "$", text) for text in texts)
    return format_ in EPOCHS or "%z" in format_ or any(word in format_ for word in _WORDS)


def inside(texts: Sequence[str]) -> tuple[Form, str] | None:
    """Finds times that come after a short text, such as a level. Returns the form of the times, and
    the format that reads them; None if the first line has no such time.
    """
    return _times(texts, BEFORE, r"(?![\w:])")


BEFORE: Final = r"[^\n]{0,99}?[^\w\n.:+-]"
"""A regular expression for the text before a time. The text ends with a character that is no part
of a number.
"""


def leading(texts: Sequence[str]) -> tuple[Form, str] | None:
    """Finds times with which the lines of a log begin. Returns the form of the times, and the
    format that reads them; None if the first line does not begin with a time. Later lines without a
    time, such as those of a stack trace, do not matter.
    """
    return _times(texts, r"\[?", r"(?![\d:])", (*FORMS, *_EPOCHS))


def _times(
    texts: Sequence[str], before: str, after: str, forms: Sequence[Form] = FORMS
) -> tuple[Form, str] | None:
    """Returns the form of the times in the lines, and the format that reads them. before, after:
    regular expressions for the text before and after a time."""
    for form in forms if texts else ():
        pattern = _compiled(f"{before}({form.pattern}){after}")
        if pattern.match(texts[0]):
            found = [match[1] for match in map(pattern.match, texts) if match is not None]
            format_ = form.format_of(found)
            if format_ is not None:
                return form, format_
    return None


def _first_form(texts: Sequence[str], forms: Sequence[Form]) -> Form | None:
    matching = (form for form in forms if all(map(form.matches, texts)))
    return next(matching, None) if texts else None
