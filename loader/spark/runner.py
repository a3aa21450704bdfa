"""Spark: one session per run, one task per slice (an offset range of one partition), or per group
of files that are rewritten.

The loader starts the driver's JVM itself, with the Java that `skidway.java` finds, so that the
JVM's output goes to a file and not to the terminal. Tasks are Python functions on Spark's workers
(mapInArrow). An error that a task raises is found in Spark's text and raised again here.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa

from skidway import java, log
from skidway.errors import SkidwayError
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.join import Work
from skidway.loader.spark.failures import failure, sentence_in
from skidway.loader.spark.properties import properties, workers_python
from skidway.loader.spark.scratch import Scratch
from skidway.loader.spark.task import RESULT_SCHEMA, run_slice, task
from skidway.loader.spark.task import Work as TaskWork

POLL_S: Final = 0.1
INTERRUPTED: Final = "the load was interrupted; nothing of it is committed"

Progress = Callable[[int, int], None]
"""Called with (tasks done, tasks in all)."""

_log = log.get(__name__)


class Interrupted(SkidwayError):
    """The run was asked to end while tasks were running."""


class SparkRunner:
    """Runs tasks. Starts Spark with the first task, so that a run without tasks starts no JVM."""

    def __init__(self, settings: LoaderSettings, interrupted: Callable[[], bool]) -> None:
        self._settings = settings
        self._interrupted = interrupted
        self._session: Any = None
        self._scratch: Scratch | None = None
        self.started_s = 0.0
        """How long Spark took to start, in seconds."""

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
        """Runs one task per slice; returns the results in no particular order. Raises what a task
        raised."""
        return self.run_work([partial(run_slice, job, *each) for each in work], progress)

    def run_work(self, work: Sequence[TaskWork], progress: Progress) -> list[Any]:
        """Runs one task per piece of work; returns the results in no particular order. Raises what
        a task raised."""
        if not work:
            return []
        if self._interrupted():
            raise Interrupted(INTERRUPTED)
        context = self._context()
        shared = context.broadcast(list(work))
        frame = self._session.range(0, len(work), 1, len(work))
        try:
            rows = self._collect(frame.mapInArrow(task(shared), RESULT_SCHEMA), len(work), progress)
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
                    # Cancels in every round of the loop: the job may start only in a later round.
                    context.cancelAllJobs()
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
    """Starts a JVM and a Spark session in it. Raises SkidwayError if the JVM or the session does
    not start."""
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


def _warm(session: Any) -> None:
    """Makes every core start its Python worker and import the loader's modules, so that no load
    spends time on this."""
    cores = session.sparkContext.defaultParallelism

    def idle(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import skidway.loader.spark.task  # noqa: F401 - for the import itself

        yield from numbers

    session.range(0, cores, 1, cores).mapInArrow(idle, "id long").collect()


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
