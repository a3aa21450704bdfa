"""Measures the throughput of producers for several message sizes, values of acks, numbers of
producers, and codecs. For the shape PLAIN, also measures the broker's memory, and the broker's CPU
time for each GB. (bench/produce measures only messages of 200 bytes.)

The figures in MB/s count uncompressed values. The values are similar to log lines, so that lz4 and
zstd can compress them. The clients compress them, on the same cores on which the brokers run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from bench.machine import cpu_seconds, resident_mb, warm_memory
from bench.measure import Table
from bench.produce import create
from bench.scale import scaled
from bench.sites import Brokers

MB_A_RUN = scaled(150, 3)
PARTITIONS = 6
ROUNDS = scaled(3, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to produce messages: their size, the acks, the producers and the codec."""

    name: str
    size_bytes: int = 1_000
    acks: str = "1"
    producers: int = 1
    codec: str = "none"


PLAIN = Shape("1 KB, acks 1")
SHAPES = (
    PLAIN,
    replace(PLAIN, name="1 KB, acks 0", acks="0"),
    replace(PLAIN, name="1 KB, acks all", acks="all"),
    replace(PLAIN, name="10 KB, acks 1", size_bytes=10_000),
    replace(PLAIN, name="1 KB, acks 1, 10 producers", producers=10),
    replace(PLAIN, name="1 KB, acks 1, 100 producers", producers=100),
    replace(PLAIN, name="1 KB, acks 1, lz4", codec="lz4"),
    replace(PLAIN, name="1 KB, acks 1, zstd", codec="zstd"),
)


def run(brokers: Brokers) -> Table:
    """Measures every shape on Skidway's broker and on Apache Kafka in turn."""
    table = Table("shapes: 1 and 10 KB, acks, producers and codecs; 6 partitions")
    for shape in SHAPES:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in brokers.addresses}
        for _ in range(ROUNDS):
            for name in brokers.addresses:
                found[name].append(measured(brokers, name, shape))
        table.beside(shape.name, "MB/s", found, "rate")
        if shape is PLAIN:
            table.beside(f"{shape.name}: CPU of the broker", "s a GB", found, "cpu")
            table.beside(f"{shape.name}: memory of the broker", "MB", found, "rss")
    return table


def measured(brokers: Brokers, name: str, shape: Shape) -> dict[str, float]:
    """The figures of one run. The run writes into a new topic, and deletes the topic afterwards."""
    address, pid = brokers.addresses[name], brokers.programs[name].pid
    topic = f"shapes-{time.time_ns()}"
    create(address, topic, PARTITIONS)
    before = cpu_seconds(pid)
    rate = produce(address, topic, shape)
    found = {
        "rate": rate,
        "cpu": (cpu_seconds(pid) - before) / (MB_A_RUN / 1000),
        "rss": resident_mb(pid),
    }
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    return found


def produce(address: str, topic: str, shape: Shape) -> float:
    """MB per second until the last message is acknowledged. With acks 0, the measurement ends when
    the last message is written to the socket."""
    messages = [log_like(number, shape.size_bytes) for number in range(500)]
    producers = [
        Producer(
            {
                "bootstrap.servers": address,
                "acks": shape.acks,
                "compression.type": shape.codec,
                "linger.ms": 5,
                "queue.buffering.max.messages": 1_000_000,
                "queue.buffering.max.kbytes": 500_000,
            }
        )
        for _ in range(shape.producers)
    ]
    for producer in producers:
        producer.produce(topic, messages[0])
    for producer in producers:
        producer.flush(60)
    count = MB_A_RUN * 1_000_000 // shape.size_bytes
    warm_memory(4 * MB_A_RUN * 1_000_000)
    begin = time.perf_counter()
    for number in range(count):
        producer = producers[number % shape.producers]
        while True:
            try:
                producer.produce(topic, messages[number % 500])
                break
            except BufferError:
                producer.poll(0.01)
    left = sum(producer.flush(300) for producer in producers)
    took = time.perf_counter() - begin
    if left:
        raise RuntimeError(f"{left} of {count} messages were not delivered")
    return MB_A_RUN / took


def log_like(number: int, size_bytes: int) -> bytes:
    """A value that is similar to a log line: some parts are the same in all values, and the other
    parts vary."""
    words = b"2026-01-31 10:00:%02d,%03d INFO dfs.DataNode$PacketResponder: block blk_%d of %d " % (
        number * 7 % 60, number * 13 % 1000, number * 7_919_773, number * number,
    )  # fmt: skip
    return (words * (size_bytes // len(words) + 1))[:size_bytes]
