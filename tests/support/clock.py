"""A clock that stands still until a test moves it."""

from __future__ import annotations


class ManualClock:
    """Implements skidway.clock.Clock. The method `advance` moves the wall clock and the monotonic
    clock together."""

    def __init__(self, time_ms: int = 1_700_000_000_000, monotonic: float = 1_000.0) -> None:
        self._time_ms = time_ms
        self._monotonic = monotonic

    def time_ms(self) -> int:
        return self._time_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Lets time pass on both clocks."""
        if seconds < 0:
            raise ValueError("a monotonic clock does not go backwards")
        self._monotonic += seconds
        self._time_ms += round(seconds * 1000)

    def set_time_ms(self, time_ms: int) -> None:
        """Moves the wall clock alone, as an operator or NTP does."""
        self._time_ms = time_ms
