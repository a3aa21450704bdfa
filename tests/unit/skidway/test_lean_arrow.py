"""Tests that Arrow does not import pandas in Skidway's programs, and that Spark can still import
pandas."""

from __future__ import annotations

import subprocess
import sys

import pytest


def imported(code: str) -> set[str]:
    """Runs the code in a new process, and returns the names of all modules that the process has
    imported."""
    code = f"import sys; {code}; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


@pytest.mark.parametrize("noun", ["agent", "audit", "load", "rejected", "schemas"])
def test_a_command_imports_arrow_without_pandas(noun: str) -> None:
    """A process that has run a command of `skidway` can import Arrow and make arrays without
    importing pandas."""
    modules = imported(
        f"from skidway.cli import main; main(['{noun}', '--help']); "
        "import pyarrow; pyarrow.array([1])"
    )
    assert "pyarrow" in modules
    assert "pandas" not in modules


def test_spark_may_import_pandas_later() -> None:
    """A process that has made arrays without pandas can still import pandas after a call of
    `allow_pandas`. The loader needs this, because Spark imports pandas."""
    modules = imported(
        "from skidway import lean_arrow; lean_arrow.leave_out(); import pyarrow; "
        "pyarrow.array([1]); lean_arrow.allow_pandas(); lean_arrow.allow_pandas(); import pandas"
    )
    assert "pandas" in modules
