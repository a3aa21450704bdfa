"""A local directory as a store. The code that reads files is in audit.output.local.

link(2) fails if the target exists. So if several writers create the same name, only one succeeds. A
move links the new name, syncs the target's directory and unlinks the old name. After a crash
between the link and the unlink, the file has both names, and the next start of the loader deletes
the old name.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

from skidway.audit.output.local import LocalOutput, failures
from skidway.errors import ConfigurationRefused
from skidway.files import existing, fsync_directory
from skidway.loader.store import (
    DEFAULT_MODES,
    PARTIAL_SUFFIX,
    Modes,
    StoreConnection,
    StoreWriter,
)

REMOVALS_MAX: Final = 10
"""A store tries at most this many times to remove a directory. An attempt fails if another process
creates a file in the directory meanwhile."""

MADE_KEPT_MAX: Final = 1_000
"""A store remembers at most this many directories that it has created. If it no longer remembers a
directory, it only has to check again whether the directory exists."""


class LocalStore(LocalOutput):
    """A store that consists of the files below one local directory. The first write creates the
    directory.
    """

    def __init__(self, directory: str, modes: Modes = DEFAULT_MODES) -> None:
        super().__init__(directory)
        self.connection = StoreConnection(self.url, modes=modes)
        self._made: set[Path] = set()

    def create(self, path: str) -> StoreWriter:
        """See Store."""
        target = self._root / path
        with failures("write", target):
            self._make(target.parent)
            return LocalWriter(target, self.connection.modes.file)

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        """See Store. Never raises OutcomeUnclear, because the kernel always answers."""
        target = self._root / path
        staged = self._root / scratch / f"{target.name}.{uuid4().hex}{PARTIAL_SUFFIX}"
        with failures("write", target):
            self._make(staged.parent)
            self._make(target.parent)
            writer = LocalWriter(staged, self.connection.modes.file)
            writer.write(data)
            writer.close()
            try:
                os.link(staged, target)
            except FileExistsError:
                staged.unlink()
                return False
            fsync_directory(target.parent)
            staged.unlink()
        return True

    def rename(self, source: str, target: str) -> bool:
        old, new = self._root / source, self._root / target
        with failures("rename", old):
            self._make(new.parent)
            try:
                os.link(old, new)
            except (FileExistsError, FileNotFoundError):
                return False
            fsync_directory(new.parent)
            old.unlink(missing_ok=True)  # another loader may have finished this move meanwhile
        return True

    def replace(self, source: str, target: str) -> bool:
        old, new = self._root / source, self._root / target
        with failures("rename", old):
            self._make(new.parent)
            try:
                old.replace(new)
            except FileNotFoundError:
                return False
            fsync_directory(new.parent)
        return True

    def delete(self, path: str) -> None:
        target = self._root / path
        with failures("delete", target):
            try:
                if target.is_dir():
                    _remove_tree(target)
                else:
                    target.unlink()
            except FileNotFoundError:
                return  # another loader has already deleted the target

    def sync(self, paths: Sequence[str]) -> None:
        for path in paths:
            with failures("sync", self._root / path):
                if (self._root / path).is_dir():
                    fsync_directory(self._root / path)

    def _make(self, directory: Path) -> None:
        """Creates a directory and its missing parents, and makes the names of all these directories
        durable. Several tasks may create the same directory at once."""
        if directory in self._made and directory.is_dir():
            return
        missing = []
        at = directory
        while not at.is_dir():
            missing.append(at)
            at = at.parent
        for each in reversed(missing):
            with failures("make the directory", each):
                _make_one(each, self.connection.modes.directory)
                fsync_directory(each.parent)
        if len(self._made) >= MADE_KEPT_MAX:
            self._made.clear()
        self._made.add(directory)


def refuse_file(directory: str) -> None:
    """Raises ConfigurationRefused if the store's directory, or a directory above it, is a file. A
    link to nothing is not refused: its file system may only not be mounted yet."""
    at = existing(Path(directory))
    if os.path.exists(at) and not at.is_dir():
        raise ConfigurationRefused(f"output: {at} is not a directory")


def _make_one(directory: Path, mode: int) -> None:
    """Creates a directory with these permissions, whatever the umask is. Keeps the bit by which its
    files inherit the group of the directory above."""
    try:
        directory.mkdir(mode)
    except FileExistsError:
        if not directory.is_dir():
            raise
    else:
        directory.chmod(mode | directory.stat().st_mode & stat.S_ISGID)


def _remove_tree(directory: Path) -> None:
    """Removes a directory with all its files, even if a task of another loader still creates files
    in it."""
    for left in reversed(range(REMOVALS_MAX)):
        try:
            shutil.rmtree(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not left:
                raise
        else:
            return


class LocalWriter:
    """A new local file; `close` syncs its bytes."""

    def __init__(self, path: Path, mode: int) -> None:
        self._path = path
        self._file = open(  # noqa: SIM115 - closed by close or abandon
            path, "wb", buffering=0, opener=lambda name, flags: os.open(name, flags, mode)
        )
        os.fchmod(self._file.fileno(), mode)  # whatever the umask is

    def write(self, data: bytes | memoryview, /) -> int:
        """See StoreWriter."""
        with failures("write", self._path):
            view = memoryview(data).cast("B")
            while view:
                view = view[self._file.write(view) :]
        return len(data)

    def close(self) -> None:
        with failures("write", self._path):
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        self._file.close()
