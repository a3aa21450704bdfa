"""Measures a broker with 2,000 partitions: how long it takes to start after a clean stop, and how
much CPU and memory it uses while idle."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

from bench.machine import cpu_seconds, resident_mb
from bench.measure import KAFKA, Row, Table
from bench.scale import scaled
from bench.sites import ApacheKafka, ZooKeeper, skidway_broker
from skidway.kafka.client import Client, NewTopic
from skidway.kafka.errors import BrokerUnreachable
from support.processes import Program, running

TOPICS, PARTITIONS_EACH = scaled(20, 2), 100
ROUNDS = scaled(3, 1)
SETTLE_S, IDLE_S = scaled((10.0, 30.0), (1.0, 2.0))
START_WITHIN_S = 120.0
FIGURES = ("start after a clean stop", "idle CPU", "resident memory")
UNITS = ("s", "% of a core", "MB")


def run() -> Table:
    """Measures Skidway's broker, then Apache Kafka. The two never run at the same time."""
    table = Table(f"partitions: {TOPICS * PARTITIONS_EACH:,} on one broker, a record in each")
    with ours() as (program, address):
        mine = [measure(program, address) for _ in range(ROUNDS)]
    with apache() as (program, address):
        theirs = [measure(program, address) for _ in range(ROUNDS)]
    for at, (name, unit) in enumerate(zip(FIGURES, UNITS, strict=True)):
        table.add(
            Row(
                name,
                unit,
                tuple(each[at] for each in mine),
                tuple(each[at] for each in theirs),
                KAFKA,
                "less is better",
            )
        )
    return table


@contextlib.contextmanager
def ours() -> Iterator[tuple[Program, str]]:
    """Writes a record to each partition of Skidway's broker, and stops the broker. Then yields the
    broker's program and its address. ZooKeeper runs until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        zookeeper = ZooKeeper(folder)
        broker, address, ready = skidway_broker(folder, zookeeper)
        with running(zookeeper.program, zookeeper.ready):
            with running(broker, ready):
                fill(address)
                broker.stop(60)
            yield broker, address
            broker.kill()


@contextlib.contextmanager
def apache() -> Iterator[tuple[Program, str]]:
    """Writes a record to each partition of Apache Kafka, and stops it. Then yields its program and
    its address."""
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        kafka = ApacheKafka(Path(name), heap_mb=1024)
        kafka.format()
        with running(kafka.program, kafka.ready, within_s=120):
            fill(kafka.address)
            kafka.program.stop(120)
        yield kafka.program, kafka.address
        kafka.program.kill()


def fill(address: str) -> None:
    """Creates the topics, and writes one record to each partition."""
    names = [f"topic-{number:02}" for number in range(TOPICS)]
    with Client(address, request_timeout_ms=120_000) as client:
        made = client.create_topics([NewTopic(name, PARTITIONS_EACH, 1) for name in names])
        assert not any(made.values()), made
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50})
    for name in names:
        for partition in range(PARTITIONS_EACH):
            producer.produce(name, b"x" * 200, partition=partition)
    assert producer.flush(120) == 0


def measure(program: Program, address: str) -> tuple[float, float, float]:
    """Starts the broker, lets it idle, and stops it. Returns how many seconds the start took, the
    CPU in percent while idle, and the memory in MiB."""
    began = time.monotonic()
    program.start()
    wait_for_leaders(address)
    started_s = time.monotonic() - began
    time.sleep(SETTLE_S)
    before = cpu_seconds(program.pid)
    time.sleep(IDLE_S)
    idle = (cpu_seconds(program.pid) - before) / IDLE_S * 100
    resident = resident_mb(program.pid)
    program.stop(120)
    return started_s, idle, resident


def wait_for_leaders(address: str) -> None:
    """Waits until the broker names a leader for every partition."""
    deadline = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline:
        with (
            contextlib.suppress(BrokerUnreachable),
            Client(address, request_timeout_ms=500) as client,
        ):
            topics = client.metadata().topics.values()
            partitions = [each for topic in topics for each in topic.partitions]
            if len(partitions) >= TOPICS * PARTITIONS_EACH and all(
                each.leader >= 0 for each in partitions
            ):
                return
        time.sleep(0.02)
    raise AssertionError(f"no leaders within {START_WITHIN_S} s")
