"""Computes figures that say how far a run has come. These figures are for the operator's terminal,
for the log, for the metrics, and for the run's note. This note is a file in the output, and
`load status` shows the note's content (state/run_notes.py).

Spark reports only how many slices have ended, not which slices. If n slices have ended, the run
counts the records of the n slices that began first. All slices have the same size
(`slice.records`), except the last slice of a partition. The counted number is wrong by at most the
number of records in all slices that are running. When all slices have ended, the counted number is
exact.

The counters for `/metrics` count from the start of the program, which may do many runs (`--every`).
Between runs, the gauges keep the figures of the last run that had something to load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Counter, Gauge

from skidway.clock import Clock
from skidway.loader.planning.plan import Planned, Slice
from skidway.loader.runs.pace import Pace

if TYPE_CHECKING:  # programs without Spark import this module, too
    from skidway.loader.spark.runner import Progress
    from skidway.loader.state.run_notes import OwnNote

LOAD: Final = "load"
REWRITE: Final = "rewrite"
MARK: Final = "mark"
COMPACT: Final = "compact"
RELOAD: Final = "reload"

TAKEN: Final = Gauge(
    "skidway_loader_run_records", "Records that the run has taken from the topic.", ["topic"]
)
EXPECTED: Final = Gauge(
    "skidway_loader_run_expected_records", "Records that the run is to take.", ["topic"]
)
LOADS: Final = Counter("skidway_loader_loads", "Loads that this program has committed.")
ROWS: Final = Counter("skidway_loader_rows", "Rows that this program has committed.")
REJECTS: Final = Counter(
    "skidway_loader_rejects", "Rejects that this program has committed.", ["topic", "reason"]
)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that say how far a run has come.

    step: `load`, `rewrite` (older files get the columns of a new schema), `mark` (complete hours
        get `_SUCCESS`, and their files are put together), `compact` or `reload`.
    load: in the step `load`, the number of the load.
    records: how many of the `records_total` records this run has loaded. The records of a slice
        count when the slice has ended, even before the load is committed.
    records_total: how many records of the topic were not loaded at the start of the run. This field
        and `records` are None in all steps except `load`.
    records_per_second: None in all steps except `load`, and as long as no rate is known.
    seconds_left: None as long as no rate is known.
    slices: how many of the `slices_total` tasks of this load have ended. In all steps except `load`
        and `reload`, a task rewrites a group of files.
    loads, rows: how many loads and rows of all topics the run has committed so far.
    """

    topic: str
    step: str
    load: int | None = None
    records: int | None = None
    records_total: int | None = None
    records_per_second: int | None = None
    seconds_left: int | None = None
    slices: int = 0
    slices_total: int = 0
    loads: int = 0
    rows: int = 0

    def document(self) -> dict[str, Any]:
        """Returns the figures as the fields of a JSON object."""
        return asdict(self)


Shown = Callable[[Figures], None]
"""A function that is called with the figures whenever tasks report progress (on Spark, several
times a second), and decides itself when to show them."""


class RunProgress:
    """Computes the figures of one run, passes them to the function that shows them, and keeps the
    run's note (state/run_notes.py) up to date.
    """

    def __init__(self, clock: Clock, shown: Shown, note: OwnNote | None = None) -> None:
        self._clock, self._shown, self._note = clock, shown, note
        self._totals: dict[str, int] = {}
        self._pace, self._paced = Pace(), ("", "")
        self._loads = self._rows = 0

    def load(
        self, topic: str, load: int, whole: Sequence[Planned], slices: Sequence[Slice]
    ) -> Progress:
        """Begins to show the figures of a load. Returns a function; the caller must pass to it the
        number of ended tasks and the number of all tasks. whole: the ranges of the topic that the
        run still has to load. slices: the part of `whole` that this load reads, in the order in
        which the tasks begin."""
        left = sum(each.end - each.first for each in whole)
        total = self._totals[topic] = max(self._totals.get(topic, 0), left)
        sizes = (each.end - each.first for each in slices)
        ends = list(accumulate(sizes, initial=total - left))

        def show(done: int, of: int) -> None:
            # When some slices run a second time, `done` and `of` count only these slices. All other
            # slices have ended by then.
            ended = min(max(len(slices) - of + done, 0), len(slices))
            rate, left_s = self._measure((topic, LOAD), ends[ended], total)
            self._tell(
                Figures(
                    topic, LOAD, load, ends[ended], total, rate, left_s, ended, len(slices),
                    self._loads, self._rows,
                )
            )  # fmt: skip

        if self._paced == (topic, LOAD):
            show(0, len(slices))
        else:  # Spark may have to start first, so the rate is measured from the first task on
            counts = {"slices_total": len(slices), "loads": self._loads, "rows": self._rows}
            self._say(Figures(topic, LOAD, load, ends[0], total, **counts))
        return show

    def groups(self, topic: str, step: str) -> Progress:
        """Begins to show the figures of a step that loads no new records. The tasks of the step
        rewrite groups of files, or read slices again. Returns a function; the caller must pass to
        it the number of ended tasks and the number of all tasks."""

        def show(done: int, of: int) -> None:
            _, left_s = self._measure((topic, step), done, of)
            self._tell(
                Figures(
                    topic, step, seconds_left=left_s, slices=done, slices_total=of,
                    loads=self._loads, rows=self._rows,
                )
            )  # fmt: skip

        return show

    def committed(self, rows: int, loads: int = 1) -> None:
        """Adds the rows and loads that were just committed to the figures and to the metrics."""
        self._loads += loads
        self._rows += rows
        LOADS.inc(loads)
        ROWS.inc(rows)

    def rejected(self, topic: str, reasons: Mapping[str, int]) -> None:
        """Counts the rejects that a load has committed, separately for each reason."""
        for reason, count in reasons.items():
            REJECTS.labels(topic, reason).inc(count)

    def _measure(self, of: tuple[str, str], done: int, total: int) -> tuple[int | None, int | None]:
        if of != self._paced:
            self._pace, self._paced = Pace(), of
        now_s = self._clock.monotonic()
        self._pace.note(now_s, done)
        rate = self._pace.per_second(now_s)
        left_s = self._pace.seconds_left(now_s, total - done)
        return _rounded(rate), _rounded(left_s)

    def _tell(self, figures: Figures) -> None:
        if figures.records is not None and figures.records_total is not None:
            TAKEN.labels(figures.topic).set(figures.records)
            EXPECTED.labels(figures.topic).set(figures.records_total)
        self._shown(figures)
        self._say(figures)

    def _say(self, figures: Figures) -> None:
        if self._note is not None:
            self._note.say(figures.document())


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)
