"""Clocks that are passed as arguments, so that a test can pass its own and need not wait."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps in data, monotonic time for deadlines; the two are never mixed."""

    def time_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z; may jump, also backwards."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes backwards."""
        ...


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def time_ms(self) -> int:
        """Milliseconds since 1970-01-01T00:00:00Z."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()
