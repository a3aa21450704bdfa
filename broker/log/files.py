"""Open files whose descriptors stay open until their last user is done, and the errors that a disk
reports."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from skidway.errors import SkidwayError
from skidway.regular_file import require_regular

IOV_MAX = 1024
"""The kernel's limit for the number of buffers in one pwritev."""

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PASSING = DISK_FULL | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors after which the same disk may work again. If an append fails with such an error, the
broker refuses only this append, and continues to use the log directory.
"""
DEVICE_ERRORS = frozenset(
    {errno.EIO, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EUCLEAN}
)
"""Errors that show that the whole disk has failed, and not only one file on it."""


class StorageFailed(SkidwayError):
    """Raised if the operating system reports an error for an operation on a file. If the operation
    was the write of appended batches, the log contains no part of them."""

    def __init__(self, what: str, path: Path, error: OSError, *, final: bool = False) -> None:
        super().__init__(f"cannot {what} {path}: {error.strerror or error}")
        self.path = path
        self.errno = error.errno or 0
        self._final = final

    @property
    def is_passing(self) -> bool:
        """Whether the error may pass, so that the log directory can stay in use (for example, the
        disk is full, or no descriptors are left)."""
        return self.errno in PASSING and not self._final

    @property
    def is_disk_full(self) -> bool:
        """Whether the operation failed only because the disk has no space."""
        return self.errno in DISK_FULL and not self._final


class DamagedLog(SkidwayError):
    """Raised if a log contains bytes that the broker cannot have written, or lacks bytes that were
    on disk. The broker must not serve the log's partition."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class OpenFile:
    """An open descriptor, which is closed when nothing refers to this object any more.

    Deleting or rolling a segment must not close a file that the kernel is still sending for a
    fetch, or that an fsync is using. Therefore every user of the descriptor keeps a reference to
    this object.
    """

    __slots__ = ("descriptor", "path")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.descriptor = -1
        self.path = path
        self.descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        require_regular(os.fstat(self.descriptor), path)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def fileno(self) -> int:
        """Returns the descriptor. Keep a reference to this object as long as you use the
        descriptor: when the last reference is gone, the descriptor is closed.
        """
        return self.descriptor

    @property
    def size(self) -> int:
        """The number of bytes that the file has now."""
        return os.fstat(self.descriptor).st_size


def write_all_at(descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
    """Writes all buffers one after the other into the file, from the byte `position` on. If the
    kernel accepts only a part of the bytes, writes the rest with further calls. Raises OSError.
    """
    at = 0
    while at < len(buffers):
        chunk = buffers[at : at + IOV_MAX]
        expected = sum(map(len, chunk))
        written = os.pwritev(descriptor, chunk, position)
        position += written
        if written == expected:
            at += len(chunk)
            continue
        done = 0
        while done + len(buffers[at]) <= written:
            done += len(buffers[at])
            at += 1
        if written > done:
            rest = memoryview(buffers[at])[written - done :]
            buffers = [rest, *buffers[at + 1 :]]
            at = 0
