"""How long the buckets of a topic take until they are complete (freshness), and the age of the
oldest bucket that is not complete yet (lag).

The freshness of a bucket is the time from its end to the moment at which the collector first found
it complete, according to the history. The pace of a topic is the lag, and the median (`p50`) and
the 99th percentile (`p99`) of the freshness of the last day's buckets. The lag of a topic is 0
while all of its buckets are complete or accepted, so a topic to which nobody writes has no lag.
Earlier lags are computed from the history. For example, the history says which buckets from before
12:00 became complete only after 12:00. The lag at 12:00 is the age that the oldest of these buckets
had at 12:00.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skidway.audit.collector.history_store import Completion
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import Status
from skidway.kafka.source import Source

DAY_MS = 86_400_000
TREND_POINTS, TREND_STEP_MS = 13, 300_000
"""The trend has a point every five minutes: twelve points of the last hour, and the present lag."""
TREND_OVER = 3
"""The trend compares the present lag with the lag fifteen minutes ago, which is this many points
earlier."""
STEADY_S, STEADY_SHARE = 60, 0.1
"""The trend is called steady if the present lag and the earlier lag with which it is compared
differ by at most STEADY_S seconds, or by at most the share STEADY_SHARE of the greater of the
two."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of a topic. buckets: the number of buckets from which `p50_s` and `p99_s` were
    computed. lag_s: the present lag in seconds; None if nothing was counted. points: the earlier
    lags, oldest first, and then the present lag; empty without a history.
    """

    lag_s: float | None
    waiting_since: int | None
    points: tuple[float, ...] = ()
    p50_s: float | None = None
    p99_s: float | None = None
    buckets: int = 0
    target_s: float | None = None

    @property
    def is_on_target(self) -> bool | None:
        """Whether p99 meets the target; None if there is no target or no bucket."""
        if self.target_s is None or self.p99_s is None:
            return None
        return self.p99_s <= self.target_s

    @property
    def trend(self) -> str:
        """Whether the lag is `rising`, `falling` or `steady`; "" if the history is too short to say
        this."""
        if len(self.points) <= TREND_OVER:
            return ""
        now, before = self.points[-1], self.points[-1 - TREND_OVER]
        if abs(now - before) <= max(STEADY_S, STEADY_SHARE * max(now, before)):
            return "steady"
        return "rising" if now > before else "falling"


def paces(
    topics: Iterable[TopicStanding],
    completions: Sequence[Completion] | None,
    policy: Policy,
    now_ms: int,
) -> dict[Source, Pace]:
    """Returns the pace of each topic. completions: when buckets were first complete, according to
    the history; None without a history."""
    by_source: dict[Source, list[Completion]] = {}
    for each in completions or ():
        by_source.setdefault(each.source, []).append(each)
    return {
        topic.source: _pace(topic, by_source.get(topic.source, []), policy, now_ms)
        for topic in topics
    }


def waiting_since(found: TopicStanding) -> int | None:
    """Returns the start of the topic's oldest bucket that is neither complete nor accepted; None if
    there is no such bucket."""
    if found.is_complete:
        return None
    waiting = [x.bucket for x in found.newest.values() if x.residue is not Status.COMPLETE]
    waiting += [] if found.oldest_overdue is None else [found.oldest_overdue]
    return min(waiting, default=found.complete_until)


def _pace(topic: TopicStanding, completions: list[Completion], policy: Policy, now_ms: int) -> Pace:
    since = waiting_since(topic)
    lag_s = None if not topic.buckets else 0.0 if since is None else _age_s(since, now_ms)
    taken = sorted(
        max(x.complete_ms - x.bucket - x.bucket_ms, 0) / 1000
        for x in completions
        if x.complete_ms is not None
    )
    target_ms = policy.freshness_target_ms(topic.source)
    return Pace(
        lag_s,
        since,
        _points(completions, since, now_ms, lag_s),
        _percentile(taken, 50),
        _percentile(taken, 99),
        len(taken),
        None if target_ms is None else target_ms / 1000,
    )


def _points(
    completions: list[Completion], since: int | None, now_ms: int, lag_s: float | None
) -> tuple[float, ...]:
    """Returns the lag in seconds at earlier moments, oldest first, and then the present lag
    (`lag_s`). Leaves out moments before the first bucket in the history. Returns nothing if there
    is no history, or if no bucket was counted. since: the start of the oldest bucket that is not
    complete now."""
    if not completions or lag_s is None:
        return ()
    known_since = min(x.bucket for x in completions)
    times = [now_ms - step * TREND_STEP_MS for step in range(TREND_POINTS - 1, 0, -1)]
    late = [x for x in completions if x.complete_ms is None or x.complete_ms > times[0]]
    earlier = (_lag_at(x, late, since) for x in times if x >= known_since)
    return (*earlier, lag_s)


def _lag_at(time_ms: int, completions: list[Completion], since: int | None) -> float:
    late = (
        x.bucket
        for x in completions
        if x.bucket <= time_ms and (x.complete_ms is None or x.complete_ms > time_ms)
    )
    oldest = min(late, default=None)
    if since is not None and since <= time_ms and not any(x.bucket == since for x in completions):
        oldest = since if oldest is None else min(oldest, since)
    return 0.0 if oldest is None else _age_s(oldest, time_ms)


def _age_s(bucket: int, time_ms: int) -> float:
    return max(time_ms - bucket, 0) / 1000


def _percentile(found: Sequence[float], percent: int) -> float | None:
    """Returns the smallest of the sorted values such that at least this percentage of all values
    are not greater (the nearest-rank percentile); None if there are no values."""
    return found[-(-percent * len(found) // 100) - 1] if found else None
