"""Unmodified librdkafka works with our broker when it waits for records, gets refusals, reads
settings, and creates and deletes topics. The tests in tests/conformance/stock_clients test
producing, consuming and groups, with each stock client."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from support.brokers import SkidwayBroker
from support.processes import eventually

pytestmark = pytest.mark.quick


def new_name() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


def values(label: str, count: int) -> list[bytes]:
    return [b"%s-%d" % (label.encode(), number) for number in range(count)]


def create(address: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(300)


def produce(address: str, topic: str, sent: list[bytes], acks: int = -1) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": acks})
    errors: list[object] = []

    def delivered(error: object, _message: object) -> None:
        if error is not None:
            errors.append(error)

    for value in sent:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(300) == 0
    assert errors == []


def consume(address: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[bytes] = []
        deadline = time.monotonic() + 300
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(1000, 1.0):
                assert message.error() is None
                assert message.offset() == len(found)
                found.append(message.value())
        return found
    finally:
        consumer.close()


def ends(address: str, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
    finally:
        consumer.close()


def test_a_consumer_that_waits_gets_what_comes(skidway_broker: SkidwayBroker) -> None:
    """A consumer that waits at the log end gets the next record as soon as it is produced, long
    before the wait of its fetch (a minute) ends."""
    address, topic = skidway_broker.address, new_name()
    create(address, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "fetch.wait.max.ms": 60_000,
            "socket.timeout.ms": 300_000,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.5) is None
        eventually(lambda: skidway_broker.metric("skidway_broker_requests_waiting") >= 1)
        produce(address, topic, [b"late"], acks=1)
        message = consumer.poll(300)
        assert message is not None
        assert message.value() == b"late"
    finally:
        consumer.close()


def test_an_unknown_topic_is_created_when_it_is_written_to(skidway_broker: SkidwayBroker) -> None:
    """With auto.create.topics.enable an unknown topic is created for a producer, but not for a
    consumer that forbids the creation of topics."""
    address, topic = skidway_broker.address, new_name()
    produce(address, topic, [b"first"])
    assert consume(address, topic, 1) == [b"first"]
    other = new_name()
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "allow.auto.create.topics": False,
        }
    )
    consumer.assign([TopicPartition(other, 0, 0)])
    consumer.poll(1)
    consumer.close()
    assert other not in AdminClient({"bootstrap.servers": address}).list_topics(timeout=60).topics


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(KafkaException) as caught:
        call()
    return str(caught.value.args[0].name())


def test_topics_are_refused_for_the_reasons_that_kafka_has(skidway_broker: SkidwayBroker) -> None:
    """Before the broker creates a topic, it checks the topic's name, its numbers of partitions and
    replicas and its settings, and whether the topic already exists. It refuses a topic for the same
    reasons as Kafka."""
    admin = AdminClient({"bootstrap.servers": skidway_broker.address})
    name = new_name()

    def create(
        topic: str, partitions: int = 1, replicas: int = 1, only: bool = False, **config: str
    ) -> object:
        new = NewTopic(
            topic, partitions, replicas, config={k.replace("_", "."): v for k, v in config.items()}
        )
        return admin.create_topics([new], validate_only=only)[topic].result(300)

    for illegal in ("..", "a/b", "x" * 250, "with space"):
        assert refusal(lambda topic=illegal: create(topic)) == "TOPIC_EXCEPTION"
    assert refusal(lambda: create(name, 0)) == "INVALID_PARTITIONS"
    assert refusal(lambda: create(name, 1, 2)) == "INVALID_REPLICATION_FACTOR"
    assert refusal(lambda: create(name, retention_ms="soon")) == "INVALID_CONFIG"
    assert refusal(lambda: create(name, no_such_key="1")) == "INVALID_CONFIG"
    create(name, only=True)
    assert name not in admin.list_topics(timeout=60).topics
    create(name, 3, retention_ms="1000")
    assert refusal(lambda: create(name)) == "TOPIC_ALREADY_EXISTS"
    assert len(admin.list_topics(name, timeout=60).topics[name].partitions) == 3
    admin.create_partitions([NewPartitions(name, 5)])[name].result(300)
    assert len(admin.list_topics(name, timeout=60).topics[name].partitions) == 5
    assert (
        refusal(lambda: admin.create_partitions([NewPartitions(name, 5)])[name].result(300))
        == "INVALID_PARTITIONS"
    )
    admin.delete_topics([name])[name].result(300)
    assert refusal(lambda: admin.delete_topics([name])[name].result(300)) == "UNKNOWN_TOPIC_OR_PART"


def test_settings_are_described_with_all_defaults(skidway_broker: SkidwayBroker) -> None:
    """The description of a topic shows the topic's own settings and default settings, and says
    which of them are defaults. The description of the broker shows the cluster's name."""
    admin = AdminClient({"bootstrap.servers": skidway_broker.address})
    topic = new_name()
    own = {"retention.ms": "1234", "mirror.source.topic": "logs"}
    admin.create_topics([NewTopic(topic, 1, 1, config=own)])[topic].result(300)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(300)
    assert found["retention.ms"].value == "1234"
    assert not found["retention.ms"].is_default
    assert found["mirror.source.topic"].value == "logs"
    assert found["segment.bytes"].value == str(1 << 30)
    assert found["segment.bytes"].is_default
    resource = ConfigResource(ResourceType.BROKER, "1")
    found = admin.describe_configs([resource])[resource].result(300)
    assert found["cluster.name"].value == "main"
    assert found["log.flush.interval.ms"].value == "50"


def test_a_topic_made_again_is_another(skidway_broker: SkidwayBroker) -> None:
    """A topic that was deleted and created again under the same name is empty and has another topic
    id."""
    address, topic = skidway_broker.address, new_name()
    admin = AdminClient({"bootstrap.servers": address})
    ids = []
    for _ in range(2):
        create(address, topic)
        ids.append((skidway_broker.logs / f"{topic}-0" / "partition.metadata").read_text())
        produce(address, topic, values("x", 10))
        assert ends(address, topic) == (0, 10)
        admin.delete_topics([topic])[topic].result(300)
    assert ids[0] != ids[1]


def test_a_batch_that_is_too_large_is_refused(skidway_broker: SkidwayBroker) -> None:
    """A batch that is larger than the topic's max.message.bytes is refused. The batches before and
    after it are stored, over the same connection."""
    address, topic = skidway_broker.address, new_name()
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "1000"})])[
        topic
    ].result(300)
    producer = Producer({"bootstrap.servers": address})
    errors: list[object] = []
    accepted: list[float] = []
    for size in (500, 5000, 600):
        producer.produce(
            topic, b"x" * size, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
        producer.flush(300)
        accepted.append(skidway_broker.metric("skidway_broker_connections_accepted_total"))
    assert [None if each is None else each.name() for each in errors] == [
        None,
        "MSG_SIZE_TOO_LARGE",
        None,
    ]
    assert accepted[0] == accepted[2] > 0
    assert consume(address, topic, 2) == [b"x" * 500, b"x" * 600]


def test_a_transactional_producer_ends_at_once(skidway_broker: SkidwayBroker) -> None:
    """A transactional producer gets an error with the reason at once, and does not have to wait for
    a timeout."""
    producer = Producer({"bootstrap.servers": skidway_broker.address, "transactional.id": "tx"})
    with pytest.raises(KafkaException) as raised:
        producer.init_transactions(60)
    error = raised.value.args[0]
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert error.fatal()
    assert not error.retriable()
