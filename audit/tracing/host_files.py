"""Finds the log files of this host, as `skidway agent state show` lists them, and reads lines from
these files.

The audit does not know the tables in which the agent stores its state. So this module runs the
command with `--json` as a child process. The command opens the state read-only, so it also works
while the agent runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, Final

from skidway.errors import SkidwayError

SHOW_TIMEOUT_S: Final = 60
LINE_BYTES_MAX: Final = 64 * 1024
"""To find the begin and the end of a line, at most this many bytes are read before a position in
the line, and at most as many after this position."""
PACKED: Final = (".gz", ".zst", ".bz2", ".xz")


@dataclass(frozen=True, slots=True)
class HostFile:
    """A file id in the agent's state. begin: the position of the first byte that belongs to the id.
    position: all bytes before this position are acknowledged, rejected, lost, uncertain or
    filtered. path: the file's present path, as far as the agent knows."""

    agent: int
    file: int
    path: str
    announced_path: str
    topic: str
    device: int
    inode: int
    begin: int
    position: int
    state: str
    size: int

    def opened(self) -> IO[bytes] | None:
        """Opens the file. Returns None if the path now has no file, another file (with another
        inode) or a compressed file."""
        return None if self.path.endswith(PACKED) else self.opened_at(self.path)

    def opened_at(self, path: str) -> IO[bytes] | None:
        """Opens the file at another path. Returns None if the path does not lead to this file, for
        example because somebody has made a link there."""
        try:
            file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - the caller closes it
        except OSError:
            return None
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) == (self.device, self.inode) and S_ISREG(found.st_mode):
            return file
        file.close()
        return None


@dataclass(frozen=True, slots=True)
class HostState:
    """The state of this host's agent. declared: the ranges of bytes that the agent declared lost or
    uncertain."""

    files: dict[int, HostFile]
    declared: list[dict[str, Any]]


def ask(config: Path) -> HostState:
    """Returns the state of this host's agent, which `skidway agent state show --json` prints.
    config: the agent's configuration file. If the command fails, raises SkidwayError with the
    command's error message."""
    command = [sys.executable, "-P", "-m", "skidway", "agent", "state", "show", "--json"]
    try:
        done = subprocess.run(
            [*command, "--config", str(config)],
            capture_output=True,
            text=True,
            timeout=SHOW_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SkidwayError(f"`skidway agent state show` did not answer: {error}") from error
    if done.returncode != 0:
        raise SkidwayError(done.stderr.strip().splitlines()[-1] if done.stderr else "no answer")
    return of(json.loads(done.stdout))


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file, even a named pipe that nobody writes to, without waiting."""
    return os.open(path, flags | os.O_NONBLOCK)


def of(shown: dict[str, Any]) -> HostState:
    """Returns the state that a document of `skidway agent state show --json` describes."""
    files = {
        each["file"]: HostFile(
            shown["agent"], each["file"], each["path"], each["announced_path"], each["topic"],
            each["device"], each["inode"], each["begin"], each["position"], each["state"],
            each["bytes"],
        )
        for each in shown["files"]
    }  # fmt: skip
    return HostState(files, shown["declared"])


def line_at(file: IO[bytes], byte: int) -> tuple[int, bytes] | None:
    """Returns the position and the bytes of the line that contains the position `byte`, or None if
    the file ends before this position. If the line is very long, returns only a part of the line
    (see LINE_BYTES_MAX) and the position of this part.
    """
    begin = max(0, byte - LINE_BYTES_MAX)
    file.seek(begin)
    data = file.read(2 * LINE_BYTES_MAX)
    at = byte - begin
    if at >= len(data):
        return None
    first = data.rfind(b"\n", 0, at) + 1
    end = data.find(b"\n", at)
    return begin + first, data[first : end + 1 if end >= 0 else len(data)]
