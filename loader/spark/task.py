"""Defines the kinds of tasks, and the function with which Spark's Python workers do tasks. If the
tasks have few records, the loader does the tasks without Spark in its own process (own_process.py).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from skidway.audit.counts.marks import FileKey
from skidway.errors import SkidwayError
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.batches import batches
from skidway.loader.reading.decoder import Decoder
from skidway.loader.rewriting.group_rewrite import GroupRewrite, RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.slice_load import SliceLoad
from skidway.loader.spark.failures import TaskFailed
from skidway.loader.store import Store, StoreConnection
from skidway.schemas.client import RegistryConnection

RESULT_SCHEMA: Final = "number long, result binary"

Work = Callable[[int], Any]
"""One task, as a function. The function gets the number of the attempt, and returns a result that
can be pickled."""


def task(shared: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns the function that Spark runs on its workers. `shared` is a Spark broadcast of the
    list of all tasks. The function gets numbers, does the tasks with these numbers, and yields the
    number and the pickled result of each task."""

    def run_work(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        work = shared.value
        context = TaskContext.get()
        assert context is not None  # this runs on a worker
        attempt = context.taskAttemptId()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    result = work[number](attempt)
                except SkidwayError as error:
                    raise TaskFailed(error) from error
                columns = {"number": pa.array([number]), "result": [pickle.dumps(result)]}
                yield pa.RecordBatch.from_pydict(columns)

    return run_work


def run_slice(job: Job, piece: Slice, marks: Mapping[FileKey, int], attempt: int) -> SliceResult:
    """Makes one attempt at one slice, in this process, and returns its result."""
    load = SliceLoad(
        job,
        piece,
        marks,
        store=_store(job.store),
        decoder=_decoder(job),
        attempt=attempt,
    )
    with job.kafka.client() as client:
        return load.run(batches(client, TopicPartition(job.topic, piece.partition), piece.first))


def rewrite_group(
    connection: StoreConnection, job: RewriteJob, group: Group, number: int, attempt: int
) -> Rewritten:
    """Makes one attempt at rewriting one group of files, in this process, and returns its
    result."""
    return GroupRewrite(job, group, number, _store(connection), attempt).run()


def forget() -> None:
    """Makes later tasks of this process open new connections. Called after a task has failed,
    because a broken connection may be the reason."""
    _stores.clear()
    _decoders.clear()


# These objects stay in memory, because later tasks of this process use the same schemas and
# connections.
_stores: dict[StoreConnection, Store] = {}
_decoders: dict[tuple[RegistryConnection, str], Decoder] = {}
CACHED_MAX: Final = 100


def _store(connection: StoreConnection) -> Store:
    if connection not in _stores:
        _stores[connection] = connection.store()
    return _stores[connection]


def _decoder(job: Job) -> Decoder:
    key = job.registry, job.reader
    if key not in _decoders:
        if len(_decoders) >= CACHED_MAX:
            _decoders.clear()
        _decoders[key] = Decoder(job.registry.client(), job.reader)
    _decoders[key].forget_unknown()
    return _decoders[key]
