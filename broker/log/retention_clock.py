"""The clock for everything that is deleted by age: the wall clock, without its jumps forward.

Suppose that ages were measured by the wall clock, and that somebody set the wall clock a year ahead
by mistake. Then every segment would soon expire. The broker would also forget every idempotent
producer, and would store retried batches twice. Therefore this clock runs at most twice as fast as
the monotonic clock. If the wall clock jumps forward by a week for a good reason, this clock catches
up within a week. If the jump was a mistake, an operator can notice and undo it before data is lost.
If the wall clock is set back, this clock follows at once, because the only effect is that data is
kept longer.

The broker cannot know what happened to the wall clock while the broker was not running. So at the
broker's start, this clock shows the time of the wall clock.
"""

from __future__ import annotations

from typing import Final

from skidway import log
from skidway.clock import Clock

SPEED_MAX: Final = 2
REPORTED_MS: Final = 60_000
"""Jumps forward of less than this time are not logged."""
_log = log.get(__name__)


class RetentionClock:
    """A clock without jumps forward. The logs of a broker have one such clock, and the committed
    offsets have another. The loop reads a clock whenever it looks for expired data."""

    __slots__ = ("_clock", "_known_ms", "_seen_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known_ms = clock.time_ms()
        self._seen_s = clock.monotonic()

    def now_ms(self) -> int:
        """Returns the time by which ages are measured, in ms since 1970."""
        wall_ms, now_s = self._clock.time_ms(), self._clock.monotonic()
        latest_ms = self._known_ms + round((now_s - self._seen_s) * 1000 * SPEED_MAX)
        if wall_ms > latest_ms + REPORTED_MS:
            _log.warning("clock_jumped", behind_s=(wall_ms - latest_ms) // 1000)
        self._known_ms, self._seen_s = min(wall_ms, latest_ms), now_s
        return self._known_ms
