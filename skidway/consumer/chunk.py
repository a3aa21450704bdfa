"""Defines a chunk: the records of one batch, which the consumer hands to the application as single
records or as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skidway.consumer.reading import Reading
from skidway.kafka.batch import read_header
from skidway.kafka.columns import DecodedRecords, decode

SCHEMA = pa.schema(
    [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
"""The columns of every Arrow batch that a consumer returns."""


class Record(NamedTuple):
    """One record. `timestamp` is in ms since 1970; `key` and `value` may be null."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Chunk:
    """The records of one batch, without the records before offset `reading.handed`, which the
    application already has. A control batch has no records."""

    __slots__ = ("_batch", "end", "reading")

    def __init__(self, reading: Reading, raw: memoryview) -> None:
        """`raw` is the batch as bytes. Raises CorruptBatch if the batch is damaged."""
        self._batch: DecodedRecords = decode(raw)
        self.reading = reading
        self.end = max(read_header(raw).last_offset + 1, reading.handed)

    def records(self) -> Iterator[Record]:
        """Yields the records one by one, without those that the application already has."""
        batch, first = self._batch, self._rest()
        tp = self.reading.tp
        columns = zip(
            batch.offsets[first:].tolist(),
            batch.timestamps[first:].tolist(),
            batch.keys[first:].to_pylist(),
            batch.values[first:].to_pylist(),
            strict=True,
        )
        return (Record(tp.topic, tp.partition, *row) for row in columns)

    def table(self) -> pa.RecordBatch | None:
        """Returns the records as columns (`SCHEMA`), without those that the application already
        has. Returns None if no record is left."""
        batch, first = self._batch, self._rest()
        count = len(batch.offsets) - first
        if count == 0:
            return None
        tp = self.reading.tp
        topic = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([tp.topic]))
        columns = [
            topic,
            pa.array(np.full(count, tp.partition, np.int32)),
            pa.array(batch.offsets[first:]),
            pa.array(batch.timestamps[first:]).cast(pa.timestamp("ms", tz="UTC")),
            batch.keys[first:],
            batch.values[first:],
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)

    def _rest(self) -> int:
        return int(np.searchsorted(self._batch.offsets, self.reading.handed))
