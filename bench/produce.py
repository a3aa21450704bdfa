"""200-byte messages by one librdkafka producer, batch 1 and 50, acks 0 and 1 (the paper's 5)."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.machine import warm_memory
from bench.measure import Row, Table, with_cost
from bench.sites import Brokers

MESSAGE = b"x" * 200
CASES = ((1, 0, 60_000), (1, 1, 60_000), (50, 0, 1_500_000), (50, 1, 1_500_000))
ROUNDS = 5


def run(brokers: Brokers) -> Table:
    """Both brokers, each case in turn."""
    table = Table("produce: 200 bytes, one librdkafka producer, one partition")
    for batch, acks, count in CASES:

        def measure(
            address: str, name: str, batch: int = batch, acks: int = acks, count: int = count
        ) -> float:
            return produce(address, f"{name}-{batch}-{acks}", batch, acks, count)

        found, costs = with_cost(
            {
                name: (lambda name=name, address=address: measure(address, name))
                for name, address in brokers.addresses.items()
            },
            brokers.pids,
            ROUNDS,
            count / 1e6,
        )
        table.add(
            Row(
                f"batch {batch}, acks {acks}",
                "msg/s",
                found["skidway"],
                found["kafka"],
                "Apache Kafka 4.1",
            )
        )
        table.add(
            Row(
                "the same, cost (less is better)",
                "broker CPU s/M",
                costs["skidway"],
                costs["kafka"],
                "Apache Kafka 4.1",
            )
        )
    return table


def produce(address: str, topic: str, batch: int, acks: int, count: int) -> float:
    """Messages per second until the last one is flushed, the topic made new for each run."""
    name = f"{topic}-{time.time_ns()}"
    create(address, name)
    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": acks,
            "batch.num.messages": batch,
            "linger.ms": 0 if batch == 1 else 5,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    producer.produce(name, MESSAGE)
    producer.flush()
    warm_memory(4 * count * len(MESSAGE))
    begin = time.perf_counter()
    for _ in range(count):
        try:
            producer.produce(name, MESSAGE)
        except BufferError:
            producer.poll(0.01)
            producer.produce(name, MESSAGE)
    left = producer.flush(300)
    took = time.perf_counter() - begin
    if left:
        raise RuntimeError(f"{left} of {count} messages were not delivered")
    return count / took


def create(address: str, topic: str, partitions: int = 1, **configs: Any) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, partitions, 1, config=configs)]).values():
        future.result(30)
