"""The kinds of work, and the function that Spark runs on its Python workers to do it. The loader's
own process does small work without Spark (own_process.py)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from skidway.audit.counts.marks import FileKey
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.batches import batches
from skidway.loader.reading.decoder import Decoder
from skidway.loader.rewriting.group_rewrite import GroupRewrite, RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.slice_load import SliceLoad
from skidway.loader.spark.failures import TaskFailed
from skidway.loader.store import Store, open_store
from skidway.schemas.client import RegistryClient, Security

RESULT_SCHEMA: Final = "number long, result binary"

Work = Callable[[int], Any]
"""One task: called with the number of the attempt, returns a result that can be pickled."""


def task(shared: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on its workers. It gets the indices of tasks in `shared`, and
    yields their pickled results."""

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
    """One attempt at one slice, in this process."""
    load = SliceLoad(
        job, piece, marks, store=_store(job.output), decoder=_decoder(job), attempt=attempt
    )
    with Client(job.bootstrap_servers, client_id="skidway-loader") as client:
        return load.run(batches(client, TopicPartition(job.topic, piece.partition), piece.first))


def rewrite_group(
    output: str, job: RewriteJob, group: Group, number: int, attempt: int
) -> Rewritten:
    """One attempt at rewriting one group of files, in this process."""
    return GroupRewrite(job, group, number, _store(output), attempt).run()


def forget() -> None:
    """Makes later tasks of this process open new connections. Is called after a task failed,
    because a broken connection may be the reason."""
    _stores.clear()
    _decoders.clear()


# A process does many tasks, so later tasks use the same schemas and connections.
_stores: dict[str, Store] = {}
_decoders: dict[tuple[str, Security, str], Decoder] = {}
CACHED_MAX: Final = 100


def _store(url: str) -> Store:
    if url not in _stores:
        _stores[url] = open_store(url)
    return _stores[url]


def _decoder(job: Job) -> Decoder:
    key = job.registry_url, job.registry_security, job.reader
    if key not in _decoders:
        if len(_decoders) >= CACHED_MAX:
            _decoders.clear()
        registry = RegistryClient(job.registry_url, security=job.registry_security)
        _decoders[key] = Decoder(registry, job.reader)
    _decoders[key].forget_unknown()
    return _decoders[key]
