"""Which hours the loader asks about in one run. Pure; hours are written as `2026-01-31T07`."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import layout

RECENT_HOURS: Final = 26
"""Hours without rows are marked, too, if they were over at most so long ago: a day, and some time
for a load that runs once a day."""

LOOKED_HOURS: Final = 168
"""How many of the newest hours lose their mark if the collector finds them incomplete: a week."""

ASKED_MAX: Final = 48
"""One run asks about at most this many hours."""


def over(now_ms: int, count: int) -> list[str]:
    """The newest hours that are over, oldest first."""
    now = now_ms // layout.HOUR_MS
    return [layout.hour_text(hour) for hour in range(now - count, now)]


def asked(
    unmarked: Iterable[str], recent: Iterable[str], judged: Mapping[str, Answer], now_ms: int
) -> list[str]:
    """The hours to ask about, oldest first. unmarked: hours with rows that are not marked. recent:
    other hours that are not marked. judged: the collector's last judgements.

    If there are more than ASKED_MAX, each run draws some of them. So hours that stay incomplete do
    not hold back the others.
    """
    ended = layout.hour_text(now_ms // layout.HOUR_MS)
    known = {hour for hour, answer in judged.items() if not answer.is_complete}
    found = sorted(hour for hour in {*unmarked, *recent} - known if hour < ended)
    if len(found) <= ASKED_MAX:
        return found
    return sorted(random.Random(now_ms).sample(found, ASKED_MAX))  # noqa: S311 - no secret


def reopened(judged: Mapping[str, Answer], marks: Mapping[str, int]) -> Iterator[str]:
    """The marked hours that are not complete any more. marks: for each marked hour, when the
    collector judged it to be complete."""
    for hour, answer in judged.items():
        if hour in marks and not answer.is_complete and answer.judged_ms > marks[hour]:
            yield hour


def incomplete(judged: Mapping[str, Answer]) -> Collection[str]:
    """The hours that the collector's last judgement found incomplete."""
    return [hour for hour, answer in judged.items() if not answer.is_complete]
