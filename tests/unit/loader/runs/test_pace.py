"""Tests the rate of a run, and the estimate of the time that the run still needs."""

from __future__ import annotations

import pytest

from skidway.loader.runs.pace import WINDOW_S, Pace


def paced(*steps: tuple[float, int]) -> Pace:
    pace = Pace()
    for now_s, done in steps:
        pace.note(now_s, done)
    return pace


@pytest.mark.parametrize("steps", [(), ((5.0, 0),), ((5.0, 0), (6.0, 0), (7.0, 0))])
def test_no_rate_is_invented(steps: tuple[tuple[float, int], ...]) -> None:
    """As long as a run has made no progress, neither its rate nor the time left is known."""
    pace = paced(*steps)
    assert pace.per_second(8.0) is None
    assert pace.seconds_left(8.0, 100) is None


def test_the_rate_is_that_of_the_last_seconds() -> None:
    """If a run was slow at first and is fast now, its rate is that of the last seconds, not the
    average since its start. The time left is calculated from this rate."""
    slow = [(float(second), second) for second in range(100)]
    fast = [(100.0 + second, 100 + 10 * second) for second in range(int(WINDOW_S) + 1)]
    pace, now_s = paced(*slow, *fast), 100.0 + WINDOW_S
    assert pace.per_second(now_s) == 10.0
    assert pace.seconds_left(now_s, 50) == 5.0


def test_the_rate_does_not_swing_between_two_steps() -> None:
    """A run of the loader makes progress in rare steps, whenever a slice ends. Between two steps
    the rate stays the same, as long as the next step takes no longer than the earlier steps did.
    After that the rate falls."""
    pace = paced((0.0, 0), (90.0, 900))
    assert [pace.per_second(now_s) for now_s in (90.0, 120.0, 180.0, 270.0)] == [10, 10, 10, 5]


def test_steps_that_are_rarer_than_the_window_have_a_rate() -> None:
    """The rate of a run is measured over the last seconds (the window). If each slice takes longer
    than the window, the rate is calculated from the last step."""
    pace = paced((0.0, 0), (100.0, 100), (200.0, 400))
    assert pace.per_second(210.0) == 3.0


def test_a_loss_of_progress_begins_a_new_measurement() -> None:
    """If slices of a load have to run again, the run's progress goes back. The run's rate is then
    unknown until the next step of progress. From then on, the rate is computed only from the
    progress after the slices had to run again."""
    pace = paced((0.0, 0), (10.0, 100), (11.0, 50))
    assert pace.per_second(11.0) is None
    pace.note(21.0, 70)
    assert pace.per_second(21.0) == 2.0
