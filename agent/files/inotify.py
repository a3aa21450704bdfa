"""inotify(7), the kernel's reports of changes in directories.

The kernel knows each watched directory by a number, which stays the same if the directory is
renamed. The struct of an event is: number, mask, cookie, length of the name, the name with NUL
bytes behind it. The cookie, which joins both halves of a rename, is not used.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import Final, NamedTuple

MODIFY: Final = 0x2
ATTRIB: Final = 0x4
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
MOVE_SELF: Final = 0x800
Q_OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
IS_DIRECTORY: Final = 0x40000000

_ONLY_DIRECTORIES: Final = 0x01000000
_MASK: Final = (
    MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE | MOVE_SELF | _ONLY_DIRECTORIES
)
_READ_BYTES: Final = 1 << 16
_EVENT = struct.Struct("iIII")

_libc = ctypes.CDLL(None, use_errno=True)


class Notice(NamedTuple):
    """One event. directory: the number of the watched directory. name: the name in the directory
    that changed; "" if the event is about the directory itself."""

    directory: int
    mask: int
    name: str


class Inotify:
    """One instance of inotify, with its descriptor. Every method may raise OSError."""

    def __init__(self) -> None:
        self.descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "")

    def add(self, path: str) -> int:
        """Watches a directory, and returns its number. If the directory is watched already, this is
        the same number as before."""
        return _checked(_libc.inotify_add_watch(self.descriptor, os.fsencode(path), _MASK), path)

    def read(self) -> list[Notice]:
        """Returns the next events; nothing if there are none."""
        try:
            data = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return []
        notices, at = [], 0
        while at < len(data):
            directory, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = data[at : at + length].rstrip(b"\0")
            notices.append(Notice(directory, mask, os.fsdecode(name)))
            at += length
        return notices

    def close(self) -> None:
        """Ends all watches."""
        os.close(self.descriptor)


def _checked(result: int, path: str) -> int:
    if result >= 0:
        return result
    number = ctypes.get_errno()
    if number == errno.ENOSPC:
        raise OSError(number, "the limit fs.inotify.max_user_watches is reached", path)
    if number == errno.EMFILE:
        raise OSError(number, "the limit fs.inotify.max_user_instances is reached", path)
    raise OSError(number, os.strerror(number), path)
