"""The driver of kafka-python."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any

import kafka
from kafka.admin import KafkaAdminClient, NewTopic

from clients.commands import login, protocol, serve, text, tls

WITHIN_S = 300.0
POLL_AT_LEAST_MS = 3_000
"""kafka-python 3.0.12 loses an assignment that arrives just after a poll has timed out, and never
asks for it again. So this program allows each poll enough time for a rebalance. A poll still ends
as soon as records arrive."""


class KafkaPython:
    """Carries out the commands of tests with kafka-python. Keeps one admin client for the program's
    whole life, and makes producers and consumers as needed."""

    def __init__(self, address: str) -> None:
        self._common = {"bootstrap_servers": address, **_tls()}
        self._admin = KafkaAdminClient(**self._common)
        self._member: kafka.KafkaConsumer | None = None

    def version(self) -> dict[str, Any]:
        return {"version": kafka.__version__}

    def create(self, topic: str, partitions: int) -> None:
        self._admin.create_topics([NewTopic(topic, partitions, -1)])

    def describe(self, topic: str) -> dict[str, Any]:
        found = self._admin.describe_topics([topic])[0]
        return {"partitions": sorted(each["partition_index"] for each in found["partitions"])}

    def topics(self) -> dict[str, Any]:
        return {"topics": sorted(self._admin.list_topics())}

    def produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        producer = kafka.KafkaProducer(
            **self._common,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            linger_ms=20,
        )
        with closing(producer):
            futures = [
                producer.send(
                    topic,
                    record["value"].encode(),
                    key=None if record["key"] is None else record["key"].encode(),
                    partition=record["partition"],
                    timestamp_ms=record["timestamp"],
                    headers=[(name, value.encode()) for name, value in record["headers"].items()],
                )
                for record in records
            ]
            producer.flush(WITHIN_S)
            for future in futures:
                future.get(WITHIN_S)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + WITHIN_S
        with closing(self._consumer(None)) as consumer:
            where = kafka.TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, offset)
            while len(found) < count and time.monotonic() < deadline:
                found += _records(consumer.poll(200))
        return {"records": found}

    def offsets(self, topic: str, partition: int) -> dict[str, Any]:
        where = kafka.TopicPartition(topic, partition)
        with closing(self._consumer(None)) as consumer:
            first = consumer.beginning_offsets([where])[where]
            return {"first": first, "end": consumer.end_offsets([where])[where]}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        where = kafka.TopicPartition(topic, partition)
        with closing(self._consumer(None)) as consumer:
            found = consumer.offsets_for_times({where: timestamp})[where]
        return {"offset": -1 if found is None else found.offset}

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def join(self, group: str, topic: str) -> None:
        self._member = self._consumer(group)
        self._member.subscribe([topic])

    def poll(self, wait_ms: int) -> dict[str, Any]:
        assert self._member is not None
        records = _records(self._member.poll(max(wait_ms, POLL_AT_LEAST_MS)))
        assigned = sorted(each.partition for each in self._member.assignment())
        return {"records": records, "assigned": assigned}

    def commit(self) -> None:
        assert self._member is not None
        self._member.commit()

    def leave(self) -> None:
        assert self._member is not None
        self._member.close()

    def _consumer(self, group: str | None) -> kafka.KafkaConsumer:
        return kafka.KafkaConsumer(
            **self._common,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
        )


def _tls() -> dict[str, Any]:
    names = ("ssl_cafile", "ssl_certfile", "ssl_keyfile")
    files = dict(zip(names, tls().values(), strict=False))
    names = ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
    user = dict(zip(names, login().values(), strict=False))
    return {"security_protocol": protocol(), **files, **user}


def _records(polled: dict[Any, list[Any]]) -> list[dict[str, Any]]:
    return [
        {
            "partition": each.partition,
            "offset": each.offset,
            "timestamp": each.timestamp,
            "key": text(each.key),
            "value": text(each.value),
            "headers": {name: text(value) for name, value in each.headers},
        }
        for records in polled.values()
        for each in records
    ]


if __name__ == "__main__":
    serve(KafkaPython(sys.argv[1]))
