"""Measures the latencies of one client with few requests, beside 20 connections (its neighbours)
that send without pause.

The client sends a record with acks=all 50 times a second. Its latencies, in milliseconds, count
from the time at which each record was due. The ratio is Skidway's latency divided by Apache
Kafka's, so a ratio below 1 means that Skidway is faster. There are three kinds of runs: without
neighbours, beside 20 connections that flood the broker with Metadata requests, and beside 20 stock
librdkafka producers that send each message in a separate request. The table also shows how many
requests of the neighbours are answered, because a broker could serve the client fast by letting the
neighbours wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from bench.measure import Table
from bench.produce import create
from bench.scale import scaled
from bench.sites import Brokers

NEIGHBOURS = 20
RATE = 50
SECONDS = scaled(10, 2)
ROUNDS = scaled(3, 1)
QUANTILES = ("p50", "p99", "max")
CASES = {
    "alone": "",
    f"beside {NEIGHBOURS} that flood Metadata": "metadata",
    f"beside {NEIGHBOURS} librdkafka producers, batches of 1": "produce",
}


def run(brokers: Brokers) -> Table:
    """Measures Skidway's broker and Apache Kafka in turn, without neighbours and with each kind of
    neighbours."""
    table = Table(f"neighbours: {RATE} acks=all requests a second beside {NEIGHBOURS} busy clients")
    for case, kind in CASES.items():
        found: dict[str, list[dict[str, float]]] = {name: [] for name in brokers.addresses}
        for _ in range(ROUNDS):
            for name, address in brokers.addresses.items():
                found[name].append(measured(address, kind))
        for what in QUANTILES:
            table.beside(f"{case}: {what}", "ms", found, what)
        if kind:
            table.beside(f"{case}: answered to these", "requests/s", found, "requests_per_s")
    return table


def measured(address: str, kind: str) -> dict[str, float]:
    """Waits until all data of the previous run is on disk. Then makes one run, which writes into
    new topics, and returns its figures. kind: the kind of neighbours."""
    os.sync()
    topic, other = f"good-{time.time_ns()}", f"busy-{time.time_ns()}"
    create(address, topic)
    create(address, other)
    more = {"": (), "metadata": (NEIGHBOURS,), "produce": (other, NEIGHBOURS)}[kind]
    said: dict[str, float] = {}
    with neighbours(kind, address, more, said):
        asked = subprocess.run(
            command("ask", address, topic, RATE, SECONDS),
            stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS + 120,
        )  # fmt: skip
    return dict(json.loads(asked.stdout)) | said


@contextlib.contextmanager
def neighbours(
    kind: str, address: str, more: Sequence[object], said: dict[str, float]
) -> Iterator[None]:
    """Runs the neighbours during the `with` block. After the block, `said` has the figures that the
    neighbours printed."""
    if not kind:
        yield
        return
    load = subprocess.Popen(
        command(kind, address, *more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert load.stdout is not None
    try:
        if load.stdout.readline() != "busy\n":
            raise RuntimeError(f"the load {kind} ended with {load.wait()}")
        yield
        printed, _ = load.communicate(timeout=120)
        if load.returncode:
            raise RuntimeError(f"the load {kind} ended with {load.returncode}")
        said.update(json.loads(printed))
    finally:
        load.kill()
        load.wait()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bench.neighbours_load", *map(str, arguments)]
