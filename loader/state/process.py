"""Identifies a process, so that other processes can find out whether this process still runs.

A PID has a meaning only in one PID namespace, and only until the machine starts again. So this
module identifies a process by its PID, the machine's boot id and the PID namespace. The start time
of the process is needed, too, because the kernel may use the same PID for another process later.
This module cannot find out whether a process of another machine or of another container still runs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_ENDED: Final = ("Z", "X", "x")
"""The states of a process that has ended, but whose parent process has not yet asked for the exit
status."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process. boot: the machine's boot id. space: the PID namespace. Both are empty if the
    kernel does not reveal them. started: when the process began, in clock ticks since the boot."""

    host: str
    pid: int
    boot: str
    space: str
    started: int | None

    @staticmethod
    def here(host: str) -> Process:
        """Returns this process. host: the name of this host."""
        pid = os.getpid()
        found = _state_and_start(pid)
        return Process(host, pid, _boot(), _space(), found[1] if found is not None else None)

    def is_alive(self) -> bool | None:
        """Returns whether the process runs now. Returns None if nobody can know this here, because
        the process belongs to another machine, to another container, or to an earlier boot of this
        machine."""
        if not self.boot or (self.boot, self.space) != (_boot(), _space()):
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # the process runs, but belongs to another user
        found = _state_and_start(self.pid)
        if found is None:
            return True
        state, started = found
        return state not in _ENDED and started == self.started


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _space() -> str:
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """Returns the state (a letter such as `R`) and the start time (in clock ticks since the boot)
    of a process. Returns None if they cannot be read."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the program's name, in brackets, may have spaces
    return fields[0], int(fields[19])
