"""Measures several brokers on one host. A broker process uses one core, so two brokers use two
cores.

Compares a Skidway cluster of one broker, a Skidway cluster of two brokers, and one broker of Apache
Kafka. The load generator (brokers_load) sends prepared Produce requests over a few connections to
the leaders, as fast as the leaders answer. The generator needs little CPU, but it shares the cores
with the brokers, so the table also shows its CPU time.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.brokers_load import PARTITIONS
from bench.machine import cpu_seconds, warm_memory
from bench.measure import KAFKA, SidesRow, SidesTable
from bench.produce import create
from bench.scale import scaled
from bench.sites import ApacheKafka, Program, ZooKeeper, running, skidway_broker
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition
from support.processes import eventually

SIDES = ("1 Skidway broker", "2 Skidway brokers", f"1 {KAFKA}")
CASES = (1, 50)
SECONDS = scaled(2.0, 0.5)
ROUNDS = scaled(3, 1)
WARM_UP_S = scaled(20.0, 0.5)
"""The brokers are under load for this time before the measurement begins. By then Java's JIT
compiler has compiled the hot code."""
WARM_BYTES = scaled(3_000_000_000, 10_000_000)
FIGURES = (
    ("throughput", "msg/s"),
    ("CPU of all brokers together", "% of a core"),
    ("CPU of the load", "% of a core"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A running cluster: its bootstrap address, and its broker processes."""

    address: str
    programs: Sequence[Program]


def run() -> SidesTable:
    """Measures the three clusters in turn, with batches of one message and with batches of 50."""
    table = SidesTable("brokers: one and two on a host; 200 bytes, acks 1, 4 partitions", SIDES)
    with sites() as found:
        for site in found:
            measured(site, 1, WARM_UP_S)
        for records in CASES:
            values: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
            for _ in range(ROUNDS):
                for side, site in zip(SIDES, found, strict=True):
                    values[side].append(measured(site, records, SECONDS))
            for what, unit in FIGURES:
                sides = {side: tuple(x[what] for x in rounds) for side, rounds in values.items()}
                table.add(SidesRow(f"batches of {records}: {what}", unit, sides))
    return table


@contextlib.contextmanager
def sites() -> Iterator[tuple[Site, Site, Site]]:
    """Runs three clusters inside the block, and yields them: a Skidway cluster of one broker, a
    Skidway cluster of two brokers, and Apache Kafka. Only one of the three is under load at a time.
    """
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name, contextlib.ExitStack() as up:
        folder = Path(name)
        zookeeper = ZooKeeper(folder)
        up.enter_context(running(zookeeper.program, zookeeper.ready))

        def cluster(size: int) -> Site:
            programs = []
            for number in range(1, size + 1):
                program, address, ready = skidway_broker(
                    folder, zookeeper, cluster=f"of-{size}", number=number
                )
                up.enter_context(running(program, ready))
                programs.append(program)
            eventually(lambda: live(address) == size, what=f"{size} brokers know each other")
            return Site(address, programs)

        (folder / "kafka").mkdir()
        kafka = ApacheKafka(folder / "kafka", heap_mb=1024)
        kafka.format()
        up.enter_context(running(kafka.program, kafka.ready, within_s=120))
        yield cluster(1), cluster(2), Site(kafka.address, [kafka.program])


def live(address: str) -> int:
    """The number of live brokers, as the broker at `address` reports them."""
    with Client(address) as client:
        return len(client.metadata(()).brokers)


def measured(site: Site, records: int, seconds: float) -> dict[str, float]:
    """The figures of one run. The run writes into a new topic, and deletes the topic afterwards."""
    topic = f"brokers-{time.time_ns()}"
    create(site.address, topic, PARTITIONS)
    warm_memory(WARM_BYTES)
    before = sum(cpu_seconds(each.pid) for each in site.programs)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.brokers_load"),
            *(site.address, topic, str(records), str(seconds)),
        ],
        stdout=subprocess.PIPE, text=True, check=True, timeout=seconds + 120,
    )  # fmt: skip
    used = sum(cpu_seconds(each.pid) for each in site.programs) - before
    said = json.loads(done.stdout)
    if said["leaders"] != len(site.programs):
        raise RuntimeError(f"{said['leaders']} of {len(site.programs)} brokers lead {topic}")
    if (there := arrived(site.address, topic)) != said["requests"] * records:
        raise RuntimeError(f"{topic} has {there} messages after {said['requests']} requests")
    took = said["seconds"]
    admin = AdminClient({"bootstrap.servers": site.address})
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    return {
        "throughput": said["requests"] * records / took,
        "CPU of all brokers together": 100 * used / took,
        "CPU of the load": 100 * said["cpu_s"] / took,
    }


def arrived(address: str, topic: str) -> int:
    """The number of messages in all partitions of a topic. The load uses acks 1, so every
    acknowledged message is already in the topic."""
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with Client(address) as client:
        ends = client.list_offsets(dict.fromkeys(partitions, LATEST))
    return sum(each.offset for each in ends.values())
