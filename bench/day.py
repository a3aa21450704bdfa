"""Measures a day of small loads by one loader that keeps running. Does the loader need more memory,
or more CPU time for a load, at the end of the day than at its beginning? No other system is
measured.

The rows of each load have event times within one minute, as if the loader loaded once a minute. To
save time, the loader begins a run every EVERY_S seconds.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Final

from bench.loading import WITHIN_S, site
from bench.measure import SidesRow, SidesTable
from bench.scale import scaled
from bench.small import GrowingTopic, ResidentLoader
from skidway.loader.state import chain, operations
from skidway.loader.store import open_store
from support.processes import eventually

LOADS: Final = scaled(1_440, 8)
ROWS: Final = 4_000
"""The number of rows in a load."""
EVERY_S: Final = 1.0
STEPS: Final = 4
COLUMNS: Final = tuple(f"{number}/{STEPS} of the day" for number in range(1, STEPS + 1))
MEDIAN_OF: Final = 100
"""The reported CPU time is the median of the last MEDIAN_OF loads of a step (a quarter of the day),
or of all its loads if a step has fewer."""


def run() -> SidesTable:
    """Measures memory, and CPU time for a load, at the end of each quarter of the day."""
    table = SidesTable(f"day: {LOADS:,} loads of {ROWS:,} rows by one loader", COLUMNS)
    cpu_s, memory = {}, {}
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with (
            site(folder) as (address, schemas),
            ResidentLoader.started(
                folder, GrowingTopic(address, schemas, rows=ROWS), EVERY_S, {}
            ) as loader,
        ):
            for column in COLUMNS:
                cpu_s[column] = (step(loader),)
                memory[column] = (loader.family.resident_mb(),)
                print(f"{column}: {cpu_s[column]}, {memory[column]}", flush=True)
    table.add(SidesRow("CPU of a load", "s", cpu_s))
    table.add(SidesRow("memory of the loader", "MB", memory))
    return table


def step(loader: ResidentLoader) -> float:
    """Makes the loads of a step (a quarter of the day). Returns the median of their CPU seconds."""
    cpu_s: list[float] = []
    for _ in range(LOADS // STEPS):
        before = loader.family.cpu_seconds()
        loader.topic.grow()
        eventually(lambda: is_loaded(loader), within_s=WITHIN_S, what="all rows are loaded")
        cpu_s.append(loader.family.cpu_seconds() - before)
    return statistics.median(cpu_s[-MEDIAN_OF:])


def is_loaded(loader: ResidentLoader) -> bool:
    """Whether the newest manifest covers all records of the topic."""
    store = open_store(str(loader.output))
    manifest = operations.run(chain.newest_manifest(loader.topic.name), store)
    ends = [] if manifest is None else [each.end for each in manifest.partitions]
    return min(ends, default=0) >= loader.topic.end
