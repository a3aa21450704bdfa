"""Timers in a heap. The loop sleeps at most until the next timer is due."""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field

Call = Callable[[Callable[[], None]], None]
COMPACT_ABOVE = 1024
"""Cancelled timers stay in the heap until they are due. When more than this many timers in the heap
are cancelled, and the cancelled timers are more than half of the heap, all of them are removed.
"""


@dataclass(order=True, slots=True)
class Timer:
    """A function that is called once, at a time of the monotonic clock (seconds)."""

    at: float
    number: int
    action: Callable[[], None] | None = field(compare=False)


class Timers:
    """All timers of the loop."""

    __slots__ = ("_cancelled", "_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._numbers = itertools.count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def call_at(self, at: float, action: Callable[[], None]) -> Timer:
        """Calls `action` once the clock has reached `at`."""
        timer = Timer(at, next(self._numbers), action)
        heapq.heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Cancels a timer. Does nothing if the timer has run already."""
        if timer.action is None:
            return
        timer.action = None
        self._cancelled += 1
        if self._cancelled > COMPACT_ABOVE and self._cancelled * 2 > len(self._heap):
            self._heap = [each for each in self._heap if each.action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def seconds_left(self, now: float) -> float | None:
        """Returns the seconds until the next timer is due; 0 if it is due already, and None if
        there is no timer.
        """
        while self._heap and self._heap[0].action is None:
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return max(self._heap[0].at - now, 0.0) if self._heap else None

    def run_due(self, now: float, call: Call = operator.call) -> None:
        """Runs the action of every due timer, by `call(action)`. Timers that these actions set run
        at the next call of `run_due` at the earliest.
        """
        due = []
        while self._heap and self._heap[0].at <= now:
            due.append(heapq.heappop(self._heap))
        for timer in due:
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
            else:
                call(action)
