"""Measures what a load of few rows costs in CPU, time and memory. There are two cases: a timer
starts the loader for each load, or the loader keeps running (`skidway load run --every`).

The benchmark compares three sides. The first is Skidway's loader with default settings. With these
settings, a load of few rows does not use Spark. The second is Skidway's loader with
`spark.above.offsets: 0`, which runs every load on Spark. The third is the peer, Spark's own Kafka
source. All sides use the version of Spark that the tests of `format("skidway")` use, with the
master `local[2]`. All sides read topics of one Apache Kafka, and write to a local directory.
The figures for CPU and memory include all processes of a side: Python, the JVM, and Python workers.
Unlike Skidway, the peer neither drops repeated records nor counts the records.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.loading import (
    PARTITIONS,
    PEER,
    Topic,
    ask_peer,
    configuration,
    peer,
    program,
    site,
    to_its_end,
)
from bench.machine import Family
from bench.measure import OURS, SidesRow, SidesTable
from bench.scale import scaled
from bench.sites import skidway
from skidway.loader.runs.textfile import LastRun
from support.processes import eventually

ROWS = scaled(40_000, 4_000)
"""The number of rows in a load. All rows of a load belong to the same hour."""
COLD_ROUNDS = scaled(3, 1)
WARM_UP = scaled(5, 1)
LOADS = scaled(25, 2)
"""The number of loads that are measured, after the first `WARM_UP` loads."""
EMPTY_RUNS = scaled(5, 1)
EVERY_S = scaled(6.0, 3.0)
WITHIN_S = 300.0
START_MS = 1_699_999_200_000
ON_SPARK = "skidway on Spark"
WAYS = {OURS: {}, ON_SPARK: {"spark_above_offsets": 0}}
"""Skidway's loader is measured in two ways: with default settings, and with every load on Spark.
For each of the two, these are the settings that differ from the defaults."""


@dataclass(slots=True)
class GrowingTopic(Topic):
    """A topic that grows by `rows` records for each load. end: the number of records in each
    partition."""

    rows: int = ROWS
    end: int = 0

    def grow(self) -> None:
        """Sends the records of one load. Their event times are within one minute."""
        count = self.rows // PARTITIONS
        i = np.arange(self.end, self.end + count)
        stamps = START_MS + i * 60_000 // count
        self.send((partition, i, stamps) for partition in range(PARTITIONS))
        self.end += count


@dataclass(slots=True)
class Costs:
    """What the loads of one side (Skidway's loader in one of two ways, or the peer) cost. early_mb,
    late_mb: the memory of all processes of the side after the first loads, and after all loads."""

    cpu_s: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    empty_cpu_s: list[float] = field(default_factory=list)
    early_mb: float = 0.0
    late_mb: float = 0.0


def run() -> SidesTable:
    """Measures for each compared loader the cost of a load, in a program that is started for this
    load and in a program that keeps running."""
    title = f"small: a load of {ROWS:,} rows, 4 partitions, one hour"
    table = SidesTable(title, (OURS, ON_SPARK, PEER))
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with site(folder) as (address, schemas):
            alone = measured_alone(folder, GrowingTopic(address, schemas))
            staying = {
                way: stays(folder, GrowingTopic(address, schemas), more)
                for way, more in WAYS.items()
            }
            staying[PEER] = peer_stays(folder, GrowingTopic(address, schemas))
    for what, found, unit, figure in (
        ("started for the load: CPU", alone, "s", lambda x: x.cpu_s),
        ("started for the load: time", alone, "s", lambda x: x.seconds),
        ("a program that stays: CPU of a load", staying, "s", lambda x: x.cpu_s),
        ("a program that stays: time of a load", staying, "s", lambda x: x.seconds),
        ("a program that stays: CPU without new rows", staying, "s", lambda x: x.empty_cpu_s),
        (f"memory after {WARM_UP} loads", staying, "MB", lambda x: [x.early_mb]),
        (f"memory after {WARM_UP + LOADS} loads", staying, "MB", lambda x: [x.late_mb]),
    ):
        table.add(SidesRow(what, unit, _by_side(found, figure)))
    return table


def measured_alone(folder: Path, topic: GrowingTopic) -> dict[str, Costs]:
    """Runs, for each compared loader in turn, a program that starts, loads all rows of a topic, and
    ends. Returns the costs of each loader."""
    topic.grow()
    found = {side: Costs() for side in (*WAYS, PEER)}
    for _ in range(COLD_ROUNDS):
        for side, more in WAYS.items():
            config = configuration(folder, topic.address, topic.schemas, topic.name, **more)
            _alone(folder, skidway("load", "run", "--config", str(config)), "", found[side])
        _alone(folder, peer(folder, topic, "1g"), f"0 {topic.end}\n", found[PEER])
    return found


def stays(folder: Path, topic: GrowingTopic, more: Mapping[str, int]) -> Costs:
    """Measures a loader that keeps running: first its loads of new rows, then its runs while there
    are no new rows."""
    with ResidentLoader.started(folder, topic, EVERY_S, more) as loader:
        costs = _loads(loader.load, loader.family)
        for _ in range(EMPTY_RUNS):
            before = loader.family.cpu_seconds()
            loader.run()
            costs.empty_cpu_s.append(loader.family.cpu_seconds() - before)
    return costs


@dataclass(slots=True)
class ResidentLoader:
    """A loader that keeps running. textfile: the file to which the loader writes the metrics of its
    last run. output: the directory into which it loads."""

    family: Family
    topic: GrowingTopic
    textfile: Path
    output: Path
    _last: LastRun | None = None

    @classmethod
    @contextlib.contextmanager
    def started(
        cls, folder: Path, topic: GrowingTopic, every_s: float, more: Mapping[str, int]
    ) -> Iterator[ResidentLoader]:
        """Starts a loader, and waits for the end of its first run. more: further settings of the
        loader."""
        textfile = folder / f"{topic.name}.prom"
        settings = {"metrics_textfile": str(textfile), **more}
        topic.grow()
        config = configuration(folder, topic.address, topic.schemas, topic.name, **settings)
        command = skidway("load", "run", "--every", f"{every_s:g}s", "--config", str(config))
        with program(command, folder) as family:
            loader = cls(family, topic, textfile, config.with_suffix(".rows"))
            loader.run()
            yield loader

    def load(self) -> float:
        """Adds rows to the topic, and waits until they are loaded. Returns how many seconds the
        loader took."""
        self.topic.grow()
        rows, seconds = 0.0, 0.0
        while rows < self.topic.rows:  # a run may load only a part of the new rows
            run = self.run()
            rows += run.rows or 0.0
            if run.rows:
                seconds += (run.end or 0.0) - (run.start or 0.0)
        return seconds

    def run(self) -> LastRun:
        """Waits for the end of the loader's next run, and returns its metrics."""
        self._last = _next_run(self.textfile, self._last)
        return self._last


def peer_stays(folder: Path, topic: GrowingTopic) -> Costs:
    """Measures a Spark session that keeps running, and loads new rows with Spark's own source."""
    with program(peer(folder, topic, "1g"), folder, answers=True) as family:

        def load() -> float:
            first = topic.end
            topic.grow()
            return ask_peer(family, first, topic.end)[0]

        return _loads(load, family)


def _loads(load: Callable[[], float], family: Family) -> Costs:
    """Makes loads, and measures those after the warm-up. load: makes one load, and returns how many
    seconds it took."""
    costs = Costs()
    for number in range(1, WARM_UP + LOADS + 1):
        before = family.cpu_seconds()
        seconds = load()
        if number == WARM_UP:
            costs.early_mb = family.resident_mb()
        elif number > WARM_UP:
            costs.cpu_s.append(family.cpu_seconds() - before)
            costs.seconds.append(seconds)
    costs.late_mb = family.resident_mb()
    print(f"{statistics.median(costs.cpu_s):.3g} CPU s a load, {costs.late_mb:.0f} MB", flush=True)
    return costs


def _alone(folder: Path, command: Sequence[str], given: str, costs: Costs) -> None:
    begin = time.perf_counter()
    with program(command, folder) as family:
        assert family.process.stdin is not None
        family.process.stdin.write(given.encode())
        family.process.stdin.close()
        to_its_end(family)
        costs.seconds.append(time.perf_counter() - begin)
        costs.cpu_s.append(family.cpu_seconds())
        print(f"{costs.cpu_s[-1]:.3g} CPU s, {costs.seconds[-1]:.3g} s", flush=True)


def _next_run(textfile: Path, last: LastRun | None) -> LastRun:
    """Waits until the loader's next run has ended, and returns the metrics of this run. Raises
    RuntimeError if the run failed, and NotReady if it did not end in time."""

    def ended() -> LastRun | None:
        found = LastRun.read(textfile)
        is_new = last is None or found.end != last.end
        return found if is_new and (found.end or 0.0) >= (found.start or 0.0) > 0.0 else None

    found = eventually(ended, within_s=WITHIN_S, every_s=0.02, what="a run has ended")
    assert isinstance(found, LastRun)
    if found.status:
        raise RuntimeError(f"a run ended with status {found.status:.0f}")
    return found


def _by_side(
    found: Mapping[str, Costs], figure: Callable[[Costs], Sequence[float]]
) -> dict[str, tuple[float, ...]]:
    return {side: tuple(figure(costs)) for side, costs in found.items() if figure(costs)}
