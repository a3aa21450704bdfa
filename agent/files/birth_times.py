"""The time at which an inode was made distinguishes a file from a later file with the same inode.

The kernel gives the inode number of a deleted file to a new file. On ext4, the very next new file
gets this number. On ext4, XFS, Btrfs, F2FS, ZFS and tmpfs, statx(2) says when the inode was made.
Python's os.stat does not show this time on Linux. If the C library, the kernel or the file system
does not provide this time, the functions return None.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Final

from skidway.agent.values.found import stored

_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_STATX_INO: Final = 0x100
_STATX_BTIME: Final = 0x800
_SIZE: Final = 256
_MASK = struct.Struct("I")
_INODE_AT: Final = 32
_INODE = struct.Struct("Q")
_BIRTH_AT: Final = 80
_BIRTH = struct.Struct("qI")

_statx = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)
if _statx is not None:
    _statx.argtypes = (
        ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p,
    )  # fmt: skip


def born_of(descriptor: int) -> int | None:
    """Returns the time at which an open file's inode was made, in ns since 1970; None if
    unknown."""
    return _born(descriptor, b"", _AT_EMPTY_PATH, None)


def born_at(path: str, inode: int) -> int | None:
    """Returns the time at which this inode was made, in ns since 1970; None if unknown. Raises
    FileNotFoundError if another file, or no file, is at the path by now.
    """
    return _born(_AT_FDCWD, os.fsencode(path), 0, inode)


def _born(directory: int, path: bytes, flags: int, inode: int | None) -> int | None:
    if _statx is None:
        return None
    buffer = ctypes.create_string_buffer(_SIZE)
    if _statx(directory, path, flags, _STATX_BTIME | _STATX_INO, buffer):
        if inode is not None and ctypes.get_errno() == errno.ENOENT:
            raise _moved(path)
        return None
    (mask,) = _MASK.unpack_from(buffer)
    if inode is not None and _INODE.unpack_from(buffer, _INODE_AT)[0] != inode:
        raise _moved(path)
    if not mask & _STATX_BTIME:
        return None
    seconds, nanoseconds = _BIRTH.unpack_from(buffer, _BIRTH_AT)
    return stored(int(seconds) * 1_000_000_000 + int(nanoseconds)) or None


def _moved(path: bytes) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "it was renamed or deleted", os.fsdecode(path))
