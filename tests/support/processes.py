"""Runs real programs as subprocesses. A test can start a program, wait for a condition, and stop or
kill the program.

A test never sleeps for a fixed time. Instead it waits for a condition, for example until a port
accepts connections or a URL answers with status 200. A program's output goes to a file. If the
program does not become ready, the error shows the end of this file. No program outlives the test
run: normally a fixture stops it, and if the test runner is killed, the kernel kills the program.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway import lean_arrow
from skidway.cli import main
from skidway.demo.programs import session_members
from skidway.ports import Reservation
from support import fork_server
from support.fork_server import Fork, die_with_parent

SKIDWAY = (sys.executable, "-m", "skidway.cli")
WITHIN_S = 300.0
"""The maximum time in seconds that a test waits for a condition. It is long because the machine may
be busy with other tests."""
OPEN_FILES = 16_384
"""The limit of open files for the test run's process. Each reserved port is an open file, and a run
reserves hundreds of ports."""

_reservation = Reservation()


@dataclass
class ProgramLog:
    """What one program prints, for the report of a test that fails (support.program_logs).
    is_awaited: whether the test or a fixture has ended the program, or waited for its end."""

    title: str
    path: Path
    process: subprocess.Popen[Any] | Fork
    is_awaited: bool = False

    def is_open(self) -> bool:
        """Returns whether the program still runs."""
        return self.process.poll() is None

    def tail(self, lines: int) -> str:
        """Returns the last `lines` lines."""
        try:
            return "\n".join(self.path.read_text(errors="replace").splitlines()[-lines:])
        except OSError as error:
            return f"cannot be read: {error}"


LOGS: list[ProgramLog] = []
"""The programs that tests have started."""


class NotReady(AssertionError):
    """Raised if a program is not ready in time, or a condition does not become true in time."""


def eventually(
    condition: Callable[[], object],
    *,
    within_s: float = WITHIN_S,
    every_s: float = 0.05,
    what: str = "",
) -> object:
    """Calls `condition` again and again until it returns a true value, and returns this value.
    Raises NotReady if this takes longer than `within_s`."""
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise NotReady(f"not true within {within_s} s: {what or condition}")
        time.sleep(every_s)


def free_port() -> int:
    """Returns a free TCP port of the loopback interface for one program of this test run. This
    process reserves the port until the run ends, so no other program can get it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < min(hard, OPEN_FILES):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, OPEN_FILES), hard))
    return _reservation.take()


def accepts(port: int) -> bool:
    """Returns whether a program listens on this port of the loopback interface."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def answers(url: str) -> bool:
    """Returns whether a request for the URL gets an answer with status 200."""
    with (
        contextlib.suppress(OSError, urllib.error.HTTPError),
        urllib.request.urlopen(url, timeout=60) as answer,
    ):
        return bool(answer.status == 200)
    return False


def record(command: Sequence[str], log: Path, process: subprocess.Popen[Any] | Fork) -> ProgramLog:
    """Notes that a program has started that prints to the file `log`. Of several programs with one
    file, only the last is noted."""
    LOGS[:] = [each for each in LOGS if each.path != log]
    LOGS.append(ProgramLog(f"{log.name} of {' '.join(command)[:100]}", log, process))
    return LOGS[-1]


class Program:
    """One child process, whose output goes to a file."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        session: bool = False,
    ) -> None:
        """If `session` is true, the process starts in a new session. Then `kill_session` can find
        all processes that this process has started."""
        self.command, self.log = list(command), log
        self._env, self._cwd, self._session = env, cwd, session
        self._process: subprocess.Popen[bytes] | Fork | None = None
        self._noted: ProgramLog | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Program:
        assert not self.running
        if _is_ours(self.command) and fork_server.can_start(self._env):
            self._process = Fork(
                self.command[len(SKIDWAY) :],
                self.log,
                self.log,
                env=self._env,
                cwd=self._cwd,
                session=self._session,
            )
        else:
            self._process = self._executed()
        self._noted = record(self.command, self.log, self._process)
        return self

    def _executed(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as out:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(self._env or {})},
                cwd=self._cwd,
                preexec_fn=die_with_parent,
                start_new_session=self._session,
            )

    def wait_until(
        self, ready: Callable[[], object], within_s: float = WITHIN_S, every_s: float = 0.05
    ) -> Program:
        """Waits until `ready` returns a true value. If the program ends first, or this takes longer
        than `within_s`, raises NotReady with the end of the program's output."""
        deadline = time.monotonic() + within_s
        while not ready():
            if not self.running or time.monotonic() > deadline:
                state = "running" if self.running else f"ended with {self.returncode}"
                raise NotReady(
                    f"{' '.join(self.command)} is {state} and not ready:\n{self.output()[-4000:]}"
                )
            time.sleep(every_s)
        return self

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def returncode(self) -> int | None:
        return self._process.poll() if self._process else None

    def wait(self, within_s: float = WITHIN_S) -> int:
        """Waits until the program ends by itself, and returns its exit status. Raises NotReady if
        the program still runs after `within_s`."""
        assert self._process is not None
        assert self._noted is not None
        self._noted.is_awaited = True
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise NotReady(f"{self.command} still runs:\n{self.output()[-4000:]}") from None

    def signal(self, number: int) -> None:
        """Sends the signal, and after SIGSTOP waits until no thread runs any more."""
        if self.running and number == signal.SIGSTOP:
            suspend(self.pid)
        elif self.running:
            with contextlib.suppress(ProcessLookupError):  # the fork server has seen its end first
                os.kill(self.pid, number)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Suspends the program during the `with` block. Its connections stay open, but nobody gets
        an answer."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def stop(self, within_s: float = WITHIN_S) -> int:
        """Sends SIGTERM, waits, and returns the exit status. If the program does not stop, kills
        the program and raises NotReady."""
        if self._process is None or self._noted is None:
            return 0
        self._noted.is_awaited = True
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NotReady(f"{self.command} did not stop:\n{self.output()[-4000:]}") from None

    def kill(self) -> None:
        """Sends SIGKILL, which has the same effect as a crash of the process."""
        self.signal(signal.SIGKILL)
        if self._process is not None and self._noted is not None:
            self._noted.is_awaited = True
            self._process.wait()

    def kill_session(self) -> None:
        """Sends SIGKILL to all processes of the program's session: the program and the processes
        that it has started, even those with their own process groups. The `Program` must have been
        made with `session=True`."""
        assert self._session
        while alive := session_members(self.pid):
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.kill()


def suspend(pid: int) -> None:
    """Suspends a process with SIGSTOP. On a busy machine its threads run on for some time; waits
    until none does."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")

    def is_suspended() -> bool:
        try:
            stats = [(each / "stat").read_text() for each in tasks.iterdir()]
        except (FileNotFoundError, ProcessLookupError):
            return False  # a thread has just ended
        return all(each.rpartition(")")[2].split()[0] == "T" for each in stats)

    eventually(is_suspended, every_s=0.001, what=f"process {pid} to be suspended")


@contextlib.contextmanager
def running(
    program: Program, ready: Callable[[], object], within_s: float = WITHIN_S
) -> Iterator[Program]:
    """Runs the program during the `with` block, and kills it at the end, even after an error."""
    program.start()
    try:
        yield program.wait_until(ready, within_s)
    finally:
        if program.running:
            program.kill()


def skidway(*arguments: str) -> list[str]:
    """Returns the command line of `skidway ...` in the Python environment of the tests."""
    return [*SKIDWAY, *arguments]


def call_skidway(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command `skidway ...` in this process, which saves the start of another one, and
    returns its result."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(arguments)
    finally:
        lean_arrow.allow_pandas()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out.seek(0)
    return subprocess.CompletedProcess(list(arguments), status, out.read(), err.getvalue())


def run_skidway(
    *arguments: str,
    input_text: str | None = None,
    within_s: float = WITHIN_S,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs the command `skidway ...` to its end, and returns its result. Raises TimeoutExpired
    after `within_s`."""
    if fork_server.can_start(env):
        return _forked_to_its_end(arguments, input_text, within_s, env, cwd)
    return subprocess.run(
        skidway(*arguments),
        preexec_fn=die_with_parent,
        input=input_text,
        stdin=None if input_text is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=within_s,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        check=False,
    )


def _forked_to_its_end(
    arguments: Sequence[str],
    input_text: str | None,
    within_s: float,
    env: Mapping[str, str] | None,
    cwd: Path | None,
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as name:
        stdin, stdout, stderr = (Path(name) / each for each in ("in", "out", "err"))
        stdin.write_text(input_text or "")
        fork = Fork(arguments, stdout, stderr, stdin=stdin, env=env, cwd=cwd)
        try:
            status = fork.wait(within_s)
        except subprocess.TimeoutExpired:
            os.kill(fork.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(
            fork.args, status, stdout.read_text(), stderr.read_text()
        )


def _is_ours(command: Sequence[str]) -> bool:
    return tuple(command[: len(SKIDWAY)]) == SKIDWAY
