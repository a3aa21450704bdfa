"""The unmodified Java 4.4 producer works with our broker."""

from __future__ import annotations

import pytest

from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetcher
from skidway.kafka.codecs import BY_NAME, Codec, codec_of
from skidway.kafka.types import TopicPartition
from support.brokers import SkidwayBroker
from support.java_clients import JavaClients, JavaFailed, values_of
from support.kafka import tool, topic_name
from support.processes import eventually

pytestmark = [pytest.mark.java, pytest.mark.foreign]

PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CODECS = list(BY_NAME)


def end_of(bootstrap: str, topic: str, partition: int = 0) -> int:
    tp = TopicPartition(topic, partition)
    with Client(bootstrap) as client:
        return client.list_offsets({tp: LATEST})[tp].offset


def codecs_in(bootstrap: str, topic: str) -> set[Codec]:
    tp = TopicPartition(topic, 0)
    with Client(bootstrap) as client:
        fetcher = Fetcher(client)
        fetcher.seek(tp, client.list_offsets({tp: EARLIEST})[tp].offset)
        return {
            codec_of(read_header(raw))
            for fetched in fetcher.poll(10_000)
            for raw in fetched.batches
        }


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_comes_back(
    java_clients: JavaClients, bootstrap: str, topic: str, codec: str
) -> None:
    """With every codec, a consumer gets the same keys, values, nulls, headers and timestamps that
    were produced. The log stores the batches as the producer compressed them."""
    sent = [
        (b"%d" % n, None if n == 7 else b"value %d " % n * 20, 1_600_000_000_000 + n, b"\x00%c" % n)
        for n in range(50)
    ]
    with java_clients.producer(bootstrap, compression_type=codec, linger_ms=100) as producer:
        futures = [
            producer.send(
                java_clients.record(topic, value, key=key, timestamp=at, headers={"h": header})
            )
            for key, value, at, header in sent
        ]
        offsets = [java_clients.wait(each).offset() for each in futures]
    assert offsets == list(range(50))
    with java_clients.consumer(bootstrap) as consumer:
        consumer.assign([java_clients.tp(topic)])
        consumer.seekToBeginning([java_clients.tp(topic)])
        found = java_clients.poll(consumer, 50)
    assert [(r.key, r.value, r.timestamp, r.headers[0][1]) for r in found] == sent
    assert [r.offset for r in found] == list(range(50))
    assert codecs_in(bootstrap, topic) == {BY_NAME[codec]}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_each_kind_of_acknowledgement(
    java_clients: JavaClients, bootstrap: str, topic: str, acks: str
) -> None:
    """With acks=0 a send returns no offset. With acks=1 or acks=all it returns the record's offset.
    All records arrive in order."""
    values = [b"%d" % n for n in range(200)]
    settings = {"acks": acks, "enable_idempotence": acks == "all"}
    with java_clients.producer(bootstrap, **settings) as producer:
        futures = [producer.send(java_clients.record(topic, value)) for value in values]
        offsets = [java_clients.wait(each).offset() for each in futures]
    assert offsets == ([-1] * 200 if acks == "0" else list(range(200)))
    eventually(lambda: end_of(bootstrap, topic) == 200, what="all 200 are stored")
    with java_clients.consumer(bootstrap) as consumer:
        consumer.assign([java_clients.tp(topic)])
        consumer.seekToBeginning([java_clients.tp(topic)])
        assert values_of(java_clients.poll(consumer, 200)) == values


def test_too_large_a_record_is_refused_alone(
    java_clients: JavaClients, bootstrap: str, topic: str
) -> None:
    """If a record is larger than the broker's limit, its send raises RecordTooLargeException. The
    producer can send further records."""
    settings = {"max_request_size": 10_000_000, "batch_size": 0}
    with java_clients.producer(bootstrap, **settings) as producer:
        java_clients.wait(producer.send(java_clients.record(topic, b"before")))
        with pytest.raises(JavaFailed) as caught:
            java_clients.wait(producer.send(java_clients.record(topic, bytes(1_200_000))))
        assert caught.value.name == "RecordTooLargeException"
        assert java_clients.wait(producer.send(java_clients.record(topic, b"after"))).offset() == 1


def test_a_killed_broker_costs_nothing(
    java_clients: JavaClients, skidway_broker: SkidwayBroker
) -> None:
    """A producer with default settings is idempotent. So if the broker is killed with kill -9 while
    this producer sends, each record is stored once and in order."""
    name = topic_name("killed")
    with java_clients.admin(skidway_broker.address) as admin:
        java_clients.create(admin, name)
    values = [b"%d" % n for n in range(3_000)]
    settings = {"linger_ms": 1, "batch_size": 300, "reconnect_backoff_ms": 20}
    with java_clients.producer(skidway_broker.address, **settings) as producer:
        futures = []
        for number, value in enumerate(values):
            futures.append(producer.send(java_clients.record(name, value)))
            if number in (1_000, 2_000):
                skidway_broker.crash()
        offsets = [java_clients.wait(each).offset() for each in futures]
    assert offsets == list(range(3_000))
    with java_clients.consumer(skidway_broker.address) as consumer:
        consumer.assign([java_clients.tp(name)])
        consumer.seekToBeginning([java_clients.tp(name)])
        assert values_of(java_clients.poll(consumer, 3_000)) == values
    assert end_of(skidway_broker.address, name) == 3_000


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_producer_performance(bootstrap: str, topic: str, acks: str) -> None:
    """The broker stores every record that Kafka's own load tool reports as sent."""
    arguments = [
        "--topic", topic, "--num-records", "20000", "--record-size", "200", "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={bootstrap}", f"acks={acks}",
        "compression.type=lz4", "partitioner.ignore.keys=true",
    ]  # fmt: skip
    assert "20000 records sent" in tool(PERFORMANCE, arguments)
    eventually(
        lambda: end_of(bootstrap, topic) + end_of(bootstrap, topic, 1) == 20_000,
        what="all 20000 are stored",
    )
