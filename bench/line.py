"""The time from the writing of a log line until a consumer gets it, and until its row can be
queried.

The benchmark runs the whole pipeline on this machine: agent, broker, mirror into an offline
cluster, and once a minute a load from the offline cluster into a local directory. Each load is a
new process with its own Spark, as a systemd timer or cron would start it. Every line contains the
time at which it was written. The first figure is the time until a consumer of the datacenter's
broker gets the line. The broker flushes a line before consumers can get it. The second figure is
the time until the row's file is in its final place. A rename moves the file there and sets the
file's change time (ctime), so the benchmark uses the change time as the end of this figure.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from bench.agent import registry
from bench.measure import OURS, SidesRow, SidesTable
from bench.produce import create
from bench.scale import scaled
from bench.sites import Program, ZooKeeper, answers, free_port, running, skidway, skidway_broker
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import decode
from skidway.kafka.types import TopicPartition

RATE = 1_000
"""The number of lines that are written per second."""
LOADS = scaled(4, 1)
LOAD_EVERY_S = scaled(60.0, 10.0)
TICK_S = 0.01
WITHIN_S = 120.0
PADDING = "x" * 120
TOPIC, CLUSTER = "lines", "offline"


@dataclass(slots=True)
class Lines:
    """What `live` shares with its two threads, which write lines and consume them.

    ended: set when the writer must stop.
    written: how many lines the writer has written.
    delays_s: for each line that the consumer got, the time from its writing to its arrival.
    """

    ended: threading.Event = field(default_factory=threading.Event)
    written: int = 0
    delays_s: list[float] = field(default_factory=list)


def run() -> SidesTable:
    """Measures percentiles of the two times, during `LOADS` loads."""
    table = SidesTable(
        f"line: one line on its way, {RATE:,} lines a second, a load every {LOAD_EVERY_S:.0f} s",
        (OURS,),
    )
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with site(folder) as (address, offline, schemas):
            seen = live(folder, address, offline, schemas)
        queryable = rows(folder / "rows")
    for what, delays in (("to a consumer of the broker", seen), ("to a row", queryable)):
        cuts = statistics.quantiles(delays, n=1000, method="inclusive")
        for percentile, at in (("p50", 499), ("p99", 989), ("p99.9", 998)):
            table.add(SidesRow(f"{what}, {percentile}", "s", {OURS: (cuts[at],)}))
    return table


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
    """Runs the offline cluster's broker, and yields its address."""
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


def live(folder: Path, address: str, offline: str, schemas: str) -> list[float]:
    """Writes lines, consumes them and loads them, all at the same time. Returns for each line the
    time from its writing until the consumer had it.

    Raises:
        RuntimeError: A load failed, or lines did not arrive.
    """
    log, lines = folder / "app.log", Lines()
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
    threads = [
        threading.Thread(target=write, args=(log, lines), daemon=True),
        threading.Thread(target=watch, args=(address, lines), daemon=True),
    ]
    with running(agent, lambda: agent.running):
        for thread in threads:
            thread.start()
        begin = time.monotonic()
        for number in range(1, LOADS + 1):
            time.sleep(max(0.0, begin + number * LOAD_EVERY_S - time.monotonic()))
            load(folder, offline, schemas)
        lines.ended.set()
        for thread in threads:
            thread.join(WITHIN_S)
        load(folder, offline, schemas)
    if len(lines.delays_s) != lines.written:
        raise RuntimeError(f"{len(lines.delays_s)} of {lines.written} lines arrived")
    return lines.delays_s


def write(log: Path, lines: Lines) -> None:
    """Writes RATE lines a second, a few at a time, each with the time at which it is written."""
    next_s = time.monotonic()
    with log.open("a", buffering=1 << 16) as out:
        while not lines.ended.is_set():
            now_ns = time.time_ns()
            out.writelines(f"{now_ns:019d} {PADDING}\n" for _ in range(round(RATE * TICK_S)))
            out.flush()
            lines.written += round(RATE * TICK_S)
            next_s += TICK_S
            time.sleep(max(0.0, next_s - time.monotonic()))


def watch(address: str, lines: Lines) -> None:
    """Consumes from the broker and records when each line arrives."""
    with Client(address) as client:
        fetcher = Fetcher(client)
        fetcher.seek(TopicPartition(TOPIC, 0), 0)
        until = time.monotonic() + WITHIN_S
        while not lines.ended.is_set() or len(lines.delays_s) < lines.written:
            if not lines.ended.is_set():
                until = time.monotonic() + WITHIN_S
            elif time.monotonic() > until:
                return
            for fetched in fetcher.poll(100):
                now_ns = time.time_ns()
                for raw in fetched.batches:
                    lines.delays_s += [
                        (now_ns - int(value[value.index(b" ") - 19 :][:19])) / 1e9
                        for value in decode(raw).values.to_pylist()
                    ]


def load(folder: Path, offline: str, schemas: str) -> None:
    """Runs `skidway load run` once, as a timer would. Raises RuntimeError if the load fails."""
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
    done = subprocess.run(
        skidway("load", "run", "--config", str(config)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])


def rows(output: Path) -> list[float]:
    """For each row, the time from the writing of its line to the change time of the row's file."""
    delays: list[float] = []
    for path in sorted(output.rglob("dt=*/hour=*/*.parquet")):
        placed_ns = path.stat().st_ctime_ns
        lines = pq.read_table(path, columns=["line"]).column("line")
        written = pc.cast(pc.utf8_slice_codeunits(lines, 0, 19), "int64").to_numpy()
        delays += ((placed_ns - written) / np.float64(1e9)).tolist()
    return delays
