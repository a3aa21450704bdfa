"""Runs the programs of the torture. Kills and suspends them, changes their versions, and shifts
their clocks.

If a program ends by itself, a thread of this module starts the program again, as systemd would.
Before the start, the thread calls the function `answer` of the simulated operator, who may have to
change something first. The thread also counts the exit statuses.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from skidway.demo.programs import session_members
from support.processes import NotReady, Program

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
SHIFTED_CLOCK = Path(__file__).parent / "shifted_clock"
WATCH_S = 1.0
TAIL_BYTES = 8_000
GENTLY_S = 90.0

Answer = Callable[[str, str], None]
"""A function that is called after a program has ended. Its arguments are the program's name and the
end of the program's output."""


class Programs:
    """All programs by name. Knows which programs must not run now, and how each program is
    started."""

    def __init__(self, commands: Mapping[str, Sequence[str]], logs: Path, answer: Answer) -> None:
        self._commands = {name: list(command) for name, command in commands.items()}
        self._logs, self._answer = logs, answer
        self._started: dict[str, Program] = {}
        self._ahead_s: Counter[str] = Counter()
        self._trees: dict[str, Path] = {}
        self._once: dict[str, list[str]] = {}
        self._began_at: dict[str, int] = {}
        self._down: Counter[str] = Counter()
        self._lock = threading.RLock()
        self.answering = threading.Lock()
        """The watching thread holds this lock while it calls `answer` for a program that has ended,
        because the operator may then change the files of the program's state."""
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)
        self.ended: Counter[tuple[str, int]] = Counter()
        self.failed: BaseException | None = None

    def start(self, name: str, ready: Callable[[], object] | None = None) -> None:
        """Starts a program. With `ready`, waits until `ready` returns true."""
        with self._lock:
            self._start(name)
        if ready is not None:
            self._started[name].wait_until(ready)

    def watch(self) -> None:
        """Begins to watch the programs: from now on, a program that ends by itself is started
        again."""
        self._watch.start()

    def stop(self) -> None:
        """Kills all programs."""
        self._over.set()
        with self._lock:
            for program in self._started.values():
                program.kill_session()

    def down(self, name: str, *, gently: bool = False) -> Callable[[], None]:
        """Ends a program with SIGKILL, or with SIGTERM if `gently` is true. The returned function
        starts the program again, unless another call of `down` still keeps the program down."""
        with self._lock:
            self._down[name] += 1
            program = self._started[name]
        if gently:
            _signal(program, signal.SIGCONT)
            with suppress(NotReady):  # `stop` raises this after it has killed the program
                program.stop(GENTLY_S)
        program.kill_session()
        return partial(self._up, name)

    def freeze(self, name: str) -> Callable[[], None]:
        """Suspends a program (SIGSTOP) until the returned function is called."""
        with self._lock:
            program = self._started[name]
            if not self._down[name]:
                _signal(program, signal.SIGSTOP)
        return partial(_signal, program, signal.SIGCONT)

    def restart(self, name: str) -> None:
        """Kills a program, and starts it again."""
        self.down(name)()

    def shift(self, name: str, ahead_s: int) -> None:
        """Sets a program's clock ahead by `ahead_s` seconds, beginning with the program's next
        start."""
        self._ahead_s[name] = ahead_s

    def move(self, name: str, tree: Path | None) -> None:
        """Sets the source tree from which the program runs, beginning with its next start. None
        means the current source tree."""
        self._trees.pop(name, None)
        if tree is not None:
            self._trees[name] = tree

    def tree(self, name: str) -> Path | None:
        """The source tree from which the program is started. None means the current source tree."""
        return self._trees.get(name)

    def once(self, name: str, *options: str) -> None:
        """Adds these options to the program's command line, but only at its next start."""
        self._once[name] = list(options)

    def tail(self, name: str) -> str:
        """The end of the output that a program has written since its last start."""
        path = self._logs / f"{name}.json"
        with path.open("rb") as log:
            log.seek(max(self._began_at[name], path.stat().st_size - TAIL_BYTES))
            return log.read().decode(errors="replace")

    def _up(self, name: str) -> None:
        with self._lock:
            self._down[name] -= 1
            if not self._down[name]:
                self._start(name)

    def _start(self, name: str) -> None:
        known = self._started.get(name)
        if known is not None and known.running:
            return
        command = [*self._commands[name], *self._once.pop(name, [])]
        log = self._logs / f"{name}.json"
        self._began_at[name] = log.stat().st_size if log.exists() else 0
        self._started[name] = Program(
            command, log, env=self._environment(name),
            cwd=self._trees.get(name), session=True,
        ).start()  # fmt: skip

    def _environment(self, name: str) -> dict[str, str]:
        paths = [str(self._trees[name])] if name in self._trees else []
        env = {}
        if ahead_s := self._ahead_s[name]:
            paths.append(str(SHIFTED_CLOCK))
            env |= {
                "LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{ahead_s:+}s",
                "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
            }  # fmt: skip
        return env | {"PYTHONPATH": os.pathsep.join(filter(None, [*paths, *sys.path]))}

    def _watching(self) -> None:
        try:
            while not self._over.wait(WATCH_S):
                for name in self._found_dead():
                    with self.answering:
                        self._answer(name, self.tail(name))
                    with self._lock:
                        if not self._down[name] and not self._over.is_set():
                            self._start(name)
        except BaseException as error:
            self.failed = error
            raise

    def _found_dead(self) -> list[str]:
        with self._lock:
            dead = [
                name
                for name, program in self._started.items()
                if not self._down[name] and not program.running
            ]
            for name in dead:
                self.ended[name, self._started[name].returncode or 0] += 1
        return dead


def _signal(program: Program, number: int) -> None:
    """Sends a signal to a program and to all processes that it has started, such as ZooKeeper's
    JVM."""
    if program.running:
        for pid in session_members(program.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
