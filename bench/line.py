"""Measures the time from the writing of a log line until a consumer gets it, and until its row can
be queried.

The benchmark runs the whole pipeline on this machine: agent, broker, mirror into an offline
cluster, and a loader that keeps running (`skidway load run --every`) and loads from the offline
cluster into a local directory. There are two cases: the loader loads every 10 seconds, or every
minute. Every line contains the time at which it was written. The first figure is the time until a
consumer of the datacenter's broker gets the line, which happens only after the broker has flushed
the line. The second figure is the time until the row's Parquet file is in its final directory. The
loader moves the file there by link(2) and unlink(2), which set its change time (ctime), so the
benchmark uses the change time.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from bench.agent import registry
from bench.agent_lines import hdfs
from bench.measure import SidesRow, SidesTable
from bench.produce import create
from bench.scale import scaled
from bench.sites import Program, ZooKeeper, answers, free_port, running, skidway, skidway_broker
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import decode
from skidway.kafka.types import TopicPartition
from support.processes import eventually

RATE = 1_000
"""The number of lines that are written per second."""
CASES = {"a load every 10 s": (10.0, 120_000), "a load every minute": (60.0, 300_000)}
"""For each case: how many seconds lie between the beginnings of two loads, and how many lines are
written."""
TRIAL_LINES = 10_000
TICK_S = 0.01
WITHIN_S = 120.0
TOPIC, CLUSTER = "lines", "offline"


def run() -> SidesTable:
    """Measures percentiles of the two times (see the module's docstring), in both cases."""
    table = SidesTable(f"line: one line on its way, {RATE:,} lines a second", tuple(CASES))
    found = {case: delays(every_s, count) for case, (every_s, count) in CASES.items()}
    for at, what in enumerate(("to a consumer of the broker", "to a row")):
        cuts = {
            case: statistics.quantiles(each[at], n=1000, method="inclusive")
            for case, each in found.items()
        }
        for percentile, cut in (("p50", 499), ("p99", 989), ("p99.9", 998)):
            sides = {case: (each[cut],) for case, each in cuts.items()}
            table.add(SidesRow(f"{what}, {percentile}", "s", sides))
    return table


def delays(every_s: float, count: int) -> tuple[list[float], list[float]]:
    """Runs the pipeline once. Returns, for each line, the time until the consumer had the line, and
    the time until its row was in the final directory."""
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with (
            site(folder) as (address, offline, schemas),
            loader(folder, offline, schemas, every_s),
        ):
            seen = live(folder, address, schemas, scaled(count, TRIAL_LINES))
            eventually(
                lambda: loaded(folder / "rows") >= len(seen),
                within_s=WITHIN_S,
                every_s=1.0,
                what="all lines are rows",
            )
        return seen, rows(folder / "rows")


@contextlib.contextmanager
def site(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Runs the datacenter broker, the offline broker that mirrors it, and the registry. Yields
    their addresses."""
    zookeeper = ZooKeeper(folder)
    broker, address, ready = skidway_broker(folder, zookeeper, cluster="dc1")
    with (
        running(zookeeper.program, zookeeper.ready),
        running(broker, ready),
        registry(folder, zookeeper.address) as schemas,
    ):
        create(address, TOPIC)
        with mirror(folder, zookeeper.address, address) as offline:
            yield address, offline, schemas


@contextlib.contextmanager
def mirror(folder: Path, zookeeper: str, source: str) -> Iterator[str]:
    """Runs the offline cluster's broker, which mirrors the broker at `source`. Yields the address
    of the offline broker."""
    port, metrics = free_port(), free_port()
    config = folder / "offline.yml"
    settings = {
        "cluster.name": CLUSTER,
        "listeners": [f"PLAINTEXT://127.0.0.1:{port}"],
        "log.dirs": [str(folder / "offline")],
        "zookeeper.connect": f"{zookeeper}/{CLUSTER}",
        "metrics.listener": f"127.0.0.1:{metrics}",
        "mirror.sources": [{"cluster": "dc1", "bootstrap.servers": source, "topics": [TOPIC]}],
    }
    config.write_text(yaml.safe_dump(settings))
    program = Program(skidway("broker", "run", "--config", str(config)), folder / "offline.out")
    with running(program, lambda: answers(f"http://127.0.0.1:{metrics}/health")):
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def loader(folder: Path, offline: str, schemas: str, every_s: float) -> Iterator[Program]:
    """Runs the loader inside the block, and yields its program."""
    config = folder / "loader.yml"
    settings = {
        "bootstrap.servers": offline,
        "schema.registry.url": schemas,
        "topics": [f"dc1.{TOPIC}"],
        "output": str(folder / "rows"),
        "spark.master": "local[2]",
        "metrics.listener": f"127.0.0.1:{free_port()}",
    }
    config.write_text(yaml.safe_dump(settings))
    command = skidway("load", "run", "--every", f"{every_s:g}s", "--config", str(config))
    program = Program(command, folder / "loader.out")
    with running(program, lambda: program.running):
        yield program


def live(folder: Path, address: str, schemas: str, count: int) -> list[float]:
    """Writes `count` lines, and consumes them at the same time. Returns for each line the time from
    its writing until the consumer had it.

    Raises:
        RuntimeError: Lines did not arrive.
    """
    log = folder / "app.log"
    log.touch()
    config = folder / "agent.yml"
    settings = {
        "bootstrap.servers": address,
        "schema.registry.url": schemas,
        "state.dir": str(folder / "agent"),
        "metrics.listener": f"127.0.0.1:{free_port()}",
        "sources": [{"topic": TOPIC, "paths": [str(log)]}],
    }
    config.write_text(yaml.safe_dump(settings))
    agent = Program(skidway("agent", "run", "--config", str(config)), folder / "agent.out")
    delays_s: list[float] = []
    consumer = threading.Thread(target=watch, args=(address, count, delays_s), daemon=True)
    with running(agent, lambda: agent.running):
        consumer.start()
        write(log, count)
        consumer.join()
    if len(delays_s) != count:
        raise RuntimeError(f"{len(delays_s)} of {count} lines arrived")
    return delays_s


def write(log: Path, count: int) -> None:
    """Writes `count` lines, RATE lines a second, a few at a time, each with the time at which it is
    written."""
    few, next_s = round(RATE * TICK_S), time.monotonic()
    with log.open("a", buffering=1 << 16) as out:
        for first in range(0, count - few + 1, few):
            texts = [hdfs(number) for number in range(first, first + few)]
            now_ns = time.time_ns()
            out.writelines(f"{now_ns:019d} {text}\n" for text in texts)
            out.flush()
            next_s += TICK_S
            time.sleep(max(0.0, next_s - time.monotonic()))


def watch(address: str, count: int, delays_s: list[float]) -> None:
    """Consumes `count` lines from the broker, and appends to `delays_s` the time that each line
    took to arrive. Ends early if no line arrives for `WITHIN_S` seconds."""
    with Client(address) as client:
        fetcher = Fetcher(client)
        fetcher.seek(TopicPartition(TOPIC, 0), 0)
        until = time.monotonic() + WITHIN_S
        while len(delays_s) < count and time.monotonic() < until:
            for fetched in fetcher.poll(100):
                now_ns = time.time_ns()
                until = time.monotonic() + WITHIN_S
                for raw in fetched.batches:
                    delays_s += [
                        (now_ns - int(value[value.index(b" ") - 19 :][:19])) / 1e9
                        for value in decode(raw).values.to_pylist()
                    ]


def loaded(output: Path) -> int:
    """How many rows are in files in their final directories."""
    return sum(pq.read_metadata(path).num_rows for path in _files(output))


def rows(output: Path) -> list[float]:
    """For each row, the time from the writing of its line to the change time of the row's file."""
    delays: list[float] = []
    for path in _files(output):
        placed_ns = path.stat().st_ctime_ns
        lines = pq.read_table(path, columns=["line"]).column("line")
        written = pc.cast(pc.utf8_slice_codeunits(lines, 0, 19), "int64").to_numpy()
        delays += ((placed_ns - written) / np.float64(1e9)).tolist()
    return delays


def _files(output: Path) -> list[Path]:
    return sorted(output.rglob("dt=*/hour=*/*.parquet"))
