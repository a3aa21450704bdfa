"""Defines what a task receives, and what it reports. Both are plain values, because Spark copies
them between processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.counts.marks import FileKey
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.source import Source
from skidway.loader.planning.plan import Slice
from skidway.loader.state.manifest import BatchMark, DataFile, Gap
from skidway.loader.state.tables import Location
from skidway.loader.store import StoreConnection
from skidway.schemas.client import RegistryConnection


@dataclass(frozen=True, slots=True)
class Job:
    """The values that all slices (the tasks' offset ranges) of one load of one topic have in
    common.

    reader: the newest schema of the topic's subject; this schema gives the rows their columns.
    locations: host and path of every file that an agent has announced. unannounced: files whose
    announcement is still missing after the waiting time; their records become rejects. patient:
    what a task does with a record of any other file that is not announced yet. If `patient` is
    true, the task stops before the record; otherwise the record becomes a reject. gaps: for each
    partition, the missing offsets that an earlier manifest, the mirror or the operator has listed
    as gaps. hours: the hours (their numbers since 1970) whose records are written and counted; None
    for all hours. The records of other hours only advance the marks.
    """

    topic: str
    source: Source
    load: int
    uuid: str
    store: StoreConnection
    kafka: KafkaConnection
    registry: RegistryConnection
    reader: str
    bucket_ms: int
    compression: str
    locations: Mapping[FileKey, Location]
    unannounced: frozenset[FileKey]
    patient: bool
    gaps: Mapping[int, tuple[Gap, ...]]
    hours: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Says why a task stopped before the end of its slice, at the offset `offset`.

    waiting_for: the file of the record at `offset`, if its announcement is missing. awaited: all
    unannounced files of which the task has read records at or after `offset`.
    """

    offset: int
    sentence: str
    waiting_for: FileKey | None = None
    awaited: frozenset[FileKey] = frozenset()


@dataclass(slots=True)
class SliceResult:
    """The result of a task. end: the offset up to which the task has processed the slice. below:
    the last batch before `end`.
    """

    piece: Slice
    end: int
    files: tuple[DataFile, ...] = ()
    lowest: dict[FileKey, int] = field(default_factory=dict)
    highest: dict[FileKey, int] = field(default_factory=dict)
    sums: dict[BucketKey, Sums] = field(default_factory=dict)
    schema_ids: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    gaps: tuple[Gap, ...] = ()
    below: BatchMark | None = None
    stop: Stop | None = None
    repeats: int = 0
