"""Tests how the dashboard shows the freshness of a topic (how soon its buckets become complete) and
its lag (how old its oldest incomplete bucket is)."""

from __future__ import annotations

from collections import Counter

from skidway.audit.collector.history_store import Completion
from skidway.audit.collector.pages.pace import TREND_STEP_MS, Pace, paces, waiting_since
from skidway.audit.judgement.policy import FreshnessTarget, Policy
from skidway.audit.judgement.standing import TopicStanding, standing
from skidway.audit.judgement.verdict import BucketVerdict, Status
from support.audit_senders import LOGS

MINUTE = 60_000
NOW = 7_200_000


def _verdict(bucket: int, status: Status = Status.COMPLETE) -> BucketVerdict:
    return BucketVerdict(LOGS, bucket, MINUTE, status, (), due=True)


def _topic(*found: BucketVerdict) -> TopicStanding:
    [topic] = standing(found).topics
    return topic


def _pace(topic: TopicStanding, done: list[Completion], policy: Policy | None = None) -> Pace:
    return paces([topic], done, policy or Policy(), NOW)[LOGS]


def _done(bucket: int, after_ms: int | None) -> Completion:
    at = None if after_ms is None else bucket + MINUTE + after_ms
    return Completion(LOGS, bucket, MINUTE, at)


def test_freshness_is_from_the_end_of_a_bucket_to_its_first_completion() -> None:
    """The freshness of a bucket is the time from its end to the moment at which it was first
    complete. Half of the buckets took at most p50, and 99 of 100 took at most p99. Buckets that
    were never complete do not count."""
    done = [_done(index * MINUTE, 1_000 * (index + 1)) for index in range(100)]
    found = _pace(_topic(_verdict(0)), [*done, _done(101 * MINUTE, None)])
    assert (found.p50_s, found.p99_s, found.buckets) == (50.0, 99.0, 100)
    for count, percentiles in ((1, (1.0, 1.0)), (3, (2.0, 3.0)), (101, (51.0, 100.0))):
        found = _pace(_topic(_verdict(0)), [_done(0, 1_000 * (x + 1)) for x in range(count)])
        assert (found.p50_s, found.p99_s) == percentiles, count


def test_p99_is_compared_with_the_target_of_the_topic() -> None:
    """A topic's p99 is the time within which 99 of 100 of its buckets became complete. It is
    compared with the first freshness target whose pattern matches the topic's name. If no pattern
    matches, the topic is neither on target nor off target. A topic is on target if 99 of 100
    buckets were complete within the target time, and off target if only 98 were."""
    done = [_done(0, 30_000)]
    for targets, kept in (
        ((), None),
        ((FreshnessTarget("dc1.other", 1), FreshnessTarget("dc1.+", 30_000)), True),
        ((FreshnessTarget("dc1.logs", 29_999), FreshnessTarget("dc1.+", 90_000)), False),
    ):
        policy = Policy(freshness_targets=targets)
        assert _pace(_topic(_verdict(0)), done, policy).is_on_target is kept
    policy = Policy(freshness_targets=(FreshnessTarget("dc1.logs", 1),))
    assert _pace(_topic(_verdict(0)), [], policy).is_on_target is None
    for late, kept in ((1, True), (2, False)):
        done = [_done(x * MINUTE, 2 if x < late else 1) for x in range(100)]
        assert _pace(_topic(_verdict(0)), done, policy).is_on_target is kept


def test_a_topic_without_open_buckets_has_no_lag() -> None:
    """The lag is the age of the oldest bucket that is not complete. If all buckets of a topic are
    complete, the topic has no lag, even if nobody writes to it any more and its newest bucket is
    old."""
    found = _pace(_topic(_verdict(0)), [])
    assert (found.lag_s, found.waiting_since) == (0.0, None)
    assert (
        _pace(TopicStanding(LOGS, {}, {}, 0, {}, 0, 0, None, None, 0, 0, 0, {}), []).lag_s is None
    )


def test_the_lag_is_the_age_of_the_oldest_bucket_that_is_not_complete() -> None:
    """The lag is the age of the oldest bucket that is not complete. If this bucket is one of the
    newest buckets, its verdict is in the standing (the result of the last judgement). If this
    bucket is older, the standing has only the bucket's time, in the field `oldest_overdue`."""
    late = _topic(_verdict(0), _verdict(MINUTE, Status.INCOMPLETE), _verdict(2 * MINUTE))
    assert waiting_since(late) == MINUTE
    assert _pace(late, []).lag_s == (NOW - MINUTE) / 1000
    old = TopicStanding(
        LOGS, Counter({Status.COMPLETE: 30, Status.LOST: 1}), Counter({Status.LOST: 1}), 0, {}, 0,
        0, None, 3 * MINUTE, 0, 0, 0, {},
    )  # fmt: skip
    assert waiting_since(old) == 3 * MINUTE


def test_the_trend_is_that_of_the_lag_at_earlier_moments() -> None:
    """The lag is the age of the oldest bucket that is not complete. The trend shows how the lag has
    changed: each of its points is the lag that the topic had at one time in the past."""
    first = NOW - 3_600_000
    buckets = range(first, NOW - 2 * MINUTE, MINUTE)
    steady = _pace(_topic(_verdict(first)), [_done(x, 0) for x in buckets])
    assert steady.trend == "steady"
    stuck = NOW - 5 * TREND_STEP_MS
    done = [_done(x, 0 if x < stuck else None) for x in buckets]
    topic = _topic(*(_verdict(x, Status.OPEN if x >= stuck else Status.COMPLETE) for x in buckets))
    rising = _pace(topic, done)
    assert rising.trend == "rising"
    assert rising.points[-1] == 5 * TREND_STEP_MS / 1000
    assert rising.points[-2] == 4 * TREND_STEP_MS / 1000
    healed = _pace(_topic(_verdict(first)), [_done(x, max(NOW - x - 90_000, 0)) for x in buckets])
    assert healed.trend == "falling"


def test_without_a_history_the_trend_is_not_known() -> None:
    """Without a history of verdicts, a topic has no trend. With a history, the trend leaves out
    moments before the first bucket of the history."""
    assert _pace(_topic(_verdict(0)), []).trend == ""
    assert len(_pace(_topic(_verdict(0)), [_done(NOW - 2 * TREND_STEP_MS, 0)]).points) == 3
