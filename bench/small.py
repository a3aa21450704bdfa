"""What a load of few rows costs in CPU, time and memory: if a timer starts the loader for each
load, and if the loader keeps running (`skidway load run --every`).

The benchmark compares three sides. The first is Skidway's loader with default settings, which loads
so few rows without Spark. The second is Skidway's loader with `spark.above.offsets: 0`, which runs
every load on Spark. The third is the peer, Spark's own Kafka source. All sides have the same
version of Spark (the version in which the tests of `format("skidway")` run), read topics of one
Apache Kafka 4.1, and write to a local directory with local[2]. CPU and memory are those of all
processes of a side: Python, JVM, Python workers. Unlike Skidway, the peer neither drops repeated
records nor counts the records.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bench.loader import (
    PARTITIONS,
    SPARK_ENVIRONMENT,
    configuration,
    create,
    send,
    site,
    spark_command,
)
from bench.machine import Family
from bench.measure import OURS, SidesRow, SidesTable
from bench.scale import scaled
from bench.sites import skidway
from skidway.kafka.client import Client, Producer
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.textfile import LastRun
from support import peers

ROWS = scaled(40_000, 4_000)
"""The number of rows in a load. All of them are of the same hour."""
COLD_ROUNDS = scaled(3, 1)
WARM_UP = scaled(5, 1)
LOADS = scaled(25, 2)
"""The number of loads that are measured, after the first `WARM_UP` loads."""
EMPTY_RUNS = scaled(5, 1)
EVERY_S = scaled(6.0, 3.0)
WITHIN_S = 300.0
START_MS = 1_699_999_200_000
ON_SPARK, PEER = "skidway on Spark", "Spark 4.3 kafka source + from_avro"
WAYS = {OURS: {}, ON_SPARK: {"spark_above_offsets": 0}}
"""The settings of Skidway's two ways to load."""


@dataclass(slots=True)
class Topic:
    """A topic that grows by ROWS records for each load. end: the number of records in each
    partition."""

    address: str
    schemas: str
    name: str = field(default_factory=lambda: f"bench-{time.time_ns()}")
    end: int = 0
    schema_id: int = 0

    def grow(self) -> None:
        """Sends the records of one load, a minute of event time."""
        if not self.schema_id:
            self.schema_id = create(self.address, self.schemas, self.name)
        count = ROWS // PARTITIONS
        i = np.arange(self.end, self.end + count)
        stamps = START_MS + i * 60_000 // count
        with Client(self.address) as client:
            producer = Producer(client)
            for partition in range(PARTITIONS):
                send(producer, TopicPartition(self.name, partition), i, stamps, self.schema_id)
            if not producer.flush(120_000):
                raise RuntimeError("the topic could not be filled")
        self.end += count


@dataclass(slots=True)
class Costs:
    """What the loads of one side cost. early_mb: the memory of all processes of the side after the
    first loads. late_mb: the same after all loads."""

    cpu_s: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    empty_cpu_s: list[float] = field(default_factory=list)
    early_mb: float = 0.0
    late_mb: float = 0.0


def run() -> SidesTable:
    """Measures for each side the cost of a load, in a program that is started for this load and in
    a program that keeps running."""
    title = f"small: a load of {ROWS:,} rows, 4 partitions, one hour"
    table = SidesTable(title, (OURS, ON_SPARK, PEER))
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with site(folder) as (address, schemas):
            alone = measured_alone(folder, Topic(address, schemas))
            staying = {
                way: stays(folder, Topic(address, schemas), more) for way, more in WAYS.items()
            }
            staying[PEER] = peer_stays(folder, Topic(address, schemas))
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


def measured_alone(folder: Path, topic: Topic) -> dict[str, Costs]:
    """Runs, for each side in turn, a program that starts, loads all rows of a topic, and ends."""
    topic.grow()
    found = {side: Costs() for side in (*WAYS, PEER)}
    for _ in range(COLD_ROUNDS):
        for side, more in WAYS.items():
            config = configuration(folder, topic.address, topic.schemas, topic.name, **more)
            _alone(skidway("load", "run", "--json", "--config", str(config)), "", found[side])
        _alone(_peer(folder, topic), f"0 {topic.end}\n", found[PEER])
    return found


def stays(folder: Path, topic: Topic, more: Mapping[str, int]) -> Costs:
    """Measures a loader that keeps running: first loads with new rows, then runs without new
    rows."""
    textfile = folder / f"{topic.name}.prom"
    settings = {"metrics_textfile": str(textfile), **more}
    topic.grow()
    config = configuration(folder, topic.address, topic.schemas, topic.name, **settings)
    command = skidway("load", "run", "--every", f"{EVERY_S:g}s", "--config", str(config))
    with _program(command, folder / f"{topic.name}.out") as family:
        last = _next_run(textfile, None)

        def load() -> float:
            nonlocal last
            topic.grow()
            rows, seconds = 0.0, 0.0
            while rows < ROWS:  # while the topic grows, a run may load a part
                last = _next_run(textfile, last)
                rows += last.rows or 0.0
                if last.rows:
                    seconds += (last.end or 0.0) - (last.start or 0.0)
            return seconds

        costs = _loads(load, family)
        for _ in range(EMPTY_RUNS):
            before = family.cpu_seconds()
            last = _next_run(textfile, last)
            costs.empty_cpu_s.append(family.cpu_seconds() - before)
    return costs


def peer_stays(folder: Path, topic: Topic) -> Costs:
    """Measures a Spark session that keeps running, and loads new rows with Spark's own source."""
    with _program(_peer(folder, topic), folder / "peer.out") as family:

        def load() -> float:
            first = topic.end
            topic.grow()
            assert family.process.stdin is not None
            assert family.process.stdout is not None
            family.process.stdin.write(f"{first} {topic.end}\n".encode())
            family.process.stdin.flush()
            return float(family.process.stdout.readline())

        return _loads(load, family)


def _peer(folder: Path, topic: Topic) -> list[str]:
    output = str(folder / f"spark-{time.time_ns()}")
    jars = peers.jars("spark-kafka")
    return spark_command(Path(sys.executable), jars, topic.address, topic.name, output, "stay")


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


def _alone(command: Sequence[str], given: str, costs: Costs) -> None:
    """Runs a program to its end, with the text `given` on its standard input, and adds what it cost
    to `costs`."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        process = _start(command, told.fileno())
        assert process.stdin is not None
        process.stdin.write(given.encode())
        process.stdin.close()
        family = Family(process)
        while process.poll() is None:
            family.cpu_seconds()  # keeps the figures of processes that end
            time.sleep(0.02)
        costs.seconds.append(time.perf_counter() - begin)
        costs.cpu_s.append(family.cpu_seconds())
        print(f"{costs.cpu_s[-1]:.3g} CPU s, {costs.seconds[-1]:.3g} s", flush=True)
        if process.returncode:
            told.seek(0)
            raise RuntimeError(told.read()[-3000:].decode(errors="replace"))


@contextlib.contextmanager
def _program(command: Sequence[str], log: Path) -> Iterator[Family]:
    """Runs a program in the background."""
    with log.open("wb") as told:
        process = _start(command, told.fileno())
    family = Family(process)
    try:
        yield family
    finally:
        process.terminate()
        process.wait(WITHIN_S)
        family.kill()


def _start(command: Sequence[str], errors: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        env=SPARK_ENVIRONMENT, start_new_session=True,
    )  # fmt: skip


def _next_run(textfile: Path, last: LastRun | None) -> LastRun:
    """Waits until the loader's next run has ended. Raises RuntimeError if the run failed or did not
    end in time."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        found = LastRun.read(textfile)
        is_new = last is None or found.end != last.end
        if is_new and found.end is not None and found.end >= (found.start or 0.0):
            if found.status:
                raise RuntimeError(f"a run ended with status {found.status:.0f}")
            return found
        time.sleep(0.02)
    raise RuntimeError("no run has ended")


def _by_side(
    found: Mapping[str, Costs], figure: Callable[[Costs], Sequence[float]]
) -> dict[str, tuple[float, ...]]:
    return {side: tuple(figure(costs)) for side, costs in found.items() if figure(costs)}
