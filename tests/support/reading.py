"""Runs programs that read the output of `every_type`, and returns the rows that they find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from skidway.java import find
from support import spark_reader
from support.jvm import BRIEF

TIMEOUT_S = 480


def spark(folder: Path, *options: str, packages: Path | None = None) -> list[dict[str, Any]]:
    """Returns the rows that Spark reads, in the form of `every_type.plain`, and `reader` in each.
    options: those of `spark_reader`. packages: a folder with another pyspark than the one of the
    environment."""
    environ = {**os.environ, "JAVA_HOME": str(find().home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environ.pop("SPARK_HOME", None)
    environ["PYTHONPATH"] = "" if packages is None else str(packages)
    environ["JDK_JAVA_OPTIONS"] = " ".join(BRIEF)
    command = [sys.executable, spark_reader.__file__, str(folder), *options]
    return _by_number(_run(command, environ, folder).splitlines())


def python(text: str, target: Path, packages: Path) -> Path:
    """Runs a Python program with other packages. The program gets the path `target` as its
    argument, for its result. Returns this path."""
    _run([sys.executable, "-c", text, str(target)], {**os.environ, "PYTHONPATH": str(packages)})
    return target


def _run(command: list[str], environ: dict[str, str], folder: Path | None = None) -> str:
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        cwd=None if folder is None else folder.parent, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _by_number(lines: list[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [json.loads(line) for line in lines if line.startswith("{")]
    return sorted(found, key=lambda row: int(row["n"]))
