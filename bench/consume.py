"""Measures how fast messages of 200 bytes are read. confluent-kafka and kcat read from Skidway's
broker and from Apache Kafka. Skidway's fetcher, which decodes batches into columns, reads from
Skidway's broker."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, TopicPartition

from bench import librdkafka
from bench.measure import KAFKA, Row, Table, in_turn, with_cost
from bench.produce import MESSAGE, arrived, create
from bench.scale import scaled
from bench.sites import Brokers

FILLED = scaled(4_000_000, 20_000)
COUNT = scaled(1_500_000, 20_000)
"""The number of messages that the clients in Python read."""
ROUNDS = scaled(5, 1)


def run(brokers: Brokers) -> Table:
    """Fills a topic on each broker. Then the clients read the topics in turn."""
    table = Table("consume: 200 bytes, one partition")
    topic = f"consume-{time.time_ns()}"
    for address in brokers.addresses.values():
        fill(address, topic)
    found = _compare(table, brokers, "confluent-kafka consumer", stock, topic, COUNT)
    _compare(table, brokers, "kcat", kcat, topic, FILLED)
    ours = partial(columns, brokers.addresses["skidway"], topic)
    mine = in_turn({"skidway": ours}, ROUNDS)
    table.add(
        Row(
            "our fetcher, batches to columns",
            "msg/s",
            mine["skidway"],
            found["kafka"],
            f"confluent-kafka on {KAFKA}",
        )
    )
    return table


def _compare(
    table: Table,
    brokers: Brokers,
    name: str,
    measured: Callable[[str, str], float],
    topic: str,
    count: int,
) -> dict[str, tuple[float, ...]]:
    found, costs = with_cost(
        {side: partial(measured, address, topic) for side, address in brokers.addresses.items()},
        brokers.pids,
        ROUNDS,
        count * len(MESSAGE) / 1e9,
        warm_up=1,
    )
    table.add(Row(name, "msg/s", found["skidway"], found["kafka"], KAFKA))
    cost = f"{name}: cost (less is better)"
    table.add(Row(cost, "broker CPU s/GB", costs["skidway"], costs["kafka"], KAFKA))
    return found


def fill(address: str, topic: str, count: int = FILLED) -> None:
    """Creates the topic, and fills it with `count` messages, in batches of 4,000 at most.

    Raises:
        RuntimeError: Not all messages arrived.
    """
    create(address, topic)
    settings: dict[str, str | int] = {
        "bootstrap.servers": address,
        "linger.ms": 20,
        "batch.num.messages": 4000,
    }
    with librdkafka.Producer(settings, topic) as producer:
        producer.send(MESSAGE, count)
        producer.flush(300)
    arrived(address, topic, count)


def stock(address: str, topic: str) -> float:
    """Reads with confluent-kafka and `assign`, 10,000 messages at a time. Returns the messages per
    second.

    Sets `fetch.queue.backoff.ms` to a short time. By default, librdkafka stops fetching for a whole
    second whenever 64 MB wait for the application. The faster the broker is, the more often it
    would stop, so the figure would mainly show how many of these pauses happened during the run.
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


def kcat(address: str, topic: str) -> float:
    """Reads with kcat, a C program with librdkafka. Returns the messages per second; the time
    includes the program's start and end."""
    begin = time.perf_counter()
    command = f"kcat -C -q -b {address} -t {topic} -p 0 -o beginning -c {FILLED}"
    ahead = "-X queued.min.messages=10000000 -X queued.max.messages.kbytes=2097151"
    subprocess.run(
        [*command.split(), "-f", "", *ahead.split()],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return FILLED / (time.perf_counter() - begin)


def columns(address: str, topic: str) -> float:
    """Reads with Skidway's fetcher, and decodes every batch into columns. Returns the messages per
    second."""
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
