"""Tries mutants (changes that each break one rule) in a copy of the source tree."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from mutants.mutant import Mutant

LIMIT_S = 300.0
UNCHANGED_LIMIT_S = 1_200.0
"""The time limits in seconds: `LIMIT_S` for the tests of one mutant, and `UNCHANGED_LIMIT_S` for
the tests of all mutants in an unchanged tree. If the tests of a mutant exceed `LIMIT_S`, the mutant
counts as noticed."""
NO_SOURCES = (
    ".git",
    ".venv*",
    ".cache",
    ".*_cache",
    ".hypothesis",
    "build",
    "dist",
    "skidway-demo*",
)
_GOOD, _FAILED = 0, 1  # pytest's exit statuses
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT)
"""The exit statuses of pytest's process if a library such as Arrow has crashed the process. For
example, a mutant may give the library positions outside of a buffer."""


class Fate(StrEnum):
    """The result of trying a mutant."""

    NOTICED = "noticed"
    ENDLESS = "noticed (its tests did not end)"
    CRASHED = "noticed (its tests ended with a crash)"
    SURVIVED = "SURVIVED"
    BROKEN = "its tests could not run"
    STALE = "the text that it replaces does not stand there once"


BAD = frozenset({Fate.SURVIVED, Fate.BROKEN, Fate.STALE})


class Tree:
    """A folder with a copy of the repository's files, in which one mutant at a time is applied."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        self._changes = 0
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*NO_SOURCES), symlinks=True)

    def passes(
        self, tests: Iterable[str], *options: str, limit_s: float = LIMIT_S
    ) -> tuple[int | None, str]:
        """Runs the tests in this tree. Returns pytest's exit status and output. The status is None
        if pytest did not end within `limit_s` seconds."""
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        path = os.pathsep.join([str(self._folder), str(self._folder / "tests")])
        process = subprocess.Popen(
            [*command, *options, *tests], cwd=self._folder, env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        return process.returncode, output

    def tried(self, mutant: Mutant) -> tuple[Fate, str]:
        """Applies a mutant to this tree, runs its tests, and undoes the change. Returns the result
        and pytest's output."""
        path = self._folder / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            return Fate.STALE, ""
        try:
            self._write(path, text.replace(mutant.old, mutant.new))
            status, output = self.passes(mutant.tests, "-x")
        finally:
            self._write(path, text)
        if status is None:
            return Fate.ENDLESS, output
        if status == _GOOD:
            return Fate.SURVIVED, output
        if status in _CRASHES:
            return Fate.CRASHED, output
        return (Fate.NOTICED if status == _FAILED else Fate.BROKEN), output

    def _write(self, path: Path, text: str) -> None:
        """Writes a file, and sets its modification time to a different second at each write.
        Otherwise Python could use the old compiled module, because Python compares only the second
        of the modification time and the length of the source."""
        path.write_text(text)
        self._changes += 1
        second = int(path.stat().st_mtime) + self._changes
        os.utime(path, (second, second))
