"""Measures brokers under the load of a fleet: 5,000 connections, 1 to 20 records in each request,
200 partitions.

The benchmark sends requests at several rates in an open loop: each at a planned time, even if
earlier ones were not answered yet. A latency counts from the planned time. After the last rate, the
benchmark restarts the broker, and all clients connect again at once. Latencies are in milliseconds.
The ratio is Skidway's figure divided by Apache Kafka's, so a ratio below 1 means that Skidway is
faster.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from bench.fleet_load import PARTITIONS, PATIENCE_S
from bench.machine import cpu_seconds, resident_mb
from bench.measure import Table
from bench.produce import create
from bench.scale import scaled
from bench.sites import Brokers

CONNECTIONS = scaled(5_000, 200)
RATES = (1_000, 2_000)
SECONDS = scaled(10, 2)
ROUNDS = scaled(2, 1)
QUANTILES = ("p50", "p99", "p99.9")


def run(brokers: Brokers) -> Table:
    """Measures Skidway's broker and Apache Kafka in turn at each rate. Then restarts each broker
    while all clients try to connect to it."""
    table = Table(
        f"fleet: {CONNECTIONS:,} connections, 1-20 records of 200 bytes a request, 200 partitions"
    )
    topic = f"fleet-{time.time_ns()}"
    for address in brokers.addresses.values():
        create(address, topic, PARTITIONS)
    for rate in RATES:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in brokers.addresses}
        for _ in range(ROUNDS):
            for name in brokers.addresses:
                found[name].append(measured(brokers, name, topic, rate))
        for what in QUANTILES:
            table.beside(f"{rate:,} requests/s, {what}", "ms", found, what)
        table.beside(f"{rate:,} requests/s, CPU of the broker", "ms a second", found, "cpu")
        table.beside(f"{rate:,} requests/s, memory", "MB", found, "rss")
    back: dict[str, list[dict[str, float]]] = {name: [] for name in brokers.addresses}
    for _ in range(ROUNDS):
        for name in brokers.addresses:
            back[name].append(returned(brokers, name, topic))
    for what in ("p50", "p99", "max"):
        table.beside(f"all clients back after a restart, {what}", "ms", back, what)
    table.beside(f"not back within {PATIENCE_S:.0f} s", "clients", back, "missing")
    return table


def measured(brokers: Brokers, name: str, topic: str, rate: int) -> dict[str, float]:
    """The figures of one run at one rate, including the CPU time that the broker used."""
    pid = brokers.programs[name].pid
    before = cpu_seconds(pid)
    found = asked("load", brokers.addresses[name], topic, rate, SECONDS)
    return found | {
        "cpu": (cpu_seconds(pid) - before) / SECONDS * 1000,
        "rss": resident_mb(pid),
    }


def returned(brokers: Brokers, name: str, topic: str) -> dict[str, float]:
    """Restarts the broker cleanly while all clients try to connect again. Returns how long the
    clients waited (see `Storm.run`)."""
    program = brokers.programs[name]
    program.stop(60)
    load = start("storm", brokers.addresses[name], topic)
    program.start()
    return result(load)


def start(kind: str, address: str, topic: str, *more: object) -> subprocess.Popen[str]:
    arguments = [kind, address, topic, str(CONNECTIONS), *map(str, more)]
    return subprocess.Popen(
        [sys.executable, "-m", "bench.fleet_load", *arguments], stdout=subprocess.PIPE, text=True
    )


def result(load: subprocess.Popen[str]) -> dict[str, float]:
    printed, _ = load.communicate(timeout=300)
    if load.returncode:
        raise RuntimeError(f"the load ended with {load.returncode}")
    return dict(json.loads(printed))


def asked(kind: str, address: str, topic: str, *more: object) -> dict[str, float]:
    return result(start(kind, address, topic, *more))
