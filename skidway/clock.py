"""Clocks that are passed as arguments, so that a test can pass its own clock and need not wait."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A source of wall time, which is used for timestamps in data, and of monotonic time, which is
    used for deadlines."""

    def time_ms(self) -> int:
        """Returns the wall time in milliseconds since 1970-01-01T00:00:00Z. It may jump, even
        backwards."""
        ...

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment. The value never goes backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def time_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Returns seconds since an arbitrary moment."""
        return time.monotonic()
