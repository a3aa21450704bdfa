"""Runs the loader in one process, with the source topic, the audit topic and the output in memory,
and without Spark.

All steps of a load (begin, plan, tasks, join, commit, publish) run the production code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.signing.signer import Signer
from skidway.audit.topic import topic as audit_topic
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Announcement, Delta, Message, decode, encode
from skidway.kafka import columns
from skidway.kafka.batch import BatchHeader, read_header
from skidway.kafka.columns import Origins
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.plan import Bounds, Slice
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.rewriting.group_rewrite import GroupRewrite, Rewritten
from skidway.loader.runs.compaction import Compacted, Compaction
from skidway.loader.runs.outcome import TopicOutcome
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.reload import Reload, Reloaded, Wish
from skidway.loader.runs.run import load_topics
from skidway.loader.runs.run_progress import Figures, RunProgress
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.spark.runner import Progress
from skidway.loader.state import layout
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.run_notes import OwnNote
from skidway.schemas.client import SUBJECT_UNKNOWN, Registered, RegistryRefused
from support.clock import ManualClock
from support.loading import (
    SCHEMA,
    SCHEMA_ID,
    SOURCE,
    START_MS,
    TOPIC,
    Record,
    Registry,
    Runner,
    datum,
    encoded,
)
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher, MemoryProducer
from support.memory_store import MemoryStore

AGENT, LENGTH = 7, 10
DATA = TopicPartition(TOPIC, 0)
PRODUCER = f"memory:/{TOPIC}"


class MemoryLoading:
    """A topic with lines of one file of one agent, and methods that run loads of this topic."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster()
        self.store = MemoryStore()
        self.client = _Client(self.cluster, self.clock)
        self.cluster.create(TOPIC)
        self.cluster.create(AUDIT)
        self.lines = 0
        self.versions = [SCHEMA]
        """The versions of the lines' schema. A test may add newer versions."""
        self.gone: list[str] = []
        """The versions of the lines' schema that were registered after those in `versions`, and
        then deleted."""
        self.deleted = 0
        """The number of versions that the subject had when it was permanently deleted and created
        again."""
        self.collector: Any = None
        """Replaces the audit's collector: answers the loader's question whether hours are
        complete."""
        self.slice_s = 0.0
        """The time that a slice takes on the test's clock, in seconds."""
        self.shown: list[Figures] = []
        """The progress figures that the runs have shown."""
        self.note: OwnNote | None = None
        """The object that writes a file by which other runs into the same output see that this run
        is at work. If it is None, no such file is written."""
        self.beside: list[SourceTopic] = []
        """Further topics that each run loads. These topics have no records, or no schema."""
        self.outcomes: list[TopicOutcome] = []
        """The outcomes of all topics of the newest run."""
        self.signer: Signer | None = None
        """Signs the messages of the loads."""
        self.announce()

    def announce(self) -> None:
        """Publishes the agent's announcement of the log file to the audit topic. Can be called
        several times."""
        self.say(Announcement(0, AGENT, 1, "host", "/log/1", 1, 1, b"", 0, SOURCE))

    def say(self, *messages: Message | bytes) -> None:
        """Publishes messages of other senders to the audit topic. A message that is encoded already
        may be any bytes."""
        encoded = (x if isinstance(x, bytes) else encode(x) for x in messages)
        values = pa.array(list(encoded), pa.binary())
        log = self.cluster.log(TopicPartition(AUDIT, 0))
        log.append(columns.encode(values, np.zeros(len(messages), np.int64)))

    def said(self) -> list[Message]:
        """Returns all messages in the audit topic, in order."""
        return [decode(record.value) for record in self.records()]

    def records(self) -> list[audit_topic.Record]:
        """Returns all records of the audit topic, in order."""
        tp = TopicPartition(AUDIT, 0)
        batches = self.cluster.log(tp).batches
        found = [audit_topic.TopicBatch(tp, 0, bytes(batch)) for batch in batches]
        return list(audit_topic.records_of(found))

    def deltas(self) -> list[Delta]:
        """Returns the deltas (messages with counts) that the loads into this output have
        published."""
        return [
            each
            for each in self.said()
            if isinstance(each, Delta) and each.sender.producer == PRODUCER
        ]

    def write(self, count: int, batch_records: int = 50, time_ms: int = START_MS) -> None:
        """Appends `count` further lines in batches. `time_ms` is the event time of these lines."""
        for first in range(self.lines, self.lines + count, batch_records):
            size = min(batch_records, self.lines + count - first)
            numbers = np.arange(first, first + size, dtype=np.int64)
            full = np.ones(size, np.int64)
            values = pa.array([datum(f"line {number}") for number in numbers], pa.binary())
            origins = Origins(full * AGENT, full, numbers * LENGTH, full * LENGTH)
            times = np.full(size, time_ms, np.int64)
            self.cluster.log(DATA).append(columns.encode(values, times, origins=origins))
        self.lines += count

    def append(self, *records: Record) -> None:
        """Appends a batch of these records to the topic. These records do not count as lines of the
        file: `write` continues with the line after the last one that it wrote."""
        self.cluster.log(DATA).append(encoded(records))

    def remove_output(self) -> None:
        """Removes the whole output with its rows, manifests and marks (the loader's state), as an
        operator might do."""
        self.store = MemoryStore()

    def run(self, *, until: int | None = None, **settings: Any) -> TopicOutcome:
        """Makes one run of the loader, which loads up to the high watermark or to the offset
        `until`."""
        return self.run_beside(lambda: None, until=until, **settings)

    def run_beside(
        self, other: Callable[[], object], *, until: int | None = None, **settings: Any
    ) -> TopicOutcome:
        """Makes one run of the loader, and calls `other` just before the first task of each load of
        this run."""
        spark = _Spark(self, other)
        parts = self._parts(spark, settings)
        topics = [self._topic(until), *self.beside]
        with self._substitutes():
            progress = RunProgress(self.clock, self.shown.append, self.note)
            self.outcomes = load_topics(parts, topics, progress, lambda _: None)
        return self.outcomes[0]

    def reload(
        self, wish: Wish, other: Callable[[], object] = lambda: None, **settings: Any
    ) -> Reloaded:
        """Reloads hours, as `skidway load reload` does. `other` is called just before the first
        task."""
        parts = self._parts(_Spark(self, other), settings)
        with self._substitutes():
            progress = RunProgress(self.clock, self.shown.append, self.note)
            return Reload(parts, lambda: self._topic(None), wish, progress).reload()

    @contextmanager
    def _substitutes(self) -> Iterator[None]:
        """During the `with` block, replaces everything that needs a network by its version in
        memory."""
        with ExitStack() as stack:
            for name, substitute in (
                ("skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(self.cluster)),
                (
                    "skidway.loader.audit_topic.publication.Producer",
                    lambda _: MemoryProducer(self.cluster),
                ),
                ("skidway.loader.planning.batch_below.header_at", self._header_at),
                ("skidway.loader.runs.topic_loads.PATIENCE_S", 0.0),
            ):
                stack.enter_context(patch(name, substitute))
            yield

    def compact(self, other: Callable[[], object] = lambda: None, **settings: Any) -> Compacted:
        """Merges the small files of all hours, as `skidway load compact` does. `other` is called
        just before the first task of each attempt at a load, so it may be called several times.
        """
        spark: Any = _Spark(self, other)
        parts = self._parts(spark, settings)
        compaction = Compaction(
            parts.settings, self.store, spark, self.clock, layout.Hours("", "~")
        )
        return compaction.compact(TOPIC, RunProgress(self.clock, lambda _: None))

    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows in the directory of the topic, sorted by offset. If a file lacks a
        column, the column is null in the file's rows. The method fails if a column has different
        types in two files."""
        found = [
            pq.read_table(self.store.open(each.path))
            for each in self.store.files(TOPIC)
            if each.path.endswith(".parquet")
        ]
        rows: list[dict[str, Any]] = (
            pa.concat_tables(found, promote_options="default").to_pylist() if found else []
        )
        return sorted(rows, key=lambda row: row["_kafka_offset"])

    def manifest(self, number: int) -> Manifest:
        """Returns the manifest of the load with this number."""
        path = layout.manifest(TOPIC, number)
        return Manifest.from_json(self.store.read(path) or b"", path)

    def _parts(self, spark: _Spark, changes: Mapping[str, Any]) -> Parts:
        settings = LoaderSettings(
            bootstrap_servers="x:1", schema_registry_url="http://x", topics=[TOPIC],
            output_url="memory:", cluster_name="dc1",
        )  # fmt: skip
        given: Any = (
            replace(settings, **changes),
            self.client,
            _Registry(self.versions, self.gone, self.deleted),
            self.store,
            spark,
        )
        return Parts(*given, self.clock, Feed(), "c", [AUDIT], self.collector, self.signer)

    def _topic(self, until: int | None) -> SourceTopic:
        log = self.cluster.log(DATA)
        end = log.end if until is None else until
        return SourceTopic(TOPIC, SOURCE.topic_id, SOURCE, (Bounds(0, log.start, end),))

    def _header_at(self, _client: object, tp: TopicPartition, offset: int) -> BatchHeader:
        assert offset >= self.cluster.log(tp).start, "it has expired"
        headers = (read_header(batch) for batch in self.cluster.log(tp).batches)
        return next(header for header in headers if header.last_offset >= offset)


class _Client(MemoryClient):
    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Does nothing, because no test reads these offsets."""


class _Registry(Registry):
    """A fake registry with one subject. `versions` are the versions of the subject's schema, oldest
    first. Their ids begin with `SCHEMA_ID`. An empty text stands for a schema that the registry has
    lost. `gone` are versions that were deleted; their schemas can still be looked up by their ids.
    `deleted` is the number of versions that the subject had before it was permanently deleted and
    created again."""

    def __init__(self, versions: Sequence[str], gone: Sequence[str], deleted: int = 0) -> None:
        known = enumerate([*versions, *gone], SCHEMA_ID)
        super().__init__({number: text for number, text in known if text})
        count = len(versions)
        self._newest = Registered("", count - deleted, SCHEMA_ID + count - 1, versions[-1])

    def latest(self, subject: str) -> Registered:
        if subject != f"{TOPIC}-value":
            raise RegistryRefused(404, SUBJECT_UNKNOWN, "not found")
        return replace(self._newest, subject=subject)


class _Spark:
    """Replaces Spark: runs slices one after the other in this process. Calls `other` before the
    first slice of each load, so that a test can cause an event during the load."""

    started_s = 0.0

    def __init__(self, loading: MemoryLoading, other: Callable[[], object]) -> None:
        self._loading, self._other = loading, other

    def run(
        self, job: Job, work: Sequence[tuple[Slice, Any]], progress: Progress
    ) -> Iterator[SliceResult]:
        self._other()
        log = self._loading.cluster.log(DATA)
        batches = [memoryview(bytes(batch)) for batch in log.batches]
        registry = _Registry(self._loading.versions, self._loading.gone)
        runner = Runner(self._loading.store, {0: batches}, job, registry)
        for done, (piece, marks) in enumerate(work):
            progress(done, len(work))
            self._loading.clock.advance(self._loading.slice_s)
            yield runner.one(piece, marks)
        progress(len(work), len(work))

    def run_work(self, work: Sequence[Any], progress: Progress, _rows: int) -> list[Rewritten]:
        """Rewrites groups of files in the store, one group for each task in `work`. Ignores the
        first argument of each task, which says where the store is and who may read it."""
        self._other()
        progress(len(work), len(work))
        groups = (each.args[1:] for each in work)
        return [GroupRewrite(*each, self._loading.store, 0).run() for each in groups]
