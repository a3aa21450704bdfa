"""200-byte messages back: confluent-kafka on both brokers, and our own columnar fetcher on both."""

from __future__ import annotations

import time
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.measure import Row, Table, in_turn, with_cost
from bench.produce import MESSAGE, create
from bench.scale import scaled
from bench.sites import Brokers

COUNT = scaled(1_500_000, 20_000)
ROUNDS = scaled(5, 1)


def run(brokers: Brokers) -> Table:
    """Fill one topic in each broker, then read it in turn."""
    table = Table("consume: 200 bytes, one partition")
    topic = f"consume-{time.time_ns()}"
    for address in brokers.addresses.values():
        fill(address, topic)
    found, costs = with_cost(
        {name: partial(stock, address, topic) for name, address in brokers.addresses.items()},
        brokers.pids,
        ROUNDS,
        COUNT * len(MESSAGE) / 1e9,
    )
    table.add(
        Row(
            "confluent-kafka consumer",
            "msg/s",
            found["skidway"],
            found["kafka"],
            "Apache Kafka 4.1",
        )
    )
    table.add(
        Row(
            "the same, cost (less is better)",
            "broker CPU s/GB",
            costs["skidway"],
            costs["kafka"],
            "Apache Kafka 4.1",
        )
    )
    mine = in_turn(
        {name: partial(columns, address, topic) for name, address in brokers.addresses.items()},
        ROUNDS,
    )
    table.add(
        Row(
            "our fetcher, batches to columns",
            "msg/s",
            mine["skidway"],
            found["kafka"],
            "confluent-kafka on Apache Kafka 4.1",
        )
    )
    return table


def fill(address: str, topic: str) -> None:
    create(address, topic)
    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": 1,
            "linger.ms": 20,
            "batch.num.messages": 4000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    for _ in range(COUNT):
        producer.produce(topic, MESSAGE)
    if producer.flush(300):
        raise RuntimeError("the topic could not be filled")


def stock(address: str, topic: str) -> float:
    """confluent-kafka with assign, messages taken 10,000 at a time.

    `fetch.queue.backoff.ms`: by default librdkafka stops fetching for a whole second whenever 64 MB
    wait for the application. A broker that fills them sooner would only wait more often, and the
    figure would say how many such seconds fell into the run.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    begin, taken = time.perf_counter(), 0
    while taken < COUNT:
        taken += len(consumer.consume(10_000, 5))
    took = time.perf_counter() - begin
    consumer.close()
    return COUNT / took


def columns(address: str, topic: str) -> float:
    """Our fetcher; every batch checked and decoded into columns."""
    from skidway.kafka.client import Client, Fetcher
    from skidway.kafka.columns import decode
    from skidway.kafka.types import TopicPartition as Partition

    with Client(address) as client:
        fetcher = Fetcher(client)
        fetcher.seek(Partition(topic, 0), 0)
        begin, taken = time.perf_counter(), 0
        while taken < COUNT:
            for fetched in fetcher.poll(1000):
                taken += sum(len(decode(raw).values) for raw in fetched.batches)
        return COUNT / (time.perf_counter() - begin)
