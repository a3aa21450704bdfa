"""A group's member that runs as a program of its own and prints what it consumes."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from typing import IO

from support.fork_server import die_with_parent

STOP_WITHIN_S = 60.0


class Member:
    """Runs the member's program, and keeps the lines of standard output that `printed` has not yet
    returned, and all lines of standard error."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )  # fmt: skip
        self._printed: list[bytes] = []
        self._said: list[bytes] = []
        for pipe, lines in (
            (self._process.stdout, self._printed),
            (self._process.stderr, self._said),
        ):
            assert pipe is not None
            threading.Thread(target=_collect, args=(pipe, lines), daemon=True).start()

    def printed(self, wait_ms: int) -> list[bytes]:
        """Returns the lines of standard output since the last call. If there are none, waits for
        one, at most `wait_ms`."""
        deadline = time.monotonic() + wait_ms / 1000
        while not self._printed and time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"it ended: {b''.join(self._said).decode()[-2000:]}")
            time.sleep(0.02)
        found = self._printed[:]
        del self._printed[: len(found)]
        return found

    def said(self, wanted: Callable[[bytes], bool]) -> list[bytes]:
        """Returns all lines of standard error so far that `wanted` accepts."""
        return [line for line in self._said[:] if wanted(line)]

    def stop(self) -> None:
        """Makes the member leave its group and end."""
        self._process.terminate()
        self._process.wait(STOP_WITHIN_S)


def _collect(pipe: IO[bytes], lines: list[bytes]) -> None:
    for line in pipe:
        lines.append(line)
