"""Builds records, batches and topics in memory for tests of the loader, with a fake registry, and
runs tasks of a load on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from skidway.audit.counts.marks import FileKey
from skidway.kafka.batch import EncodedBatch, seal, stamp
from skidway.kafka.columns import Origins, encode
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.source import Source
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.decoder import Decoder
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.slice_load import SliceLoad
from skidway.loader.state.manifest import (
    REJECTS,
    ROWS,
    BatchMark,
    DataFile,
    Gap,
    Manifest,
    PartitionRange,
    Replacement,
    SchemaChoice,
)
from skidway.loader.store import Store, StoreConnection
from skidway.schemas.client import RegistryConnection, RegistryRefused
from skidway.schemas.codec import Codec
from skidway.schemas.wire import add_prefix

TOPIC = "logs"
SOURCE = Source("dc1", "cluster-id", TOPIC, "0" * 32)
SCHEMA = json.dumps(
    {"type": "record", "name": "Log", "fields": [{"name": "line", "type": "string"}]}
)
GROWN = json.dumps(
    {
        "type": "record",
        "name": "Log",
        "fields": [
            {"name": "line", "type": "string"},
            {"name": "level", "type": "int", "default": 3},
        ],
    }
)
"""A newer version of SCHEMA that has one more field."""

CHOICE = json.dumps(
    {"type": "record", "name": "Log", "fields": [{"name": "line", "type": ["string", "long"]}]}
)
"""A newer version of SCHEMA whose field is a union of two types."""

SCHEMA_ID = 1
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


class Registry:
    """A fake registry that finds schemas by their ids."""

    def __init__(self, schemas: Mapping[int, str] | None = None) -> None:
        self._schemas = {SCHEMA_ID: SCHEMA} if schemas is None else dict(schemas)

    def add(self, schema_id: int, text: str) -> None:
        self._schemas[schema_id] = text

    def schema(self, schema_id: int, /) -> str:
        if schema_id not in self._schemas:
            raise RegistryRefused(404, 40403, f"schema {schema_id} not found")
        return self._schemas[schema_id]


@dataclass(frozen=True)
class Record:
    """One record. `value` is the record's value in bytes. If `value` is None, the record's value is
    a datum of SCHEMA with the text `line`."""

    agent: int = 7
    file: int = 1
    first: int = 0
    length: int = 10
    time_ms: int = START_MS
    value: bytes | None = None
    has_origin: bool = True

    @property
    def line(self) -> str:
        return f"{self.agent}/{self.file}/{self.first}+{self.length}"


def datum(line: str, schema: str = SCHEMA, schema_id: int = SCHEMA_ID) -> bytes:
    """Returns the line as a value in the registry's wire format. The schema must have a single
    field, which is a string."""
    codec = Codec(schema)
    batch = pa.record_batch({codec.arrow_schema.names[0]: [line]})
    return bytes(add_prefix(schema_id, codec.encode(batch))[0].as_py())


def log(records: Sequence[Record], batch_records: int = 3, base: int = 0) -> list[memoryview]:
    """Returns batches that contain these records, as in a partition. The first batch begins at the
    offset `base`."""
    return [
        one_batch(records[at : at + batch_records], base + at)
        for at in range(0, len(records), batch_records)
    ]


def encoded(records: Sequence[Record]) -> EncodedBatch:
    """Returns a batch as a producer sends it. Either all records of the batch have an origin, or no
    record has one."""
    values = pa.array(
        [datum(each.line) if each.value is None else each.value for each in records], pa.binary()
    )
    origins = None
    if all(each.has_origin for each in records):
        columns = [
            np.array([getattr(each, name) for each in records], np.int64)
            for name in ("agent", "file", "first", "length")
        ]
        origins = Origins(*columns)
    times = np.array([each.time_ms for each in records], np.int64)
    return encode(values, times, origins=origins)


def one_batch(records: Sequence[Record], base: int) -> memoryview:
    """Returns a batch of these records as it is in a log, beginning at the offset `base`."""
    raw = bytearray(seal(encoded(records)))
    stamp(raw, 0, base, 0)
    return memoryview(bytes(raw))


def fetched(batches: Sequence[memoryview], first: int) -> Iterator[memoryview]:
    """Yields the batches that a fetch from the offset `first` returns: the batch that contains this
    offset, if there is one, and then all later batches."""
    from skidway.kafka.batch import read_header

    for raw in batches:
        if read_header(raw).last_offset >= first:
            yield raw


def job(**changes: Any) -> Job:
    """Returns a `Job` for TOPIC. A `Job` describes a load to the load's tasks. In this one, the
    host and path of all log files of agent 7 are known. `changes` replaces single fields."""
    given: dict[str, Any] = {
        "topic": TOPIC,
        "source": SOURCE,
        "load": 1,
        "uuid": "a" * 32,
        "store": StoreConnection("memory:"),
        "kafka": KafkaConnection(""),
        "registry": RegistryConnection(""),
        "reader": SCHEMA,
        "bucket_ms": 60_000,
        "compression": "zstd",
        "locations": Locations(),
        "unannounced": frozenset(),
        "patient": True,
        "gaps": {},
    }
    return Job(**(given | changes))


class Locations(dict[FileKey, tuple[str, str]]):
    """The host and path of each log file, as announcements would contain them. All files of agent 7
    have an entry. A test adds entries for files of other agents."""

    def __missing__(self, key: FileKey) -> tuple[str, str]:
        if key[0] != 7:
            raise KeyError(key)
        return "host", f"/log/{key[1]}"

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and (key[0] == 7 or dict.__contains__(self, key))


@dataclass
class Runner:
    """Runs slices in memory, as Spark's tasks would. A slice is the range of offsets of one
    partition that one task reads."""

    store: Store
    partitions: Mapping[int, Sequence[memoryview]]
    job: Job = field(default_factory=job)
    registry: Registry = field(default_factory=Registry)
    attempts: int = 0

    def __call__(self, work: Sequence[tuple[Slice, Mapping[FileKey, int]]]) -> list[SliceResult]:
        return [self.one(piece, marks) for piece, marks in work]

    def one(self, piece: Slice, marks: Mapping[FileKey, int] | None = None) -> SliceResult:
        self.attempts += 1
        load = SliceLoad(
            self.job,
            piece,
            marks or {},
            store=self.store,
            decoder=Decoder(self.registry, self.job.reader),
            attempt=self.attempts,
        )
        return load.run(fetched(self.partitions[piece.partition], piece.first))


def gap(first: int, end: int) -> Gap:
    return Gap(first, end, "named by the mirror")


def rows_of(store: Store, result: SliceResult, kind: str = "rows") -> list[dict[str, Any]]:
    """Returns the rows in the files that a task has staged (written, but not yet committed), in the
    order of these files."""
    import io

    import pyarrow.parquet as pq

    return [
        row
        for file in result.files
        if file.kind == kind
        for row in pq.read_table(io.BytesIO(store.read(file.staged) or b"")).to_pylist()
    ]


WHOLE = Manifest(
    number=7, uuid="a" * 32, created=1, program="0.1.0", producer="/out/logs", epoch=3,
    cluster="offline", cluster_id="c1", topic="dc1.logs", topic_id="0" * 32,
    source=Source("dc1", "c2", "logs", "1" * 32),
    partitions=(
        PartitionRange(
            0, 10, 20, (Gap(12, 14, "lost"),), (Gap(30, 31, "x"),), BatchMark(18, 19, 5, 0)
        ),
        PartitionRange(1, 0, 0),
    ),
    files=(
        DataFile(ROWS, "p", "s", 100, 8, -5, 9), DataFile(REJECTS, "q", "r", 50, 2, 6, 1),
    ),
    schema=SchemaChoice("logs-value", 2, 12), schema_ids={12: 8},
    side={"marks": ("m1", "m2"), "names": (), "buckets": ("b",)},
    audit_positions={"_skidway_audit/0": 4}, audit={"last": 9, "deltas": []},
    columns=Replacement("c", "d"),
)  # fmt: skip
"""A manifest in which no field has its default value."""


def once(action: Callable[[], object]) -> Callable[[], None]:
    """Returns a function that runs the action at its first call and does nothing at later calls."""
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act
