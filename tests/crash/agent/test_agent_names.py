"""A local user renames, removes and links files and directories at random below a directory that a
real agent reads."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.promises import promise
from support.randomness import Seeds

Make = Callable[..., AgentProcess]

UPSET_S = 20.0
NAMES = [b"a", b"b", b"c.log", b"\xff\xfe", b"\xc3.log", b"new\nline.log", b"d.log.gz", b"x" * 250]


class Upset:
    """A thread that renames, removes, links and writes at random below a directory. A round of
    actions without a pause is followed by a pause."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder, self._chance = os.fsencode(folder), chance
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self) -> Upset:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(self._chance.choice([0.001, 0.02, 0.3])):
            for _ in range(self._chance.choice([1, 20, 300])):
                try:
                    self._act()
                    self.count += 1
                except OSError:
                    continue  # nothing is there, or a directory is not empty

    def _path(self) -> bytes:
        names = [self._chance.choice(NAMES) for _ in range(self._chance.choice([1, 1, 2, 3]))]
        return b"/".join([self._folder, *names])

    def _act(self) -> None:
        one, other = self._path(), self._path()
        match self._chance.randrange(10):
            case 0 | 1:
                os.makedirs(one, exist_ok=True)
            case 2 | 3 | 4:
                os.rename(one, other)
            case 5 if os.path.isdir(one) and not os.path.islink(one):
                shutil.rmtree(one)
            case 6:
                os.symlink(self._chance.choice([other, b".", b"c.log", b"loop"]), one)
            case 5 | 7:
                os.unlink(one)
            case 8:
                os.mkfifo(one)
            case _:
                descriptor = os.open(one, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK)
                os.write(descriptor, b"noise\n")
                os.close(descriptor)


@pytest.mark.slow
@promise("2 ledger")
def test_no_name_or_timing_ends_the_agent(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker, seeds: Seeds
) -> None:
    """While a local user makes, renames, removes and links files and directories at random, with
    names of any bytes, the agent runs on, also through reloads, and `agent validate` ends as usual.
    Meanwhile and afterwards, every line of another log arrives once."""
    (seed,) = seeds(range(1))
    logs, upset = tmp_path / "steady", tmp_path / "upset"
    logs.mkdir()
    upset.mkdir()
    process = agent(
        {"topic": "steady", "paths": [str(logs / "*.log")]},
        {"topic": "upset", "paths": [f"{upset}/**", f"{upset}/*/*.log"], "optional": True},
    )
    process.start()
    deadline, written = time.monotonic() + UPSET_S, 0
    with (logs / "app.log").open("a") as log, Upset(upset, random.Random(seed)) as user:
        while time.monotonic() < deadline:
            for _ in range(100):
                written += 1
                log.write(f"{written}\n")
                log.flush()
                time.sleep(0.05)
                assert process.program.running, process.program.output()[-3000:]
            process.program.signal(signal.SIGHUP)
            tried = run_skidway("agent", "validate", "--json", "--config", str(process.config))
            assert tried.returncode in (0, 1), tried.stderr
        assert user.count > 1_000
    shutil.rmtree(upset)
    (logs / "last.log").write_text("last\n")
    wanted = sorted([*map(str, range(1, written + 1)), "last"])

    def is_there() -> bool:
        assert process.program.running, process.program.output()[-3000:]
        return sorted(line for line, _, _ in rows(own_broker.address, "steady")) == wanted

    eventually(is_there, every_s=1, what="every line of the steady log")
    assert "Traceback" not in process.program.output()
