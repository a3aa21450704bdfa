"""The demo's programs as child processes.

Each runs in a process group of its own, so that a Ctrl-C at the terminal reaches the demo alone and
the demo stops them in order; each dies with the demo even if that is killed (PR_SET_PDEATHSIG).
A program is awaited by its /health, and one that ends before its time ends the demo.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from skidway.errors import SkidwayError

PR_SET_PDEATHSIG = 1
STOP_WITHIN_S = 20.0
TAIL_CHARACTERS = 2000


class ProgramFailed(SkidwayError):
    """A program of the demo ended before its time, or was not ready in time."""


class Supervisor:
    """Starts programs, notices when one ends, stops them in reverse order."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str, health: str, within_s: float = 60.0) -> None:
        """Run `skidway <arguments>` and wait until its /health answers 200."""
        self._running[name] = self._spawn(name, arguments, self.log(name))
        self.wait_for(lambda: healthy(health), f"{name} to be healthy", within_s)

    def run(self, name: str, *arguments: str) -> int:
        """Run `skidway <arguments>` to its end, noticing meanwhile when another program ends."""
        process = self._spawn(name, arguments, self._logs / f"{name}.out")
        self._running[name] = process
        try:
            while process.poll() is None:
                self.check(but=name)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)
            return process.returncode
        finally:
            if process.poll() is not None:
                del self._running[name]

    def wait_for(self, ready: Callable[[], bool], what: str, within_s: float) -> None:
        """Ask until it is so; ProgramFailed when it is not in time or a program ends meanwhile."""
        deadline = time.monotonic() + within_s
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ProgramFailed(
                    f"Waited {within_s:.0f} s in vain for {what}; logs are in {self._logs}."
                )
            time.sleep(0.1)

    def stop(self, name: str) -> None:
        """SIGTERM, wait, SIGKILL for what does not listen."""
        process = self._running.pop(name, None)
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def stop_all(self) -> None:
        """Stop every program, the one started last first."""
        for name in reversed(list(self._running)):
            self.stop(name)

    def log(self, name: str) -> Path:
        """What a long-running program logs: JSON lines."""
        return self._logs / f"{name}.json"

    def errors(self, name: str) -> Path:
        """What a program says on standard error."""
        return self._logs / f"{name}.stderr"

    def _spawn(self, name: str, arguments: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
        with output.open("ab") as out, self.errors(name).open("ab") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "skidway.cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_die_with_parent,
                env={**os.environ, "TZ": "UTC"},  # log4j writes local time without its zone
            )

    def check(self, but: str = "") -> None:
        """ProgramFailed when a program has ended before its time."""
        for name, process in self._running.items():
            if name != but and process.poll() is not None:
                said = self.errors(name).read_text(errors="replace")[-TAIL_CHARACTERS:].strip()
                raise ProgramFailed(
                    f"{name} ended with status {process.returncode}: {said or self.log(name)}"
                )


def healthy(url: str) -> bool:
    """Whether the URL answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own loopback URL
            return bool(answer.status == 200)
    except OSError:
        return False


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
