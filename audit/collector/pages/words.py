"""Verdicts, times, durations and sizes as people read them on the pages."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlencode

from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import report

WARNED = "warned"
"""The key of GLYPHS (the symbols of verdicts) for a bucket that is complete with a warning."""

GLYPHS = {
    "complete": "✓", WARNED: "△", "open": "…", "incomplete": "✗", "unknown": "?", "lost": "!"
}  # fmt: skip
MEANINGS = {
    "complete": "every line arrived, in every tier, once",
    WARNED: "complete, but with more rejects than allowed",
    "open": "too young to say, or an agent has not vouched for it yet",
    "incomplete": "a tier is short, or has other records",
    "unknown": "something that is needed to say is missing",
    "lost": "an agent declared lines lost",
}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_STEPS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def colour(verdict: BucketVerdict) -> str:
    """Returns the key of GLYPHS (the symbols of verdicts) for the bucket. The key also decides the
    colour."""
    return WARNED if verdict.is_warned else verdict.status.word


def word(verdict: BucketVerdict) -> str:
    """Returns the verdict in words, and whether people accepted it."""
    if verdict.is_warned_and_accepted:
        return f"{WARNED}, accepted"
    return verdict.word if verdict.status is not Status.COMPLETE else colour(verdict)


def by_verdict(found: TopicStanding) -> str:
    """Returns in words how many buckets have each verdict. The gravest verdict comes first."""
    counts: Counter[tuple[Status, str]] = Counter()
    for status, count in found.by_status.items():
        accepted = found.accepted.get(status, 0)
        counts[status, status.word] += count - accepted
        counts[status, f"{status.word}, accepted"] += accepted
    words = [f"{counts[each]:,} {each[1]}" for each in sorted(counts, reverse=True) if counts[each]]
    return ", ".join(words) or "nothing counted yet"


def moment(time_ms: int) -> str:
    """Returns a time as text, without its time zone, because each page says once that all times are
    UTC."""
    return report.time_text(time_ms).removesuffix("Z").replace("T", " ")


def clock(time_ms: int) -> str:
    """Returns the hours and minutes of a time, and its seconds if they are not 0."""
    text = report.time_text(time_ms)[11:19]
    return text.removesuffix(":00") if text.count(":") == 2 else text


def date(time_ms: int) -> str:
    """Returns the day (UTC) of a time, as the pages show it."""
    return report.time_text(time_ms)[:10]


def weekday(time_ms: int) -> str:
    """Returns the name of the day of the week, computed from the fact that 1970 began on a
    Thursday."""
    return _WEEKDAYS[(time_ms // 86_400_000 + 3) % 7]


def near(time_ms: int, now_ms: int) -> str:
    """Returns a time in words. Leaves out the day if the time is today, and the seconds if they are
    0.
    """
    at = clock(time_ms)
    return at if date(time_ms) == date(now_ms) else f"{date(time_ms)} {at}"


def duration(seconds: float) -> str:
    """Returns a duration in at most two units: `45 s`, `12 min 5 s`, `3 h 5 min`, `2 d 4 h`."""
    whole = max(round(seconds), 0)
    for size, unit, lower, lower_unit in _STEPS:
        if whole >= size:
            rest = whole % size // lower
            return f"{whole // size:,} {unit}" + (f" {rest} {lower_unit}" if rest else "")
    return f"{whole} s"


def size(count: int) -> str:
    """Returns a number of bytes in decimal units."""
    return f"{count} B" if count < 1_000 else f"{_scaled(count)}B"


def short(count: int) -> str:
    """Returns a number in at most four characters and a unit, for narrow cells: `950`, `12.3 k`."""
    return str(count) if count < 1_000 else _scaled(count)


def share(part: int, whole: int) -> str:
    """Returns the share of `part` in `whole`, in percent."""
    percent = 100 * part / whole if whole else 0.0
    return "0 %" if not part else "< 0.01 %" if percent < 0.01 else f"{percent:.3g} %"


def counted(count: int, what: str) -> str:
    """Returns a number with its noun: `1 record`, `2 records`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def link(path: str, **query: object) -> str:
    """Returns an address of the dashboard. Leaves out parameters that are None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _scaled(count: int) -> str:
    value, units = count / 1_000, ["k", "M", "G", "T", "P"]
    while value >= 999.5 and len(units) > 1:
        value /= 1_000
        del units[0]
    return f"{value:.3g} {units[0]}"
