"""Side files: state that grows with files and buckets and therefore is not in the manifest itself.

    marks     partition, agent, file -> highest end byte loaded (audit/counts/marks.py)
    names     agent, file -> host, path, from announcements
    buckets   agent, bucket -> number of this output's last audit delta that touched it

Each load writes what it changed as a Parquet file and names it in its manifest behind those of the
loads before; later rows win. After `DELTAS_MAX` of them a load writes a snapshot of everything
instead. All rows are of the manifest's own source topic, whose ids it carries.
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
from skidway.loader import layout
from skidway.loader.manifest import BUCKETS, MARKS, NAMES, DataFile, Manifest
from skidway.loader.store import Store
from skidway.loader.write import write_table

DELTAS_MAX: Final = 16

BucketKey = tuple[int, int]
Place = tuple[str, str]
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


@dataclass(slots=True)
class SideState:
    """What the side files say together. Changed only by the driver, between loads."""

    marks: dict[int, dict[FileKey, int]] = field(default_factory=dict)
    names: dict[FileKey, Place] = field(default_factory=dict)
    buckets: dict[BucketKey, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changes:
    """What one load adds to the state."""

    marks: Mapping[int, Mapping[FileKey, int]]
    names: Mapping[FileKey, Place]
    buckets: Mapping[BucketKey, int]


def read_state(store: Store, manifest: Manifest | None) -> SideState:
    """The state after a manifest. StateRefused when one of its side files is gone or damaged."""
    state = SideState()
    if manifest is None:
        return state
    for partition, agent, file, end in _rows(store, manifest, MARKS):
        state.marks.setdefault(partition, {})[agent, file] = end
    for agent, file, host, path in _rows(store, manifest, NAMES):
        state.names[agent, file] = host, path
    for agent, bucket, number in _rows(store, manifest, BUCKETS):
        state.buckets[agent, bucket] = number
    return state


def apply(state: SideState, changes: Changes) -> None:
    """Makes the state what it is after a load with these changes."""
    for partition, marks in changes.marks.items():
        state.marks.setdefault(partition, {}).update(marks)
    state.names.update(changes.names)
    state.buckets.update(changes.buckets)


def write_side(
    store: Store,
    topic: str,
    load: int,
    staging: str,
    before: Mapping[str, Sequence[str]],
    state: SideState,
    changes: Changes,
) -> tuple[list[DataFile], dict[str, tuple[str, ...]]]:
    """Stages the side files of a load: (files, names for the manifest).

    `state` is the state with the changes applied, for the case that a snapshot is due.
    """
    whole = _tables(state.marks, state.names, state.buckets)
    delta = _tables(changes.marks, changes.names, changes.buckets)
    files, named = [], {}
    for kind in (MARKS, NAMES, BUCKETS):
        earlier = tuple(before.get(kind, ()))
        snapshot = len(earlier) >= DELTAS_MAX
        rows = whole[kind] if snapshot else delta[kind]
        if not rows and not snapshot:
            named[kind] = earlier
            continue
        table = pa.Table.from_arrays(
            [pa.array(column) for column in zip(*rows, strict=True)]
            if rows
            else [pa.nulls(0, each.type) for each in SCHEMAS[kind]],
            schema=SCHEMAS[kind],
        )
        path = layout.side(topic, kind, load)
        files.append(write_table(store, table, kind, path, f"{staging}/{kind}.parquet"))
        named[kind] = (path,) if snapshot else (*earlier, path)
    return files, named


def _tables(
    marks: Mapping[int, Mapping[FileKey, int]],
    names: Mapping[FileKey, Place],
    buckets: Mapping[BucketKey, int],
) -> dict[str, list[tuple[Any, ...]]]:
    return {
        MARKS: [
            (partition, *key, end) for partition, each in marks.items() for key, end in each.items()
        ],
        NAMES: [(*key, *place) for key, place in names.items()],
        BUCKETS: [(*key, number) for key, number in buckets.items()],
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
