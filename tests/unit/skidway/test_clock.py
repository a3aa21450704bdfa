from __future__ import annotations

import pytest

from skidway.clock import Clock, SystemClock
from support.clock import ManualClock


def test_system_clock_counts_milliseconds_since_1970() -> None:
    """The system clock's wall time is in milliseconds since 1970, not in seconds or
    microseconds."""
    clock: Clock = SystemClock()
    assert 1_600_000_000_000 < clock.time_ms() < 10_000_000_000_000
    assert clock.monotonic() <= clock.monotonic()


def test_manual_clock_moves_only_when_told() -> None:
    """An advance of the manual clock moves wall time and monotonic time by the same amount. The
    wall time can also be set, even to an earlier time. The monotonic time never goes back."""
    clock: ManualClock = ManualClock(time_ms=5000, monotonic=1.0)
    clock.advance(1.5)
    assert (clock.time_ms(), clock.monotonic()) == (6500, 2.5)
    clock.set_time_ms(10)
    assert (clock.time_ms(), clock.monotonic()) == (10, 2.5)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
