"""`spark.read.format("skidway")`: a topic as a table, for ad-hoc queries; no jar has to be added.

    spark.read.format("skidway").option("bootstrap.servers", "127.0.0.1:9092")
        .option("topic", "dc1.hdfs-logs").option("schema.registry.url", "http://127.0.0.1:8081")
        .load()

| option | meaning |
|---|---|
| bootstrap.servers, topic | required |
| schema.registry.url | columns of the subject's latest schema; if not set, `key` and `value` |
| schema.registry.ssl.{ca,certificate,key}.location | PEM files, on every host that runs tasks |
| starting.timestamp.ms, ending.timestamp.ms | bounds: first records at or after these event times |
| slice.records | offsets that one task reads (400000) |
| undecodable | `fail` (default) or `skip` a record whose value cannot be decoded |

A query reads the offsets [log start, high watermark) as they are when Spark plans the query. Every
row also has `_agent`, `_file_id`, `_offset`, `_length`, `_timestamp`, `_partition` and
`_kafka_offset`. A query does not drop repeated records; only a load drops them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from skidway.audit.counts.counts import identify
from skidway.errors import SkidwayError, UsageError
from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.columns import DecodedBatch
from skidway.kafka.source import sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Planned
from skidway.loader.reading.batches import batches
from skidway.loader.reading.columns import OWN, RESERVED, Records, own_columns, select
from skidway.loader.reading.decoder import Decoder, check_reader
from skidway.schemas.client import RegistryClient, Security

PLACES: Final = ("_host", "_file")
"""Columns of a load that come from announcements, the audit messages that give each file's host
and path. A query does not read announcements."""

SLICE_RECORDS: Final = 400_000
OPTIONS: Final = {
    "bootstrap.servers": None,
    "topic": None,
    "schema.registry.url": "",
    "schema.registry.basic.auth.user.info": "",
    "schema.registry.ssl.ca.location": "",
    "schema.registry.ssl.certificate.location": "",
    "schema.registry.ssl.key.location": "",
    "starting.timestamp.ms": "",
    "ending.timestamp.ms": "",
    "slice.records": str(SLICE_RECORDS),
    "undecodable": "fail",
}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one query, checked."""

    bootstrap_servers: str
    topic: str
    registry_url: str
    registry_security: Security
    starting_ms: int
    ending_ms: int
    slice_records: int
    skip_undecodable: bool

    @staticmethod
    def of(given: Mapping[str, str]) -> Options:
        """Raises UsageError if an option is missing or unknown, or if its value makes no sense."""
        known = {key.lower(): value for key, value in given.items()}
        unknown = sorted(set(known) - set(OPTIONS) - {"path"})
        if unknown:
            raise UsageError(
                f"format skidway has no option {unknown[0]}; it has {', '.join(OPTIONS)}"
            )
        for name, default in OPTIONS.items():
            if default is None and not known.get(name):
                raise UsageError(f"format skidway needs .option({name!r}, ...)")
        value = {name: known.get(name) or default or "" for name, default in OPTIONS.items()}
        if value["undecodable"] not in ("fail", "skip"):
            raise UsageError("option undecodable is fail or skip")
        return Options(
            value["bootstrap.servers"],
            value["topic"],
            value["schema.registry.url"],
            _security(value),
            _number(value, "starting.timestamp.ms", EARLIEST),
            _number(value, "ending.timestamp.ms", LATEST),
            max(1, _number(value, "slice.records", SLICE_RECORDS)),
            value["undecodable"] == "skip",
        )


@dataclass
class OffsetRange(InputPartition):
    """Offsets [first, end) of one partition."""

    partition: int
    first: int
    end: int


class SkidwaySource(DataSource):
    """The data source. Spark pickles it to the processes that plan and read."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "skidway"

    def schema(self) -> StructType:
        """The columns, taken from the registry if the query names a registry."""
        return from_arrow_schema(arrow_schema(Options.of(self.options)), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of one query."""
        return SkidwayReader(Options.of(self.options), schema)


class SkidwayReader(DataSourceReader):
    """Plans offset ranges, then reads each of them in a task of its own."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Spark calls this once per query, when the query begins."""
        options = self._options
        with Client(options.bootstrap_servers, client_id="skidway-spark") as client:
            tps = _partitions(client, options.topic)
            ends = client.list_offsets(dict.fromkeys(tps, LATEST))
            first = client.list_offsets(dict.fromkeys(tps, options.starting_ms))
            last = client.list_offsets(dict.fromkeys(tps, options.ending_ms))
        ranges = [
            Planned(tp.partition, 0, _offset(first[tp].offset, end), _offset(last[tp].offset, end))
            for tp in tps
            for end in (ends[tp].offset,)
        ]
        slices = plan.cut(ranges, options.slice_records)
        return [OffsetRange(each.partition, each.first, each.end) for each in slices]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one offset range, one Arrow record batch for each Kafka record batch."""
        assert isinstance(partition, OffsetRange)
        options = self._options
        decoder = _decoder(options)
        target = to_arrow_schema(self._schema, timezone="UTC")
        tp = TopicPartition(options.topic, partition.partition)
        with Client(options.bootstrap_servers, client_id="skidway-spark") as client:
            for raw in batches(client, tp, partition.first):
                header = read_header(raw)
                if header.base_offset < partition.end:
                    yield from self._rows(columns.decode(raw), partition, decoder, target)
                if header.last_offset + 1 >= partition.end:
                    return

    def _rows(
        self, batch: DecodedBatch, part: OffsetRange, decoder: Decoder | None, target: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        rows = np.flatnonzero((batch.offsets >= part.first) & (batch.offsets < part.end))
        if not len(rows):
            return
        values = batch.values.take(pa.array(rows))
        if decoder is None:
            content = [batch.keys.take(pa.array(rows)), values]
        else:
            decoded = decoder.decode(values)
            if decoded.refused and not self._options.skip_undecodable:
                index, (reason, detail) = min(decoded.refused.items())
                raise SkidwayError(
                    f"{self._options.topic} partition {part.partition} offset "
                    f"{batch.offsets[rows[index]]}: {reason} {detail}".rstrip()
                )
            content, rows = decoded.columns, rows[decoded.good]
        own = _own(batch, part.partition, rows)
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip([*content, *own], target, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=target)


def arrow_schema(options: Options) -> pa.Schema:
    """The columns of a query, in Arrow's types."""
    own = [field for field in OWN if field.name not in PLACES]
    if not options.registry_url:
        return pa.schema([pa.field("key", pa.binary()), pa.field("value", pa.binary()), *own])
    return pa.schema([*check_reader(_reader(options), RESERVED), *own])


def _reader(options: Options) -> str:
    with Client(options.bootstrap_servers, client_id="skidway-spark") as client:
        _partitions(client, options.topic)
        source = sources_of(client, [options.topic], "")[options.topic]
    return _registry(options).latest(f"{source.topic}-value").schema


def _decoder(options: Options) -> Decoder | None:
    if not options.registry_url:
        return None
    return Decoder(_registry(options), _reader(options))


def _registry(options: Options) -> RegistryClient:
    return RegistryClient(options.registry_url, security=options.registry_security)


def _partitions(client: Client, topic: str) -> list[TopicPartition]:
    found = client.metadata([topic]).topics.get(topic)
    if found is None or not found.partitions:
        raise SkidwayError(f"the topic {topic} does not exist")
    return [TopicPartition(topic, each.index) for each in found.partitions]


def _own(batch: DecodedBatch, partition: int, rows: np.ndarray[Any, Any]) -> list[pa.Array]:
    offsets = batch.offsets[rows]
    origins = None if batch.origins is None else select(batch.origins, rows)
    identified = identify(origins, batch.has_origin[rows], partition, offsets)
    records = Records(partition, offsets, batch.timestamps[rows], identified)
    none = pa.nulls(len(rows), pa.string())
    named = zip(OWN.names, own_columns(records, none, none), strict=True)
    return [column for name, column in named if name not in PLACES]


def _offset(found: int, end: int) -> int:
    """Returns `found`, an offset that was looked up by time, but at most `end`. If `found` is -1,
    no record is that late, and the result is `end`."""
    return end if found < 0 else min(found, end)


def _security(options: Mapping[str, str]) -> Security:
    def file(name: str) -> Path | None:
        text = options[f"schema.registry.ssl.{name}.location"]
        return Path(text) if text else None

    user_info = options["schema.registry.basic.auth.user.info"] or None
    return Security(user_info, file("ca"), file("certificate"), file("key"))


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options[name]
    if not text:
        return default
    if not text.isdigit():
        raise UsageError(f"option {name} is a number, not {text!r}")
    return int(text)
