"""Finds what stands directly before or behind a time in a line, and seems to be a part of it: more
digits, a half of the day, a zone, or a year.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skidway.agent.parsing.timestamps import EPOCHS
from skidway.agent.unknown_logs import zone_letters

OFFSET: Final = r"[+-](?:0\d|1[0-4])(?::?(?:00|15|30|45))?"
YEAR: Final = r"(?:19|20)\d\d"

_NEAR: Final = 20
_APART: Final = r"[\s\])},;|-]*(?:[\[({<]\s*)?"  # one way to match a text (see parsing/joins)
_ANY_ZONE: Final = (
    rf"(?:(?:[Zz]|{OFFSET}|\+\d{{1,4}}|-\d{{3}}|\u2212\d+|(?:UTC|GMT|utc|gmt)(?:[+-]\d+)?"
    rf"|{zone_letters.PATTERN}|{zone_letters.REGION})(?!\w)|{zone_letters.IN_WORDS})"
)
_MORE: Final = re.compile(r"\w|\s*[.,']\d|[:/+\u2212-]\d")
_MORE_BEHIND_ZONE: Final = re.compile(r"\w|[.:/+\u2212-]\d|(?<=UTC|GMT)\s+[+-]\d")
_MORE_HALF: Final = re.compile(rf"{_APART}(?:{zone_letters.HALVES})", re.IGNORECASE)
_MORE_ZONE: Final = re.compile(f"{_APART}{_ANY_ZONE}")
_MORE_YEAR: Final = re.compile(rf"[\])]?,? ?[\[(<]?{YEAR}(?!\d|[./:-]\d)")
_CLOSED: Final = r"[\s\])}>,:;|/.-]*$"
_HALF_BEFORE: Final = re.compile(rf"(?<!\w)(?:{zone_letters.HALVES}){_CLOSED}", re.IGNORECASE)
_ZONE_BEFORE: Final = re.compile(rf"(?<![\w+-]){_ANY_ZONE}{_CLOSED}")
_YEAR_BEFORE: Final = re.compile(rf"{YEAR}{_CLOSED}")


@dataclass(frozen=True, slots=True)
class Lacks:
    """Which parts a time does not have, so that they may stand beside it."""

    zone: bool = True
    half: bool = True
    year: bool = False


def rest_beside(text: str, begin: int, end: int, format_: str) -> str:
    """Returns the text that stands directly behind or before a time that a format reads, and
    belongs to it; empty if there is none. begin, end: where the time is in the text."""
    return more(text, begin, end, _lacks(format_, text[begin:end]))


def continued(format_: str) -> str:
    """Returns a regular expression, also for RE2, for what may follow a time and belongs to it, in
    a line of another program. If a group takes this with the time, the format does not fit, and so
    never reads a part of a time."""
    lacks = _lacks(format_, "")
    parts = [rf"(?:[Zz]|{OFFSET}|UTC|GMT|{zone_letters.SHOWN})\b"] if lacks.zone else []
    # Behind a zone, there is no half of the day.
    parts += [r"[AaPp]\.?[Mm]\b"] if lacks.half and lacks.zone else []
    parts += [rf"{YEAR}\b"] if lacks.year else []
    # Up to the next blank, so that what follows in a pattern cannot make RE2 give the part back.
    return rf"(?:{_APART}(?:{'|'.join(parts)})[^ \t]*)?" if parts else ""


def _lacks(format_: str, time: str) -> Lacks:
    if format_ in EPOCHS:
        return Lacks(zone=False, half=False)
    return Lacks(
        zone=not names_zone(format_, [time]),
        half="%p" not in format_,
        year=not (format_ == "rfc3339" or "%Y" in format_ or "%y" in format_),
    )


def names_zone(format_: str, texts: Sequence[str]) -> bool:
    """Whether times in this format name their zone. texts: some of these times, as in the log."""
    if format_ == "rfc3339":
        zoned = re.compile(r"\d\d:\d\d:\d\d[.,\d]*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$")
        return all(zoned.search(text) for text in texts)
    return format_ in EPOCHS or "%z" in format_ or any(word in format_ for word in ("UTC", "GMT"))


def more(text: str, begin: int, end: int, lacks: Lacks) -> str:
    """Returns the text that stands directly before or behind a time, and seems to be a part that
    the time lacks; empty if there is none."""
    behind = [_MORE if lacks.zone else _MORE_BEHIND_ZONE]
    before = []
    for is_lacking, more_behind, more_before in (
        (lacks.half, _MORE_HALF, _HALF_BEFORE),
        (lacks.zone, _MORE_ZONE, _ZONE_BEFORE),
        (lacks.year, _MORE_YEAR, _YEAR_BEFORE),
    ):
        behind += [more_behind] if is_lacking else []
        before += [more_before] if is_lacking else []
    earlier = text[max(begin - _NEAR, 0) : begin]
    if any(each.search(earlier) for each in before):
        return earlier.strip()
    if any(each.match(text, end) for each in behind):
        return text[end : end + _NEAR].strip()
    return ""
