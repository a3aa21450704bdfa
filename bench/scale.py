"""The sizes of benchmark runs. Normally a run has its full size. If BENCH_QUICK=1 is set, each run
is a short trial that only shows that the benchmark works.

The figures of a trial mean nothing: `bench.run` prints them and does not write them to a file.
"""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

QUICK = os.environ.get("BENCH_QUICK", "") not in ("", "0")


def scaled(full: Size, trial: Size) -> Size:
    """The size of a run: `full`, or `trial` if BENCH_QUICK is set."""
    return trial if QUICK else full
