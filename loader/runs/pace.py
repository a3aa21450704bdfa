"""Measures how fast a run works now, and how long the rest of the run takes at this rate. Does no
I/O.

A run's progress rises in steps, because the run counts a slice's records only when the slice has
ended. The rate is measured between two steps: the newest step, and the last step before it that is
at least `WINDOW_S` seconds old (or the first step, if none is so old). So the rate follows the
present speed. While no further step comes, the rate at first stays constant. The rate falls when
the time since the newest step becomes longer than the time between the two measured steps.
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 30.0


class Pace:
    """Measures how fast a number rises. The caller passes the time in seconds, which must never
    decrease."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, done: int) -> None:
        """Notes that the number is `done` at the time `now_s`. If `done` is smaller than before,
        the measurement begins again."""
        if self._steps and done < self._steps[-1][1]:
            self._steps.clear()
        if not self._steps or done > self._steps[-1][1]:
            self._steps.append((now_s, done))
        while len(self._steps) > 2 and self._steps[1][0] <= now_s - WINDOW_S:
            self._steps.popleft()

    def per_second(self, now_s: float) -> float | None:
        """Returns the rate at the time `now_s`, or None if the rate is not known yet."""
        if len(self._steps) < 2:
            return None
        (begin_s, first), (end_s, last) = self._steps[0], self._steps[-1]
        measured_s = max(end_s - begin_s, now_s - end_s)
        return (last - first) / measured_s if measured_s > 0 else None

    def seconds_left(self, now_s: float, left: int) -> float | None:
        """Returns how many seconds the remaining work (`left`) takes at the present rate, or None
        if the rate is not known yet."""
        rate = self.per_second(now_s)
        return None if rate is None else left / rate
