"""Reads and writes the tables: Parquet files with the part of the loader's state that is too large
for the manifest. This part grows with the number of log files and of buckets (the audit's intervals
of event time).

    marks      partition, agent, file -> highest end byte loaded (audit/counts/marks.py)
    names      agent, file -> host, path, from announcements
    closures   agent, file -> the stage of a closed file on the way to being forgotten
               (state/closures.py)
    fence      partition -> the offset that loads must reach before they drop the marks and names
               of closed files (state/closures.py)
    buckets    agent, bucket -> number of this output's last audit delta that counted the bucket
    forgotten  the hours whose buckets were dropped (`buckets`, `forgotten`: state/bucket_spans.py)

For the first three tables, each load that changes a table writes its changes as a Parquet file. The
load's manifest lists this file in the field `side`, after the files of earlier loads. If several
rows have the same key, the last row is valid. A row says that its key was dropped if it has the end
NO_MARK (`marks`), the host null (`names`) or the stage GONE (`closures`). When a table has
`DELTAS_MAX` files, the load instead writes a snapshot, that is, one file with the whole table. The
table `fence` has one row for each partition. Unless this table is empty, each load of new records
writes the whole table. All rows belong to one source topic; the manifest has the ids of this topic
and of its cluster.

Loads drop the marks and the name of a log file when the file is closed and none of its records can
arrive again. So the tables do not grow for ever, and a load after a year reads them as fast as a
load after a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from skidway.audit.counts.marks import NO_MARK, FileKey
from skidway.loader.state import layout
from skidway.loader.state.closures import Closed, Closures, Fence, Stage
from skidway.loader.state.manifest import CLOSURES, FENCE, MARKS, NAMES, Manifest
from skidway.loader.state.table_file import TableStaging, read_rows, table_of
from skidway.loader.store import Store

DELTAS_MAX: Final = 16

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
    CLOSURES: pa.schema(
        [
            ("agent", pa.int64()),
            ("file", pa.int64()),
            ("time", pa.int64()),
            ("heard", pa.int64()),
            ("stage", pa.int64()),
        ]
    ),
    FENCE: pa.schema([("partition", pa.int64()), ("named", pa.int64()), ("end", pa.int64())]),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that one load adds to the tables of the loader's state. The mark NO_MARK, the
    location None or the stage GONE means that the row's key is dropped."""

    marks: Mapping[int, Mapping[FileKey, int]]
    locations: Mapping[FileKey, Location | None]
    closed: Mapping[FileKey, Closed] = field(default_factory=dict)

    def then(self, later: Changes) -> Changes:
        """Returns these changes, followed by the changes in `later`."""
        partitions = {*self.marks, *later.marks}
        return Changes(
            {p: {**self.marks.get(p, {}), **later.marks.get(p, {})} for p in partitions},
            {**self.locations, **later.locations},
            {**self.closed, **later.closed},
        )


@dataclass(slots=True)
class Tables:
    """The contents of the tables of one topic's state. `locations` has the table `names`;
    `closures` has the tables `closures` and `fence`. Only the loader's own process changes this
    object, and only while no tasks run.
    """

    marks: dict[int, dict[FileKey, int]] = field(default_factory=dict)
    locations: dict[FileKey, Location] = field(default_factory=dict)
    closures: Closures = field(default_factory=Closures)

    def add(self, changes: Changes) -> None:
        """Applies a load's changes of marks and names to `marks` and `locations`. The changes of
        the table `closures` (`changes.closed`) were made in `closures` already when the load
        computed them. So this method does not apply them.
        """
        for partition, marks in changes.marks.items():
            known = self.marks.setdefault(partition, {})
            for key, end in marks.items():
                known[key] = end
                if end == NO_MARK:
                    del known[key]
        for key, location in changes.locations.items():
            if location is not None:
                self.locations[key] = location
            else:
                self.locations.pop(key, None)


def read_tables(store: Store, manifest: Manifest | None) -> Tables:
    """Reads the tables as they were after the manifest's load. Without a manifest, returns empty
    tables. Raises StateRefused if one of the tables' files is gone or damaged."""
    tables = Tables()
    if manifest is None:
        return tables
    rows = {kind: read_rows(store, manifest.side[kind], schema) for kind, schema in SCHEMAS.items()}
    for partition, agent, file, end in rows[MARKS]:
        tables.marks.setdefault(partition, {})[agent, file] = end
    for partition, marks in tables.marks.items():
        tables.marks[partition] = {key: end for key, end in marks.items() if end != NO_MARK}
    named = {(agent, file): (host, path) for agent, file, host, path in rows[NAMES]}
    tables.locations = {key: at for key, at in named.items() if at[0] is not None}
    closed = {
        (agent, file): Closed(time_ms, heard_ms, Stage(stage))
        for agent, file, time_ms, heard_ms, stage in rows[CLOSURES]
    }
    tables.closures.files = {k: each for k, each in closed.items() if each.stage is not Stage.GONE}
    tables.closures.fence = {partition: Fence(*parts) for partition, *parts in rows[FENCE]}
    return tables


def stage(
    staging: TableStaging, before: Mapping[str, Sequence[str]], tables: Tables, changes: Changes
) -> dict[str, tuple[str, ...]]:
    """Writes a load's files of the tables into the staging directory. Returns, for the manifest,
    the paths of all files of each table.

    before: the tables' files that the previous manifest lists. The caller must already have applied
    `changes` to `tables`, because a snapshot is written from `tables`.
    """
    named = {}
    for kind, delta in _rows(changes.marks, changes.locations, changes.closed).items():
        earlier = tuple(before.get(kind, ()))
        snapshot = len(earlier) >= DELTAS_MAX
        rows = _whole(tables)[kind] if snapshot else delta
        if not rows and not snapshot:
            named[kind] = earlier
            continue
        path = _write(staging, kind, rows)
        named[kind] = (path,) if snapshot else (*earlier, path)
    fence = [(partition, *each) for partition, each in sorted(tables.closures.fence.items())]
    named[FENCE] = (_write(staging, FENCE, fence),) if fence else tuple(before.get(FENCE, ()))
    return named


def _write(staging: TableStaging, kind: str, rows: Sequence[tuple[Any, ...]]) -> str:
    path = layout.table(staging.load.topic, kind, staging.load.number)
    return staging.write(kind, path, table_of(rows, SCHEMAS[kind]))


def _whole(tables: Tables) -> dict[str, list[tuple[Any, ...]]]:
    return _rows(tables.marks, tables.locations, tables.closures.files)


def _rows(
    marks: Mapping[int, Mapping[FileKey, int]],
    locations: Mapping[FileKey, Location | None],
    closed: Mapping[FileKey, Closed],
) -> dict[str, list[tuple[Any, ...]]]:
    return {
        MARKS: [(at, *key, end) for at, each in marks.items() for key, end in each.items()],
        NAMES: [(*key, *(location or (None, None))) for key, location in locations.items()],
        CLOSURES: [(*key, *each) for key, each in closed.items()],
    }
