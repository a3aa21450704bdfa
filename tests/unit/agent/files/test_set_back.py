"""Tests how the agent notices that the wall clock was set back. The clock then shows a span of
times twice. If a file's time of change becomes older, and the old and the new value are both in
this span, a program may have written to the file. The agent then treats the new value as the later
one."""

from __future__ import annotations

from skidway.agent.files.set_back import SetBack

MS = 1_000_000


def test_only_a_clock_that_was_set_back_makes_older_times_later() -> None:
    """While the wall clock and the monotonic clock agree, or if the wall clock was set forward, an
    older time never counts as later, because the clock shows no time twice."""
    clock = SetBack()
    for now, now_ms in ((1.0, 100_000), (2.0, 101_000), (3.0, 102_001), (4.0, 903_000)):
        clock.note(now, now_ms)
        assert not clock.is_later(100_500 * MS, 101_000 * MS)


def test_a_clock_that_is_set_back_twice() -> None:
    """If the clock is set back a second time while it shows the first span again, the two spans
    that it shows twice become one span."""
    clock = SetBack()
    clock.note(1.0, 100_000)
    clock.note(2.0, 50_000)
    clock.note(3.0, 40_000)
    assert clock.is_later(39_500 * MS, 100_500 * MS)
    assert not clock.is_later(38_500 * MS, 100_500 * MS)
    assert not clock.is_later(40_000 * MS, 101_500 * MS)
    assert not clock.is_later(60_000 * MS, 60_000 * MS)


def test_a_clock_that_is_set_back_less_the_second_time() -> None:
    """The clock is set back a second time, to a time within the first span. The times of the first
    span before this time then stay in the span. If the clock is set back again after it has passed
    the span, a new span begins, which has none of the old times."""
    clock = SetBack()
    clock.note(1.0, 100_000)
    clock.note(2.0, 50_000)
    clock.note(22.0, 70_000)
    clock.note(23.0, 60_000)
    assert clock.is_later(50_500 * MS, 99_500 * MS)
    clock.note(123.0, 160_000)
    clock.note(124.0, 150_000)
    assert clock.is_later(150_500 * MS, 160_500 * MS)
    assert not clock.is_later(50_500 * MS, 99_500 * MS)
