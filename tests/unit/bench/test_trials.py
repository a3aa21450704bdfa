"""Runs short trials of the benchmarks that need no server. A trial takes seconds, and its figures
mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["audit", "resident", "small_batches", "year"])
def test_a_benchmark_without_servers_runs_to_its_end(name: str) -> None:
    """A benchmark that simulates brokers and tasks, instead of starting them, runs to its end with
    Skidway's present code."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.run", name],
        cwd=ROOT,
        env={**os.environ, "BENCH_QUICK": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"### {name}: " in done.stdout
