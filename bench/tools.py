"""Each system's own best producer; the Java consumer on both; a read from a cold page cache.

Ours is `skidway.kafka.Producer` into our broker, sets of messages at a time; Kafka's is its
ProducerPerformance into Apache Kafka. Both with batches of about 50 messages of 200 bytes, and with
their defaults. A cold read follows after the files of the topic were dropped from the page cache.
"""

from __future__ import annotations

import os
import re
import time
from functools import partial
from pathlib import Path

from bench.consume import COUNT, fill, stock
from bench.measure import Row, Table, in_turn
from bench.produce import MESSAGE, create
from bench.scale import scaled
from bench.sites import Brokers
from support.kafka import tool

ROUNDS = scaled(3, 1)
OWN_COUNT = scaled(2_000_000, 20_000)
SET = 1_000
TOOLS = "org.apache.kafka.tools"
PEER = "Apache Kafka 4.1"
BATCHES = {"batches of about 50": 10_500, "defaults": None}


def run(brokers: Brokers) -> Table:
    """Producers, then consumers, in turn."""
    table = Table("tools: each system's own producer, the Java consumer, a cold read; 200 bytes")
    ours, kafka = brokers.addresses["skidway"], brokers.addresses["kafka"]
    for name, batch in BATCHES.items():
        found = in_turn(
            {
                "skidway": partial(produce, ours, batch),
                "kafka": partial(java_produce, kafka, batch),
            },
            ROUNDS,
        )
        what = f"own producer, acks 1, {name}"
        table.add(
            Row(what, "msg/s", found["skidway"], found["kafka"], f"{PEER}, its Java producer")
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
    table.add(Row("Java consumer", "msg/s", java["skidway"], java["kafka"], PEER))

    def cold(name: str) -> float:
        drop(topic, brokers.programs[name].pid)
        return stock(brokers.addresses[name], topic)

    found = in_turn({name: partial(cold, name) for name in brokers.addresses}, ROUNDS)
    what = "confluent-kafka consumer, cold page cache"
    table.add(Row(what, "msg/s", found["skidway"], found["kafka"], PEER))
    return table


def produce(address: str, batch_bytes: int | None) -> float:
    """Messages a second of our producer, until the last one is acknowledged."""
    from skidway.kafka import Producer
    from skidway.kafka.producer import ProducerSettings

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
    """What Kafka's ProducerPerformance says."""
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
    )
    rates = re.findall(r"records sent, ([\d.]+) records/sec", said)
    return float(rates[-1])


def java_consume(address: str, topic: str) -> float:
    """What Kafka's ConsumerPerformance says of its fetching."""
    said = tool(
        f"{TOOLS}.ConsumerPerformance",
        ["--bootstrap-server", address, "--topic", topic, "--messages", str(COUNT)],
    )
    head, row = said.strip().splitlines()[-2:]
    names = [name.strip() for name in head.split(",")]
    values = [value.strip() for value in row.split(",")]
    return float(dict(zip(names, values, strict=True))["fetch.nMsg.sec"])


def drop(topic: str, pid: int) -> None:
    """Take the files that a broker has open of a topic out of the page cache."""
    os.sync()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        path = Path(os.readlink(link))
        if path.suffix == ".log" and path.parent.name.startswith(topic):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
