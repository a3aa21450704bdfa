"""Tests up to when a counter has counted all records of its topics."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counter.counted_until import (
    BEHIND_MAX,
    EQUAL_MS,
    NEVER,
    SAMPLES_MAX,
    CountedUntil,
    lag_ms,
    lags,
)
from skidway.kafka.source import Source

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=400)


@given(STEPS)
def test_everything_that_was_there_at_that_time_is_counted(steps: list[tuple[int, int]]) -> None:
    """Whatever the order of answers and counts is, the time is never later than the first record
    that is not counted, and it is the present when everything is counted. The memory is bounded."""
    found, appended, end, durable = CountedUntil(), list[int](), 0, 0
    for now, (grown, counted) in enumerate(steps):
        appended += [now] * grown
        end += grown
        found.answered(now + 0.5, end)
        durable = min(durable + counted, end)
        found.counted(durable)
        assert found.time < (appended[durable] if durable < end else math.inf) + 0.5
        if durable == end:
            assert found.time == now + 0.5
        assert len(found._samples) <= SAMPLES_MAX


def test_a_counter_that_catches_up_says_so_on_the_way() -> None:
    """While a counter works off a long lag, it says more than once up to when it has counted, and
    the less it lags, the more exactly."""
    found = CountedUntil()
    for now in range(10_000):
        found.answered(now, now)
    times = []
    for durable in range(10_000):
        found.counted(durable)
        times.append(found.time)
    assert len(set(times)) > 20
    assert times == sorted(times)
    assert times[-1] == 9_999


def test_a_lag_is_bounded() -> None:
    """If it is not known up to when the counter has counted, the lag reaches back to 1970."""
    assert lag_ms(NEVER, 5.0, 1_000_000) == 1_000_000
    assert (lag_ms(4.0, 5.0, 1_000_000), lag_ms(6.0, 5.0, 1_000_000)) == (1_000, 0)


@given(st.lists(st.integers(0, 100 * EQUAL_MS), max_size=2 * BEHIND_MAX))
def test_no_topic_is_said_to_lag_less_than_it_does(of_topics: list[int]) -> None:
    """A heartbeat names a bounded number of topics that lag. Every topic has at least its lag, and
    all topics have little more than theirs if those that lag are named."""
    found = {Source("dc1", "id", f"t{n}", "id"): lag for n, lag in enumerate(of_topics)}
    most, behind = lags(found)
    assert len(behind) <= BEHIND_MAX
    named = {x.source: x.lag_ms for x in behind}
    excess = [named.get(source, most) - lag for source, lag in found.items()]
    assert min(excess, default=0) >= 0
    if len(behind) < BEHIND_MAX:
        assert max(excess, default=0) < EQUAL_MS
