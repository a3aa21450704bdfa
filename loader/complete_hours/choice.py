"""Chooses the hours for which a run asks the audit's collector whether they are complete. No I/O.
Hours are written as `2026-01-31T07`. A *marked* hour is one that has the file `_SUCCESS`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import layout

RECENT_HOURS: Final = 26
"""A run looks for `_SUCCESS` in each of the newest 26 hours, even in hours without rows. Of older
hours without rows, it looks only at some (`looked`). 26 hours are two hours more than a day, so
that a loader that runs once a day misses no hour.
"""

LOOKED_HOURS: Final = 168
"""A run checks whether hours that have `_SUCCESS` have become incomplete. It checks only hours
among the newest 168 hours (a week). Older hours lose the file `_SUCCESS` only when a load adds rows
to them or a reload changes their rows.
"""

DRAWN_MAX: Final = 10
"""A group of hours may be large, for example the older hours that have rows but no `_SUCCESS`. From
each such group, a run chooses at most this many hours at random, and checks only the chosen hours.
"""


def over(now_ms: int, count: int) -> list[str]:
    """Returns the newest `count` hours that have ended, the oldest hour first."""
    now = now_ms // layout.HOUR_MS
    return [layout.hour_text(hour) for hour in range(now - count, now)]


def looked(judged: Mapping[str, Answer], now_ms: int) -> list[str]:
    """Returns the hours for which a run checks whether they have the file `_SUCCESS`. They are the
    recent hours, and some of the hours that the collector has found complete. judged: the
    collector's last judgement of each hour."""
    recent = over(now_ms, RECENT_HOURS)
    complete = sorted(hour for hour, answer in judged.items() if answer.is_complete)
    return sorted({*recent, *_drawn(complete, now_ms)})


def asked(
    unmarked: Iterable[str], missing: Iterable[str], judged: Mapping[str, Answer], now_ms: int
) -> list[str]:
    """Returns the hours about which the run asks the collector: first the hours with rows, then the
    hours without rows, each group in random order. unmarked: hours that have rows but no file
    `_SUCCESS`. missing: hours that the run checked (`looked`) and that have no `_SUCCESS`. judged:
    the collector's last judgement of each hour.

    Each run asks about only a few of the older hours, chosen at random. The collector's last
    judgement may be out of date, so the run also asks about hours that this judgement found
    incomplete, but only about a few of them. So a run has time for other hours even if many hours
    stay incomplete. The order is random because a slow collector may answer only the first
    questions of a run.
    """
    recent, with_rows = over(now_ms, RECENT_HOURS), {*unmarked}
    found = {hour for hour in {*with_rows, *missing} if hour <= recent[-1]}
    doubtful = {hour for hour in found if hour in judged and not judged[hour].is_complete}
    older = {hour for hour in found if hour < recent[0]} - {*missing}
    drawn = _drawn(sorted(doubtful - older), now_ms) + _drawn(sorted(older - doubtful), now_ms)
    hours = sorted((found - doubtful - older) | {*drawn})
    random.Random(now_ms).shuffle(hours)  # noqa: S311 - no secret
    return sorted(hours, key=lambda hour: hour not in with_rows)  # sorting is stable


def reopened(marked: Iterable[str], now_ms: int) -> list[str]:
    """Returns some of the hours in `marked`, chosen at random. The run then asks the collector
    whether the `_SUCCESS` of these hours must be deleted. marked: the hours with `_SUCCESS` that
    may be incomplete.

    Each run chooses at random, because the first hours of the list may be hours whose losses people
    have accepted. Such hours keep their `_SUCCESS`, so runs that always chose the first hours would
    never ask about the other hours.
    """
    return _drawn(sorted(marked), now_ms)


def incomplete(judged: Mapping[str, Answer]) -> list[str]:
    """Returns the hours that the collector's last judgement found incomplete."""
    return [hour for hour, answer in judged.items() if not answer.is_complete]


def _drawn(hours: Sequence[str], now_ms: int) -> list[str]:
    chance = random.Random(now_ms)  # noqa: S311 - no secret
    return chance.sample(hours, min(len(hours), DRAWN_MAX))
