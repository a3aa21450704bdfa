"""The driver of aiokafka: a program that carries out the commands of tests with this client. The
event loop runs in a thread of its own, so that a group member continues to send heartbeats between
commands."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.helpers import create_ssl_context

from clients.commands import login, protocol, serve, text, tls

WITHIN_S = 300.0
T = TypeVar("T")


class AioKafka:
    """Makes a new client for each command. Only the client that joins a group is kept until it
    leaves the group."""

    def __init__(self, address: str) -> None:
        self._common = {"bootstrap_servers": address, **_tls()}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._member: aiokafka.AIOKafkaConsumer | None = None

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(2 * WITHIN_S)

    def version(self) -> dict[str, Any]:
        return {"version": aiokafka.__version__}

    def create(self, topic: str, partitions: int) -> None:
        self._run(self._create(topic, partitions))

    async def _create(self, topic: str, partitions: int) -> None:
        async with self._admin() as admin:
            answer = await admin.create_topics([NewTopic(topic, partitions, 1)])
            for name, code, *_ in answer.topic_errors:
                if code:
                    raise RuntimeError(f"{name}: error {code}")

    def describe(self, topic: str) -> dict[str, Any]:
        return self._run(self._describe(topic))

    async def _describe(self, topic: str) -> dict[str, Any]:
        async with self._admin() as admin:
            found = (await admin.describe_topics([topic]))[0]
            return {"partitions": sorted(each["partition"] for each in found["partitions"])}

    def topics(self) -> dict[str, Any]:
        return self._run(self._topics())

    async def _topics(self) -> dict[str, Any]:
        async with self._admin() as admin:
            return {"topics": sorted(await admin.list_topics())}

    def produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        self._run(self._produce(topic, codec, acks, idempotent, records))

    async def _produce(
        self, topic: str, codec: str, acks: int, idempotent: bool, records: list[dict[str, Any]]
    ) -> None:
        producer = aiokafka.AIOKafkaProducer(
            **self._common,
            acks="all" if acks == -1 else acks,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    record["value"].encode(),
                    key=None if record["key"] is None else record["key"].encode(),
                    partition=record["partition"],
                    timestamp_ms=record["timestamp"],
                    headers=[(name, value.encode()) for name, value in record["headers"].items()],
                )
                for record in records
            ]
            await asyncio.gather(*sent)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        return self._run(self._consume(topic, partition, offset, count))

    async def _consume(self, topic: str, partition: int, offset: int, count: int) -> dict[str, Any]:
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + WITHIN_S
        async with self._consumer(None) as consumer:
            where = aiokafka.TopicPartition(topic, partition)
            consumer.assign([where])
            consumer.seek(where, offset)
            while len(found) < count and time.monotonic() < deadline:
                found += _records(await consumer.getmany(timeout_ms=200))
        return {"records": found}

    def offsets(self, topic: str, partition: int) -> dict[str, Any]:
        return self._run(self._offsets(topic, partition))

    async def _offsets(self, topic: str, partition: int) -> dict[str, Any]:
        where = aiokafka.TopicPartition(topic, partition)
        async with self._consumer(None) as consumer:
            first = (await consumer.beginning_offsets([where]))[where]
            return {"first": first, "end": (await consumer.end_offsets([where]))[where]}

    def offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        return self._run(self._offset_at(topic, partition, timestamp))

    async def _offset_at(self, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
        where = aiokafka.TopicPartition(topic, partition)
        async with self._consumer(None) as consumer:
            found = (await consumer.offsets_for_times({where: timestamp}))[where]
        return {"offset": -1 if found is None else found.offset}

    def delete(self, topic: str) -> None:
        self._run(self._delete(topic))

    async def _delete(self, topic: str) -> None:
        async with self._admin() as admin:
            answer = await admin.delete_topics([topic])
            for name, code in answer.topic_error_codes:
                if code:
                    raise RuntimeError(f"{name}: error {code}")

    def join(self, group: str, topic: str) -> None:
        self._run(self._join(group, topic))

    async def _join(self, group: str, topic: str) -> None:
        self._member = self._consumer(group)
        self._member.subscribe([topic])
        await self._member.start()

    def poll(self, wait_ms: int) -> dict[str, Any]:
        return self._run(self._poll(wait_ms))

    async def _poll(self, wait_ms: int) -> dict[str, Any]:
        assert self._member is not None
        records = _records(await self._member.getmany(timeout_ms=wait_ms))
        assigned = sorted(each.partition for each in self._member.assignment())
        return {"records": records, "assigned": assigned}

    def commit(self) -> None:
        assert self._member is not None
        self._run(self._member.commit())

    def leave(self) -> None:
        assert self._member is not None
        self._run(self._member.stop())

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(**self._common)
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()

    def _consumer(self, group: str | None) -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            **self._common,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
        )


def _tls() -> dict[str, Any]:
    if not tls():
        return {}
    authorities, *pair = tls().values()
    context = create_ssl_context(
        cafile=authorities, **dict(zip(("certfile", "keyfile"), pair, strict=False))
    )
    names = ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
    user = dict(zip(names, login().values(), strict=False))
    return {"security_protocol": protocol(), "ssl_context": context, **user}


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
    serve(AioKafka(sys.argv[1]))
