"""Spark's directory for one run: what it spills there is worth nothing afterwards.

A run that is killed leaves it behind. Therefore each start deletes the directories of dead runs:
their lock is free, because the kernel releases it with the process.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from skidway.errors import SkidwayError
from skidway.files import LOCK_FILE, DirectoryLock

PREFIX: Final = "skidway-spark-"


class Scratch:
    """A new directory, locked until it is closed."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.lock = DirectoryLock(self.path)
        self.lock.acquire()

    def close(self) -> None:
        """Deletes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.release()


def _sweep(folder: Path) -> None:
    """Deletes what dead runs of this user left. A directory without a lock is just being made."""
    for path in folder.glob(f"{PREFIX}*/{LOCK_FILE}"):
        if path.parent.is_symlink():
            continue
        lock = DirectoryLock(path.parent)
        try:
            lock.acquire()
        except SkidwayError:
            continue  # a live run has it, or another user
        shutil.rmtree(path.parent, ignore_errors=True)
        lock.release()
