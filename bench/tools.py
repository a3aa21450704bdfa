"""Compares Skidway and Apache Kafka, each with its own fastest producer. Also measures Kafka's Java
consumer on both brokers, and a read of a topic that is not in the page cache.

Kafka's tool ProducerPerformance sends messages of 200 bytes to Apache Kafka, with its default
settings and with batches of about 50 messages. Skidway's producer, which sends to Skidway's broker,
is measured in two forms. The first form, which the agent uses, makes whole batches from Arrow
columns. The second form is `skidway.producer.Producer`, which gets 1,000 messages as Python bytes
in each call. This second form is measured with its default settings and with batches of about 50
messages. Before the last read, the benchmark drops the topic's files from the page cache.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.consume import COUNT, fill, stock
from bench.measure import KAFKA, Row, Table, in_turn
from bench.produce import MESSAGE, create
from bench.scale import scaled
from bench.sites import Brokers
from support.jvm import FAST
from support.kafka import tool

ROUNDS = scaled(3, 1)
OWN_COUNT = scaled(1_000_000, 20_000)
SET = 1_000
COLUMN = 4_000
"""The number of messages in a batch that is made from columns. Such a batch has 0.85 MB, which is
less than the default of `batch.size`."""
TOOLS = "org.apache.kafka.tools"
BATCH_OF_50 = 10_500
"""`batch.size`, in bytes, for batches of about 50 messages."""


def run(brokers: Brokers) -> Table:
    """Measures the producers, then the consumers. Skidway and Apache Kafka take turns."""
    table = Table("tools: each system's own producer, the Java consumer, a cold read; 200 bytes")
    ours, kafka = brokers.addresses["skidway"], brokers.addresses["kafka"]
    forms: dict[str, tuple[Callable[[], float], int | None]] = {
        "columns, defaults": (partial(columns_produce, ours), None),
        "sets of bytes, defaults": (partial(produce, ours, None), None),
        "sets of bytes, batches of about 50": (partial(produce, ours, BATCH_OF_50), BATCH_OF_50),
    }
    for name, (form, batch) in forms.items():
        peer: Callable[[], float] = partial(java_produce, kafka, batch)
        found = in_turn({"skidway": form, "kafka": peer}, ROUNDS)
        what = f"own producer, acks 1, {name}"
        table.add(
            Row(what, "msg/s", found["skidway"], found["kafka"], f"{KAFKA}, its Java producer")
        )
    topic = f"tools-{time.time_ns()}"
    for address in brokers.addresses.values():
        fill(address, topic)
    java = in_turn(
        {
            name: partial(java_consume, address, topic)
            for name, address in brokers.addresses.items()
        },
        ROUNDS,
    )
    table.add(Row("Java consumer", "msg/s", java["skidway"], java["kafka"], KAFKA))

    def cold(name: str) -> float:
        drop(topic, brokers.programs[name].pid)
        return stock(brokers.addresses[name], topic)

    found = in_turn({name: partial(cold, name) for name in brokers.addresses}, ROUNDS)
    what = "confluent-kafka consumer, cold page cache"
    table.add(Row(what, "msg/s", found["skidway"], found["kafka"], KAFKA))
    return table


def columns_produce(address: str) -> float:
    """Measures the client that the agent uses. Returns the messages per second that it makes from
    Arrow columns and sends."""
    import numpy as np
    import pyarrow as pa

    from skidway.kafka.batch import Codec
    from skidway.kafka.client import Client, Producer
    from skidway.kafka.columns import encode
    from skidway.kafka.types import TopicPartition

    topic = f"own-{time.time_ns()}"
    create(address, topic)
    values = pa.array([MESSAGE] * COLUMN, pa.binary())
    left, begin = OWN_COUNT // COLUMN, time.perf_counter()
    with Client(address) as client:
        producer = Producer(client, acks=1)
        while left or producer.pending_count:
            while left and producer.has_room:
                times = np.full(COLUMN, time.time_ns() // 1_000_000)
                batch = encode(values, times, codec=Codec.NONE)
                producer.send(TopicPartition(topic, 0), batch, None)
                left -= 1
            for delivery in producer.poll(1000):
                if delivery.error is not None:
                    raise delivery.error
    return OWN_COUNT / (time.perf_counter() - begin)


def produce(address: str, batch_bytes: int | None) -> float:
    """Measures `skidway.producer.Producer`. Returns its messages per second until the last message
    is acknowledged."""
    from skidway.producer import Producer, ProducerSettings

    topic = f"own-{time.time_ns()}"
    create(address, topic)
    batch_bytes = ProducerSettings().batch_size if batch_bytes is None else batch_bytes
    messages = [MESSAGE] * SET
    with Producer(address, acks=1, compression_type="none", batch_size=batch_bytes) as producer:
        producer.send(topic, messages).result(60)
        begin = time.perf_counter()
        sent = [producer.send(topic, messages) for _ in range(OWN_COUNT // SET)]
        producer.flush()
        took = time.perf_counter() - begin
        for each in sent:
            each.result(0)
    return OWN_COUNT / took


def java_produce(address: str, batch_bytes: int | None) -> float:
    """The messages per second that Kafka's ProducerPerformance prints."""
    topic = f"own-{time.time_ns()}"
    create(address, topic)
    properties = [f"bootstrap.servers={address}", "acks=1"]
    if batch_bytes is not None:
        properties += [f"batch.size={batch_bytes}", "linger.ms=5"]
    said = tool(
        f"{TOOLS}.ProducerPerformance",
        [
            *("--topic", topic),
            *("--num-records", str(OWN_COUNT)),
            *("--record-size", str(len(MESSAGE))),
            *("--throughput", "-1"),
            *("--producer-props", *properties),
        ],
        options=FAST,
    )
    rates = re.findall(r"records sent, ([\d.]+) records/sec", said)
    return float(rates[-1])


def java_consume(address: str, topic: str) -> float:
    """The throughput (messages per second of fetching) that Kafka's ConsumerPerformance prints."""
    said = tool(
        f"{TOOLS}.ConsumerPerformance",
        ["--bootstrap-server", address, "--topic", topic, "--messages", str(COUNT)],
        options=FAST,
    )
    head, row = said.strip().splitlines()[-2:]
    names = [name.strip() for name in head.split(",")]
    values = [value.strip() for value in row.split(",")]
    return float(dict(zip(names, values, strict=True))["fetch.nMsg.sec"])


def drop(topic: str, pid: int) -> None:
    """Drops from the page cache those files of a topic that the broker with this `pid` has open."""
    os.sync()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        path = Path(os.readlink(link))
        if path.suffix == ".log" and path.parent.name.startswith(topic):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
