from __future__ import annotations

import numpy as np
import pyarrow as pa

from skidway.consumer.chunk import SCHEMA, Chunk, Record
from skidway.consumer.reading import Reading
from skidway.kafka import columns
from skidway.kafka.batch import seal, stamp
from skidway.kafka.types import TopicPartition

TP = TopicPartition("t", 3)


def chunk(position: int) -> Chunk:
    """Returns a chunk (records that were fetched together) with the offsets 10 to 14. The chunk
    gives out its records from the offset `position` on."""
    values = pa.array([b"0", None, b"2", b"3", b"4"], pa.binary())
    keys = pa.array([None, b"k", None, None, None], pa.binary())
    raw = bytearray(seal(columns.encode(values, np.arange(5) + 1_000, keys=keys)))
    stamp(raw, 0, 10, 0)
    return Chunk(Reading(TP, position, None), memoryview(raw))


def test_records_begin_at_the_position() -> None:
    """A chunk (records that were fetched together) returns only its records from its `position` on.
    Null keys and null values stay null."""
    assert list(chunk(11).records())[:2] == [
        Record("t", 3, 11, 1_001, b"k", None),
        Record("t", 3, 12, 1_002, None, b"2"),
    ]
    assert len(list(chunk(0).records())) == 5
    assert chunk(0).end == 15


def test_columns_hold_what_records_hold() -> None:
    """The table that a chunk (records that were fetched together) returns has a row for each
    record, and always the same schema. If there is no record to return, the table is None."""
    table = chunk(11).table()
    assert table is not None
    assert table.schema == SCHEMA
    records = [
        {**record._asdict(), "timestamp": record.timestamp} for record in chunk(11).records()
    ]
    rows = table.to_pylist()
    for row in rows:
        row["timestamp"] = round(row["timestamp"].timestamp() * 1000)
    assert rows == records
    assert chunk(15).table() is None


def test_columns_go_on_behind_records() -> None:
    """If a caller first takes some records from a chunk (records that were fetched together) and
    then takes the rest as a table, the caller gets each record exactly once."""
    found = chunk(10)
    rows = found.records()
    found.reading.hand_out(next(rows).offset + 1)
    table = found.table()
    assert table is not None
    assert table.column("offset").to_pylist() == [11, 12, 13, 14]
