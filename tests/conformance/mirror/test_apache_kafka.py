"""With Apache Kafka 4.4 as the source, the mirror has the same bytes at the same offsets as Kafka's
own files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from skidway.kafka import gaps
from skidway.kafka.batch import headers, read_header
from skidway.kafka.client import LATEST, Client, NewTopic
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition
from support.kafka import ApacheKafka, tool, topic_name
from support.mirroring import Cluster, mirror_sources
from support.processes import eventually

pytestmark = [pytest.mark.java, pytest.mark.slow]

KAFKA = "dc1"


@pytest.fixture
def topic() -> str:
    return topic_name("mirrored")


@pytest.fixture
def mirror(
    apache_kafka: ApacheKafka, topic: str, tmp_path: Path, zookeeper: str
) -> Iterator[Cluster]:
    """One of our brokers, configured to mirror one topic. The broker is not started yet."""
    sources = mirror_sources(apache_kafka.address, [topic])
    here = Cluster(tmp_path, zookeeper, "offline", mirror_sources=sources)
    yield here
    if here.program.running:
        here.program.kill()


@pytest.fixture
def create(apache_kafka: ApacheKafka, topic: str) -> Callable[..., None]:
    def make(partitions: int = 1, **configs: str) -> None:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        with Client(apache_kafka.address) as client:
            [error] = client.create_topics([NewTopic(topic, partitions, 1, settings)]).values()
            assert error is None, error

    return make


def produce(kafka: ApacheKafka, topic: str, count: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": kafka.address, "batch.num.messages": 20, **settings})
    for number in range(count):
        producer.produce(topic, f"line {number} of {count}".encode(), key=str(number))
    assert producer.flush(300) == 0


def log_bytes(kafka: ApacheKafka, topic: str, partition: int) -> bytes:
    """Returns the content of Kafka's own segment files of a partition, in order."""
    folder = kafka.program.log.parent / "logs" / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def ends(address: str, topic: str) -> dict[int, int]:
    with Client(address) as client:
        found = client.metadata([topic]).topics.get(topic)
        if found is None or found.error or any(each.leader < 0 for each in found.partitions):
            return {}
        tps = {TopicPartition(topic, each.index): LATEST for each in found.partitions}
        return {tp.partition: at.offset for tp, at in client.list_offsets(tps).items()}


def until_mirrored(kafka: ApacheKafka, mirror: Cluster, topic: str) -> None:
    def done() -> bool:
        theirs = ends(kafka.address, topic)
        return bool(theirs) and ends(mirror.address, f"{KAFKA}.{topic}") == theirs

    eventually(done, what=f"{topic} is mirrored")


def test_every_codec_and_partition_across_restarts(
    apache_kafka: ApacheKafka, mirror: Cluster, topic: str, create: Callable[..., None]
) -> None:
    """For batches of every codec, the mirror's log of each partition has the same bytes as Kafka's,
    even if the mirror is killed with kill -9 several times."""
    create(3)
    mirror.start()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(apache_kafka, topic, 300, **{"compression.type": codec, "enable.idempotence": True})
        mirror.crash()
    produce(apache_kafka, topic, 10)
    until_mirrored(apache_kafka, mirror, topic)
    for number in range(3):
        ours = mirror.log_bytes(f"{KAFKA}.{topic}", number)
        assert ours
        assert ours == log_bytes(apache_kafka, topic, number)
    configs = mirror.configs(f"{KAFKA}.{topic}")
    with Client(apache_kafka.address) as client:
        cluster = client.metadata([topic])
    assert configs["mirror.source.cluster.id"] == cluster.cluster_id
    topic_id = cluster.topics[topic].topic_id
    assert topic_id is not None
    assert configs["mirror.source.topic.id"] == topic_id.hex
    assert mirror.mirror()["stopped"] == {}


def test_a_topic_made_again_in_kafka_stops(
    apache_kafka: ApacheKafka, mirror: Cluster, topic: str, create: Callable[..., None]
) -> None:
    """If a topic is deleted and created again in Kafka while the mirror follows the topic, the
    mirror stops copying this topic, and copies none of the new records."""
    create()
    produce(apache_kafka, topic, 50)
    mirror.start()
    until_mirrored(apache_kafka, mirror, topic)
    before = mirror.log_bytes(f"{KAFKA}.{topic}")
    with Client(apache_kafka.address) as client:
        assert client.delete_topics([topic]) == {topic: None}
        eventually(lambda: topic not in client.metadata().topics, what="Kafka has deleted it")
    create()
    produce(apache_kafka, topic, 500)
    stopped = eventually(lambda: mirror.mirror()["stopped"], what="it stops")
    assert isinstance(stopped, dict)
    assert "was made again" in stopped[f"{KAFKA}.{topic}"]
    assert mirror.log_bytes(f"{KAFKA}.{topic}") == before


def test_records_deleted_in_the_middle_of_a_batch(
    apache_kafka: ApacheKafka, mirror: Cluster, topic: str, create: Callable[..., None],
    tmp_path: Path,
) -> None:  # fmt: skip
    """If the log start offset of a partition in Kafka is inside a batch, the mirror copies the
    whole batch. The mirror lists the missing offsets before this batch as a gap."""
    create()
    produce(apache_kafka, topic, 200, **{"linger.ms": 200})
    bases = [h.base_offset for _, h in headers(log_bytes(apache_kafka, topic, 0))]
    inside = bases[3] + 1
    wanted = tmp_path / "delete.json"
    partition = {"topic": topic, "partition": 0, "offset": inside}
    wanted.write_text(json.dumps({"partitions": [partition], "version": 1}))
    tool(
        "org.apache.kafka.tools.DeleteRecordsCommand",
        ["--bootstrap-server", apache_kafka.address, "--offset-json-file", str(wanted)],
    )
    mirror.start()
    until_mirrored(apache_kafka, mirror, topic)
    named = gaps.decode(mirror.configs(f"{KAFKA}.{topic}")[gaps.CONFIG])
    ours = mirror.batches(f"{KAFKA}.{topic}")
    assert named == [Gap(0, 0, read_header(ours[0]).base_offset, "expired")]
    assert read_header(ours[0]).base_offset <= inside
    kafkas = log_bytes(apache_kafka, topic, 0)
    theirs = [kafkas[at : at + header.size_bytes] for at, header in headers(kafkas)]
    assert ours == [raw for raw in theirs if read_header(raw).last_offset >= inside]
    mirror.crash()
    produce(apache_kafka, topic, 10)
    until_mirrored(apache_kafka, mirror, topic)
    assert mirror.mirror()["stopped"] == {}


def test_a_transaction_in_kafka_stops_its_partition_by_name(
    apache_kafka: ApacheKafka, mirror: Cluster, topic: str, create: Callable[..., None]
) -> None:
    """If a producer sends a transaction, the mirror copies the batches before it, and stops the
    partition with a reason that says so. It copies the topic's other partitions."""
    create(2)
    settings = {"bootstrap.servers": apache_kafka.address}
    producer = Producer({**settings, "transactional.id": topic})
    plain = Producer(settings)
    plain.produce(topic, b"before", partition=0)
    assert plain.flush(300) == 0
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"aborted", partition=0)
    assert producer.flush(300) == 0
    producer.abort_transaction(60)
    for partition in (0, 1):
        plain.produce(topic, b"behind", partition=partition)
    assert plain.flush(300) == 0
    mirror.start()
    stopped = eventually(lambda: mirror.mirror()["stopped"], what="it stops")
    assert isinstance(stopped, dict)
    [(name, reason)] = stopped.items()
    assert name == f"{KAFKA}.{topic}-0"
    assert "the batch at offset 1 belongs to a transaction" in reason
    copied = f"{KAFKA}.{topic}"
    eventually(lambda: mirror.ends(copied) == {0: 1, 1: 1}, what="the other partition is copied")
