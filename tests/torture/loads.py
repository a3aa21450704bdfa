"""The loader as a program that keeps running. It loads every few seconds, and after every few loads
it merges the small files of each hour.

The command is `python -m torture.loads CONFIG SECONDS`. All loads run in this process. The torture
sets `spark.above.offsets` so high that no load uses Spark. So a kill -9 usually hits a running
load, and not the start of Spark. If a load fails with an expected error, for example because a
broker is down, the program prints the reason and continues with the next load. So a failed load
does not prevent later loads, just as on a host where a timer starts each load.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from skidway import settings
from skidway.clock import SystemClock
from skidway.errors import UNEXPECTED_EXIT_CODE, SkidwayError
from skidway.loader.runs import compaction, run
from skidway.loader.runs.compaction import Compacted
from skidway.loader.runs.outcome import TopicOutcome
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.failures import UNEXPECTED
from skidway.loader.state.layout import Hours

LOADS_A_COMPACTION = 8
"""How many loads the program runs before each compaction."""

NEVER_ON_SPARK = 1 << 40
"""The value of `spark.above.offsets`: a load uses Spark only if it reads more offsets than this,
and no load reads so many."""


MANIFESTS_KEEP = 20
"""The value of `manifests.keep`, which is so small that old manifests of each topic are deleted
during the run."""


def main(config: str, seconds: str) -> None:
    """Runs loads until the process is killed. After SIGTERM, the process finishes the current load
    and ends. An unexpected error in a load ends the process with status UNEXPECTED_EXIT_CODE."""
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    given = settings.load(LoaderSettings, Path(config))
    given = replace(given, spark_above_offsets=NEVER_ON_SPARK, manifests_keep=MANIFESTS_KEEP)
    for number in count(1):
        if over.is_set():
            return
        begin = time.time()
        try:
            outcomes: Sequence[TopicOutcome | Compacted] = run.run(given).outcomes
            if number % LOADS_A_COMPACTION == 0:
                outcomes = [*outcomes, *_compacted(given)]
            problems = [str(problem) for each in outcomes for problem in each.problems]
        except SkidwayError as error:
            problems = [str(error)]
        except Exception:
            traceback.print_exc()
            sys.exit(UNEXPECTED_EXIT_CODE)
        print(f"{time.time() - begin:.1f} s", *problems, sep="\n    ", flush=True)
        if any(UNEXPECTED in problem for problem in problems):
            sys.exit(UNEXPECTED_EXIT_CODE)
        over.wait(float(seconds))


def _compacted(given: LoaderSettings) -> list[Compacted]:
    """Merges the small files of each hour, in all topics."""
    return compaction.compact(given, SystemClock(), Hours("", "~"), interrupted=lambda: False)


if __name__ == "__main__":
    main(*sys.argv[1:])
