"""Tests when the collector judges: when buckets become due (old enough to be complete), but not too
often."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.collector.judging_times import STEP_EVERY_S, STEP_SHARE, Due, next_step_s

MINUTE_S = 60.0


def test_judging_takes_a_sixteenth_of_the_time() -> None:
    """If no bucket becomes due (old enough to be complete) soon, the collector spends a sixteenth
    of its time on judging. For example, if a step took half a second, the next step begins eight
    seconds after the beginning of this step."""
    assert next_step_s(0.5, None) == STEP_SHARE * 0.5
    assert next_step_s(0.5, Due(600.0, 3600.0)) == STEP_SHARE * 0.5


def test_a_quick_step_is_followed_after_a_second() -> None:
    """In a small fleet, the collector judges once a second."""
    assert next_step_s(0.001, None) == STEP_EVERY_S
    assert next_step_s(0.001, Due(0.3, MINUTE_S)) == STEP_EVERY_S


@pytest.mark.parametrize("taken_s", [0.001, 0.2, 0.6, 0.9, 1.1, 1.5, 2.0, 2.5, 2.9, 3.5, 4.5, 5.5])
def test_each_bucket_is_judged_when_it_becomes_due(taken_s: float) -> None:
    """If a bucket becomes due (old enough to be complete) each minute, a step of judging begins
    within a second after a bucket becomes due. This is so even if the collector's usual pause
    between two steps is longer. Judging still takes at most an eighth of the collector's time."""
    for tenth in range(0, 600, 7):
        began, steps = tenth / 10, list[float]()
        while began < 60 * MINUTE_S:
            steps.append(began)
            began += next_step_s(taken_s, Due(MINUTE_S - began % MINUTE_S, MINUTE_S))
        due = [MINUTE_S * number for number in range(4, 59)]
        assert max(min(x for x in steps if x >= each) - each for each in due) <= STEP_EVERY_S
        gaps = [after - before for before, after in pairwise(steps)]
        assert gaps[0] >= max(STEP_EVERY_S / 2, STEP_SHARE / 4 * taken_s)
        assert min(gaps[1:]) >= max(STEP_EVERY_S / 2, STEP_SHARE / 2 * taken_s)
        assert len(steps) * taken_s <= 0.125 * 60 * MINUTE_S + taken_s


@given(st.sampled_from([0.02, 0.3, 0.6, 0.9, 1.25]), st.integers(0, 2**32))
def test_a_step_that_takes_longer_delays_no_verdict(least_s: float, seed: int) -> None:
    """Steps of judging take different times, for example because other programs use the machine. In
    this test, each step takes at most three times as long as any other step, and at most a
    sixteenth of a minute. A step still begins within a second after a bucket of a minute becomes
    due (old enough to be complete). Judging still takes at most an eighth of the collector's
    time."""
    random = Random(seed)
    began, taken, steps = random.uniform(0, 60), 0.0, list[float]()
    while began < 60 * MINUTE_S:
        steps.append(began)
        taken_s = random.uniform(least_s, 3 * least_s)
        taken += taken_s
        began += next_step_s(taken_s, Due(MINUTE_S - began % MINUTE_S, MINUTE_S))
    due = [MINUTE_S * number for number in range(4, 59)]
    assert max(min(x for x in steps if x >= each) - each for each in due) <= STEP_EVERY_S
    assert taken <= 0.125 * 60 * MINUTE_S + taken_s
