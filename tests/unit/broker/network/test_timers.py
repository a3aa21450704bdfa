from __future__ import annotations

from skidway.broker.network.timers import COMPACT_ABOVE, Timers


def test_timers_run_in_order_and_once() -> None:
    """Timers run once, in the order of their times, and not before they are due."""
    timers, called = Timers(), []
    for at in (3.0, 1.0, 2.0):
        timers.call_at(at, lambda at=at: called.append(at))  # type: ignore[misc]
    assert timers.seconds_left(0.5) == 0.5
    timers.run_due(2.5)
    timers.run_due(2.5)
    assert called == [1.0, 2.0]
    assert timers.seconds_left(2.5) == 0.5
    assert timers.seconds_left(9.0) == 0.0


def test_a_cancelled_timer_is_not_called() -> None:
    """A cancelled timer does not run. A timer may be cancelled twice, or after it has run, without
    harm."""
    timers, called = Timers(), []
    first = timers.call_at(1.0, lambda: called.append(1))
    second = timers.call_at(1.0, lambda: called.append(2))
    timers.cancel(first)
    timers.cancel(first)
    timers.run_due(1.0)
    timers.cancel(second)
    assert called == [2]
    assert timers.seconds_left(0.0) is None
    assert len(timers) == 0


def test_a_timer_that_sets_a_timer_for_now_does_not_run_it_at_once() -> None:
    """If a timer sets another timer that is due at once, the new timer runs only in the next turn,
    so that the loop can serve its sockets in between."""
    timers, called = Timers(), []

    def again() -> None:
        called.append(1)
        timers.call_at(0.0, again)

    again()
    timers.run_due(1.0)
    assert called == [1, 1]


def test_cancelled_timers_do_not_pile_up() -> None:
    """Cancelled timers are removed from the heap, so that the heap stays small however many timers
    are set and cancelled."""
    timers = Timers()
    keep = timers.call_at(1e9, lambda: None)
    for _ in range(10 * COMPACT_ABOVE):
        timers.cancel(timers.call_at(1e6, lambda: None))
    assert len(timers._heap) < 3 * COMPACT_ABOVE
    assert len(timers) == 1
    timers.cancel(keep)
