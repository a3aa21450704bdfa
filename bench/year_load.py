"""Makes many loads of a simulated fleet's topic, one after the other. The module `year` starts this
program in a process of its own.

    python -m bench.year_load HOSTS PARTITIONS MINUTES_BETWEEN_LOADS LOADS STEPS HOURS_TO_COMPACT

The program divides the loads into STEPS equal steps, and prints a line of JSON after each step. The
driver's part of a load is done by the loader's own code, with an output in a directory in memory.
The brokers and the work of the tasks are simulated: instead of Parquet files, the output has files
of a few bytes, which nobody reads.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import google_crc32c
import numpy as np
import pyarrow as pa

from bench.machine import resident_mb
from bench.year_fleet import MINUTE_MS, SOURCE, START_MS, Fleet, Taken
from skidway.audit.counts import checksum
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.kafka import columns
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.plan import Bounds, Slice
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.rewriting.group_rewrite import Rewritten
from skidway.loader.runs.compaction import Compaction
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.run import load_all
from skidway.loader.runs.run_progress import RunProgress
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.spark.runner import Progress
from skidway.loader.state import layout
from skidway.loader.state.manifest import ROWS, BatchMark, DataFile
from skidway.loader.state.run_notes import OwnNote
from skidway.loader.store import Store
from skidway.loader.store.local import LocalStore
from skidway.schemas.client import Registered
from support.clock import ManualClock
from support.loading import SCHEMA, SCHEMA_ID
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher, MemoryProducer

BATCH_RECORDS = 500
MEDIAN_OF = 100
"""A figure is the median of the last MEDIAN_OF loads of a step, or of all loads of the step if it
has fewer."""

LATE_MINUTES = 3
"""The small files of an hour are merged at the earliest this many minutes after the end of the
hour."""

TOPIC = SOURCE.topic
BYTES = b"no rows."


class Loads:
    """Makes loads from a simulated cluster into an output, and measures them."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._fleet, self._folder = fleet, folder
        self._clock = ManualClock(START_MS)
        self._cluster = MemoryCluster()
        self._cluster.create(TOPIC, len(fleet.ends))
        self._cluster.create(AUDIT)
        self._client = _Client(self._cluster, self._clock)
        self._settings = LoaderSettings(
            bootstrap_servers="x:1", schema_registry_url="http://x", topics=[TOPIC],
            output=str(folder), cluster_name="dc1",
        )  # fmt: skip
        self._rows_compacted = START_MS // layout.HOUR_MS
        self.seconds: list[float] = []
        """The CPU time of the driver for each load, without the simulation."""
        self.begins: list[float] = []
        """For each load, how much CPU time the driver used before the first task."""
        self.compactions: list[float] = []

    def patches(self) -> ExitStack:
        """Returns a context manager. Inside its `with` block, the loader's code gets a simulated
        cluster when it connects to brokers."""
        stack = ExitStack()
        for name, substitute in (
            ("skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(self._cluster)),
            (
                "skidway.loader.audit_topic.publication.Producer",
                lambda _: MemoryProducer(self._cluster),
            ),
            ("skidway.loader.planning.batch_below.header_at", _header_at),
        ):
            stack.enter_context(patch(name, substitute))
        return stack

    def load(self) -> None:
        """Advances the simulated time to the next load, and makes this load as `load run` does."""
        taken = self._fleet.pass_time()
        self._say(list(self._fleet.messages()))
        for partition, end in enumerate(self._fleet.ends):
            self._cluster.log(TopicPartition(TOPIC, partition)).end = end
        self._clock.set_time_ms(self._fleet.time_ms)
        bounds = tuple(Bounds(number, 0, end) for number, end in enumerate(self._fleet.ends))
        topic = SourceTopic(TOPIC, SOURCE.topic_id, SOURCE, bounds)
        began = time.process_time()
        store, feed = LocalStore(str(self._folder)), Feed()
        spark = Spark(store, taken)
        others: dict[str, Any] = {
            "client": self._client, "registry": _Registry(), "spark": spark,
            "cluster_id": self._cluster.cluster_id, "audit_topics": [AUDIT],
        }  # fmt: skip
        with OwnNote(store, self._clock, self._settings.host) as note:
            parts = Parts(self._settings, store=store, clock=self._clock, feed=feed, **others)
            progress = RunProgress(self._clock, lambda _: None, note)
            (outcome,) = load_all(parts, [topic], progress, lambda _: None)
        assert not outcome.problems, outcome.problems
        assert len(outcome.loads) == 1
        self.seconds.append(time.process_time() - began - spark.seconds)
        self.begins.append(spark.began - began)
        log = self._cluster.log(TopicPartition(AUDIT, 0))
        log.expire(next(iter(feed.positions.values())))

    def compact(self, hours: int) -> None:
        """Merges small files when `hours` hours have ended since the last merge, and the last of
        these hours ended at least LATE_MINUTES ago."""
        hour = (self._fleet.time_ms - LATE_MINUTES * MINUTE_MS) // layout.HOUR_MS
        if hour < self._rows_compacted + hours:
            return
        began = time.process_time()
        store = LocalStore(str(self._folder))
        spark: Any = Spark(store, [])
        over = {layout.hour_text(each) for each in range(self._rows_compacted, hour)}
        compaction = Compaction(
            self._settings, store, spark, self._clock, lambda each: each in over
        )
        done = compaction.run(TOPIC, RunProgress(self._clock, lambda _: None))
        assert not done.problems, done.problems
        self._rows_compacted = hour
        self.compactions.append(time.process_time() - began)

    def figures(self, loads: int) -> dict[str, float]:
        """The current figures. The figure for the time of a load is the median of the newest
        `loads` loads."""
        gc.collect()
        state = self._folder / layout.state(TOPIC)
        manifests = sorted(state.glob("*.json"))
        tables = list(state.rglob("*.parquet"))
        files = [each for each in self._folder.rglob("*") if each.is_file()]
        return {
            "load": 1000 * median(self.seconds[-loads:]),
            "begin": 1000 * median(self.begins[-loads:]),
            "compaction": 1000 * median(self.compactions[-5:] or [0]),
            "memory": resident_mb(os.getpid()),
            "manifests": len(manifests),
            "manifest": median(each.stat().st_size for each in manifests[-50:]) / 1000,
            "checkpoints": len(list((state / "checkpoints").glob("*"))),
            "tables": len(tables),
            "rows": len(list((self._folder / TOPIC).rglob("*.parquet"))),
            "objects": len(files),
            "bytes": sum(each.stat().st_size for each in files) / 1e6,
        }

    def _say(self, values: Sequence[bytes]) -> None:
        log = self._cluster.log(TopicPartition(AUDIT, 0))
        for first in range(0, len(values), BATCH_RECORDS):
            part = pa.array(values[first : first + BATCH_RECORDS], pa.binary())
            log.append(columns.encode(part, np.full(len(part), self._fleet.time_ms)))


class Spark:
    """Simulates the tasks of a load that run on Spark. seconds: the CPU time of this simulation.
    began: the CPU time that the process had used when the first task began."""

    started_s = 0.0

    def __init__(self, store: Store, taken: Sequence[Taken]) -> None:
        self._store, self._taken = store, taken
        self.seconds = self.began = 0.0

    def run(
        self, job: Job, work: Sequence[tuple[Slice, Any]], progress: Progress
    ) -> Iterator[SliceResult]:
        """Simulates the tasks of a load. Returns what they would report."""
        self.began = time.process_time()
        results = [self._slice(job, piece, known) for piece, known in work]
        self.seconds += time.process_time() - self.began
        progress(len(work), len(work))
        return iter(results)

    def run_work(self, work: Sequence[Any], progress: Progress, records: int) -> list[Rewritten]:
        """Simulates the tasks of a compaction: makes one file from each group of small files.
        Returns what the tasks would report."""
        progress(len(work), len(work))
        return [self._group(*each.args[2:]) for each in work]

    def _slice(self, job: Job, piece: Slice, known: Any) -> SliceResult:
        taken = self._taken[piece.partition]
        assert piece.end - piece.first == taken.lines
        assert not known, "no slice has repeats"
        staging = layout.staging(job.topic, job.load, job.uuid)
        files = []
        for hour, lines in taken.hours.items():
            path = layout.rows(job.topic, hour, job.load, piece.partition, piece.first)
            staged = f"{staging}/{piece.partition}-{hour}.parquet"
            files.append(self._file(path, staged, lines, 1))
        assert taken.lowest.keys() <= job.locations.keys(), "a file is not announced"
        below = BatchMark(piece.end - 1, piece.end - 1, piece.partition, 0)
        return SliceResult(
            piece, piece.end, tuple(files), taken.lowest, taken.highest, taken.sums, below=below
        )

    def _group(self, job: Any, group: Any, number: int) -> Rewritten:
        files = [each.file for each in group.files]
        path = layout.rewritten(group.folder, job.load.number, number)
        total = checksum.signed(sum(each.checksum for each in files))
        staged = f"{job.load.staging}/rows-{number}.parquet"
        return Rewritten(group, self._file(path, staged, sum(x.rows for x in files), total))

    def _file(self, path: str, staged: str, rows: int, total: int) -> DataFile:
        writer = self._store.create(staged)
        writer.write(BYTES)
        writer.close()
        crc32c = google_crc32c.value(BYTES)
        return DataFile(ROWS, path, staged, len(BYTES), rows, total, crc32c)


class _Client(MemoryClient):
    def commit_offsets(self, group: str, offsets: Any) -> None:
        """Does nothing, because nobody reads the committed offsets."""


class _Registry:
    def latest(self, subject: str) -> Registered:
        return Registered(subject, 1, SCHEMA_ID, SCHEMA)


def _header_at(_client: object, tp: TopicPartition, offset: int) -> Any:
    return SimpleNamespace(base_offset=offset, crc=tp.partition, leader_epoch=0)


def main(fleet: Fleet, loads: int, steps: int, hours: int) -> None:
    """Makes the loads. hours: one compaction merges the small files of this many hours."""
    shared = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="skidway-bench-", dir=shared) as name:
        each = Loads(fleet, Path(name))
        with each.patches():
            for number in range(1, loads + 1):
                each.load()
                each.compact(hours)
                if number * steps // loads > (number - 1) * steps // loads:
                    print(json.dumps(each.figures(min(MEDIAN_OF, loads // steps))), flush=True)


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:]]
    main(Fleet(*numbers[:3]), *numbers[3:])
