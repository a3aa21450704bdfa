"""A topic of rejected lines (`<topic>.rejected`) in a Kafka cluster in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.client import Client
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.codec import Codec
from skidway.schemas.consuming import rejected_lines
from skidway.schemas.single_object import schema_text
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster

TEXTS: Final = ("topic", "reason", "detail", "host", "path")
NUMBERS: Final = ("agent", "file", "first", "length")
SCHEMA: Final = pa.schema(
    [*((x, pa.string()) for x in TEXTS), ("line", pa.binary()), *((x, pa.int64()) for x in NUMBERS)]
)


class RejectedTopic:
    """The topic, with one partition. According to the records' field `first`, each rejected line
    begins 100 bytes after the line before it in the log file."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tp = TopicPartition(name, 0)
        self.cluster = MemoryCluster()
        self.cluster.create(name)
        monkeypatch.setattr(rejected_lines, "read_ranges", self.read)

    def client(self) -> Client:
        """A client of the cluster."""
        return cast(Client, MemoryClient(self.cluster, ManualClock()))

    def reject(self, time_ms: int, *lines: bytes, **others: Any) -> None:
        """Appends a batch with one record for each of these rejected lines. `others` contains
        further fields that all these records get."""
        log = self.cluster.log(self.tp)
        own = {
            "topic": "logs", "reason": "no-match", "detail": "", "host": "web1",
            "path": "/var/log/a.log", "agent": 5, "file": 7,
        } | others  # fmt: skip
        rows = [
            {"first": 100 * (log.end + at), "line": line, "length": len(line) + 1, **own}
            for at, line in enumerate(lines)
        ]
        datums = Codec(schema_text("Rejected")).encode(pa.RecordBatch.from_pylist(rows, SCHEMA))
        times = np.full(len(lines), time_ms, np.int64)
        log.append(columns.encode(wire.add_prefix(1, datums), times))

    def read(
        self, _: Client, ranges: Mapping[TopicPartition, tuple[int, int]]
    ) -> Iterator[tuple[TopicPartition, DecodedRecords]]:
        """Yields the topic's batches that have offsets in these ranges (first offset, end offset).
        Tests use this method in place of `read_ranges`."""
        for tp, (first, end) in ranges.items():
            for data in self.cluster.log(tp).batches:
                header = read_header(data)
                if header.last_offset >= first and header.base_offset < end:
                    yield tp, columns.decode(memoryview(data))
