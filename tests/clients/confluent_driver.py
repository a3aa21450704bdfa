"""The driver of confluent-kafka (librdkafka)."""

from __future__ import annotations

import sys
import time
from typing import Any

import confluent_kafka
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from clients.commands import login, protocol, serve, text, tls

WITHIN_S = 300.0
SOON_S = 10.0


class Confluent:
    """Carries out the tests' commands with confluent-kafka. If the driver of another client lacks a
    command, some tests use this driver for the command."""

    def __init__(self, address: str) -> None:
        self._common = {
            "bootstrap.servers": address, "security.protocol": protocol(), **tls(), **login(),
        }  # fmt: skip
        self._admin = AdminClient(self._common)
        self._member: Consumer | None = None
        self._group_topic = ""

    def version(self) -> dict[str, Any]:
        return {"version": confluent_kafka.__version__}

    def create(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions)])[topic].result(WITHIN_S)

    def describe(self, topic: str) -> dict[str, Any]:
        found = self._admin.list_topics(topic, timeout=WITHIN_S).topics[topic]
        return {"partitions": sorted(found.partitions)}

    def topics(self) -> dict[str, Any]:
        return {"topics": sorted(self._admin.list_topics(timeout=WITHIN_S).topics)}

    def produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        settings = {"compression.type": codec, "acks": acks, "enable.idempotence": idempotent}
        producer = Producer({**self._common, **settings})
        errors: list[object] = []
        for record in records:
            producer.produce(
                topic,
                record["value"].encode(),
                None if record["key"] is None else record["key"].encode(),
                partition=record["partition"],
                timestamp=record["timestamp"] or 0,
                headers=record["headers"],
                on_delivery=lambda error, _: errors.append(error) if error else None,
            )
        left = producer.flush(WITHIN_S)
        if left or errors:
            raise RuntimeError(f"{left} not delivered, refused: {errors[:3]}")

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        consumer = self._consumer()
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + WITHIN_S
        try:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while len(found) < count and time.monotonic() < deadline:
                found += [_record(each) for each in consumer.consume(1000, 0.2)]
        finally:
            consumer.close()
        return {"records": found}

    def offsets(self, topic: str, partition: int) -> dict[str, Any]:
        consumer = self._consumer()
        try:
            where = TopicPartition(topic, partition)
            first, end = consumer.get_watermark_offsets(where, WITHIN_S)
        finally:
            consumer.close()
        return {"first": first, "end": end}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        consumer = self._consumer()
        try:
            where = TopicPartition(topic, partition, timestamp)
            found = consumer.offsets_for_times([where], WITHIN_S)[0]
        finally:
            consumer.close()
        if found.error:
            raise RuntimeError(str(found.error))
        return {"offset": found.offset}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(WITHIN_S)

    def join(self, group: str, topic: str) -> None:
        self._member = self._consumer(group)
        self._group_topic = topic
        self._member.subscribe([topic])

    def poll(self, wait_ms: int) -> dict[str, Any]:
        assert self._member is not None
        records = [_record(each) for each in self._member.consume(1000, wait_ms / 1000)]
        assigned = sorted(each.partition for each in self._member.assignment())
        return {"records": records, "assigned": assigned}

    def commit(self) -> None:
        assert self._member is not None
        self._member.commit(asynchronous=False)

    def leave(self) -> None:
        assert self._member is not None
        self._member.close()

    def committed(self, group: str, topic: str, partitions: list[int]) -> dict[str, Any]:
        """Returns the committed offset of each partition, or -1 if the partition has none."""
        consumer = self._consumer(group)
        try:
            wanted = [TopicPartition(topic, each) for each in partitions]
            found = consumer.committed(wanted, WITHIN_S)
        finally:
            consumer.close()
        return {"offsets": [-1 if each.offset == OFFSET_INVALID else each.offset for each in found]}

    def members(self, group: str) -> dict[str, Any]:
        """Returns the partitions of each member, as the coordinator describes the group. If the
        coordinator did not answer within a short time, the result has no members, and the caller
        has to ask again.

        Each call makes a new client, because of a bug in librdkafka 2.16 (docs/clients.md): after a
        broker has died, an existing client may wait forever without sending the request.
        """
        admin = AdminClient(self._common)
        described = admin.describe_consumer_groups([group], request_timeout=SOON_S)
        try:
            members = described[group].result(2 * SOON_S).members
        except (KafkaException, TimeoutError):
            return {"assigned": []}
        found = [
            sorted(each.partition for each in member.assignment.topic_partitions)
            for member in members
        ]
        return {"assigned": sorted(found)}

    def _consumer(self, group: str = "unused") -> Consumer:
        settings = {
            "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300, "fetch.error.backoff.ms": 50,
        }  # fmt: skip
        return Consumer({**self._common, **settings})


def _record(message: Message) -> dict[str, Any]:
    if message.error():
        raise RuntimeError(str(message.error()))
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": text(message.key()),
        "value": text(message.value()),
        "headers": {name: text(value) for name, value in message.headers() or []},
    }


if __name__ == "__main__":
    serve(Confluent(sys.argv[1]))
