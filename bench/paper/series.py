"""Records the progress of a run, with a point about every second, for the paper's figures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Point:
    """How many messages were sent or read when `seconds` seconds of the run had passed."""

    seconds: float
    messages: int


@dataclass(slots=True)
class Series:
    """The points of one run, from its first message to its last."""

    points: list[Point] = field(default_factory=list)

    @property
    def messages(self) -> int:
        return self.points[-1].messages if self.points else 0

    @property
    def rate(self) -> float:
        """Messages per second over the whole run."""
        return self.points[-1].messages / self.points[-1].seconds

    def rates(self) -> Iterator[tuple[int, float]]:
        """For each point, the messages so far, and the messages per second since the previous
        point."""
        before = Point(0.0, 0)
        for point in self.points:
            took = point.seconds - before.seconds
            yield point.messages, (point.messages - before.messages) / took
            before = point


class Stopwatch:
    """Records the series of a run in this process: the run calls `tell` often, and the stopwatch
    adds a point every second."""

    EVERY_S = 1.0

    def __init__(self, seconds_max: float) -> None:
        self.series = Series()
        self._begin = self._noted = time.perf_counter()
        self._end = self._begin + seconds_max

    @property
    def is_over(self) -> bool:
        """Whether the run has used up its time."""
        return time.perf_counter() >= self._end

    def tell(self, messages: int) -> None:
        """Tells the stopwatch how many messages were sent or read so far."""
        now = time.perf_counter()
        if now - self._noted >= self.EVERY_S:
            self._note(now, messages)

    def finish(self, messages: int) -> Series:
        """Ends the run, and returns its series. Adds a last point if messages were sent or read
        since the previous point."""
        if not self.series.points or messages > self.series.messages:
            self._note(time.perf_counter(), messages)
        return self.series

    def _note(self, now: float, messages: int) -> None:
        self._noted = now
        self.series.points.append(Point(now - self._begin, messages))
