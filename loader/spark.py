"""Spark: one session per run, one task per slice.

The driver's JVM is started here, so that its output goes to a file and not to the terminal, and
with the Java that `skidway.java` finds. Tasks are Python functions on Spark's workers (mapInArrow);
what they raise comes back as the same error, found in the text that Spark makes of it.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from skidway import java, log
from skidway.audit.counts.marks import FileKey
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.loader.decode import Decoder
from skidway.loader.fetch import batches
from skidway.loader.join import Work
from skidway.loader.plan import Slice
from skidway.loader.properties import properties, workers_python
from skidway.loader.scratch import Scratch
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices import Job, SliceLoad, SliceResult
from skidway.loader.store import Store, open_store
from skidway.schemas.client import RegistryClient, Security

RESULT_SCHEMA: Final = "slice long, result binary"
POLL_S: Final = 0.1
_FAILED = "skidway-task-failed "
_FAILURE = re.compile(_FAILED + r"(\{.*\})")
_STACK = re.compile(r"at [\w.$/]+\S*\(.*\)$|\.\.\. \d+ more$|Driver stacktrace:$")
_EXCEPTION = re.compile(r"[\w.$]+(?:Exception|Error): ")

_log = log.get(__name__)

INTERRUPTED: Final = "the load was interrupted; nothing of it is committed"

Progress = Callable[[int, int], None]
"""Called with (slices done, slices in all)."""


class Interrupted(SkidwayError):
    """The run was asked to end while tasks were running."""


class SparkRunner:
    """Runs slices; starts Spark at the first one, so that an idle load costs no JVM."""

    def __init__(self, settings: LoaderSettings, interrupted: Callable[[], bool]) -> None:
        self._settings = settings
        self._interrupted = interrupted
        self._session: Any = None
        self._scratch: Scratch | None = None
        self.started_s = 0.0
        """How long starting took, in seconds."""

    def __enter__(self) -> SparkRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            gateway = self._session.sparkContext._gateway
            self._session.stop()
            _end(gateway)
        if self._scratch is not None:
            self._scratch.close()

    def run(self, job: Job, work: Sequence[Work], progress: Progress) -> list[SliceResult]:
        """One task per slice; results in no particular order. Raises what a task raised."""
        if not work:
            return []
        if self._interrupted():
            raise Interrupted(INTERRUPTED)
        context = self._context()
        shared = context.broadcast((job, list(work)))
        frame = self._session.range(0, len(work), 1, len(work))
        try:
            rows = self._collect(
                frame.mapInArrow(_task(shared), RESULT_SCHEMA), len(work), progress
            )
        finally:
            shared.destroy()
        return [pickle.loads(row.result) for row in rows]  # noqa: S301 - our own tasks made it

    def _collect(self, frame: Any, total: int, progress: Progress) -> Any:
        context = self._context()
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(frame.collect)
            while not wait([future], POLL_S).done:
                progress(_done(context), total)
                if self._interrupted():
                    context.cancelAllJobs()  # until it has worked: the job may not be there yet
            try:
                return future.result()
            except Exception as error:  # Spark's errors have no class in common
                if self._interrupted():
                    raise Interrupted(INTERRUPTED) from None
                raise failure(error) from error

    def _context(self) -> Any:
        if self._session is None:
            begin = time.monotonic()
            self._scratch = Scratch()
            self._session = start(self._settings, self._scratch.path)
            _warm(self._session)
            self.started_s = time.monotonic() - begin
            _log.info(
                "spark_started",
                master=self._settings.spark_master,
                seconds=round(self.started_s, 1),
            )
        return self._session.sparkContext


def start(settings: LoaderSettings, folder: Path) -> Any:
    """A Spark session whose JVM is ours. Raises SkidwayError when it does not come up."""
    os.environ.update(java.environment(java.find()))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = workers_python(settings)
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf()
    conf.setAll(list(properties(settings, folder).items()))
    output = folder / "spark.out"
    try:
        with open(output, "ab") as stream:
            gateway = launch_gateway(conf, {"stdout": stream, "stderr": stream})  # type: ignore[no-untyped-call]
    except PySparkException as error:
        raise SkidwayError(f"Spark's Java process did not start: {_told(output)}") from error
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException) as error:
        _end(gateway)
        raise SkidwayError(f"Spark did not start: {sentence_in(str(error))}") from error


def failure(error: Exception) -> SkidwayError:
    """What a task raised, found in Spark's text of it; or one sentence of that text."""
    found = _FAILURE.search(str(error))
    if found is not None:
        content = json.loads(found[1])
        kind = Unreachable if content["exit_code"] == Unreachable.exit_code else SkidwayError
        return kind(content["sentence"])
    return SkidwayError(f"a Spark task failed: {sentence_in(str(error)) or type(error).__name__}")


def sentence_in(text: str) -> str:
    """The reason in what Spark says: of a Java stack trace its first exception's, of other text the
    last line; "" of nothing."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not _STACK.match(line)]
    if len(said) < len(lines):
        first = next((line for line in said if _EXCEPTION.search(line)), said[-1] if said else "")
        return _EXCEPTION.split(first)[-1]
    return lines[-1] if lines else ""


def _warm(session: Any) -> None:
    """Has every core start its Python worker with our modules: part of the start, not of a load."""
    cores = session.sparkContext.defaultParallelism

    def idle(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import skidway.loader.spark  # noqa: F401 - for the import itself

        yield from numbers

    session.range(0, cores, 1, cores).mapInArrow(idle, "id long").collect()


class TaskFailed(Exception):
    """Carries a SkidwayError through Spark, as text."""

    def __init__(self, error: SkidwayError) -> None:
        content = {"exit_code": error.exit_code, "sentence": str(error)}
        super().__init__(_FAILED + json.dumps(content))


def _task(shared: Any) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on its workers: slice numbers in, pickled results out."""

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


# Spark keeps Python workers between tasks: schemas and connections need not be asked for again.
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


def _done(context: Any) -> int:
    tracker = context.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numCompletedTasks for info in infos if info is not None)


def _end(gateway: Any) -> None:
    """Ends the JVM and waits for it."""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _told(path: Path) -> str:
    return sentence_in(path.read_text(errors="replace")) or "it said nothing"
