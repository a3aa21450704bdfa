"""Chooses the hours about which a run asks the audit's collector: are they complete? No I/O. Hours
are written as `2026-01-31T07`. A *marked* hour is one that has the file `_SUCCESS`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import layout

RECENT_HOURS: Final = 26
"""An hour without rows also gets the file `_SUCCESS`, if it ended at most this many hours ago. The
26 hours are a day, and some time to spare for a load that runs once a day."""

LOOKED_HOURS: Final = 168
"""Only the newest 168 hours (a week) can lose the file `_SUCCESS` although no new rows came."""

DRAWN_MAX: Final = 10
"""If a group of hours need not be checked completely in each run, a run draws at most this many
hours of the group at random. The older hours with rows but without `_SUCCESS` are such a group."""


def over(now_ms: int, count: int) -> list[str]:
    """The newest hours that are over, oldest first."""
    now = now_ms // layout.HOUR_MS
    return [layout.hour_text(hour) for hour in range(now - count, now)]


def looked(judged: Mapping[str, Answer], now_ms: int) -> list[str]:
    """The hours for which a run checks whether they have the file `_SUCCESS`: the recent hours, and
    some of the hours that the collector has found complete. judged: the collector's last
    judgement of each hour."""
    recent = over(now_ms, RECENT_HOURS)
    complete = sorted(hour for hour, answer in judged.items() if answer.is_complete)
    return sorted({*recent, *_drawn(complete, now_ms)})


def asked(
    unmarked: Iterable[str], missing: Iterable[str], judged: Mapping[str, Answer], now_ms: int
) -> list[str]:
    """The hours about which the run asks, hours with rows first. unmarked: hours that have rows but
    no file `_SUCCESS`. missing: hours that the run checked (`looked`) and that have no `_SUCCESS`.
    judged: the collector's last judgement of each hour.

    Each run draws only a few of the older hours, and only a few of the recent hours that the
    collector's last judgement found incomplete (this judgement may be old). So hours that stay
    incomplete do not keep a run from asking about other hours. A slow collector may answer only the
    first questions of a run, so each run asks in another order.
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
    """The hours about which the run asks whether their `_SUCCESS` must be deleted. They are drawn
    from `marked`, the hours with `_SUCCESS` that may be incomplete. Each run draws anew, so that
    hours whose losses a person accepted do not crowd out the other hours."""
    return _drawn(sorted(marked), now_ms)


def incomplete(judged: Mapping[str, Answer]) -> list[str]:
    """The hours that the collector's last judgement found incomplete."""
    return [hour for hour, answer in judged.items() if not answer.is_complete]


def _drawn(hours: Sequence[str], now_ms: int) -> list[str]:
    chance = random.Random(now_ms)  # noqa: S311 - no secret
    return chance.sample(hours, min(len(hours), DRAWN_MAX))
