"""Reads and writes the records of a `_schemas` topic. This topic has one partition, and all its
records have keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from skidway.kafka.client import EARLIEST, LATEST, Client, NewTopic, ensure_topics
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition
from skidway.producer import Producer
from skidway.schemas.dump.records import DumpRefused, Record, key_text, record, value_text
from skidway.schemas.topic_reading import read_ranges

TOPIC: Final = "_schemas"


def read_topic(client: Client, topic: str = TOPIC) -> Iterator[Record]:
    """Yields every record that the topic has when this function starts to read. Raises
    `DumpRefused`, `Unreachable`, `KafkaError`."""
    tp = _only_partition(client, topic)
    first = client.list_offsets({tp: EARLIEST})[tp].offset
    end = client.list_offsets({tp: LATEST})[tp].offset
    for _, batch in read_ranges(client, {tp: (first, end)}):
        yield from _records(topic, batch, first, end)


def write_topic(
    kafka: KafkaConnection, client: Client, records: Iterable[Record], topic: str = TOPIC
) -> int:
    """Writes the records to an empty topic, and returns how many it has written. Creates the topic
    if it does not exist. client: one of the same cluster.

    If the topic already has records, raises `DumpRefused`, because a registry may be reading the
    topic.
    """
    wanted = NewTopic(topic, 1, -1, {"cleanup.policy": "compact"})
    ensure_topics(client, [wanted], client.pause)
    tp = _only_partition(client, topic)
    if client.list_offsets({tp: LATEST})[tp].offset:
        raise DumpRefused(f"Topic {topic} has records already; a dump goes to an empty one only.")
    with Producer(kafka.bootstrap_servers, security=kafka.security) as producer:
        sent = [
            producer.send(topic, _bytes(value_text(each)), key=key_text(each).encode())
            for each in records
        ]
    return len([each.result() for each in sent])


def _only_partition(client: Client, topic: str) -> TopicPartition:
    found = client.metadata([topic]).topics.get(topic)
    if found is None or found.error is not ErrorCode.NONE:
        raise DumpRefused(f"There is no topic {topic}.")
    if len(found.partitions) != 1:
        raise DumpRefused(
            f"Topic {topic} has {len(found.partitions)} partitions; that of a registry has one."
        )
    return TopicPartition(topic, 0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _records(topic: str, batch: DecodedRecords, first: int, end: int) -> Iterator[Record]:
    keys, values = batch.keys.to_pylist(), batch.values.to_pylist()
    for offset, key, value in zip(batch.offsets.tolist(), keys, values, strict=True):
        if first <= offset < end:
            yield record(key, value, f"Offset {offset} of {topic}")
