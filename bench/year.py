"""Measures whether a load costs more when a loader has run for a long time. No other system is
measured.

There are two benchmarks. `resident` simulates 5,000 hosts for 40 hours, with a load each minute;
`year` simulates ten hosts for a year, with a load each hour. Each host writes twenty log files a
day, one after the other. The part of each load that runs in the Spark driver is done by the
loader's own code. Brokers and Spark tasks are simulated (year_load, year_fleet), so the figures are
those of the driver only. Times are CPU times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from bench.measure import SidesRow, SidesTable
from bench.scale import scaled

STEPS = 4
COLUMNS = tuple(f"{number}/{STEPS} of the time" for number in range(1, STEPS + 1))
FIGURES = (
    ("load", "a load", "ms"),
    ("begin", "of this, before the first task", "ms"),
    ("memory", "memory of the driver", "MB"),
    ("manifest", "a manifest", "KB"),
    ("manifests", "manifests", "files"),
    ("checkpoints", "checkpoints", "files"),
    ("tables", "files of tables", "files"),
    ("rows", "files of rows", "files"),
)


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a benchmark simulates. step: minutes between two loads. hours: one compaction merges the
    small files of this many hours."""

    title: str
    hosts: int
    step: int
    loads: int
    hours: int
    partitions: int = 12


def resident() -> SidesTable:
    """Runs the benchmark `resident`: a load each minute."""
    title = "resident: 5,000 hosts, 12 partitions, a load each minute for 40 hours"
    return measured(Simulated(title, scaled(5_000, 50), 1, scaled(2_400, 8), 1))


def year() -> SidesTable:
    """Runs the benchmark `year`: a load each hour."""
    title = "year: 10 hosts, 12 partitions, a load each hour for a year"
    return measured(Simulated(title, 10, 60, scaled(8_760, 48), 24))


def measured(simulated: Simulated) -> SidesTable:
    """Makes the loads in STEPS equal steps, and measures the figures at the end of each step."""
    table = SidesTable(simulated.title, COLUMNS)
    steps = list(figures(simulated))
    for key, what, unit in FIGURES:
        sides = {name: (each[key],) for name, each in zip(COLUMNS, steps, strict=True)}
        table.add(SidesRow(what, unit, sides))
    return table


def figures(each: Simulated) -> Iterator[dict[str, float]]:
    """The figures at the end of each step. The loads run in a separate process, so that only the
    driver's memory is measured."""
    arguments = (each.hosts, each.partitions, each.step, each.loads, STEPS, each.hours)
    with subprocess.Popen(
        [sys.executable, "-m", "bench.year_load", *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line.strip(), flush=True)
            yield json.loads(line)
    if process.returncode:
        raise RuntimeError(f"the loads ended with {process.returncode}")
