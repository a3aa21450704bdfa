"""The loader as a program that keeps running: it loads every few seconds, and after some of the
loads it puts the small files of each hour together. The tasks that Spark's workers would run, it
runs in its own process.

`python -m torture.loads CONFIG SECONDS`. Because no Spark has to start, a kill -9 hits a load that
is running. The loader's code is the code of production, except that no slice is sent to a worker of
Spark. A load that fails prints the reason, and the next load tries again, as if a timer started the
loads.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from skidway import settings
from skidway.clock import SystemClock
from skidway.errors import UNEXPECTED_EXIT_CODE, SkidwayError
from skidway.loader.runs import compaction, run
from skidway.loader.runs.compaction import Compacted
from skidway.loader.runs.outcome import TopicOutcome
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.join import Work
from skidway.loader.spark.runner import Progress
from skidway.loader.spark.task import Work as TaskWork
from skidway.loader.spark.task import run_slice

LOADS_A_COMPACTION = 8
"""After so many loads, a compaction follows."""


class Here:
    """Takes the place of Spark: runs the slices one after the other."""

    started_s = 0.0

    def __init__(self, _settings: LoaderSettings, _interrupted: Callable[[], bool]) -> None:
        self._attempt = 0

    def __enter__(self) -> Here:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def run(self, job: Job, work: Sequence[Work], _progress: Progress) -> list[SliceResult]:
        """Does the same as skidway.loader.spark.runner.SparkRunner.run."""
        tasks = [partial(run_slice, job, *each) for each in work]
        return list(self.run_work(tasks, _progress))

    def run_work(self, work: Sequence[TaskWork], _progress: Progress) -> list[Any]:
        """Does the same as skidway.loader.spark.runner.SparkRunner.run_work."""
        found = []
        for task in work:
            self._attempt += 1
            found.append(task(self._attempt))
        return found


def main(config: str, seconds: str) -> None:
    """Runs loads until the process is killed. After SIGTERM, the process finishes the current load
    and ends."""
    run.SparkRunner = compaction.SparkRunner = Here  # type: ignore[assignment, misc]
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    given = settings.load(LoaderSettings, Path(config))
    for number in count(1):
        if over.is_set():
            return
        begin = time.time()
        try:
            outcomes: Sequence[TopicOutcome | Compacted] = run.load(given).outcomes
            if number % LOADS_A_COMPACTION == 0:
                outcomes = [*outcomes, *_compacted(given)]
            problems = [str(problem) for each in outcomes for problem in each.problems]
        except SkidwayError as error:
            problems = [str(error)]
        except Exception:
            traceback.print_exc()
            sys.exit(UNEXPECTED_EXIT_CODE)
        print(f"{time.time() - begin:.1f} s", *problems, sep="\n    ", flush=True)
        over.wait(float(seconds))


def _compacted(given: LoaderSettings) -> list[Compacted]:
    """Puts the small files of all hours together."""
    return compaction.compact(given, SystemClock(), lambda _hour: True, interrupted=lambda: False)


if __name__ == "__main__":
    main(*sys.argv[1:])
