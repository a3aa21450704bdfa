"""Writes rows to Parquet files, one per hour of event time, in a staging directory.

    staging/<load>-<uuid>/<kind>-<partition>-<first offset>-<hour>-<task attempt>.parquet

The writer keeps rows in memory until they have `FLUSH_BYTES`, or until the slice (the task's offset
range) ends. Then the writer writes and syncs one whole file per hour. So the memory is bounded, and
no file stays open. The file's name contains the number of the task attempt, so that a second
attempt at a task never writes into a file of the first attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.audit.counts.bucket import has_date
from skidway.loader.reading.columns import Records
from skidway.loader.state import layout
from skidway.loader.state.manifest import REJECTS, ROWS, DataFile
from skidway.loader.state.parquet_file import write_table
from skidway.loader.store import Store
from skidway.row_columns import KAFKA_OFFSET

FLUSH_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class Target:
    """Says where the files of one attempt at one slice are written."""

    topic: str
    load: int
    uuid: str
    partition: int
    attempt: int
    compression: str


class HourWriter:
    """Writes files of one kind for one slice. The kind is rows, or rejects (records that cannot
    become rows)."""

    def __init__(self, store: Store, target: Target, kind: str, schema: pa.Schema) -> None:
        self._store, self._target, self._kind = store, target, kind
        self._schema = schema
        self._hours: dict[int, list[pa.RecordBatch]] = {}
        self._bytes = 0
        self._files: list[DataFile] = []

    def add(self, columns: list[pa.Array], records: Records) -> None:
        """Adds rows. columns: the values of the rows. records: offset, time and origin of each
        row."""
        if not len(records):
            return
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        for hour, part in _by_hour(batch, hours_of(records.timestamps)):
            self._hours.setdefault(hour, []).append(part)
        self._bytes += batch.nbytes
        if self._bytes >= FLUSH_BYTES:
            self._flush()

    def close(self) -> tuple[DataFile, ...]:
        """Writes the rows that are still in memory. Returns all files of this writer, in the order
        in which they were written."""
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
        first = table.column(KAFKA_OFFSET.name)[0].as_py()
        staging = layout.staging(target.topic, target.load, target.uuid)
        name = f"{self._kind}-{target.partition}-{first}-{hour}-{target.attempt}.parquet"
        place = {ROWS: layout.rows, REJECTS: layout.rejects}[self._kind]
        path = place(target.topic, hour, target.load, target.partition, first)
        return write_table(
            self._store, table, self._kind, path, f"{staging}/{name}", target.compression
        )


def hours_of(timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns, for each event time, the number of hours since 1970; 0 if the time has no date. Only
    rejects can have such times. The audit counts them in the first bucket of hour 0, too."""
    return np.where(has_date(timestamps), timestamps // layout.HOUR_MS, 0)


def _by_hour(
    batch: pa.RecordBatch, hours: npt.NDArray[np.int64]
) -> list[tuple[int, pa.RecordBatch]]:
    """Returns, for each hour, the rows of the hour, in their original order."""
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
