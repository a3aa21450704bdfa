"""The folders agent, audit, broker, loader and schemas of the repository are parts of the package
`skidway`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

NAMES = "print(*(name for name in sys.modules if name.partition('.')[0] == '{part}'))"


@pytest.mark.parametrize("part", ["agent", "audit", "broker", "loader", "schemas"])
def test_there_is_one_copy(part: str) -> None:
    """In the repository's root, each part could be imported under two names, for example `agent`
    and `skidway.agent`. A program that is started there imports the part only under the longer
    name, and so only once, from the part's folder."""
    code = f"import sys, skidway.{part}.cli as cli; print(cli.__file__); " + NAMES.format(part=part)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    file, others = done.stdout.split("\n")[:2]
    assert Path(file).resolve() == ROOT / part / "cli.py"
    assert others == ""
