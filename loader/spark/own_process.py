"""Runs tasks in the loader's own process, one after the other, without Spark.

Loads with few records (at most `spark.above.offsets`) run here, because they end before Spark would
have started. The tasks and their results are the same as on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from skidway import log
from skidway.errors import SkidwayError
from skidway.loader.spark import task
from skidway.loader.spark.failures import failure_here

FIRST_ATTEMPT: Final = 1 << 32
"""The attempts of tasks in this process have numbers above this one. Spark numbers its attempts
from 0 on, and never reaches 2^32. So files that this process writes and files that Spark's tasks
write never have the same name, even in the same load."""

Progress = Callable[[int, int], None]
"""A function that is called with the number of tasks that are done, and the number of all tasks."""

INTERRUPTED: Final = "the load was interrupted; nothing of it is committed"

_log = log.get(__name__)


class Interrupted(SkidwayError):
    """Raised if a signal has asked the run to end, before or while tasks run."""


class OwnProcess:
    """Runs tasks, and numbers their attempts. interrupted: a function that is called before each
    task, and returns whether a signal has asked the run to end."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted
        self._attempt = FIRST_ATTEMPT

    def run(self, work: Sequence[task.Work], progress: Progress) -> list[Any]:
        """Runs the tasks, and returns their results in order. If a task raises a SkidwayError,
        raises the same error as on Spark. If a task raises any other error, raises a SkidwayError
        that names this error. Raises Interrupted if a signal has asked the run to end."""
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
        except Exception as error:  # an error of a task ends only the load, as on Spark
            task.forget()
            if not isinstance(error, SkidwayError):
                _log.error("task_failed", exc=error)
            raise failure_here(error) from error
