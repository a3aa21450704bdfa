"""The program that serves a file system whose operations can fail. With FUSE (libfuse) it shows the
files of FOLDER under MOUNT.

    python -m support.failing_device FOLDER MOUNT CONTROL

While the file `CONTROL/fault` exists, some operations fail with EIO. The file contains three words.
The first word is the kind of operation that fails. The operation fails only for files whose names
end in the second word. The third word is the position beyond which a read or a write fails. For
each read, write and fsync, the program appends a line to `CONTROL/operations`, with the operation's
kind, its file, and whether it failed.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

from mfusepy import FUSE, Operations

STATUS = (
    "st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid",
    "st_ino",
)  # fmt: skip
SPACE = (
    "f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_flag",
    "f_frsize", "f_namemax",
)  # fmt: skip


class Device(Operations):
    """The file system: passes each operation on to the files of FOLDER, or makes the operation
    fail."""

    use_ns = True

    def __init__(self, folder: str, control: Path) -> None:
        self._folder = folder
        self._fault = control / "fault"
        self._notes = (control / "operations").open("a", buffering=1)

    def _do(self, what: str, path: str, end: int = sys.maxsize) -> None:
        try:
            kind, suffix, above = self._fault.read_text().split()
        except FileNotFoundError:
            kind, suffix, above = "", "", "0"
        failed = kind == what and path.endswith(suffix) and end > int(above)
        self._notes.write(f"{what} {path} {int(failed)}\n")
        if failed:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        self._do("read", path, offset + size)
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._do("write", path, offset + len(data))
        return os.pwrite(fh, data, offset)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._do("fsync", path)
        os.fsync(fh)
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        return 0

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        found = os.lstat(self._folder + path)
        status = {name: getattr(found, name) for name in STATUS}
        for name in ("atime", "ctime", "mtime"):
            status[f"st_{name}"] = getattr(found, f"st_{name}_ns")
        return status

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._folder + path)
        return {name: getattr(found, name) for name in SPACE}

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", *os.listdir(self._folder + path)]

    def open(self, path: str, flags: int) -> int:
        return os.open(self._folder + path, flags)

    def create(self, path: str, mode: int, fi: object = None) -> int:
        return os.open(self._folder + path, os.O_RDWR | os.O_CREAT, mode)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        os.truncate(self._folder + path, length)
        return 0

    def release(self, path: str, fh: int) -> int:
        os.close(fh)
        return 0

    def rename(self, old: str, new: str) -> int:
        os.rename(self._folder + old, self._folder + new)
        return 0

    def unlink(self, path: str) -> int:
        os.unlink(self._folder + path)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        os.mkdir(self._folder + path, mode)
        return 0

    def rmdir(self, path: str) -> int:
        os.rmdir(self._folder + path)
        return 0

    def chmod(self, path: str, mode: int, fh: int | None = None) -> int:
        os.chmod(self._folder + path, mode)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        os.utime(self._folder + path, ns=times)
        return 0


if __name__ == "__main__":
    FUSE(Device(sys.argv[1], Path(sys.argv[3])), sys.argv[2], foreground=True, nothreads=True)
