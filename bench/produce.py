"""One librdkafka producer sends 200-byte messages in batches of 1 and 50, with acks 0 and 1. The
batches are those of section 5 of the Kafka paper (see bench/paper)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench import librdkafka
from bench.machine import warm_memory
from bench.measure import KAFKA, Row, Table, with_cost
from bench.scale import scaled
from bench.sites import Brokers

MESSAGE = b"x" * 200
ONE, MANY, PYTHON = scaled((100_000, 2_000_000, 1_500_000), (1_000, 20_000, 20_000))
CASES = ((1, 0, ONE), (1, 1, ONE), (50, 0, MANY), (50, 1, MANY))
PYTHON_CASES = ((50, 0, PYTHON), (50, 1, PYTHON))
ROUNDS = scaled(5, 1)
ARRIVED_WITHIN_S = 30


def run(brokers: Brokers) -> Table:
    """Measures Skidway's broker and Apache Kafka in turn, for each combination of batch size and
    acks. The first round of each combination is a warm-up and is not counted."""
    table = Table("produce: 200 bytes, one librdkafka producer, one partition")
    for batch, acks, count in CASES:
        _compare(table, brokers, f"batch {batch}, acks {acks}", produce, batch, acks, count)
    for batch, acks, count in PYTHON_CASES:
        name = f"batch {batch}, acks {acks}, a call a message from Python"
        _compare(table, brokers, name, produce_from_python, batch, acks, count)
    return table


def _compare(
    table: Table,
    brokers: Brokers,
    name: str,
    measured: Callable[[str, str, int, int, int], float],
    batch: int,
    acks: int,
    count: int,
) -> None:
    found, costs = with_cost(
        {
            side: partial(measured, address, side, batch, acks, count)
            for side, address in brokers.addresses.items()
        },
        brokers.pids,
        ROUNDS,
        count / 1e6,
        warm_up=1,
    )
    table.add(Row(name, "msg/s", found["skidway"], found["kafka"], KAFKA))
    cost = f"{name}: cost (less is better)"
    table.add(Row(cost, "broker CPU s/M", costs["skidway"], costs["kafka"], KAFKA))


def settings(address: str, batch: int, acks: int) -> dict[str, str | int]:
    """Settings of a librdkafka producer, the same for every broker."""
    return {
        "bootstrap.servers": address,
        "acks": acks,
        "batch.num.messages": batch,
        "linger.ms": 0 if batch == 1 else 5,
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 1_000_000,
    }


def produce(address: str, side: str, batch: int, acks: int, count: int) -> float:
    """The messages per second that librdkafka sends to a new topic, until all messages are sent and
    (with acks 1) acknowledged. Another message, which opens the connection, is sent before the
    measurement.

    Raises:
        RuntimeError: Not all messages arrived.
    """
    topic = f"{side}-{batch}-{acks}-{time.time_ns()}"
    create(address, topic)
    with librdkafka.Producer(settings(address, batch, acks), topic) as producer:
        producer.send(MESSAGE, 1)
        producer.flush(30)
        warm_memory(4 * count * len(MESSAGE))
        begin = time.perf_counter()
        producer.send(MESSAGE, count)
        left = producer.flush(300)
        took = time.perf_counter() - begin
    if left:
        raise RuntimeError(f"{left} of {count} messages were not delivered")
    arrived(address, topic, count + 1)
    return count / took


def produce_from_python(address: str, side: str, batch: int, acks: int, count: int) -> float:
    """Measures the same rate as `produce`, but with one call of confluent-kafka for each
    message."""
    topic = f"{side}-python-{batch}-{acks}-{time.time_ns()}"
    create(address, topic)
    producer = Producer(settings(address, batch, acks))
    producer.produce(topic, MESSAGE)
    producer.flush()
    warm_memory(4 * count * len(MESSAGE))
    begin = time.perf_counter()
    for _ in range(count):
        _produce_one(producer, topic)
    left = producer.flush(300)
    took = time.perf_counter() - begin
    if left:
        raise RuntimeError(f"{left} of {count} messages were not delivered")
    arrived(address, topic, count + 1)
    return count / took


def _produce_one(producer: Producer, topic: str) -> None:
    while True:
        try:
            return producer.produce(topic, MESSAGE)
        except BufferError:
            producer.poll(0.01)


def arrived(address: str, topic: str, count: int) -> None:
    """Waits until the topic has `count` messages, because with acks 0 the broker sends no answers.

    Raises:
        RuntimeError: The topic does not have exactly `count` messages in time.
    """
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench"})
    end, until = -1, time.monotonic() + ARRIVED_WITHIN_S
    while end < count and time.monotonic() < until:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1]
    consumer.close()
    if end != count:
        raise RuntimeError(f"{topic} has {end} messages instead of {count}")


def create(address: str, topic: str, partitions: int = 1, **configs: Any) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(topic, partitions, 1, config=configs)]).values():
        future.result(30)
