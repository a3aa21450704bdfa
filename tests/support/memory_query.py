"""Runs queries and streams of the Spark data source on topics in memory, without Spark. This module
calls the data source's readers as Spark does. As Spark does between its processes, it pickles and
unpickles the readers and the ranges of offsets that they read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self
from unittest.mock import patch

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Announcement, encode
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.source import Source
from skidway.loader.datasource.announcements import announcements_of
from skidway.loader.datasource.source import SkidwaySource
from skidway.schemas.client import SUBJECT_UNKNOWN, Registered, RegistryRefused
from support.clock import ManualClock
from support.loading import SCHEMA, SCHEMA_ID, Record, Registry, encoded
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher

HERE = "skidway.loader.datasource"
OPTIONS = {
    "kafka.bootstrap.servers": "memory:1",
    "schema.registry.url": "http://memory",
    "subscribe": "logs",
}


class Subjects(Registry):
    """A fake registry that finds schemas by id and by subject."""

    def __init__(self) -> None:
        super().__init__()
        self.newest = {"logs-value": SCHEMA}

    def latest(self, subject: str) -> Registered:
        if subject not in self.newest:
            raise RegistryRefused(404, SUBJECT_UNKNOWN, "not found")
        return Registered(subject, 1, SCHEMA_ID, self.newest[subject])

    def add(self, schema_id: int, subject: str, schema: str) -> None:
        self._schemas[schema_id] = schema
        self.newest[subject] = schema


class Queried:
    """A cluster in memory with the topic `logs`, which has two partitions, and methods that query
    this cluster."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.cluster.create("logs", 2)
        self.registry = Subjects()

    def send(self, *records: Record, topic: str = "logs", partition: int = 0) -> None:
        """Appends the records as one batch."""
        self.cluster.topics[topic].logs[partition].append(encoded(records))

    def announce(self, agent: int, file: int, host: str, path: str, audit: str = AUDIT) -> None:
        """Appends an agent's announcement of a log file to the audit topic `audit`."""
        if audit not in self.cluster.topics:
            self.cluster.create(audit)
        source = Source("main", "memory", "logs", "")
        message = Announcement(0, agent, file, host, path, 1, file, b"", 0, source)
        self.send_value(audit, encode(message))

    def send_value(self, topic: str, value: bytes) -> None:
        """Appends one value as a batch."""
        self.cluster.topics[topic].logs[0].append(encoded([Record(value=value, has_origin=False)]))

    def source(self, **options: str) -> SkidwaySource:
        given = OPTIONS | {key.replace("__", "."): value for key, value in options.items()}
        return SkidwaySource({key: value for key, value in given.items() if value})

    def rows(self, schema: StructType | None = None, **options: str) -> list[dict[str, Any]]:
        """Returns the rows of a query of the whole topic, partition by partition, in the order of
        offsets."""
        source = self.source(**options)
        reader = source.reader(schema or source.schema())
        found = []
        for part in reader.partitions() or [InputPartition(None)]:
            found += self.read(reader, part)
        return found

    def read(self, reader: Any, part: InputPartition) -> list[dict[str, Any]]:
        """Returns the rows of one range of offsets (`part`). Before it reads, pickles and unpickles
        the reader and the range, as Spark does."""
        reader, part = pickle.loads(pickle.dumps((reader, part)))
        return [row for batch in reader.read(part) for row in batch.to_pylist()]

    def lines(self, **options: str) -> list[str]:
        return [row["line"] for row in self.rows(**options)]


class _Client(MemoryClient):
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass


@contextmanager
def queries() -> Iterator[Queried]:
    """During the `with` block, all queries use the yielded cluster and a registry in memory."""
    made = Queried()

    def client(_connection: KafkaConnection, **_settings: Any) -> _Client:
        return _Client(made.cluster, ManualClock())

    def fetcher(*_client: Any, **_settings: Any) -> MemoryFetcher:
        return MemoryFetcher(made.cluster)

    announcements_of.cache_clear()
    with ExitStack() as stack:
        stack.enter_context(patch.object(KafkaConnection, "client", client))
        stack.enter_context(patch("skidway.loader.reading.batches.Fetcher", fetcher))
        stack.enter_context(patch(f"{HERE}.announcements.Fetcher", fetcher))
        for module in ("schemas", "range_read"):
            stack.enter_context(patch(f"{HERE}.{module}.registry_of", lambda _: made.registry))
        yield made
