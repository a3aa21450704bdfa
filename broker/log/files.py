"""Descriptors that live as long as their last reader, and what the disk can do to us."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from skidway.errors import SkidwayError

IOV_MAX = 1024
"""Buffers of one pwritev; the kernel's limit."""

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PASSING = DISK_FULL | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EINTR, errno.EAGAIN}
"""Errors after which the same disk may well work again: the append is refused, nothing more."""
DEVICE_ERRORS = frozenset(
    {errno.EIO, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.EUCLEAN}
)
"""Errors that are the disk's and not those of one file on it."""


class StorageFailed(SkidwayError):
    """The disk did not do what was asked; nothing of the refused append remains in the log."""

    def __init__(self, what: str, path: Path, error: OSError, *, final: bool = False) -> None:
        super().__init__(f"cannot {what} {path}: {error.strerror or error}")
        self.path = path
        self.errno = error.errno or 0
        self._final = final

    @property
    def is_passing(self) -> bool:
        """Whether the log directory can stay in use (a full disk, no descriptors left)."""
        return self.errno in PASSING and not self._final

    @property
    def is_disk_full(self) -> bool:
        """Whether more space is all that is needed."""
        return self.errno in DISK_FULL and not self._final


class DamagedLog(SkidwayError):
    """Bytes of a log that are not what was written; the partition must not be served."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at position {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class OpenFile:
    """A descriptor that closes when nobody holds this object any more.

    Deleting or rolling a segment must not pull a file away under a fetch that the kernel is still
    sending, or under an fsync: whoever uses the descriptor holds the object.
    """

    __slots__ = ("descriptor", "path")

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.descriptor = -1
        self.path = path
        self.descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def fileno(self) -> int:
        """The descriptor; whoever uses it holds this object."""
        return self.descriptor

    @property
    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self.descriptor).st_size


def write_all_at(descriptor: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
    """Writes all buffers from a position on, however little the kernel takes. Raises OSError."""
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
