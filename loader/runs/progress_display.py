"""Shows the figures of a run to people: a line on a terminal, or events in the log."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from typing import Final

from skidway import log
from skidway.cli.output import Progress
from skidway.clock import Clock
from skidway.loader.runs.run_progress import LOAD, RELOAD, Figures

LOG_EVERY_S: Final = 10.0
EVENT: Final = "load_progress"
"""The name of the log event that has the figures of a run's progress. Skidway's demo waits for this
event."""

_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))

_log = log.get(__name__)


class LoggedProgress:
    """Logs a run's figures when a step (such as the load of one topic) begins, and after that at
    most once in `LOG_EVERY_S` seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._step: tuple[object, ...] = ()
        self._next_s = 0.0

    def __call__(self, figures: Figures) -> None:
        step, now_s = (figures.topic, figures.step, figures.load), self._clock.monotonic()
        if step == self._step and now_s < self._next_s:
            return
        self._step, self._next_s = step, now_s + LOG_EVERY_S
        _log.info(EVENT, **figures.document())


class ProgressLine:
    """A progress bar on the terminal: one line for each topic that has something to load. If the
    run does several steps for a topic, such as rewriting files and loading, each step has its own
    line."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._lines = ExitStack()
        self._line: Progress | None = None

    def __call__(self, figures: Figures) -> None:
        done, total = figures.slices, figures.slices_total
        if figures.step == LOAD:
            done, total = figures.records or 0, figures.records_total or 0
        of = (figures.topic, figures.step, total)
        if self._line is None or of != self._of:
            self.end()
            self._of = of
            self._line = self._lines.enter_context(Progress(figures.topic, total))
        self._line.show(done, words(figures))

    def end(self) -> None:
        """Ends the line on the terminal, if one was begun."""
        self._lines.close()
        self._line = None


def words(figures: Figures) -> str:
    """Returns the figures in words, without the counts that a bar shows."""
    if figures.step != LOAD:
        unit = "slices" if figures.step == RELOAD else "groups of files"
        return f"{unit} ({figures.step}), {_left(figures.seconds_left)}"
    rate = figures.records_per_second
    shown = "unknown rate" if rate is None else f"{rate:,}/s"
    slices = f"{figures.slices:,} of {figures.slices_total:,} slices"
    return f"records, {shown}, {_left(figures.seconds_left)}, load {figures.load}: {slices}"


def duration(seconds: int) -> str:
    """Returns a duration for people: `45s`, `3m 20s`, `2h 5m`, `4d 1h`."""
    for (size, unit), (part, below) in pairwise(_UNITS):
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size}{unit}" + (f" {rest}{below}" if rest else "")
    return f"{seconds}s"


def _left(seconds: int | None) -> str:
    return "time left unknown" if seconds is None else f"{duration(seconds)} left"
