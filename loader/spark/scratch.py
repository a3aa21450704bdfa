"""Makes a directory for the temporary files of one Spark session. Its contents are useless after
the session.

A run that is killed does not delete its directory. Therefore each new run deletes the directories
of dead runs when it starts Spark. A directory belongs to a dead run if its lock is free, because
the kernel releases a process's locks when the process dies.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from skidway.errors import ConfigurationRefused, SkidwayError
from skidway.files import LOCK_FILE, DirectoryLock, obstacle

PREFIX: Final = "skidway-spark-"


class Scratch:
    """A new directory for Spark's temporary files. It is locked until `close` is called."""

    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.lock = DirectoryLock(self.path)
        self.lock.acquire()

    def close(self) -> None:
        """Deletes the directory with all its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.release()


def check(directories: Sequence[str]) -> None:
    """Raises ConfigurationRefused if Spark can keep temporary files in none of the directories."""
    found = [obstacle(Path(each)) for each in directories]
    if all(found):
        raise ConfigurationRefused(
            f"spark.conf: spark.local.dir (or SPARK_LOCAL_DIRS): {'; '.join(found)}"
        )


def _sweep(folder: Path) -> None:
    """Deletes the directories of this user's dead runs. Does not delete a directory without a lock
    file, because a live run may have just made this directory."""
    for path in folder.glob(f"{PREFIX}*/{LOCK_FILE}"):
        if not _is_own(path.parent):
            continue
        lock = DirectoryLock(path.parent)
        try:
            lock.acquire()
        except SkidwayError:
            continue  # a live run has locked the directory
        shutil.rmtree(path.parent, ignore_errors=True)
        lock.release()


def _is_own(path: Path) -> bool:
    """Whether a path is no link, and belongs to this user: nobody else can exchange what is there,
    also if this user is root."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
