"""Runs a short trial of the benchmark that needs no server. Its figures mean nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_benchmark_without_servers_runs_to_its_end() -> None:
    """The benchmark of the audit, which simulates its fleet, runs to its end with Skidway's present
    code."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.run", "audit"],
        cwd=ROOT,
        env={**os.environ, "BENCH_QUICK": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "### audit: " in done.stdout
