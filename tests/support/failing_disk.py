"""A file system in user space that shows the files of a folder. A test can make the file system's
operations fail with EIO.

A test mounts the file system and puts a broker's log directory on it. To mount it, the test needs
root and /dev/fuse. The tested program gets errors in the same way as from a faulty device: its
operations go through the page cache, and the kernel decides which system call returns the error.
The file system records every read, write and fsync that reaches it, so that a test can see which
operations the program has tried again. The process that serves the file system is
support.failing_device.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.processes import Program

MNT_DETACH = 2
LIBC = ctypes.CDLL(None, use_errno=True)


class Operation(NamedTuple):
    """An operation on the device, with its kind (`read`, `write` or `fsync`), its file, and whether
    it failed."""

    what: str
    file: str
    failed: bool


class FailingDisk:
    """A file system whose operations can fail, mounted at `path` during the block `with
    disk.mounted():`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "disk"
        self._folder, self._control = folder / "device", folder / "control"
        for each in (self.path, self._folder, self._control):
            each.mkdir(parents=True)
        command = [sys.executable, "-m", "support.failing_device"]
        places = [str(each) for each in (self._folder, self.path, self._control)]
        self._program = Program(
            [*command, *places],
            folder / "disk.out",
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def fail(self, what: str, suffix: str, *, above: int = 0) -> None:
        """Makes operations of the kind `what` fail on files whose names end in `suffix`. A read or
        a write fails only if it reaches beyond position `above`."""
        temporary = self._control / "fault.tmp"
        temporary.write_text(f"{what} {suffix} {above}")
        temporary.rename(self._control / "fault")

    def heal(self) -> None:
        """Makes all operations succeed again."""
        (self._control / "fault").unlink()

    def operations(self) -> list[Operation]:
        """Returns all reads, writes and fsyncs that have reached the file system, in their
        order."""
        lines = (self._control / "operations").read_text().splitlines()
        return [
            Operation(what, file, failed == "1") for what, file, failed in map(str.split, lines)
        ]

    @contextmanager
    def mounted(self) -> Iterator[FailingDisk]:
        """Mounts the disk and serves it during the `with` block."""
        self._program.start().wait_until(self.path.is_mount)
        try:
            yield self
        finally:
            LIBC.umount2(bytes(self.path), MNT_DETACH)
            self._program.kill()
