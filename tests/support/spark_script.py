"""Runs scripts as an analyst would: each script runs in a separate process and makes its own Spark
session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from skidway import java
from support import jvm
from support.fork_server import die_with_parent

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    **jvm.SPARK,
}
"""Spark's settings for the scripts. Each script gets this dictionary as JSON in its first
argument."""
ENDS_WITHIN_S = 900


def environment(**more: str) -> dict[str, str]:
    """The environment variables of a shell without an active virtual environment and without
    settings for Spark or Skidway. The variables in `more` are added."""
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "TZ": "UTC", **java.environment(java.find()), **kept, **more}


def start(script: str, *arguments: str, folder: Path, **more: str) -> subprocess.Popen[str]:
    """Starts a script in `folder`, in a process group of its own. `more` contains further
    environment variables."""
    return subprocess.Popen(
        [sys.executable, "-c", script, json.dumps(SETTINGS), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(**more),
        preexec_fn=die_with_parent,
        start_new_session=True,
    )


def answer(script: str, *arguments: str, folder: Path, **more: str) -> Any:
    """Runs a script to its end. Returns the JSON in the last line of its output."""
    process = start(script, *arguments, folder=folder, **more)
    out, err = process.communicate(timeout=ENDS_WITHIN_S)
    assert process.returncode == 0, err[-6000:]
    return json.loads(out.strip().splitlines()[-1])
