"""Measures in rounds, computes medians and ratios, and writes results as CSV and as Markdown.

A side is one of the systems that a benchmark compares. A round measures every side once.
"""

from __future__ import annotations

import csv
import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from bench.machine import cpu_seconds

Found = TypeVar("Found")

RESULTS = Path(__file__).parent / "results"
KAFKA = "Apache Kafka 4.4"
OURS = "skidway"
"""The name of Skidway's side in results. (A side is one of the compared systems.)"""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one side (one of the compared systems) in one row, with a value for each
    round."""

    what: str
    unit: str
    side: str
    values: tuple[float, ...]


class Result(Protocol):
    """The result of one benchmark with any number of compared systems."""

    title: str

    @property
    def name(self) -> str:
        """The benchmark's name, which is the part of the title before the colon."""

    def markdown(self) -> str:
        """The result as a Markdown table."""

    def measured(self) -> Iterator[Measured]:
        """Every value, for CSV and plots, row by row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: the values of one figure for Skidway and for the peer, one value for each
    round."""

    name: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    peer_name: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """Skidway's median divided by the peer's median; infinite if the peer's median is 0."""
        peer = statistics.median(self.peer)
        return statistics.median(self.ours) / peer if peer else math.inf


Runs = Mapping[str, Sequence[Mapping[str, float]]]
"""The runs of each side (compared system). A run is a dictionary of figures by their names."""


@dataclass(slots=True)
class Table:
    """The table of a benchmark in which each row compares Skidway with one peer. Each row has the
    ratio of the two."""

    title: str
    rows: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str:
        return _name(self.title)

    def add(self, row: Row) -> None:
        """Adds a row, and prints it at once."""
        self.rows.append(row)
        print(line(row), flush=True)

    def beside(self, name: str, unit: str, runs: Runs, figure: str, peer_name: str = KAFKA) -> None:
        """Adds a row for one figure, with the values from all runs of "skidway" and of "kafka"."""
        ours, peer = (tuple(each[figure] for each in runs[side]) for side in ("skidway", "kafka"))
        self.add(Row(name, unit, ours, peer, peer_name))

    def markdown(self) -> str:
        head = "| what | ours (min-max) | peer (min-max) | ratio |\n|---|---|---|---|\n"
        return f"### {self.title}\n\n{head}" + "".join(f"{line(row)}\n" for row in self.rows)

    def measured(self) -> Iterator[Measured]:
        for row in self.rows:
            yield Measured(row.name, row.unit, OURS, row.ours)
            yield Measured(row.name, row.unit, row.peer_name, row.peer)


@dataclass(frozen=True, slots=True)
class SidesRow:
    """One row of a table with several sides (compared systems): the values of one figure, by side.
    If a side has no value, `sides` leaves the side out."""

    name: str
    unit: str
    sides: Mapping[str, tuple[float, ...]]
    note: str = ""


@dataclass(slots=True)
class SidesTable:
    """The table of a benchmark that compares several systems (the sides), with one column for
    each."""

    title: str
    sides: tuple[str, ...]
    rows: list[SidesRow] = field(default_factory=list)

    @property
    def name(self) -> str:
        return _name(self.title)

    def add(self, row: SidesRow) -> None:
        self.rows.append(row)
        print(self._line(row), flush=True)

    def markdown(self) -> str:
        columns = " | ".join(("what", *self.sides))
        head = f"| {columns} |\n|{'---|' * (len(self.sides) + 1)}\n"
        lines = "".join(f"{self._line(row)}\n" for row in self.rows)
        return f"### {self.title}\n\n{head}{lines}"

    def measured(self) -> Iterator[Measured]:
        for row in self.rows:
            for side in self.sides:
                if side in row.sides:
                    yield Measured(row.name, row.unit, side, row.sides[side])

    def _line(self, row: SidesRow) -> str:
        cells = (spread(row.sides[side]) if side in row.sides else "" for side in self.sides)
        note = f" ({row.note})" if row.note else ""
        return f"| {row.name}, {row.unit}{note} | {' | '.join(cells)} |"


def save(table: Result, machine: str) -> None:
    """Writes every value of a table to bench/results, as CSV."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{table.name}.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["date", "machine", "what", "unit", "side", "round", "value"])
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        for each in table.measured():
            for at, value in enumerate(each.values, 1):
                writer.writerow(
                    [today, machine, each.what, each.unit, each.side, at, f"{value:.4g}"]
                )


def in_turn(
    sides: Mapping[str, Callable[[], Found]], rounds: int, warm_up: int = 0
) -> dict[str, tuple[Found, ...]]:
    """Measures every side (compared system) once in each round, so that all sides are affected if
    the machine becomes slower or faster. Returns each side's results, one for each round.

    The first `warm_up` rounds are not counted, because JIT compilers are still compiling then.
    """
    values: dict[str, list[Found]] = {name: [] for name in sides}
    for _ in range(warm_up + rounds):
        for name, measure in sides.items():
            values[name].append(measure())
    return {name: tuple(found[warm_up:]) for name, found in values.items()}


def with_cost(
    sides: Mapping[str, Callable[[], float]],
    pids: Mapping[str, int],
    rounds: int,
    work: float,
    warm_up: int = 0,
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    """Measures as `in_turn` does. Returns the result of `in_turn`, and the CPU seconds that the
    server of each compared system needs for each unit of work. All servers get their load from the
    same client. So even if the client limits the throughput, the CPU seconds show the difference
    between the servers.
    """
    costs: dict[str, list[float]] = {name: [] for name in sides}

    def counted(name: str) -> Callable[[], float]:
        def measure() -> float:
            before = cpu_seconds(pids[name])
            found = sides[name]()
            costs[name].append((cpu_seconds(pids[name]) - before) / work)
            return found

        return measure

    found = in_turn({name: counted(name) for name in sides}, rounds, warm_up)
    return found, {name: tuple(values[warm_up:]) for name, values in costs.items()}


def line(row: Row) -> str:
    note = f" ({row.note})" if row.note else ""
    ours, peer = spread(row.ours), spread(row.peer)
    return f"| {row.name}{note} | {ours} {row.unit} | {row.peer_name}: {peer} | {row.ratio:.2f} |"


def spread(values: tuple[float, ...]) -> str:
    """The median as text. If there are several values, the text also has the smallest and the
    largest value."""
    if len(values) == 1:
        return number(values[0])
    return f"{number(statistics.median(values))} ({number(min(values))}-{number(max(values))})"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _name(title: str) -> str:
    return title.partition(":")[0]
