"""Rows to Parquet files, one per hour of event time, in a staging directory.

    staging/<load>-<uuid>/<kind>-<partition>-<first offset>-<hour>-<task attempt>.parquet

Rows are kept until `FLUSH_BYTES` are there or the slice ends; then every hour gets its file, whole
and synced. So memory is bounded, no file stays open, and a task that is tried again never writes
into a file of the attempt before.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Final

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from skidway.audit.counts import checksum
from skidway.loader import layout
from skidway.loader.columns import Records
from skidway.loader.manifest import REJECTS, ROWS, DataFile
from skidway.loader.store import Store, StoreWriter

FLUSH_BYTES: Final = 128 << 20
ROW_GROUP_ROWS: Final = 512 * 1024

RISING: Final = frozenset({"_offset", "_kafka_offset"})

YEAR_10000_MS: Final = 253_402_300_800_000
"""Event times outside of [1970, 10000) have no directory `dt=YYYY-MM-DD`."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the files of one attempt at one slice go."""

    topic: str
    load: int
    uuid: str
    partition: int
    attempt: int
    compression: str


class HourWriter:
    """Files of rows, or of rejects, of one slice."""

    def __init__(self, store: Store, target: Target, kind: str, schema: pa.Schema) -> None:
        self._store, self._target, self._kind = store, target, kind
        self._schema = schema
        self._hours: dict[int, list[pa.RecordBatch]] = {}
        self._bytes = 0
        self._files: list[DataFile] = []

    def add(self, columns: list[pa.Array], records: Records) -> None:
        """Rows in the writer's columns; `records` are the same rows' own columns."""
        if not len(records):
            return
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        for hour, part in _by_hour(batch, _hours(records.timestamps)):
            self._hours.setdefault(hour, []).append(part)
        self._bytes += batch.nbytes
        if self._bytes >= FLUSH_BYTES:
            self._flush()

    def close(self) -> tuple[DataFile, ...]:
        """Writes what is left. The files, in the order they were written."""
        self._flush()
        return tuple(self._files)

    def _flush(self) -> None:
        for hour in sorted(self._hours):
            table = pa.Table.from_batches(self._hours[hour], self._schema)
            self._files.append(self._write(hour, table))
        self._hours.clear()
        self._bytes = 0

    def _write(self, hour: int, table: pa.Table) -> DataFile:
        target = self._target
        first = table.column("_kafka_offset")[0].as_py()
        staging = layout.staging(target.topic, target.load, target.uuid)
        name = f"{self._kind}-{target.partition}-{first}-{hour}-{target.attempt}.parquet"
        place = {ROWS: layout.rows, REJECTS: layout.rejects}[self._kind]
        path = place(target.topic, hour, target.load, target.partition, first)
        return write_table(
            self._store, table, self._kind, path, f"{staging}/{name}", target.compression
        )


def write_table(
    store: Store, table: pa.Table, kind: str, path: str, staged: str, compression: str = "zstd"
) -> DataFile:
    """One Parquet file, synced and closed; `path` is where it will be moved. Raises StoreFailed."""
    writer = store.create(staged)
    sink = _Measured(writer)
    try:
        pq.write_table(
            table,
            sink,
            compression=compression,
            row_group_size=ROW_GROUP_ROWS,
            store_schema=False,  # so that files look alike whoever reads them
            **_encodings(table.schema),
        )
    except BaseException:
        writer.abandon()
        raise
    writer.close()
    return DataFile(kind, path, staged, sink.length, table.num_rows, _checksum(table), sink.crc32c)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Columns that rise from row to row are written as differences: a fraction of the bytes, and
    cheaper than a dictionary that nothing is found in."""
    rising = [each.name for each in schema if each.name in RISING or types.is_timestamp(each.type)]
    return {
        "use_dictionary": [name for name in schema.names if name not in rising],
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    }


def has_hour(timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which event times a directory can be named after."""
    return (timestamps >= 0) & (timestamps < YEAR_10000_MS)


def _hours(timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Hours since 1970; 0 for times without one (only rejects have such)."""
    return np.where(has_hour(timestamps), timestamps // layout.HOUR_MS, 0)


class _Measured(io.RawIOBase):
    """Passes bytes on to a store's file; counts them and sums their CRC-32C."""

    def __init__(self, writer: StoreWriter) -> None:
        super().__init__()
        self._writer = writer
        self.length = 0
        self.crc32c = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        self.crc32c = google_crc32c.extend(self.crc32c, bytes(data))
        self.length += len(data)
        return self._writer.write(data)


def _checksum(table: pa.Table) -> int:
    """Sum of the record hashes; 0 for a table without origins."""
    if "_agent" not in table.column_names:
        return 0
    names = ("_agent", "_file_id", "_offset", "_length")
    fields = [table.column(name).to_numpy() for name in names]
    return checksum.total(checksum.record_hash(*fields))


def _by_hour(
    batch: pa.RecordBatch, hours: npt.NDArray[np.int64]
) -> list[tuple[int, pa.RecordBatch]]:
    """The rows of each hour, in their order."""
    first = int(hours[0])
    if (hours == first).all():
        return [(first, batch)]
    if (np.diff(hours) < 0).any():
        order = np.argsort(hours, kind="stable")
        batch, hours = batch.take(pa.array(order)), hours[order]
    begins = np.concatenate(([0], np.flatnonzero(np.diff(hours)) + 1))
    ends = np.append(begins[1:], len(hours))
    return [
        (int(hours[begin]), batch.slice(begin, end - begin))
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    ]
