"""Starts the demo's programs as child processes, waits for them, kills and stops them.

Each program runs in a session of its own. So a Ctrl-C at the terminal reaches only the demo, which
then stops the programs one by one. If the demo itself is killed, the kernel kills all its programs
(PR_SET_PDEATHSIG). When a program ends, the demo kills every process that still runs in the
program's session.

The handler of SIGINT and SIGTERM only notes the signal. Every wait checks for a noted
signal and raises Stopped, so that no program is left half started or half stopped.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from skidway.demo.site import Site
from skidway.errors import SkidwayError
from skidway.http_client import open_url

COMMANDS = {
    "zookeeper": ("zookeeper", "run"),
    "broker-dc1": ("broker", "run"),
    "broker-offline": ("broker", "run"),
    "registry": ("registry", "run"),
    "audit": ("audit", "run"),
    "count-dc1": ("audit", "count"),
    "count-offline": ("audit", "count"),
    "agent": ("agent", "run"),
}
"""The programs that run all the time, in the order in which they start."""
PR_SET_PDEATHSIG = 1
WITHIN_S = 600.0
"""A step may take at most this many seconds: the machine may be busy with other work."""
SAY_AGAIN_S = 30.0  # a wait that takes longer says, after each such time, what it waits for
STOP_WITHIN_S = 20.0
HEALTH_WITHIN_S = 2.0
LOOK_EVERY_S = 0.2
TAIL_CHARACTERS = 2000


class ProgramFailed(SkidwayError):
    """A program of the demo ended unexpectedly, or was not ready in time."""


class Stopped(Exception):
    """A signal asked the demo to end. The argument is the number of the signal."""


class Programs:
    """The running programs of a site. Only the main thread may use this object. `meanwhile` is
    called again and again during each wait. At the end of the `with` block, all programs are
    stopped, in the reverse order of their first starts: in another order, an agent could wait for a
    broker that has been stopped."""

    def __init__(self, site: Site, say: Callable[[str], None]) -> None:
        """say: prints what happened."""
        self.site = site
        self.meanwhile: Callable[[], None] = lambda: None
        self._say = say
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._order: list[str] = []
        self._signals: list[int] = []
        site.logs.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Programs:
        def note(number: int, _frame: FrameType | None) -> None:
            self._signals.append(number)

        self._before = {x: signal.signal(x, note) for x in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(self._order):
            self.stop(name)
        for number, before in self._before.items():
            signal.signal(number, before)

    def start(self, name: str) -> None:
        """Starts a program of `COMMANDS`, and waits until it is healthy."""
        self.begin(name, *COMMANDS[name], "--config", str(self.site.config(name)))
        self.until(lambda: healthy(self.site.health(name)), f"{name} to be healthy")

    def begin(self, name: str, *arguments: str, module: str = "skidway.cli") -> None:
        """Starts `python -m <module> <arguments>`, by default `skidway <arguments>`. Does not wait
        until the program is ready. Its output is appended to the file `log(name)`."""
        if name not in self._order:
            self._order.append(name)
        with self.log(name).open("ab") as out, self.errors(name).open("ab") as err:
            self._running[name] = _start(module, arguments, out.fileno(), err.fileno())

    def begin_load(self, *options: str) -> None:
        """Starts a load. The loader's log has only this load."""
        self.errors("loader").unlink(missing_ok=True)
        self.log("loader").unlink(missing_ok=True)
        config = str(self.site.config("loader"))
        self.begin("loader", "load", "run", "--json", "--config", config, *options)

    def load_ended(self) -> bool:
        """Returns whether the load that `begin_load` started has ended. Raises ProgramFailed if it
        failed."""
        process = self._running["loader"]
        if process.poll() is None:
            return False
        self.kill("loader")
        if process.returncode:
            raise self._failed("loader", process.returncode)
        report = json.loads(self.log("loader").read_text())
        self._say(f"a load has committed {report['rows']:,} rows in {report['seconds']:.1f} s")
        return True

    def load(self, *options: str) -> None:
        """Runs a load to its end. Raises ProgramFailed if it fails."""
        self.begin_load(*options)
        while not self.load_ended():
            self.pause()

    def ask(self, program: str, *command: str) -> tuple[int, dict[str, Any]]:
        """Runs `skidway <command> --json` with the configuration of a program. Returns the exit
        status and the JSON document that the command prints. Raises SkidwayError if it prints
        none."""
        self.check()
        arguments = [*command, "--json", "--config", str(self.site.config(program))]
        process = _start("skidway.cli", arguments, subprocess.PIPE, subprocess.PIPE)
        out, err = (said.decode(errors="replace") for said in process.communicate())
        self.check()
        if not out.startswith("{"):
            raise SkidwayError(f"skidway {' '.join(command[:2])} failed: {err.strip()}")
        return process.returncode, json.loads(out)

    def until(
        self, ready: Callable[[], bool], what: str, obstacle: Callable[[], str] = str
    ) -> None:
        """Calls `ready` again and again until it returns True. Raises ProgramFailed if that takes
        longer than `WITHIN_S`, or if a program ends meanwhile, and Stopped after a signal. Its
        sentences on a long wait end with the words that `obstacle` returns."""
        deadline = time.monotonic() + WITHIN_S
        say_at = time.monotonic() + SAY_AGAIN_S
        while not ready():
            now_s = time.monotonic()
            if now_s > deadline:
                raise ProgramFailed(
                    f"Waited {WITHIN_S:.0f} s in vain for {what}{obstacle()}; "
                    f"logs are in {self.site.logs}."
                )
            if now_s > say_at:
                self._say(f"still waiting for {what}{obstacle()}")
                say_at = now_s + SAY_AGAIN_S
            self.pause()

    def pause(self) -> None:
        """Sleeps for a moment. Raises the errors of `check`."""
        self.check()
        self.meanwhile()
        time.sleep(LOOK_EVERY_S)

    def check(self) -> None:
        """Raises ProgramFailed if a program has ended unexpectedly. Raises Stopped after a
        signal."""
        if self._signals:
            raise Stopped(self._signals[0])
        for name, process in self._running.items():
            if process.poll() is not None and not (name == "loader" and process.returncode == 0):
                raise self._failed(name, process.returncode)

    def kill(self, name: str) -> int:
        """Kills the program (kill -9) and every process that it started. Returns its process id,
        which is also the id of its session."""
        process = self._running.pop(name)
        process.kill()
        process.wait()
        while left := session_members(process.pid):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        return process.pid

    def stop(self, name: str) -> None:
        """Sends SIGTERM and waits; sends SIGKILL if the program does not end in time."""
        if process := self._running.get(name):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_WITHIN_S)
            self.kill(name)

    def log(self, name: str) -> Path:
        """Returns the path of a file with a program's standard output: the JSON lines of a program
        that runs all the time, or the report of a load."""
        return self.site.logs / f"{name}.{'out' if name == 'loader' else 'json'}"

    def errors(self, name: str) -> Path:
        """Returns the path of a file with a program's standard error."""
        return self.site.logs / f"{name}.stderr"

    def _failed(self, name: str, status: int) -> ProgramFailed:
        said = self.errors(name).read_text(errors="replace")[-TAIL_CHARACTERS:].strip()
        return ProgramFailed(f"{name} ended with status {status}: {said or self.log(name)}")


def session_members(session: int) -> list[int]:
    """Returns the ids of those processes of a session that are still alive."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, member = path.read_text().rpartition(")")[2].split()[:4]
            if int(member) == session and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def healthy(url: str) -> bool:
    """Returns whether a program's /health says that it works."""
    with contextlib.suppress(OSError), open_url(url, HEALTH_WITHIN_S) as answer:
        return bool(answer.status == 200)
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
