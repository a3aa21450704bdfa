"""The space for the WAL index of an SQLite database: the file `<database>-shm`, which SQLite maps
into memory.

A file system may allocate a block of a mapped file only when the process first writes to it. If the
disk is full at that time, the kernel ends the process with SIGBUS, and SQLite cannot prevent this.
(SQLite writes one byte of each 4 KiB, so this happens on file systems with smaller blocks.) So a
program first looks whether there is space, and then allocates the blocks of the file.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from skidway.errors import SkidwayError

ROOM_BYTES = 64 << 10
"""The WAL index needs 32 KiB, and opening a database writes a little more."""


class NoRoom(SkidwayError):
    """The disk is too full to open a database."""


def require_room(database: Path) -> None:
    """Raises NoRoom if the disk of the database has too little space to open it. Raises nothing if
    the operating system does not say how much space there is."""
    try:
        status = os.statvfs(database.parent)
    except OSError:
        return
    free_bytes = status.f_bavail * status.f_frsize
    if status.f_blocks and free_bytes < ROOM_BYTES:
        raise NoRoom(f"the disk of {database} is full: {free_bytes} bytes are free")


def allocate(database: Path) -> None:
    """Allocates all blocks of the WAL index of a database that this process has open. If there is
    no space, does nothing.

    Uses SQLite's own descriptor. If this process opened and closed the file once more, the kernel
    would drop the locks that SQLite holds on it.
    """
    index = f"{database}-shm"
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{name}") == index:
                descriptor = int(name)
                os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size)
