"""Other Kafka clients can read the batches that our client produces, and our client can read the
batches of other clients. The broker in these tests is Apache Kafka."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import Producer as StockProducer
from confluent_kafka import TopicPartition as StockPartition

from skidway.kafka import columns, origin
from skidway.kafka.batch import read_header
from skidway.kafka.client import Client, Fetcher, NewTopic, Producer
from skidway.kafka.codecs import BY_NUMBER, Codec, codec_of
from skidway.kafka.types import TopicPartition
from support.kafka import ApacheKafka, tool, topic_name

pytestmark = pytest.mark.java

COUNT = 3_000
NOW_MS = time.time_ns() // 1_000_000


def value_of(number: int) -> bytes | None:
    return None if number % 97 == 0 else b"line %d " % number + b"abcdef " * (number % 40)


def key_of(number: int) -> bytes | None:
    return None if number % 3 == 0 else b"key %d" % (number % 7)


def make_topic(client: Client) -> TopicPartition:
    name = topic_name("stock")
    assert client.create_topics([NewTopic(name, 1, 1)]) == {name: None}
    return TopicPartition(name, 0)


def ours(client: Client, tp: TopicPartition, codec: Codec) -> None:
    producer = Producer(client)
    for start in range(0, COUNT, 1_000):
        numbers = range(start, start + 1_000)
        first = np.array(numbers, np.int64)
        same = np.full(1_000, 5, np.int64)
        encoded = columns.encode(
            pa.array([value_of(n) for n in numbers], pa.binary()),
            NOW_MS + (first * 7) % 1_000,
            origins=columns.Origins(same, same, first, same),
            keys=pa.array([key_of(n) for n in numbers], pa.binary()),
            codec=codec,
        )
        assert encoded.codec == codec.number
        producer.send(tp, encoded, start)
    assert producer.flush(300_000)
    assert [delivery.error for delivery in producer.poll(0)] == [None] * 3


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
def test_librdkafka_and_java_read_ours(apache_kafka: ApacheKafka, codec: Codec) -> None:
    """librdkafka and Kafka's Java consumer can read every record that our producer writes, with
    every codec."""
    with Client(apache_kafka.address) as client:
        tp = make_topic(client)
        ours(client, tp, codec)
    consumer = Consumer({"bootstrap.servers": apache_kafka.address, "group.id": tp.topic})
    consumer.assign([StockPartition(tp.topic, 0, 0)])
    for number in range(COUNT):
        message = consumer.poll(90)
        assert message is not None
        assert message.error() is None
        assert (message.offset(), message.key(), message.value()) == (
            number,
            key_of(number),
            value_of(number),
        )
        assert message.timestamp()[1] == NOW_MS + (number * 7) % 1_000
        [(name, header)] = message.headers()
        assert name == "origin"
        assert origin.unpack(header) == (5, 5, number, 5)
    consumer.close()
    words = ["--bootstrap-server", apache_kafka.address, "--topic", tp.topic, "--from-beginning"]
    words += ["--max-messages", str(COUNT), "--formatter-property", "null.literal=NULL"]
    lines = tool("org.apache.kafka.tools.consumer.ConsoleConsumer", words).splitlines()
    expected = [(value_of(n) or b"NULL").decode() for n in range(COUNT)]
    assert [line for line in lines if line in set(expected)] == expected


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
def test_we_read_librdkafkas(apache_kafka: ApacheKafka, codec: Codec) -> None:
    """Our client can read the records of librdkafka with every codec, including keys, nulls, the
    headers with the origins of records, and other headers."""
    with Client(apache_kafka.address) as client:
        tp = make_topic(client)
        stock = StockProducer(
            {
                "bootstrap.servers": apache_kafka.address,
                "compression.codec": codec.name,
                "linger.ms": 20,
                "enable.idempotence": True,
            }
        )
        for number in range(COUNT):
            headers = [("trace", b"t%d" % number)] if number % 5 == 0 else []
            if number % 2 == 0:
                headers.append(("origin", origin.pack(1, 2, number, 3)))
            stock.produce(
                tp.topic,
                value_of(number),
                key_of(number),
                0,
                timestamp=NOW_MS + number,
                headers=headers,
            )
        assert stock.flush(300) == 0
        fetcher = Fetcher(client, max_wait_ms=100)
        fetcher.seek(tp, 0)
        batches: list[columns.DecodedRecords] = []
        codecs = set()
        deadline = time.monotonic() + 300
        while sum(len(batch.offsets) for batch in batches) < COUNT and time.monotonic() < deadline:
            for fetched in fetcher.poll(500):
                batches += [columns.decode(raw) for raw in fetched.batches]
                codecs |= {codec_of(read_header(raw)) for raw in fetched.batches}
    assert codec in codecs
    number = 0
    for batch in batches:
        keys, values = batch.keys.to_pylist(), batch.values.to_pylist()
        for row in range(len(batch.offsets)):
            assert int(batch.offsets[row]) == number
            assert int(batch.timestamps[row]) == NOW_MS + number
            assert (keys[row], values[row]) == (key_of(number), value_of(number))
            assert bool(batch.has_origin[row]) == (number % 2 == 0)
            if number % 2 == 0:
                assert batch.origins is not None
                assert int(batch.origins.first[row]) == number
            number += 1
    assert number == COUNT
