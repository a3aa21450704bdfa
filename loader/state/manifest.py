"""Defines the manifest: the JSON file whose creation commits one load of one topic.

    <root>/_skidway/<topic>/00000000000000000007.json

    {
      "format": 1,
      "number": 7, "uuid": "32 hex digits", "created": ms since the epoch, "program": "0.1.0",
      "producer": "<root>/<topic>", "epoch": 1,
      "cluster": "offline", "cluster_id": "...", "topic": "dc1.hdfs-logs", "topic_id": "32 hex",
      "source": {"cluster": "dc1", "cluster_id": "...", "topic": "hdfs-logs", "topic_id": "32 hex"},
      "partitions": [{"partition": 0, "first": 1000, "end": 2000,
                      "gaps": [{"first": 1200, "end": 1300, "reason": "..."}], "ahead": [],
                      "below": {"base_offset": 1950, "last_offset": 1999, "crc": 1, "epoch": 0}}],
      "files": [{"kind": "rows", "path": "dc1.hdfs-logs/dt=.../hour=.../part-7-0-1000.parquet",
                 "staged": "_skidway/dc1.hdfs-logs/staging/7-.../...", "length": bytes,
                 "rows": 900, "checksum": signed 64 bits, "crc32c": of the file's bytes}],
      "schema": {"subject": "hdfs-logs-value", "version": 3, "id": 12},
      "schemas": [{"subject": "hdfs-logs-value", "version": 2, "id": 9}, ... version 3 ...],
      "carried": [{"name": "user", "schema": {... version 1 ...}}],
      "removed": ["dc1.hdfs-logs/dt=.../hour=.../part-3-0-700.parquet"],
      "columns": {"path": "dc1.hdfs-logs/_common_metadata", "staged": "..."},
      "success": [{"path": "dc1.hdfs-logs/dt=.../hour=07/_SUCCESS", "staged": "..."}],
      "reopened": ["dc1.hdfs-logs/dt=.../hour=05/_SUCCESS"],
      "unmarked": ["2026-01-31T05", "2026-01-31T08"],
      "schema_ids": {"12": 900},
      "side": {"marks": ["path", ...], "names": [...], "buckets": [...]},
      "audit_positions": {"dc1._skidway_audit/0/topic id in 32 hex": 17},
      "audit": {"bucket_ms": 60000, "last": 9, "deltas": [... see audit_topic/delta.py ...], ...},
      "seconds": 12.3
    }

- `partitions` lists every partition of the topic. This load read the offsets [`first`, `end`); the
  next load begins at `end`. If the load read nothing of a partition, `first` and `end` are the
  same. `below` identifies the last batch before `end`; the next load first compares this batch with
  the log. Because `partitions` lists every partition, a loader needs only the newest manifest to
  find all positions.
- `files[].kind`: rows, rejects, or the name of a table (loader/state/tables.py). `checksum`, for a
  file of rows or rejects, is the sum of the hashes of its records (audit/counts/checksum.py) modulo
  2^64, as a signed long.
- `schema` is the schema of the rows that this load adds. If a file follows another schema, its
  entry in `files` has a `schema_id`. `schemas` lists the schemas of all files of rows that the
  output has after this load. `carried` lists the columns that rewritten files have kept, although
  their schema lacks the field, with the schema from which each column comes.
- `removed` lists files of earlier loads. The files of this load have the same records, and replace
  the removed files (loader/rewriting, loader/reloading). A load that removes files reads no new
  offsets. The output consists of the files that a manifest adds and no later manifest removes
  (loader/state/live.py).
- `columns` is a file that has the columns of the rows, but no rows. `columns` is null if the output
  already has a file with the same content.
- `success` lists the files `_SUCCESS` that this load adds to mark hours as complete
  (loader/complete_hours). If a load moves files of rows into the directory of an hour, it first
  deletes the hour's `_SUCCESS`, and need not list it. `reopened` lists other files `_SUCCESS` that
  this load deletes: those of hours that are no longer complete, and those of hours in which a
  reload changes rows. `unmarked` lists the hours that have rows, but no `_SUCCESS`, after this
  load. `unmarked` lists at most the newest UNMARKED_MAX hours.
- `side` lists the files of each table after this load. Of `marks`, `names` and `closures`, the
  oldest file comes first. This file is a snapshot of the table, and the others are the changes that
  later loads made. If several rows have the same key, the last row is valid
  (loader/state/tables.py). Each file of `buckets` has a span of time, and the earliest span comes
  first (loader/state/bucket_spans.py).
- `audit` contains what this load adds to the audit's counts: the deltas of the tier HDFS, with the
  keys (HDFS, producer, epoch, number). The loader publishes these deltas after the commit. A load
  that counts nothing repeats the field of the previous manifest. The loader can read the deltas
  from the manifest and publish them again at any time. The first load of an output chooses an epoch
  higher than the epoch of every message that was published under its `producer`
  (loader/audit_topic/feed.py). Later loads use the same epoch.
- `seconds` says how long the load took, without the start of Spark and without the commit.

In the file, each field is on a line of its own. The line of a field may be long: with 5,000 agents
and a load each minute, the field `audit` has 10,000 counts.

The audit's recount reads this file as plain JSON. Loader and recount refuse a file with another
`format`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, Final

from skidway.errors import StateRefused
from skidway.kafka.source import Source
from skidway.loader.state import layout

FORMAT: Final = 1
UNMARKED_MAX: Final = 500
ROWS, REJECTS, MARKS, NAMES, BUCKETS = "rows", "rejects", "marks", "names", "buckets"
CLOSURES, FENCE, FORGOTTEN = "closures", "fence", "forgotten"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that a load adds: where it was written, where it will be moved, and what it contains.

    schema_id: the id of the schema that the file's columns follow; None if this schema is the
    manifest's `schema`.
    """

    kind: str
    path: str
    staged: str
    length: int
    rows: int
    checksum: int
    crc32c: int
    schema_id: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [first, end) that are missing in the log. reason: the reason that the mirror gave, or
    a text that says that the operator has accepted the gap. If `first` and `end` are equal, no
    offset is missing, and `reason` is a note (`unverified` in loader/planning/plan.py).
    """

    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class BatchMark:
    """Identifies the last batch before the `end` of a partition's range, by fields of the batch's
    header. (The marks of log files are something else.)
    """

    base_offset: int
    last_offset: int
    crc: int
    epoch: int


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """Offsets [first, end) of one partition, and the gaps between these offsets.

    ahead: the gaps that end after `end`, as the mirror or the operator has listed them; the next
    load may have to skip them. below: the last batch before `end`.
    """

    partition: int
    first: int
    end: int
    gaps: tuple[Gap, ...] = ()
    ahead: tuple[Gap, ...] = ()
    below: BatchMark | None = None


@dataclass(frozen=True, slots=True)
class SchemaChoice:
    """A registered schema that the columns of some files of rows follow."""

    subject: str
    version: int
    id: int


@dataclass(frozen=True, slots=True)
class CarriedColumn:
    """A column of rewritten files whose field their schema lacks. schema: the schema that had the
    field, and gives the column its type."""

    name: str
    schema: SchemaChoice


@dataclass(frozen=True, slots=True)
class Replacement:
    """A staged file, and its final path. If the final path already has an older file, the staged
    file replaces it."""

    path: str
    staged: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """One committed load. The docstring of this module explains every field."""

    number: int
    uuid: str
    created: int
    program: str
    producer: str
    epoch: int
    cluster: str
    cluster_id: str
    topic: str
    topic_id: str
    source: Source
    partitions: tuple[PartitionRange, ...]
    files: tuple[DataFile, ...]
    schema: SchemaChoice | None
    schema_ids: Mapping[int, int] = field(default_factory=dict)
    side: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    audit_positions: Mapping[str, int] = field(default_factory=dict)
    audit: Mapping[str, Any] = field(default_factory=dict)
    columns: Replacement | None = None
    removed: tuple[str, ...] = ()
    schemas: tuple[SchemaChoice, ...] = ()
    carried: tuple[CarriedColumn, ...] = ()
    success: tuple[Replacement, ...] = ()
    reopened: tuple[str, ...] = ()
    unmarked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def path(self) -> str:
        """Returns the path of the manifest itself."""
        return layout.manifest(self.topic, self.number)

    @property
    def staging(self) -> str:
        """Returns the staging directory, which has the load's files until they are moved to their
        final paths."""
        return layout.staging(self.topic, self.number, self.uuid)

    @property
    def created_text(self) -> str:
        """Returns when the load was made, as RFC 3339 in UTC, to the second."""
        return f"{datetime.fromtimestamp(self.created / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

    def rows(self) -> int:
        """Returns how many rows this load added. The result is 0 for a load that replaces files."""
        return 0 if self.removed else sum(file.rows for file in self.files if file.kind == ROWS)

    def rejects(self) -> int:
        """Returns how many records this load added to the rejects. The result is 0 for a load that
        replaces files."""
        return 0 if self.removed else sum(file.rows for file in self.files if file.kind == REJECTS)

    def to_json(self) -> bytes:
        """Returns the manifest as JSON. The same manifest always results in the same bytes."""
        content = {"format": FORMAT, **_fields(self)}
        lines = (
            f' "{name}": {json.dumps(each, default=_fields)}' for name, each in content.items()
        )
        return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()

    @staticmethod
    def from_json(data: bytes, where: str) -> Manifest:
        """Reads a manifest. where: the manifest's path, for errors. Raises StateRefused if the data
        is no manifest or has another format."""
        try:
            content = json.loads(data)
            if content.pop("format") != FORMAT:
                raise StateRefused(f"the manifest {where} was written by another program version")
            return _manifest(content)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StateRefused(f"the manifest {where} is damaged: {error}") from error


def _fields(value: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass by name. Does not use `asdict`, because `asdict` would copy
    the counts of all agents."""
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _manifest(content: dict[str, Any]) -> Manifest:
    schema, columns = content["schema"], content["columns"]
    changed = {
        "source": Source(**content["source"]),
        "partitions": tuple(_partition(each) for each in content["partitions"]),
        "files": tuple(DataFile(**each) for each in content["files"]),
        "schema": SchemaChoice(**schema) if schema else None,
        "schemas": tuple(SchemaChoice(**each) for each in content["schemas"]),
        "carried": tuple(
            CarriedColumn(each["name"], SchemaChoice(**each["schema"]))
            for each in content["carried"]
        ),
        "columns": Replacement(**columns) if columns else None,
        "schema_ids": {int(key): value for key, value in content["schema_ids"].items()},
        "removed": tuple(content["removed"]),
        "success": tuple(Replacement(**each) for each in content["success"]),
        "reopened": tuple(content["reopened"]),
        "unmarked": tuple(content["unmarked"]),
        "side": {table: tuple(paths) for table, paths in content["side"].items()},
    }
    return Manifest(**{**content, **changed})


def _partition(content: dict[str, Any]) -> PartitionRange:
    below = content["below"]
    changed = {
        "gaps": tuple(Gap(**gap) for gap in content["gaps"]),
        "ahead": tuple(Gap(**gap) for gap in content["ahead"]),
        "below": BatchMark(**below) if below else None,
    }
    return PartitionRange(**{**content, **changed})
