"""Files that are written whole or not at all, and directories that only one process may use.

A rename is durable only after the directory that contains the new name is synced. Code that writes
a whole file of state uses this module, so that it cannot forget the sync. No link is followed in
the place of a file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from skidway.errors import SkidwayError, StateRefused
from skidway.regular_file import require_regular

LOCK_FILE = ".lock"


def write_atomically(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Writes `data` to `path`, durably: after a crash the file has the old bytes or the new bytes.
    mode: who may use the file, if this is not for the umask to say, because others need the file.

    If the write fails, deletes the temporary file, keeps the old content and raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o644 if mode is None else 0o600)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync_directory(path.parent)


def fsync_directory(path: Path) -> None:
    """Makes the creation, renaming and deletion of names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Creates a directory and its parents, durably. Raises SkidwayError with the reason."""
    missing = []
    at = path.absolute()
    while not at.exists():
        missing.append(at)
        at = at.parent
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            fsync_directory(each.parent)
        if not path.is_dir():
            raise NotADirectoryError(20, "it is not a directory")
    except OSError as error:
        raise SkidwayError(f"cannot use the directory {path}: {error.strerror}") from error


def existing(path: Path) -> Path:
    """Returns the path itself, or the nearest of its parents that is there, if only as a link to
    nothing."""
    at = path.absolute()
    while not os.path.lexists(at):
        at = at.parent
    return at


def obstacle(directory: Path) -> str:
    """Returns why nobody can create files in a directory, for example because it is on a file
    system that is read-only. If the directory is missing, tries its nearest parent. Returns "" if
    there is no reason, or if only this user has no permission."""
    at = existing(directory)
    try:
        with tempfile.TemporaryFile(dir=at):
            return ""
    except PermissionError:
        return ""
    except OSError as error:
        return f"cannot create files in {at}: {error.strerror or error}"


class DirectoryLock:
    """A lock on `<directory>/.lock`, which lets only one process at a time use the directory.

    The kernel releases the lock when the process dies. A missing directory is created. Entering the
    `with` block raises StateRefused if another process holds the lock; the error names that
    process. It raises SkidwayError if the directory or the lock file cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._descriptor: int | None = None

    def __enter__(self) -> DirectoryLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes the lock at once, or raises StateRefused, which names the process that holds the
        lock."""
        if self._descriptor is not None:
            raise RuntimeError(f"the lock on {self.directory} is already held here")
        make_directory(self.directory)
        path = self.directory / LOCK_FILE
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o644)
            try:
                require_regular(os.fstat(descriptor), path)
            except OSError:
                os.close(descriptor)
                raise
        except OSError as error:
            raise SkidwayError(
                f"cannot lock the directory {self.directory}: {error.strerror}"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
            os.close(descriptor)
            raise StateRefused(
                f"the directory {self.directory} is in use by {holder or 'another process'}; "
                "stop that one first or give this one a directory of its own"
            ) from error
        self._descriptor = descriptor
        _describe_holder(descriptor)

    def release(self) -> None:
        """Releases the lock, but does not delete the lock file. If the file were deleted, two
        processes could lock two different files of this name."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _describe_holder(descriptor: int) -> None:
    program = " ".join([Path(sys.argv[0]).name, *sys.argv[1:3]])
    os.ftruncate(descriptor, 0)
    with contextlib.suppress(OSError):  # the lock holds without these words, also on a full disk
        holder = f"process {os.getpid()} ({program})\n"
        os.pwrite(descriptor, holder.encode(errors="backslashreplace"), 0)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
