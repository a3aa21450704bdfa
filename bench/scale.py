"""Full size, or a trial that only shows that a benchmark runs: BENCH_QUICK=1 in the environment.

What a trial measures means nothing: `bench.run` prints it and writes it nowhere.
"""

from __future__ import annotations

import os
from typing import TypeVar

Size = TypeVar("Size")

QUICK = os.environ.get("BENCH_QUICK", "") not in ("", "0")


def scaled(full: Size, trial: Size) -> Size:
    """The size of a run: `trial` while BENCH_QUICK is set."""
    return trial if QUICK else full
