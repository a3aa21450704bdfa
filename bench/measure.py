"""Rounds in turn, medians, ratios; CSV for machines and Markdown for people."""

from __future__ import annotations

import csv
import datetime
import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.machine import cpu_seconds

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: a figure of ours and of the peer, measured in turn."""

    name: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    peer_name: str
    note: str = ""

    @property
    def ratio(self) -> float:
        """Median of ours over median of the peer's; infinite where the peer's is nothing."""
        peer = statistics.median(self.peer)
        return statistics.median(self.ours) / peer if peer else math.inf


@dataclass(slots=True)
class Table:
    """The rows of one benchmark."""

    title: str
    rows: list[Row] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The benchmark's name: what stands before the colon of the title."""
        return self.title.partition(":")[0]

    def add(self, row: Row) -> None:
        """Take a row in, and show it at once."""
        self.rows.append(row)
        print(line(row), flush=True)

    def markdown(self) -> str:
        head = "| what | ours (min-max) | peer (min-max) | ratio |\n|---|---|---|---|\n"
        return f"### {self.title}\n\n{head}" + "".join(f"{line(row)}\n" for row in self.rows)

    def save(self, machine: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / f"{self.name}.csv").open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["date", "machine", "what", "unit", "side", "round", "value"])
            today = datetime.datetime.now(datetime.UTC).date().isoformat()
            for row in self.rows:
                for side, values in (("skidway", row.ours), (row.peer_name, row.peer)):
                    for number, value in enumerate(values, 1):
                        writer.writerow(
                            [today, machine, row.name, row.unit, side, number, f"{value:.4g}"]
                        )


def in_turn(
    sides: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 0
) -> dict[str, tuple[float, ...]]:
    """Measure every side once per round, in turn: a drift of the machine meets all of them.

    `warm_up` rounds before are not counted: compilers at run time have then seen the work.
    """
    values: dict[str, list[float]] = {name: [] for name in sides}
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
    """What `in_turn` finds, and beside it the CPU seconds of each side's server per unit of work.

    The second tells the servers apart where their common client is what limits the first.
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
    """Median, and least and greatest behind it."""
    return f"{number(statistics.median(values))} ({number(min(values))}-{number(max(values))})"


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
