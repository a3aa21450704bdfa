"""Our Kafka client (`skidway.kafka.client`) works in the same way with Apache Kafka 4.4 and with
our own broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import EncodedBatch, check, read_header
from skidway.kafka.client import (
    EARLIEST,
    LATEST,
    Client,
    Delivery,
    Drained,
    Fetcher,
    NewTopic,
    Producer,
)
from skidway.kafka.client.calls import Call, FetchCall, ProduceCall
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.session import Channel
from skidway.kafka.codecs import BY_NUMBER, NONE, ZSTD, Codec
from skidway.kafka.errors import ErrorCode, OffsetOutOfRange
from skidway.kafka.source import sources_of
from skidway.kafka.types import TopicPartition
from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.processes import WITHIN_S

pytestmark = pytest.mark.java


@pytest.fixture
def client(bootstrap: str) -> Iterator[Client]:
    with Client(bootstrap) as running:
        yield running


@pytest.fixture
def topic(client: Client) -> str:
    name = topic_name("client")
    configs = {"max.message.bytes": "1000000"}
    assert client.create_topics([NewTopic(name, 3, 1, configs)]) == {name: None}
    deadline = time.monotonic() + WITHIN_S
    while len(client.metadata([name]).topics[name].partitions) != 3:
        assert time.monotonic() < deadline
        client.pause(0.05)
    return name


def encoded(number: int, count: int = 50, codec: Codec = ZSTD) -> EncodedBatch:
    values = pa.array([b"%d.%d " % (number, i) * 20 for i in range(count)], pa.binary())
    first = np.arange(count, dtype=np.int64) * 10 + number * 1_000
    same = np.full(count, 7, np.int64)
    now = time.time_ns() // 1_000_000 - np.arange(count)
    origins = columns.Origins(same, same + 1, first, same)
    return columns.encode(values, now, origins=origins, codec=codec)


def deliveries_of(producer: Producer, count: int) -> list[Delivery]:
    found: list[Delivery] = []
    deadline = time.monotonic() + WITHIN_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}: {producer.troubles}"
        found += producer.poll(500)
    return found


def read(
    client: Client, tp: TopicPartition, start: int, until: int
) -> list[columns.DecodedRecords]:
    """Fetches a partition's batches from the offset `start` up to the offset `until`, and returns
    their decoded records. Asserts that no batch is skipped or repeated, and that each batch has a
    correct CRC."""
    fetcher = Fetcher(client, max_wait_ms=100, max_bytes=20_000)
    fetcher.seek(tp, start)
    found: list[columns.DecodedRecords] = []
    position = start
    deadline = time.monotonic() + WITHIN_S
    while position < until:
        assert time.monotonic() < deadline, f"{position} of {until}"
        for fetched in fetcher.poll(500):
            for raw in fetched.batches:
                header = read_header(raw)
                check(raw, 0, header)
                assert header.base_offset <= position <= header.last_offset
                position = header.last_offset + 1
                found.append(columns.decode(raw))
    return found


@pytest.mark.parametrize("codec", list(BY_NUMBER.values()))
def test_what_is_produced_is_fetched(client: Client, topic: str, codec: Codec) -> None:
    """With every codec, the client fetches the values, timestamps and origins that it produced, at
    the acknowledged offsets. An origin says from which bytes of a log file a record was made."""
    tp = TopicPartition(topic, 1)
    producer = Producer(client)
    sent = [encoded(number, codec=codec) for number in range(12)]
    assert {each.codec for each in sent} == {codec.number}
    for number, batch in enumerate(sent):
        producer.send(tp, batch, number)
    found = deliveries_of(producer, 12)
    assert [(each.token, each.base_offset, each.error) for each in found] == [
        (number, 50 * number, None) for number in range(12)
    ]
    assert client.list_offsets({tp: LATEST})[tp].offset == 600
    assert client.list_offsets({tp: EARLIEST})[tp].offset == 0
    batches = read(client, tp, 0, 600)
    values = [value for batch in batches for value in batch.values.to_pylist()]
    assert values == [b"%d.%d " % (n, i) * 20 for n in range(12) for i in range(50)]
    times = [time_ms for batch in batches for time_ms in batch.timestamps.tolist()]
    assert times == [batch.max_timestamp - i for batch in sent for i in range(50)]
    firsts = [f for b in batches if b.origins is not None for f in b.origins.first.tolist()]
    assert firsts == [n * 1_000 + i * 10 for n in range(12) for i in range(50)]
    assert read(client, tp, 575, 600)[0].offsets[0] == 550


def test_several_partitions_in_one_request(
    client: Client, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer can send batches of several partitions in one request, and a fetcher can read all
    these partitions with one request. The batches of each partition are acknowledged and fetched in
    order, each once."""
    submit, calls = client.session.submit, list[Call]()

    def noted(address: Address, channel: Channel, call: Call, *others: Any) -> int:
        calls.append(call)
        return submit(address, channel, call, *others)

    monkeypatch.setattr(client.session, "submit", noted)
    producer, fetcher = Producer(client), Fetcher(client, max_wait_ms=100)
    tps = [TopicPartition(topic, index) for index in range(3)]
    for number in range(30):
        producer.send(tps[number % 3], encoded(number), number)
    found = deliveries_of(producer, 30)
    for index, tp in enumerate(tps):
        assert [each.token for each in found if each.tp == tp] == list(range(index, 30, 3))
        fetcher.seek(tp, 0)
    firsts: dict[TopicPartition, list[Any]] = {tp: [] for tp in tps}
    deadline = time.monotonic() + WITHIN_S
    while sum(map(len, firsts.values())) < 30 and time.monotonic() < deadline:
        for fetched in fetcher.poll(500):
            firsts[fetched.tp] += [columns.decode(raw).values[0].as_py() for raw in fetched.batches]
    for index, tp in enumerate(tps):
        assert firsts[tp] == [b"%d.0 " % number * 20 for number in range(index, 30, 3)]
    assert max(len(each.data) for each in calls if isinstance(each, ProduceCall)) == 3
    assert max(len(each.request.wanted) for each in calls if isinstance(each, FetchCall)) == 3


def test_too_large_a_batch_comes_back(client: Client, topic: str) -> None:
    """If a batch is larger than the topic's limit, the producer returns this batch with the
    broker's error, and all later batches of the partition with the error Drained. The later batches
    arrive when they are sent again."""
    tp = TopicPartition(topic, 0)
    producer = Producer(client)
    large = columns.encode(
        pa.array([np.random.default_rng(1).bytes(1_200_000)], pa.binary()),
        np.full(1, time.time_ns() // 1_000_000),
    )
    for number, batch in enumerate([encoded(0), large, encoded(2), encoded(3)]):
        producer.send(tp, batch, number)
    found = deliveries_of(producer, 4)
    assert [each.token for each in found] == [0, 1, 2, 3]
    assert found[0].error is None
    assert found[1].error is not None
    assert found[1].error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert all(isinstance(each.error, Drained) for each in found[2:])
    for number in (2, 3):
        producer.send(tp, encoded(number), number)
    assert [each.error for each in deliveries_of(producer, 2)] == [None, None]
    values = [v for b in read(client, tp, 0, 150) for v in b.values.to_pylist()]
    assert values == [b"%d.%d " % (n, i) * 20 for n in (0, 2, 3) for i in range(50)]


def test_old_event_times_are_taken_one_by_one(client: Client, topic: str) -> None:
    """If records have timestamps of years ago, their batches arrive in order, each batch once."""
    tp = TopicPartition(topic, 2)
    producer = Producer(client)
    for number in range(8):
        values = pa.array([b"%d" % number], pa.binary())
        producer.send(tp, columns.encode(values, np.full(1, 1_300_000_000_000 + number)), number)
    assert [each.base_offset for each in deliveries_of(producer, 8)] == list(range(8))
    batches = read(client, tp, 0, 8)
    assert [int(batch.timestamps[0]) for batch in batches] == [
        1_300_000_000_000 + n for n in range(8)
    ]


def test_offsets_outside_are_told(client: Client, topic: str) -> None:
    """If the fetcher is asked to read from an offset beyond the log end, its `poll` raises
    OffsetOutOfRange."""
    fetcher = Fetcher(client, max_wait_ms=100)
    fetcher.seek(TopicPartition(topic, 0), 1_000)
    with pytest.raises(OffsetOutOfRange) as caught:
        fetcher.poll(int(WITHIN_S * 1000))
    assert (caught.value.tp.topic, caught.value.requested) == (topic, 1_000)


def test_a_fetch_waits_for_what_comes(client: Client, topic: str) -> None:
    """A poll at the log end waits, and returns a record as soon as it is produced."""
    tp = TopicPartition(topic, 0)
    fetcher, producer = Fetcher(client, max_wait_ms=400), Producer(client)
    fetcher.seek(tp, 0)
    assert fetcher.poll(600) == []
    producer.send(tp, encoded(1), 1)
    deliveries_of(producer, 1)
    fetched = fetcher.poll(int(WITHIN_S * 1000))
    assert [read_header(raw).count for raw in fetched[0].batches] == [50]
    assert fetched[0].high_watermark == 50
    assert fetcher.positions == {tp: 50}


def test_topics_are_administered(client: Client, topic: str) -> None:
    """The client can create, describe and delete topics. A wrong request gets Kafka's error
    code."""
    again = client.create_topics([NewTopic(topic, 1, 1)])[topic]
    assert again is not None
    assert again.code is ErrorCode.TOPIC_ALREADY_EXISTS
    bad = client.create_topics([NewTopic("not a name", 1, 1)])["not a name"]
    assert bad is not None
    assert bad.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert client.topic_configs([topic])[topic]["max.message.bytes"] == "1000000"
    assert client.broker_configs()
    cluster = client.metadata([topic, "nobody-made-this"])
    assert cluster.cluster_id
    assert cluster.topics["nobody-made-this"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [p.index for p in cluster.topics[topic].partitions] == [0, 1, 2]
    source = sources_of(client, [topic], "dc1")[topic]
    assert (source.cluster, source.topic) == ("dc1", topic)
    assert source.cluster_id == cluster.cluster_id
    assert client.delete_topics([topic])[topic] is None
    gone = client.delete_topics(["nobody-made-this"])["nobody-made-this"]
    assert gone is not None
    assert gone.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_gets_more_partitions(client: Client, topic: str) -> None:
    """The client can add partitions to a topic, and the new partitions accept records."""
    assert client.create_partitions({topic: 5}) == {topic: None}
    producer = Producer(client)
    tp = TopicPartition(topic, 4)
    producer.send(tp, encoded(1), "new")
    assert [each.error for each in deliveries_of(producer, 1)] == [None]
    assert client.list_offsets({tp: LATEST})[tp].offset == 50


def test_several_producers_do_not_disturb_each_other(client: Client, topic: str) -> None:
    """If two producers write to one partition, the batches of each producer stay in order."""
    tp = TopicPartition(topic, 0)
    producers = [Producer(client), Producer(client)]
    for number in range(10):
        for which, producer in enumerate(producers):
            producer.send(tp, encoded(100 * which + number, count=1), number)
    for producer in producers:
        assert [each.token for each in deliveries_of(producer, 10)] == list(range(10))
    values = [v for b in read(client, tp, 0, 20) for v in b.values.to_pylist()]
    for which in range(2):
        mine = [int(v.split(b".")[0]) for v in values]
        assert [n for n in mine if n // 100 == which] == [100 * which + n for n in range(10)]


def test_our_broker_killed_under_load(skidway_broker: SkidwayBroker) -> None:
    """If the broker is killed (kill -9) under load and then restarted, every batch is in the log
    exactly once."""
    with Client(skidway_broker.address) as client:
        name = topic_name("killed")
        assert client.create_topics([NewTopic(name, 1, 1)]) == {name: None}
        tp = TopicPartition(name, 0)
        producer = Producer(client)
        found: list[Delivery] = []
        for number in range(300):
            producer.send(tp, encoded(number, codec=NONE), number)
            found += producer.poll(0)
            if number in (100, 200):
                skidway_broker.crash()
        found += deliveries_of(producer, 300 - len(found))
        assert [(each.token, each.error) for each in found] == [(n, None) for n in range(300)]
        end = client.list_offsets({tp: LATEST})[tp].offset
        firsts = [
            first
            for batch in read(client, tp, 0, end)
            if batch.origins is not None
            for first in batch.origins.first.tolist()
        ]
    assert list(dict.fromkeys(firsts)) == [
        n * 1_000 + i * 10 for n in range(300) for i in range(50)
    ]
    assert len(firsts) == len(set(firsts))
