"""The demo's programs as child processes.

Each program runs in a session of its own. So a Ctrl-C at the terminal reaches only the demo, which
then stops the programs one by one. If the demo itself is killed, the kernel kills all its programs
(PR_SET_PDEATHSIG). When a program ends, the demo kills every process that still runs in the
program's session.

The handler of SIGINT, SIGTERM and SIGHUP only notes the signal. Every wait checks for a noted
signal and raises Stopped, so that no program is left half started or half stopped. After a second
signal, programs that have not stopped yet are killed at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from skidway.errors import SkidwayError
from skidway.http_client import open_url

PR_SET_PDEATHSIG = 1
STOP_WITHIN_S = 20.0
HEALTH_WITHIN_S = 2.0
LOOK_EVERY_S = 0.1
TAIL_CHARACTERS = 2000
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ProgramFailed(SkidwayError):
    """A program of the demo ended unexpectedly, or was not ready in time."""


class Stopped(Exception):
    """A signal asked the demo to end. `number` is the number of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by signal {number}")
        self.number = number


class Supervisor:
    """Starts programs, notices when a program ends, and stops the programs in the reverse order of
    their starts. Only the main thread may use a `Supervisor`."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ranks: dict[str, int] = {}
        self._may_end: set[str] = set()
        self._signals: list[int] = []
        self._before = {
            number: signal.signal(number, self._note)
            for number in SIGNALS
            # A process under nohup ignores SIGHUP, and the demo does not change this.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
        }

    def start(self, name: str, *arguments: str, health: str, within_s: float = 180.0) -> None:
        """Runs `skidway <arguments>` and waits until the program's /health answers 200."""
        self.begin(name, *arguments)
        self.wait_for(lambda: healthy(health), f"{name} to be healthy", within_s)

    def begin(self, name: str, *arguments: str, module: str = "skidway.cli") -> None:
        """Starts `python -m <module> <arguments>`, by default `skidway <arguments>`. Does not wait
        until the program is ready.
        """
        self._spawn(name, module, arguments, self.log(name))

    def begin_once(self, name: str, *arguments: str) -> None:
        """Starts `skidway <arguments>`, a command that ends by itself. Once the command has ended,
        the method `ended` returns the command's exit status."""
        self.errors(name).unlink(missing_ok=True)
        self.output(name).unlink(missing_ok=True)
        self._may_end.add(name)
        self._spawn(name, "skidway.cli", arguments, self.output(name))

    def ended(self, name: str) -> int | None:
        """Returns the exit status of a program that ends by itself, or None while it runs."""
        process = self._running[name]
        if process.poll() is not None:
            self._bury(name)
        return process.returncode

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `skidway <arguments>` to its end. Returns its status and output."""
        name = f"{arguments[0]} {arguments[1]}"
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self._begin(name, "skidway.cli", arguments, out.fileno(), err.fileno())
            try:
                while process.poll() is None:
                    self.check(but=name)
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(LOOK_EVERY_S)
            finally:
                self.kill(name)
            said = [file.read().decode(errors="replace") for file in (out, err) if not file.seek(0)]
        return subprocess.CompletedProcess(arguments, process.returncode, *said)

    def wait_for(
        self,
        ready: Callable[[], bool],
        what: str,
        within_s: float,
        obstacle: Callable[[], str] = str,
    ) -> None:
        """Calls `ready` again and again until it returns True. Raises ProgramFailed if that takes
        longer than `within_s`, or if a program ends meanwhile, and Stopped after a signal. After
        the time limit, the error's text includes the words that `obstacle` returns."""
        deadline = time.monotonic() + within_s
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ProgramFailed(
                    f"Waited {within_s:.0f} s in vain for {what}{obstacle()}; "
                    f"logs are in {self._logs}."
                )
            time.sleep(LOOK_EVERY_S)

    def check(self, but: str = "") -> None:
        """Raises ProgramFailed if a program other than `but` has ended unexpectedly. Raises Stopped
        after a signal."""
        if self._signals:
            raise Stopped(self._signals[0])
        for name, process in self._running.items():
            if name not in (but, *self._may_end) and process.poll() is not None:
                raise self.failed(name, process.returncode)

    def failed(self, name: str, status: int) -> ProgramFailed:
        """Returns the error for a program that has ended with `status`. The error's text includes
        the end of the program's standard error.
        """
        path = self.errors(name)
        said = path.read_text(errors="replace")[-TAIL_CHARACTERS:].strip() if path.exists() else ""
        return ProgramFailed(f"{name} ended with status {status}: {said or self.log(name)}")

    def pid(self, name: str) -> int:
        """Returns a program's process id, which is also the id of its session."""
        return self._running[name].pid

    def kill(self, name: str) -> None:
        """Kills the program (kill -9) and every process that it started."""
        process = self._running[name]
        if process.poll() is None:
            process.kill()
            process.wait()
        self._bury(name)

    def stop(self, name: str) -> None:
        """Sends SIGTERM and waits; sends SIGKILL if the program does not end in time."""
        process = self._running.get(name)
        if process is None:
            return
        deadline = time.monotonic() + STOP_WITHIN_S
        process.terminate()
        while process.poll() is None and time.monotonic() < deadline:
            if len(self._signals) > 1:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY_S)
        self.kill(name)

    def close(self) -> None:
        """Stops the programs in reverse order of their first starts. In another order, an agent
        could wait for a broker that has been stopped."""
        for name in sorted(self._running, key=lambda name: self._ranks[name], reverse=True):
            self.stop(name)
        for number, before in self._before.items():
            signal.signal(number, before)

    def log(self, name: str) -> Path:
        """Returns the path of a long-running program's log, which has JSON lines."""
        return self._logs / f"{name}.json"

    def output(self, name: str) -> Path:
        """Returns the path of a file with the standard output of a program that ends by itself. The
        file has the output of the latest run.
        """
        return self._logs / f"{name}.out"

    def errors(self, name: str) -> Path:
        """Returns the path of a file with a program's standard error."""
        return self._logs / f"{name}.stderr"

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _spawn(self, name: str, module: str, arguments: Sequence[str], output: Path) -> None:
        with output.open("ab") as out, self.errors(name).open("ab") as err:
            self._begin(name, module, arguments, out.fileno(), err.fileno())

    def _begin(
        self, name: str, module: str, arguments: Sequence[str], output: int, errors: int
    ) -> subprocess.Popen[bytes]:
        self._ranks.setdefault(name, len(self._ranks))
        self._running[name] = process = _start(module, arguments, output, errors)
        return process

    def _bury(self, name: str) -> None:
        session = self._running.pop(name).pid
        self._may_end.discard(name)
        while left := session_members(session):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)


def session_members(session: int) -> list[int]:
    """Returns the ids of those processes of a session that are still alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, member = path.read_text().rpartition(")")[2].split()[:4]
            if int(member) == session and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def health_of(url: str) -> dict[str, Any]:
    """Returns what a program's /health says, even if it says that the program is not healthy.
    Returns an empty dict if the program does not answer."""
    try:
        with open_url(url, HEALTH_WITHIN_S) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            return dict(json.load(error))
    except OSError:
        return {}


def healthy(url: str) -> bool:
    """Returns whether a program's /health says that it works. An agent that delivers and may not
    read a path works, too: the demo names the path, and its verdict counts it.
    """
    try:
        with open_url(url, HEALTH_WITHIN_S) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        with error:
            detail = json.load(error)
        return bool(detail.get("delivers"))
    except OSError:
        return False


def _start(
    module: str, arguments: Sequence[str], output: int, errors: int
) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent was killed before the prctl
            os.kill(os.getpid(), signal.SIGKILL)

    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
        preexec_fn=die_with_parent,
        env={**os.environ, "TZ": "UTC"},  # log4j writes local time without its zone
    )
