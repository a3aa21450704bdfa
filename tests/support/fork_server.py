"""Starts `skidway ...` as a fork of a process that has already imported the programs' modules.

A run starts more than a thousand programs, and most of what a short-lived program costs are its
imports. A fork is a process of its own: a test can kill it, suspend it and wait for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path
from subprocess import TimeoutExpired

from skidway import cli

PR_SET_PDEATHSIG = 1
PRELOADED = "support.preloaded"
"""The module that the fork server imports first."""
_OF_THE_START = ("LD_", "PYTHON")
"""How the names of those environment variables begin that have their effect at a program's start,
so that they come too late for a fork."""
_MAIN = str(Path(cli.__file__).with_name("__main__.py"))
"""The first word of the arguments of `python -m skidway.cli`."""
_CONTEXT = get_context("forkserver")
_is_used = False


def pytest_configure() -> None:
    """Lets the tests use the fork server. Benchmarks and the torture do not use it."""
    global _is_used
    _is_used = True


def can_start(env: Mapping[str, str] | None) -> bool:
    """Returns whether a command with these further environment variables can be a fork."""
    return _is_used and not any(name.startswith(_OF_THE_START) for name in env or ())


class Fork:
    """One command of Skidway in a process of its own. Has the methods of `subprocess.Popen` that
    tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        stdout: Path,
        stderr: Path,
        *,
        stdin: Path = Path(os.devnull),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        session: bool = False,
    ) -> None:
        """Starts `skidway ARGUMENTS`. Appends its outputs to the files `stdout` and `stderr`. `env`
        are environment variables besides those of this process. If `session` is true, the process
        leads a new session."""
        self.args = [_MAIN, *arguments]
        files = (str(stdin), str(stdout), str(stderr))
        for each in (stdout, stderr):
            each.touch()  # a test may read it before the process runs
        environ = {**os.environ, **(env or {})}
        _run_server()
        self._process = _CONTEXT.Process(
            target=_run, args=(self.args, files, environ, str(cwd or Path.cwd()), session)
        )
        self._process.daemon = True  # the end of the test run ends the process
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Returns the exit status, or the negative number of the signal that ended the process, or
        None if the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process, and returns what `poll` returns then.

        Raises:
            TimeoutExpired: The process still runs after `timeout` seconds.
        """
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            raise TimeoutExpired(self.args, timeout or 0.0)
        return status


def die_with_parent() -> None:
    """Tells the kernel to kill this process when the process of the test run ends. A child process
    calls this function before it runs its program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _run_server() -> None:
    """Starts the fork server if it does not run. It finds modules where this process does."""
    usual = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    try:
        forkserver.set_forkserver_preload([PRELOADED])
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if usual is not None:
            os.environ["PYTHONPATH"] = usual


def _run(
    argv: list[str], files: tuple[str, ...], environ: dict[str, str], cwd: str, session: bool
) -> None:
    """Becomes the command. The fork server, which is the parent, ends with the test run."""
    die_with_parent()
    if session:
        os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for number, name in enumerate(files):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        opened = os.open(name, flags, 0o666)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open until the end
    sys.argv = argv
    sys.exit(cli.main(argv[1:]))
