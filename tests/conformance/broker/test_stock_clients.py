"""Stock clients, unmodified, against a real broker: create, produce, consume, offsets, delete."""

from __future__ import annotations

import asyncio
import gc
import time
import uuid
import warnings
from collections.abc import Callable, Iterator

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

with warnings.catch_warnings():  # its way to its own resources is deprecated in Python 3.11
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as KafkaNewTopic

from support.brokers import SkidwayBroker
from support.processes import eventually

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 500


@pytest.fixture(autouse=True)
def _forget_what_clients_leave() -> Iterator[None]:
    """kafka-python leaves wake-up sockets to the garbage collector, which warns of them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def new_name() -> str:
    return f"topic-{uuid.uuid4().hex[:12]}"


def values(codec: str, count: int = COUNT) -> list[bytes]:
    return [b"%s-%d" % (codec.encode(), number) for number in range(count)]


# One driver per client, with the same five verbs: a further client is a further class.


class Confluent:
    """librdkafka, through confluent-kafka."""

    codecs = CODECS

    def create(self, address: str, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(10)

    def produce(
        self, address: str, topic: str, codec: str, acks: int, idempotent: bool, sent: list[bytes]
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": address,
                "compression.type": codec,
                "acks": acks,
                "enable.idempotence": idempotent,
            }
        )
        errors: list[object] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                errors.append(error)

        for value in sent:
            producer.produce(topic, value, partition=0, on_delivery=delivered)
        assert producer.flush(30) == 0
        assert errors == []

    def consume(self, address: str, topic: str, count: int) -> list[bytes]:
        consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
        )
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            found: list[bytes] = []
            deadline = time.monotonic() + 30
            while len(found) < count and time.monotonic() < deadline:
                for message in consumer.consume(1000, 1.0):
                    assert message.error() is None
                    assert message.offset() == len(found)
                    found.append(message.value())
            return found
        finally:
            consumer.close()

    def ends(self, address: str, topic: str) -> tuple[int, int]:
        consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, 0), 10)
        finally:
            consumer.close()

    def delete(self, address: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": address})
        admin.delete_topics([topic])[topic].result(10)


class KafkaPython:
    """kafka-python; its other codecs need libraries that we do not."""

    codecs = ("none", "gzip")

    def create(self, address: str, topic: str, partitions: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.create_topics([KafkaNewTopic(topic, partitions, 1)])
        admin.close()

    def produce(
        self, address: str, topic: str, codec: str, acks: int, idempotent: bool, sent: list[bytes]
    ) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
        )
        futures = [producer.send(topic, value, partition=0) for value in sent]
        producer.flush(30)
        for future in futures:
            future.get(30)
        producer.close()

    def consume(self, address: str, topic: str, count: int) -> list[bytes]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        found: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            for records in consumer.poll(1000).values():
                found += [record.value for record in records]
        consumer.close()
        return found

    def ends(self, address: str, topic: str) -> tuple[int, int]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=address)
        partition = kafka.TopicPartition(topic, 0)
        ends = (
            consumer.beginning_offsets([partition])[partition],
            consumer.end_offsets([partition])[partition],
        )
        consumer.close()
        return ends

    def delete(self, address: str, topic: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=address)
        admin.delete_topics([topic])
        admin.close()


class AioKafka:
    """aiokafka."""

    codecs = CODECS

    def create(self, address: str, topic: str, partitions: int) -> None:
        async def run() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=address)
            await admin.start()
            await admin.create_topics([AioNewTopic(topic, partitions, 1)])
            await admin.close()

        asyncio.run(run())

    def produce(
        self, address: str, topic: str, codec: str, acks: int, idempotent: bool, sent: list[bytes]
    ) -> None:
        async def run() -> None:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=address,
                acks="all" if acks == -1 else acks,
                compression_type=None if codec == "none" else codec,
                enable_idempotence=idempotent,
            )
            await producer.start()
            try:
                await asyncio.gather(
                    *[await producer.send(topic, value, partition=0) for value in sent]
                )
            finally:
                await producer.stop()

        asyncio.run(run())

    def consume(self, address: str, topic: str, count: int) -> list[bytes]:
        async def run() -> list[bytes]:
            consumer = aiokafka.AIOKafkaConsumer(
                bootstrap_servers=address, enable_auto_commit=False
            )
            await consumer.start()
            try:
                partition = aiokafka.TopicPartition(topic, 0)
                consumer.assign([partition])
                consumer.seek(partition, 0)
                found: list[bytes] = []
                deadline = time.monotonic() + 30
                while len(found) < count and time.monotonic() < deadline:
                    for records in (await consumer.getmany(timeout_ms=1000)).values():
                        found += [record.value for record in records]
                return found
            finally:
                await consumer.stop()

        return asyncio.run(run())

    def ends(self, address: str, topic: str) -> tuple[int, int]:
        async def run() -> tuple[int, int]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address)
            await consumer.start()
            try:
                partition = aiokafka.TopicPartition(topic, 0)
                first = await consumer.beginning_offsets([partition])
                last = await consumer.end_offsets([partition])
                return first[partition], last[partition]
            finally:
                await consumer.stop()

        return asyncio.run(run())

    def delete(self, address: str, topic: str) -> None:
        async def run() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=address)
            await admin.start()
            await admin.delete_topics([topic])
            await admin.close()

        asyncio.run(run())


CLIENTS = [Confluent(), KafkaPython(), AioKafka()]


@pytest.fixture(params=CLIENTS, ids=lambda client: type(client).__name__)
def client(request: pytest.FixtureRequest) -> Confluent | KafkaPython | AioKafka:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("client", "codec"),
    [(client, codec) for client in CLIENTS for codec in client.codecs],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_what_is_produced_is_consumed(
    skidway_broker: SkidwayBroker, client: Confluent | KafkaPython | AioKafka, codec: str
) -> None:
    """Every codec, acks=all and 1: all records come back once, in order, and the ends say so."""
    address, topic = skidway_broker.address, new_name()
    client.create(address, topic, 2)
    sent = values(codec)
    client.produce(address, topic, codec, -1, False, sent[: COUNT // 2])
    client.produce(address, topic, codec, 1, False, sent[COUNT // 2 :])
    assert client.consume(address, topic, COUNT) == sent
    assert client.ends(address, topic) == (0, COUNT)
    client.delete(address, topic)


def test_idempotent_producers_are_served(
    skidway_broker: SkidwayBroker, client: Confluent | KafkaPython | AioKafka
) -> None:
    """A producer with enable.idempotence gets an id and stores every record once."""
    address, topic = skidway_broker.address, new_name()
    client.create(address, topic, 1)
    sent = values("idempotent")
    client.produce(address, topic, "none", -1, True, sent)
    assert client.consume(address, topic, COUNT) == sent


def test_what_one_client_writes_the_others_read(skidway_broker: SkidwayBroker) -> None:
    """Batches of any client and codec are readable by all."""
    address, topic = skidway_broker.address, new_name()
    CLIENTS[0].create(address, topic, 1)
    sent: list[bytes] = []
    for writer in CLIENTS:
        for codec in writer.codecs:
            part = values(f"{type(writer).__name__}-{codec}", 20)
            writer.produce(address, topic, codec, -1, False, part)
            sent += part
    for reader in (Confluent(), AioKafka()):
        assert reader.consume(address, topic, len(sent)) == sent


def test_acks_0_is_answered_by_nothing_and_stored(skidway_broker: SkidwayBroker) -> None:
    """Records sent without acknowledgement arrive all the same."""
    address, topic = skidway_broker.address, new_name()
    CLIENTS[0].create(address, topic, 1)
    CLIENTS[0].produce(address, topic, "none", 0, False, values("x"))
    assert CLIENTS[0].consume(address, topic, COUNT) == values("x")


def test_a_consumer_that_waits_gets_what_comes(skidway_broker: SkidwayBroker) -> None:
    """A parked fetch is answered when a record has been produced and flushed."""
    address, topic = skidway_broker.address, new_name()
    CLIENTS[0].create(address, topic, 1)
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "fetch.wait.max.ms": 5_000,
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.5) is None
        eventually(lambda: skidway_broker.metric("skidway_broker_requests_waiting") >= 1)
        CLIENTS[0].produce(address, topic, "none", 1, False, [b"late"])
        message = consumer.poll(10)
        assert message is not None
        assert message.value() == b"late"
    finally:
        consumer.close()


def test_offsets_are_found_by_time(skidway_broker: SkidwayBroker) -> None:
    """The first record at or after a time is found within compressed batches; none is the end."""
    address, topic = skidway_broker.address, new_name()
    CLIENTS[0].create(address, topic, 1)
    producer = Producer({"bootstrap.servers": address, "compression.type": "zstd", "linger.ms": 50})
    for number in range(100):
        producer.produce(topic, b"v", partition=0, timestamp=1_000_000 + 10 * number)
    assert producer.flush(10) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused"})
    try:
        for asked, wanted in (
            (0, 0),
            (1_000_000, 0),
            (1_000_001, 1),
            (1_000_555, 56),
            (1_000_990, 99),
        ):
            found = consumer.offsets_for_times([TopicPartition(topic, 0, asked)], 10)
            assert found[0].offset == wanted
        assert consumer.offsets_for_times([TopicPartition(topic, 0, 1_000_991)], 10)[0].offset == -1
    finally:
        consumer.close()


def test_an_unknown_topic_is_created_when_it_is_written_to(skidway_broker: SkidwayBroker) -> None:
    """auto.create.topics.enable holds for producers, and not for consumers that forbid it."""
    address, topic = skidway_broker.address, new_name()
    CLIENTS[0].produce(address, topic, "none", -1, False, [b"first"])
    assert CLIENTS[0].consume(address, topic, 1) == [b"first"]
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
    assert other not in AdminClient({"bootstrap.servers": address}).list_topics(timeout=10).topics


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(KafkaException) as caught:
        call()
    return str(caught.value.args[0].name())


def test_topics_are_refused_for_the_reasons_that_kafka_has(skidway_broker: SkidwayBroker) -> None:
    """Names, counts, settings and existing topics are checked before anything is created."""
    admin = AdminClient({"bootstrap.servers": skidway_broker.address})
    name = new_name()

    def create(
        topic: str, partitions: int = 1, replicas: int = 1, only: bool = False, **config: str
    ) -> object:
        new = NewTopic(
            topic, partitions, replicas, config={k.replace("_", "."): v for k, v in config.items()}
        )
        return admin.create_topics([new], validate_only=only)[topic].result(10)

    for illegal in ("..", "a/b", "x" * 250, "with space"):
        assert refusal(lambda topic=illegal: create(topic)) == "TOPIC_EXCEPTION"
    assert refusal(lambda: create(name, 0)) == "INVALID_PARTITIONS"
    assert refusal(lambda: create(name, 1, 2)) == "INVALID_REPLICATION_FACTOR"
    assert refusal(lambda: create(name, retention_ms="soon")) == "INVALID_CONFIG"
    assert refusal(lambda: create(name, no_such_key="1")) == "INVALID_CONFIG"
    create(name, only=True)
    assert name not in admin.list_topics(timeout=10).topics
    create(name, 3, retention_ms="1000")
    assert refusal(lambda: create(name)) == "TOPIC_ALREADY_EXISTS"
    assert len(admin.list_topics(name, timeout=10).topics[name].partitions) == 3
    admin.create_partitions([NewPartitions(name, 5)])[name].result(10)
    assert len(admin.list_topics(name, timeout=10).topics[name].partitions) == 5
    assert (
        refusal(lambda: admin.create_partitions([NewPartitions(name, 5)])[name].result(10))
        == "INVALID_PARTITIONS"
    )
    admin.delete_topics([name])[name].result(10)
    assert refusal(lambda: admin.delete_topics([name])[name].result(10)) == "UNKNOWN_TOPIC_OR_PART"


def test_settings_are_described_with_all_defaults(skidway_broker: SkidwayBroker) -> None:
    """A topic shows its own settings and every default; the broker shows the cluster's name."""
    admin = AdminClient({"bootstrap.servers": skidway_broker.address})
    topic = new_name()
    own = {"retention.ms": "1234", "mirror.source.topic": "logs"}
    admin.create_topics([NewTopic(topic, 1, 1, config=own)])[topic].result(10)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(10)
    assert found["retention.ms"].value == "1234"
    assert not found["retention.ms"].is_default
    assert found["mirror.source.topic"].value == "logs"
    assert found["segment.bytes"].value == str(1 << 30)
    assert found["segment.bytes"].is_default
    resource = ConfigResource(ResourceType.BROKER, "1")
    found = admin.describe_configs([resource])[resource].result(10)
    assert found["cluster.name"].value == "main"
    assert found["log.flush.interval.ms"].value == "50"


def test_a_topic_made_again_is_another(skidway_broker: SkidwayBroker) -> None:
    """Delete and create under the same name: empty, and with another topic id."""
    address, topic = skidway_broker.address, new_name()
    admin = AdminClient({"bootstrap.servers": address})
    ids = []
    for _ in range(2):
        CLIENTS[0].create(address, topic, 1)
        ids.append((skidway_broker.logs / f"{topic}-0" / "partition.metadata").read_text())
        CLIENTS[0].produce(address, topic, "none", -1, False, values("x", 10))
        assert CLIENTS[0].ends(address, topic) == (0, 10)
        admin.delete_topics([topic])[topic].result(10)
    assert ids[0] != ids[1]


def test_a_batch_that_is_too_large_is_refused(skidway_broker: SkidwayBroker) -> None:
    """max.message.bytes of the topic holds, and the connection goes on."""
    address, topic = skidway_broker.address, new_name()
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "1000"})])[
        topic
    ].result(10)
    producer = Producer({"bootstrap.servers": address})
    errors: list[object] = []
    for size in (500, 5000, 600):
        producer.produce(
            topic, b"x" * size, partition=0, on_delivery=lambda error, _: errors.append(error)
        )
        producer.flush(10)
    assert [None if each is None else each.name() for each in errors] == [
        None,
        "MSG_SIZE_TOO_LARGE",
        None,
    ]
