"""The worker's side: the function that Spark runs on its Python workers, slice by slice."""

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
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.slice_load import SliceLoad
from skidway.loader.spark.failures import TaskFailed
from skidway.loader.store import Store, open_store
from skidway.schemas.client import RegistryClient, Security

RESULT_SCHEMA: Final = "slice long, result binary"


def task(shared: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on its workers: takes slice numbers, yields pickled results."""

    def run_slices(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        job, work = shared.value
        context = TaskContext.get()
        assert context is not None  # this runs on a worker
        attempt = context.taskAttemptId()
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                try:
                    piece, marks = work[number]
                    result = run_slice(job, piece, marks, attempt)
                except SkidwayError as error:
                    raise TaskFailed(error) from error
                columns = {"slice": pa.array([number]), "result": [pickle.dumps(result)]}
                yield pa.RecordBatch.from_pydict(columns)

    return run_slices


def run_slice(job: Job, piece: Slice, marks: Mapping[FileKey, int], attempt: int) -> SliceResult:
    """One attempt at one slice, in this process."""
    load = SliceLoad(
        job, piece, marks, store=_store(job.output), decoder=_decoder(job), attempt=attempt
    )
    with Client(job.bootstrap_servers, client_id="skidway-loader") as client:
        return load.run(batches(client, TopicPartition(job.topic, piece.partition), piece.first))


# Spark keeps Python workers between tasks, so later tasks use the same schemas and connections.
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
    return _decoders[key]
