"""The loader as a program that keeps running: it loads every few seconds, and runs the slices of a
load in its own process.

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
from pathlib import Path
from types import TracebackType

from skidway import settings
from skidway.errors import UNEXPECTED_EXIT_CODE, SkidwayError
from skidway.loader.runs import run
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import Job, SliceResult
from skidway.loader.slices.join import Work
from skidway.loader.spark.runner import Progress
from skidway.loader.spark.task import run_slice


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
        found = []
        for piece, marks in work:
            self._attempt += 1
            found.append(run_slice(job, piece, marks, self._attempt))
        return found


def main(config: str, seconds: str) -> None:
    """Runs loads until the process is killed. After SIGTERM, the process finishes the current load
    and ends."""
    run.SparkRunner = Here  # type: ignore[assignment, misc]
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    given = settings.load(LoaderSettings, Path(config))
    while not over.is_set():
        begin = time.time()
        try:
            report = run.load(given)
            problems = [str(problem) for each in report.outcomes for problem in each.problems]
        except SkidwayError as error:
            problems = [str(error)]
        except Exception:
            traceback.print_exc()
            sys.exit(UNEXPECTED_EXIT_CODE)
        print(f"{time.time() - begin:.1f} s", *problems, sep="\n    ", flush=True)
        over.wait(float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
