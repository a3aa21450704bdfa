"""Runs tasks: one task per slice (an offset range of one partition), or per group of files that are
rewritten. If the tasks together have few records, they run in this process, otherwise on Spark.

On Spark, tasks are Python functions on Spark's workers (mapInArrow). If a task raises a
SkidwayError, Spark reports the error as text. The runner finds the error's message in this text,
and raises a SkidwayError with this message. If Spark has died, the runner starts Spark again for
the next tasks.
"""

from __future__ import annotations

import io
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from skidway import log
from skidway.errors import SkidwayError
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.join import Work
from skidway.loader.spark import jvm, session
from skidway.loader.spark.failures import failure, newest_warning, not_started, unanswered
from skidway.loader.spark.own_process import INTERRUPTED, Interrupted, OwnProcess, Progress
from skidway.loader.spark.patience import Patience
from skidway.loader.spark.properties import temporary_directories
from skidway.loader.spark.scratch import Scratch
from skidway.loader.spark.task import RESULT_SCHEMA, run_slice, task
from skidway.loader.spark.task import Work as TaskWork

POLL_S: Final = 0.1
NO_EXECUTOR: Final = (
    "no executor has run a task for 30 s; ask for less (spark.executor.memory, "
    "spark.executor.cores), or look at the master and its workers"
)
DIED: Final = "Spark's Java process ended while it ran tasks; nothing of the load is committed"
UNUSED_RUNS_MAX: Final = 5
"""A process that makes many runs stops Spark after this many successive runs without a task for
Spark."""

__all__ = ["Interrupted", "Progress", "SparkRunner"]

_log = log.get(__name__)


class SparkRunner:
    """Runs tasks. Owns the Spark session, which starts with the first task for Spark, so that a run
    without such tasks starts no JVM."""

    def __init__(self, settings: LoaderSettings, interrupted: Callable[[], bool]) -> None:
        self._settings = settings
        self._interrupted = interrupted
        self._own_process = OwnProcess(interrupted)
        self._used, self._unused_runs = False, 0
        self._session: Any = None
        self._process: subprocess.Popen[bytes] | None = None
        self._failed: SkidwayError | None = None
        self._scratch: Scratch | None = None
        self.started_s = 0.0
        """How many seconds all starts of Spark took together."""

    def __enter__(self) -> SparkRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def run(self, job: Job, work: Sequence[Work], progress: Progress) -> list[SliceResult]:
        """Runs one task per slice. Returns the results in no particular order. Raises what
        `run_work` raises."""
        offsets = sum(piece.end - piece.first for piece, _ in work)
        return self.run_work([partial(run_slice, job, *each) for each in work], progress, offsets)

    def run_work(self, work: Sequence[TaskWork], progress: Progress, records: int) -> list[Any]:
        """Runs one task per piece of work. Returns the results in no particular order. If a task
        raises a SkidwayError, raises a SkidwayError with the same message. If a task raises another
        error, or Spark dies, raises a SkidwayError that says so. Raises Interrupted if a signal has
        asked the run to end. records: how many records all tasks have together."""
        if not work:
            return []
        if self._interrupted():
            raise Interrupted(INTERRUPTED)
        if records <= self._settings.spark_above_offsets:
            return self._own_process.run(work, progress)
        return self._run_on_spark(work, progress)

    def end_run(self) -> None:
        """A process that makes many runs must call this method after each run. If the last
        UNUSED_RUNS_MAX runs had no task for Spark, stops Spark, so that other processes can use its
        memory. The next task for Spark starts it again."""
        self._unused_runs = 0 if self._used else self._unused_runs + 1
        self._used, self._failed = False, None
        if self._session is not None and self._unused_runs >= UNUSED_RUNS_MAX:
            self._stop()
            _log.info("spark_ended", unused_runs=self._unused_runs)

    def _run_on_spark(self, work: Sequence[TaskWork], progress: Progress) -> list[Any]:
        self._used = True
        with self._living() as spark:
            try:
                rows = self._rows(spark, list(work), progress)
            except unanswered() as error:
                raise failure(error, self._temporary()) from error
            except pickle.PicklingError as error:
                if not isinstance(error.__context__, OSError):
                    raise
                # pyspark could not write the tasks to the disk
                raise failure(error, self._temporary()) from error
        return [pickle.loads(row.result) for row in rows]  # noqa: S301 - our own tasks pickled it

    def _rows(self, spark: Any, work: list[TaskWork], progress: Progress) -> Any:
        with redirect_stderr(io.StringIO()):  # pyspark prints a stack trace of what it also raises
            shared = spark.sparkContext.broadcast(work)
        try:
            frame = spark.range(0, len(work), 1, len(work)).mapInArrow(task(shared), RESULT_SCHEMA)
            return self._collect(frame, len(work), progress)
        finally:
            if session.is_alive(spark):
                shared.destroy()

    def _collect(self, frame: Any, total: int, progress: Progress) -> Any:
        context, patience = self._session.sparkContext, Patience()

        def look() -> None:
            seen = _look(context)
            progress(seen.done, total)
            if patience.ends(seen.is_moving):
                _log.warning("no_executor", master=self._settings.master, reason=NO_EXECUTOR)

        # Cancels in every round of the wait, because Spark may start the job only in a later round.
        try:
            result = self._awaited(frame.collect, look, context.cancelAllJobs)
        except Interrupted:
            raise
        except Exception as error:  # Spark's errors have no common base class
            raise failure(error, self._temporary()) from error
        progress(total, total)
        return result

    def _awaited(
        self, work: Callable[[], Any], look: Callable[[], None], cancel: Callable[[], object]
    ) -> Any:
        """Does work in another thread, and returns its result. Meanwhile calls `look` again and
        again, and also `cancel` if a signal has asked the run to end. Raises Interrupted if the
        work then fails, otherwise what the work raises."""
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(work)
            while not wait([future], POLL_S).done:
                look()
                if self._interrupted():
                    cancel()
            try:
                return future.result()
            except Exception:
                if self._interrupted():
                    raise Interrupted(INTERRUPTED) from None
                raise

    @contextmanager
    def _living(self) -> Iterator[Any]:
        """Yields the Spark session to a `with` block. Starts Spark if it does not run. If Spark
        dies during the block, stops the session and raises SkidwayError.
        """
        if self._session is not None and not session.is_alive(self._session):
            self._stop()
        if self._session is None:
            self._start()
        try:
            yield self._session
        except SkidwayError as error:
            if isinstance(error, Interrupted) or session.is_alive(self._session):
                raise
            self._stop()
            raise SkidwayError(DIED) from error

    def _start(self) -> None:
        """Starts Spark. A start that fails is not tried again in the same run, because it may take
        a minute, and the run has other topics to load."""
        if self._failed is not None:
            raise self._failed
        begin = time.monotonic()
        try:
            self._scratch = Scratch()
            self._process = session.begin(self._settings, self._scratch.path)
            self._session = self._started(self._process, self._scratch.path)
            # `_collect` waits until the workers have started. If the cluster has no free cores, the
            # wait may be long, but SIGTERM ends it.
            self._collect(session.warming(self._session), 0, lambda _done, _total: None)
        except Interrupted:
            raise
        except Exception as error:  # Spark, pyspark and py4j have no common base class
            said = jvm.output(self._scratch.path) if self._scratch is not None else ""
            self._failed = not_started(self._settings.master, error, said, self._temporary())
            self._stop()
            raise self._failed from error
        took_s = time.monotonic() - begin
        self.started_s += took_s
        _log.info("spark_started", master=self._settings.master, seconds=round(took_s, 1))

    def _started(self, process: Any, folder: Path) -> Any:
        patience = Patience()

        def look() -> None:
            if patience.ends(is_moving=False):
                newest = newest_warning(jvm.output(folder))
                _log.warning(
                    "spark_is_starting", master=self._settings.master, newest_warning=newest
                )

        return self._awaited(
            partial(session.start, self._settings, process, folder),
            look,
            partial(jvm.kill, process),
        )

    def _temporary(self) -> str:
        folder = self._scratch.path if self._scratch else Path(tempfile.gettempdir())
        return ", ".join(temporary_directories(self._settings, folder))

    def _stop(self) -> None:
        if self._session is not None:
            session.stop(self._session)
        elif self._process is not None:
            session.end(self._process)
        self._session = self._process = None
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What Spark says about its running job. is_moving: whether an executor runs a task of it, or
    none waits for an executor."""

    done: int
    is_moving: bool


def _look(context: Any) -> _Seen:
    tracker = context.statusTracker()
    infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [info for info in infos if info is not None]
    moving = not known or any(info.numActiveTasks for info in known)
    return _Seen(sum(info.numCompletedTasks for info in known), moving)
