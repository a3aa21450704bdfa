"""A file system in user space over a folder, which fails when it is told to: EIO from the kernel.

A test mounts it (which wants root and /dev/fuse) and puts a log directory on it. What a program
there gets is what a device with an error gives: from the system call, through the page cache, at
the moment that the kernel chooses. Every operation that reached the "device" is noted, so that a
test sees what was tried again.
The process that serves it is support.failing_device.
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
    """What was asked of the device: `read`, `write` or `fsync`, of which file, and whether it
    failed."""

    what: str
    file: str
    failed: bool


class FailingDisk:
    """Mounted at `path` while `mounted` lasts."""

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
        """From now on operations of a kind on files with that ending fail; reads and writes only
        those that reach behind position `above`."""
        temporary = self._control / "fault.tmp"
        temporary.write_text(f"{what} {suffix} {above}")
        temporary.rename(self._control / "fault")

    def heal(self) -> None:
        """Nothing fails any more."""
        (self._control / "fault").unlink()

    def operations(self) -> list[Operation]:
        """All that reached the device, in order."""
        lines = (self._control / "operations").read_text().splitlines()
        return [
            Operation(what, file, failed == "1") for what, file, failed in map(str.split, lines)
        ]

    @contextmanager
    def mounted(self) -> Iterator[FailingDisk]:
        """Serves it as long as this lasts."""
        self._program.start().wait_until(self.path.is_mount)
        try:
            yield self
        finally:
            LIBC.umount2(bytes(self.path), MNT_DETACH)
            self._program.kill()
