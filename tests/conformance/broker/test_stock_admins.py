"""The administrative functions of unmodified stock clients work on a real broker."""

from __future__ import annotations

import gc
import uuid
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

with warnings.catch_warnings():  # kafka-python finds its files in a way that Python 3.11 deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.admin import ConfigResource as KafkaConfigResource
    from kafka.admin import ConfigResourceType, KafkaAdminClient

from support.brokers import SkidwayBroker

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _forget_what_clients_leave() -> Iterator[None]:
    """Collects garbage after each test, and ignores the warnings about sockets: kafka-python does
    not close its wake-up sockets."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def admin(skidway_broker: SkidwayBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": skidway_broker.address})


@pytest.fixture
def topic(skidway_broker: SkidwayBroker, admin: AdminClient) -> str:
    """A topic with two partitions, and ten records in the first partition."""
    name = f"topic-{uuid.uuid4().hex[:12]}"
    admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "1000"})])[name].result(300)
    producer = Producer({"bootstrap.servers": skidway_broker.address})
    for number in range(10):
        producer.produce(name, b"x", partition=0, timestamp=1_700_000_000_000 + number * 1000)
    assert producer.flush(300) == 0
    return name


def settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Returns the names and values of the settings that are set for the topic itself, without
    defaults."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(300)
    return {
        name: entry.value
        for name, entry in found.items()
        if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    }


def test_confluent_changes_settings(admin: AdminClient, topic: str) -> None:
    """confluent-kafka can change single settings (set, delete, append, subtract), and can replace
    all settings at once."""
    entries = [
        ConfigEntry("segment.ms", "7000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("retention.hold", "a,b", incremental_operation=AlterConfigOpType.APPEND),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(300)
    assert settings(admin, topic) == {"segment.ms": "7000", "retention.hold": "a,b"}
    entries = [ConfigEntry("retention.hold", "a", incremental_operation=AlterConfigOpType.SUBTRACT)]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result(300)
    assert settings(admin, topic)["retention.hold"] == "b"
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"flush.ms": "9"})
    admin.alter_configs([resource])[resource].result(300)
    assert settings(admin, topic) == {"flush.ms": "9"}


def test_confluent_deletes_records(admin: AdminClient, topic: str) -> None:
    """confluent-kafka can delete the records before an offset. The low watermark is then this
    offset. The offset -1 means the log end."""
    for offset, low in ((4, 4), (-1, 10)):
        wanted = TopicPartition(topic, 0, offset)
        assert admin.delete_records([wanted])[wanted].result(300).low_watermark == low
    partition = TopicPartition(topic, 0)
    earliest = admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(300)
    assert earliest.offset == 10


def test_confluent_lists_offsets(admin: AdminClient, topic: str) -> None:
    """confluent-kafka lists the first and last offsets, the offsets for given times, and the offset
    of the record with the largest timestamp."""
    partition = TopicPartition(topic, 0)
    found = [
        admin.list_offsets({partition: spec})[partition].result(300).offset
        for spec in (
            OffsetSpec.earliest(),
            OffsetSpec.latest(),
            OffsetSpec.max_timestamp(),
            OffsetSpec.for_timestamp(1_700_000_002_500),
        )
    ]
    assert found == [0, 10, 9, 3]


def test_confluent_describes_cluster_and_topics(
    skidway_broker: SkidwayBroker, admin: AdminClient
) -> None:
    """confluent-kafka can describe the cluster's nodes and controller."""
    described = admin.describe_cluster().result(300)
    assert [f"{node.host}:{node.port}" for node in described.nodes] == [skidway_broker.address]
    assert described.controller.id == 1


def test_kafka_python_administers(
    skidway_broker: SkidwayBroker, admin: AdminClient, topic: str
) -> None:
    """kafka-python can alter and reset settings, delete records, and describe log directories and
    the cluster."""
    theirs = KafkaAdminClient(bootstrap_servers=skidway_broker.address)
    try:
        change = {"segment.ms": "7000"}
        theirs.alter_configs([KafkaConfigResource(ConfigResourceType.TOPIC, topic, change)])
        assert settings(admin, topic) == {"segment.ms": "7000", "retention.ms": "1000"}
        reset = KafkaConfigResource(ConfigResourceType.TOPIC, topic, ["segment.ms"])
        theirs.reset_configs([reset])
        assert settings(admin, topic) == {"retention.ms": "1000"}
        shown = str(theirs.describe_configs([KafkaConfigResource(ConfigResourceType.TOPIC, topic)]))
        assert "retention.ms" in shown
        theirs.delete_records({kafka.TopicPartition(topic, 0): 6})
        assert str(skidway_broker.logs) in str(theirs.describe_log_dirs())
        cluster = theirs.describe_cluster()
        assert cluster["controller_id"] == 1
        theirs.create_partitions({topic: 4})
    finally:
        theirs.close()
    assert len(admin.list_topics(topic, timeout=60).topics[topic].partitions) == 4
    partition = TopicPartition(topic, 0)
    earliest = admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(300)
    assert earliest.offset == 6


def test_stock_producers_and_the_bound_of_topics(own_broker: SkidwayBroker) -> None:
    """Stock producers create more topics than one request may, because they ask again. If the
    cluster has max.topics topics, a producer gets an error for a further topic within its own
    timeout, and goes on with the others."""
    own_broker.settings |= {"max.topics": 25}
    own_broker.start()
    errors: dict[str, list[Any]] = {}

    def delivered(error: Any, message: Any) -> None:
        errors.setdefault(message.topic(), []).append(error)

    confluent = Producer({"bootstrap.servers": own_broker.address, "message.timeout.ms": 20_000})
    for number in range(24):
        confluent.produce(f"topic-{number}", b"x", on_delivery=delivered)
    assert confluent.flush(300) == 0
    assert list(errors.values()) == [[None]] * 24

    confluent = Producer({"bootstrap.servers": own_broker.address, "message.timeout.ms": 3000})
    for name in ("last", "too many", "topic-0"):
        confluent.produce(name.replace(" ", "-"), b"x", on_delivery=delivered)
        assert confluent.flush(300) == 0
    assert errors["last"] == [None]
    assert errors["topic-0"] == [None, None]
    assert errors["too-many"][0] is not None

    theirs = kafka.KafkaProducer(bootstrap_servers=own_broker.address, max_block_ms=2000)
    with pytest.raises(kafka.errors.KafkaError):
        theirs.send("too-many-again", b"x").get(60)
    theirs.send("topic-1", b"x").get(60)
    theirs.close()
    refused = own_broker.metric('skidway_broker_topics_not_created_total{reason="full"}')
    assert 2 <= refused < 1000
