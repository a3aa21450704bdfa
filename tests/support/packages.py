"""Wheels and packages of this tree, which are built once in a test run and kept in dist/."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from deploy.packaging import wheels

VERSION = "9.8.7"


@cache
def wheels_of(version: str) -> Path:
    """The directory that `make wheels VERSION=...` makes from the current tree."""
    return wheels.collect(version)


def install(programs: list[str], folder: Path, into: Path) -> None:
    """Installs programs as on a host that has only Python."""
    run([sys.executable, "-m", "venv", "--without-pip", str(into)])
    (pip,) = folder.glob("pip-*.whl")
    lists = [word for program in programs for word in ("-r", str(folder / f"{program}.txt"))]
    run(
        [
            *(str(into / "bin" / "python"), str(pip / "pip"), "install", "--quiet"),
            *("--no-index", "--find-links", str(folder), "--require-hashes", *lists),
        ]
    )


def run(command: list[str], **options: object) -> str:
    """Runs a command, and returns its standard output. An exit status other than 0 fails the
    test."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return str(done.stdout)
