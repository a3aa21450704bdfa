"""Runs tasks in the loader's own process, one after the other, without Spark.

It serves loads of so few records that they are done before Spark would have started
(`spark.above.offsets`). The tasks and their results are those that Spark would run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from skidway import log
from skidway.errors import SkidwayError
from skidway.loader.spark import task
from skidway.loader.spark.failures import failure_here

FIRST_ATTEMPT: Final = 1 << 32
"""Attempts have numbers from here on. Spark numbers its attempts from 0 on and never gets so far.
So the two never give the same name to a file, even if they run tasks of the same load."""

Progress = Callable[[int, int], None]
"""Called with (tasks done, tasks in all)."""

INTERRUPTED: Final = "the load was interrupted; nothing of it is committed"

_log = log.get(__name__)


class Interrupted(SkidwayError):
    """The run was asked to end while tasks were running."""


class OwnProcess:
    """Owns the numbers of attempts. interrupted: says whether the run is asked to end; the answer
    counts before each task."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted
        self._attempt = FIRST_ATTEMPT

    def run(self, work: Sequence[task.Work], progress: Progress) -> list[Any]:
        """Runs the tasks; returns their results in order. Raises what Spark would raise for the
        error of a task, and Interrupted."""
        results = []
        for done, each in enumerate(work):
            progress(done, len(work))
            if self._interrupted():
                raise Interrupted(INTERRUPTED)
            results.append(self._one(each))
        progress(len(work), len(work))
        return results

    def _one(self, work: task.Work) -> Any:
        self._attempt += 1
        try:
            return work(self._attempt)
        except Exception as error:  # as on Spark, whatever a task raises ends only its own load
            task.forget()
            if not isinstance(error, SkidwayError):
                _log.error("task_failed", exc=error)
            raise failure_here(error) from error
