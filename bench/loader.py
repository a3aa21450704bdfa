"""Compares loads of whole topics into hourly zstd Parquet: `skidway load run`, and Spark's own
Kafka source with from_avro.

Both sides read the same records from Apache Kafka, run on the same Spark with local[2], and
write to a local directory. The peer neither removes repeated records nor counts records.

Two costs are measured. The first is the cost of a load of FEW rows, including the start of Spark:
even the smallest load costs this much. The second is the cost of ROWS - FEW further rows. The two
sides measure the second cost differently:

    ours    loads FEW rows in one process, and ROWS rows in another process. The difference between
            their CPU times is the CPU time of the further rows. The second process prints its rows
            per second, without the start of Spark
    peer    loads the further rows in the session that has loaded FEW rows, so the JVM is warm
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bench.loading import (
    NARROW,
    PEER,
    WIDE,
    Ints,
    Topic,
    ask_peer,
    configuration,
    peer,
    program,
    site,
    to_its_end,
)
from bench.measure import Row, Table
from bench.scale import scaled
from bench.sites import skidway

ROWS: Final = scaled(10_000_000, 80_000)
FEW: Final = scaled(40_000, 16_000)
TOPICS: Final = scaled(((WIDE, 4), (WIDE, 1), (NARROW, 4), (NARROW, 1)), ((NARROW, 4),))
"""The schema and the number of partitions of each topic."""
BATCH: Final = 4_000
ROUNDS: Final = scaled(2, 1)
START_MS: Final = 1_700_000_000_000
SPAN_MS: Final = 3 * 3_600_000
"""The event times of a topic's records span three hours."""


@dataclass(slots=True)
class Costs:
    """What the loads of one side (Skidway's loader or the peer) cost, with a value for each round.
    rows_s, rows_cpu_s: rows per second and per CPU second, without the program's start. few_s,
    few_cpu_s: seconds and CPU seconds of the load of FEW rows, with the program's start. memory_mb:
    the greatest memory of all processes of the side together."""

    rows_s: list[float] = field(default_factory=list)
    rows_cpu_s: list[float] = field(default_factory=list)
    few_s: list[float] = field(default_factory=list)
    few_cpu_s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)


def run() -> Table:
    """Measures Skidway's loader and the peer in turn, with two schemas, on topics with four
    partitions and on topics with one partition."""
    table = Table(f"loader: {ROWS:,} rows to hourly zstd Parquet; and a load of {FEW:,} rows")
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with site(folder) as (address, schemas):
            for schema, partitions in TOPICS:
                topic, few = (Topic(address, schemas, schema, partitions) for _ in range(2))
                topic.send(batches(ROWS, partitions))
                few.send(batches(FEW, partitions))
                ours, theirs = Costs(), Costs()
                for _ in range(ROUNDS):
                    load(folder, topic, few, ours)
                    load_with_peer(folder, topic, theirs)
                plural = "s" if partitions > 1 else ""
                what = f"{len(schema['fields'])} columns, {partitions} partition{plural}"
                add(table, what, ours, theirs)
    return table


def add(table: Table, what: str, ours: Costs, theirs: Costs) -> None:
    """Adds to the table the costs of one topic. what: a description of the topic."""
    for name, unit, our_values, their_values in (
        (what, "rows/s", ours.rows_s, theirs.rows_s),
        (what, "rows/CPU s", ours.rows_cpu_s, theirs.rows_cpu_s),
        (f"{what}: a small load (less is better)", "s", ours.few_s, theirs.few_s),
        (f"{what}: a small load (less is better)", "CPU s", ours.few_cpu_s, theirs.few_cpu_s),
        (f"{what}: memory (less is better)", "MB", ours.memory_mb, theirs.memory_mb),
    ):
        table.add(Row(name, unit, tuple(our_values), tuple(their_values), PEER))


def batches(rows: int, partitions: int) -> Iterator[tuple[int, Ints, Ints]]:
    """Yields batches of records. Each batch is a tuple: its partition, and the numbers and event
    times of its records. A record is made from its number. Numbers and event times rise, and each
    batch goes to the next partition."""
    for first in range(0, rows, BATCH):
        numbers = np.arange(first, first + BATCH)
        yield first // BATCH % partitions, numbers, START_MS + numbers * SPAN_MS // rows


def load(folder: Path, topic: Topic, few: Topic, costs: Costs) -> None:
    """Loads both topics with `skidway load run`, and adds the costs of this round to `costs`. few:
    a topic with FEW records."""
    found = []
    for each in (few, topic):
        more = {"spark_above_offsets": 0}  # so that Spark loads even few rows
        config = configuration(folder, each.address, each.schemas, each.name, **more)
        begin = time.perf_counter()
        command = skidway("load", "run", "--json", "--config", str(config))
        with program(command, folder, answers=True) as family:
            memory_mb = to_its_end(family)
            found.append((time.perf_counter() - begin, family.cpu_seconds()))
            assert family.process.stdout is not None
            summary = json.loads(family.process.stdout.read())
        shutil.rmtree(config.with_suffix(".rows"))
    costs.few_s.append(found[0][0])
    costs.few_cpu_s.append(found[0][1])
    costs.rows_s.append(summary["rows_per_second"])
    costs.rows_cpu_s.append((ROWS - FEW) / (found[1][1] - found[0][1]))
    costs.memory_mb.append(memory_mb)


def load_with_peer(folder: Path, topic: Topic, costs: Costs) -> None:
    """Loads the topic with Spark's own source, and adds the costs of this round to `costs`."""
    few, end = FEW // topic.partitions, ROWS // topic.partitions
    command = peer(folder, topic, memory="3g")
    begin = time.perf_counter()
    with program(command, folder, answers=True) as family:
        ask_peer(family, 0, few)
        costs.few_s.append(time.perf_counter() - begin)
        costs.few_cpu_s.append(family.cpu_seconds())
        seconds, memory_mb = ask_peer(family, few, end)
        cpu_s = family.cpu_seconds() - costs.few_cpu_s[-1]
    shutil.rmtree(command[-1])
    costs.rows_s.append((ROWS - FEW) / seconds)
    costs.rows_cpu_s.append((ROWS - FEW) / cpu_s)
    costs.memory_mb.append(memory_mb)
