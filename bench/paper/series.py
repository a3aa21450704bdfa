"""The progress of a run, about every second: what the paper's figures draw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Point:
    """How many messages were through after how many seconds."""

    seconds: float
    messages: int


@dataclass(slots=True)
class Series:
    """One run, from its first message to its last."""

    points: list[Point] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return self.points[-1].messages if self.points else 0

    @property
    def rate(self) -> float:
        """Messages per second over the whole run."""
        return self.points[-1].messages / self.points[-1].seconds

    def rates(self) -> Iterator[tuple[int, float]]:
        """Messages through so far, and messages per second since the point before."""
        before = Point(0.0, 0)
        for point in self.points:
            took = point.seconds - before.seconds
            yield point.messages, (point.messages - before.messages) / took
            before = point


class Stopwatch:
    """Makes the series of a run that this process drives: told often, it notes every second."""

    EVERY_S = 1.0

    def __init__(self, seconds_max: float) -> None:
        self.series = Series()
        self._begin = self._noted = time.perf_counter()
        self._end = self._begin + seconds_max

    @property
    def is_over(self) -> bool:
        """The run has had its time."""
        return time.perf_counter() >= self._end

    def tell(self, messages: int) -> None:
        """Takes how many are through by now."""
        now = time.perf_counter()
        if now - self._noted >= self.EVERY_S:
            self._note(now, messages)

    def finish(self, messages: int) -> Series:
        """Ends the run; messages since the last point become a point."""
        if not self.series.points or messages > self.series.messages:
            self._note(time.perf_counter(), messages)
        return self.series

    def _note(self, now: float, messages: int) -> None:
        self._noted = now
        self.series.points.append(Point(now - self._begin, messages))
