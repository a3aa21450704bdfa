"""Measures the latency from `produce` to `consume` at a steady rate, with one librdkafka producer
and one consumer.

Each message contains the time at which it was due. The producer sends each message at its due time,
even if the broker stalls, and a latency counts from the due time. So the time for which a broker
stalls counts (this avoids "coordinated omission"). Figures are in milliseconds. The ratio is
Skidway's figure divided by Apache Kafka's, so a ratio below 1 means that Skidway is faster.
"""

from __future__ import annotations

import struct
import threading
import time

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.measure import KAFKA, Row, Table
from bench.produce import create
from bench.scale import scaled
from bench.sites import Brokers

STAMP = struct.Struct(">d")
SIZE_BYTES = 200
CASES = ((1_000, "1"), (5_000, "1"), (1_000, "all"))
SECONDS = scaled(10, 2)
ROUNDS = scaled(3, 1)
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def run(brokers: Brokers) -> Table:
    """Measures Skidway's broker and Apache Kafka in turn, for each case (a rate and a value of
    acks)."""
    table = Table("latency: 200 bytes from produce to consume, one partition, linger 0")
    for rate, acks in CASES:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in brokers.addresses}
        for _ in range(ROUNDS):
            for name, address in brokers.addresses.items():
                found[name].append(measured(address, rate, acks))
        for what in QUANTILES:
            ours, peer = (tuple(x[what] for x in found[side]) for side in ("skidway", "kafka"))
            table.add(Row(f"{rate:,} messages/s, acks {acks}, {what}", "ms", ours, peer, KAFKA))
    return table


def measured(address: str, rate: int, acks: str) -> dict[str, float]:
    """The quantiles of the latencies of one run, in ms. Leaves out the messages of the first
    second."""
    topic, count = f"latency-{time.time_ns()}", rate * SECONDS
    create(address, topic)
    latencies: list[float] = []
    reading = threading.Event()
    reader = threading.Thread(target=read, args=(address, topic, count, latencies, reading))
    reader.start()
    producer = Producer({"bootstrap.servers": address, "acks": acks, "linger.ms": 0})
    producer.produce(topic, STAMP.pack(0))
    if not reading.wait(60):
        raise RuntimeError("the first message did not arrive")
    write(producer, topic, rate, count)
    reader.join(120)
    if len(latencies) < count:
        raise RuntimeError(f"{count - len(latencies)} of {count} messages did not arrive")
    found = np.quantile(np.array(latencies[rate:]) * 1000, list(QUANTILES.values()))
    return dict(zip(QUANTILES, map(float, found), strict=True))


def write(producer: Producer, topic: str, rate: int, count: int) -> None:
    padding = b"x" * (SIZE_BYTES - STAMP.size)
    begin, sent = time.perf_counter(), 0
    while sent < count:
        now = time.perf_counter()
        due = min(int((now - begin) * rate) + 1, count)
        for number in range(sent, due):
            producer.produce(topic, STAMP.pack(begin + number / rate) + padding)
        sent = due
        producer.poll(0.0005)
    producer.flush(60)


def read(
    address: str, topic: str, count: int, latencies: list[float], reading: threading.Event
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "latency",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while consumer.poll(1.0) is None:
        pass
    reading.set()
    deadline = time.monotonic() + 100
    while len(latencies) < count and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.001):
            latencies.append(time.perf_counter() - STAMP.unpack_from(message.value() or b"")[0])
    consumer.close()
