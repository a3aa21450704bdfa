"""Small file systems that can fill up or become read-only, for the torture."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SIZES = {"agent-host1": 64 << 20, "broker-dc1": 1 << 30, "audit": 512 << 20, "lake": 2 << 30}
FILLER = ".filler"
_DETACH = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


class Disk:
    """A folder that can be filled or made read-only. If `size` is not None, the folder is the mount
    point of a file system in memory that has this size in bytes."""

    def __init__(self, folder: Path, size: int | None) -> None:
        self._folder, self._size = folder, size
        self._inside = -1  # a descriptor that reaches the folder even below a read-only mount

    def mount(self) -> None:
        """Makes the folder, and mounts its file system if the folder has one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._size is not None:
            _mount("-t", "tmpfs", "-o", f"size={self._size}", "torture", str(self._folder))
            self._inside = os.open(self._folder, os.O_DIRECTORY)

    def unmount(self) -> None:
        """Unmounts the folder's file system and all mounts on top of it."""
        if self._inside >= 0:
            os.close(self._inside)
            self._inside = -1
        while os.path.ismount(self._folder):
            _LIBC.umount2(os.fsencode(self._folder), _DETACH)

    def fill(self) -> Callable[[], None]:
        """Fills the disk with one large file, even while the disk is read-only. The returned
        function deletes this file."""

        def opened(path: str, flags: int) -> int:
            return os.open(path, flags, dir_fd=self._inside)

        def end() -> None:
            with suppress(FileNotFoundError):
                os.unlink(FILLER, dir_fd=self._inside)

        with open(FILLER, "wb", buffering=0, opener=opened) as out:
            try:
                while True:
                    out.write(bytes(1 << 16))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        return end

    def protect(self) -> Callable[[], None]:
        """Makes the disk read-only until the returned function is called.

        A program can still write to files that it had opened for writing before.
        """
        folder = str(self._folder)
        _mount("--bind", folder, folder)
        _mount("-o", "remount,bind,ro", folder)
        return lambda: _LIBC.umount2(os.fsencode(folder), _DETACH)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, stdin=subprocess.DEVNULL)
