"""Tables: state that grows with the number of files and of buckets (the audit's intervals of event
time), so it is not inside the manifest.

    marks     partition, agent, file -> highest end byte loaded (audit/counts/marks.py)
    names     agent, file -> host, path, from announcements
    buckets   agent, bucket -> number of this output's last audit delta that counted the bucket

Each load writes its changes to a table as a Parquet file. The load's manifest names that file under
`side`, after the files of earlier loads. If several rows have the same key, the last row is valid.
When a table has `DELTAS_MAX` files, the load writes a snapshot of the whole table instead. All rows
belong to one source topic, whose ids are in the manifest.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts.marks import FileKey
from skidway.errors import StateRefused
from skidway.loader.state import layout
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import BUCKETS, MARKS, NAMES, DataFile, Manifest
from skidway.loader.state.parquet_file import write_table
from skidway.loader.store import Store

DELTAS_MAX: Final = 16

BucketKey = tuple[int, int]
Location = tuple[str, str]
"""Host and path."""

SCHEMAS: Final[dict[str, pa.Schema]] = {
    MARKS: pa.schema(
        [
            ("partition", pa.int64()),
            ("agent", pa.int64()),
            ("file", pa.int64()),
            ("end", pa.int64()),
        ]
    ),
    NAMES: pa.schema(
        [("agent", pa.int64()), ("file", pa.int64()), ("host", pa.string()), ("path", pa.string())]
    ),
    BUCKETS: pa.schema([("agent", pa.int64()), ("bucket", pa.int64()), ("number", pa.int64())]),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """What one load adds to the tables."""

    marks: Mapping[int, Mapping[FileKey, int]]
    locations: Mapping[FileKey, Location]
    buckets: Mapping[BucketKey, int]


@dataclass(slots=True)
class Tables:
    """The contents of the tables' files together. Only the driver changes them, between loads."""

    marks: dict[int, dict[FileKey, int]] = field(default_factory=dict)
    locations: dict[FileKey, Location] = field(default_factory=dict)
    buckets: dict[BucketKey, int] = field(default_factory=dict)

    def add(self, changes: Changes) -> None:
        """Applies the changes of a load to the tables."""
        for partition, marks in changes.marks.items():
            self.marks.setdefault(partition, {}).update(marks)
        self.locations.update(changes.locations)
        self.buckets.update(changes.buckets)


def read_tables(store: Store, manifest: Manifest | None) -> Tables:
    """The tables as the manifest's load left them. Raises StateRefused if one of the tables' files
    is gone or damaged."""
    tables = Tables()
    if manifest is None:
        return tables
    for partition, agent, file, end in _rows(store, manifest, MARKS):
        tables.marks.setdefault(partition, {})[agent, file] = end
    for agent, file, host, path in _rows(store, manifest, NAMES):
        tables.locations[agent, file] = host, path
    for agent, bucket, number in _rows(store, manifest, BUCKETS):
        tables.buckets[agent, bucket] = number
    return tables


def read_locations(store: Store, manifest: Manifest) -> dict[FileKey, Location]:
    """Only the table `names`, which is a small part of all tables. Raises StateRefused."""
    rows = _rows(store, manifest, NAMES)
    return {(agent, file): (host, path) for agent, file, host, path in rows}


def stage(
    store: Store,
    load: LoadId,
    before: Mapping[str, Sequence[str]],
    tables: Tables,
    changes: Changes,
) -> tuple[list[DataFile], dict[str, tuple[str, ...]]]:
    """Stages the tables' files of a load. Returns (files, names for the manifest).

    before: the files that the previous manifest names. `tables` must already have the changes,
    because the load may have to write a snapshot.
    """
    whole, delta = _rows_of(tables), _rows_of(changes)
    files, named = [], {}
    for kind in (MARKS, NAMES, BUCKETS):
        earlier = tuple(before.get(kind, ()))
        snapshot = len(earlier) >= DELTAS_MAX
        rows = whole[kind] if snapshot else delta[kind]
        if not rows and not snapshot:
            named[kind] = earlier
            continue
        table = _arrow(rows, SCHEMAS[kind])
        path = layout.table(load.topic, kind, load.number)
        files.append(write_table(store, table, kind, path, f"{load.staging}/{kind}.parquet"))
        named[kind] = (path,) if snapshot else (*earlier, path)
    return files, named


def _arrow(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _rows_of(tables: Tables | Changes) -> dict[str, list[tuple[Any, ...]]]:
    return {
        MARKS: [
            (partition, *key, end)
            for partition, marks in tables.marks.items()
            for key, end in marks.items()
        ],
        NAMES: [(*key, *location) for key, location in tables.locations.items()],
        BUCKETS: [(*key, number) for key, number in tables.buckets.items()],
    }


def _rows(store: Store, manifest: Manifest, kind: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for path in manifest.side.get(kind, ()):
        data = store.read(path)
        if data is None:
            raise StateRefused(
                f"{path}, which the manifest of load {manifest.number} names, is missing; restore "
                "it before loading on"
            )
        try:
            table = pq.read_table(io.BytesIO(data))
            columns = [table.column(name).to_pylist() for name in SCHEMAS[kind].names]
        except (pa.ArrowException, KeyError, OSError) as error:
            raise StateRefused(f"{path} is damaged: {error}") from error
        rows += zip(*columns, strict=True)
    return rows
