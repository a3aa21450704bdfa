"""What time it is for those who delete by age: the wall clock, without its jumps forward.

A clock that is set a year ahead by mistake would make every segment expire at the next look, and
every idempotent producer be forgotten, so that retries are stored twice. So for retention time
passes at most twice as fast as it does (by the monotonic clock): a jump of a week that was right is
made up for within a week, one that was wrong can be seen and undone before it has cost anything. A
clock that goes back is followed at once: that only keeps data for longer.

What happened while the broker was not running it cannot know: at its start it believes the clock.
"""

from __future__ import annotations

from typing import Final

from skidway import log
from skidway.clock import Clock

SPEED_MAX: Final = 2
REPORTED_MS: Final = 60_000
"""A jump forward that is worth a line in the log."""
_log = log.get(__name__)


class RetentionClock:
    """Asked by the loop, at each look for what has expired."""

    __slots__ = ("_clock", "_known_ms", "_seen_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known_ms = clock.time_ms()
        self._seen_s = clock.monotonic()

    def now_ms(self) -> int:
        """The time, in ms since 1970, that ages are measured by."""
        wall_ms, now_s = self._clock.time_ms(), self._clock.monotonic()
        latest_ms = self._known_ms + round((now_s - self._seen_s) * 1000 * SPEED_MAX)
        if wall_ms > latest_ms + REPORTED_MS:
            _log.warning("clock_jumped", behind_s=(wall_ms - latest_ms) // 1000)
        self._known_ms, self._seen_s = min(wall_ms, latest_ms), now_s
        return self._known_ms
