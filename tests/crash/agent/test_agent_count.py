"""`skidway agent count` stores a note of each line once, whatever happens to this program and to
the log files. A note has the hash of a line's text, and says where the line is in its file."""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skidway.audit.comparison.lines import hash_of
from skidway.audit.comparison.notes import Notes
from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.counting import CountProcess, hashes_of
from support.processes import NotReady, eventually, run_skidway

Make = Callable[..., AgentProcess]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log" / "app.log"


@pytest.fixture
def counting(tmp_path: Path, log: Path) -> Iterator[CountProcess]:
    made = CountProcess(tmp_path / "notes", str(log))
    yield made
    if made.program.running:
        made.program.kill()


def write(log: Path, written: list[str], count: int) -> None:
    new = [f"line {len(written) + at:07} {'x' * (at % 60)}" for at in range(count)]
    with log.open("a") as out:
        out.write("".join(f"{line}\n" for line in new))
    written += new


def test_kill_9_neither_loses_nor_doubles_a_noted_line(counting: CountProcess, log: Path) -> None:
    """Each line is noted once even if `skidway agent count` is killed again and again while it
    reads and while the log is rotated. If a rotated file is deleted after its lines were noted, the
    notes stay."""
    moments, written, deleted = random.Random(11), list[str](), 0
    counting.start().program.kill()  # what was rotated long before the first start stays unread
    for number in range(6):
        write(log, written, 40_000)
        counting.program.start()
        with contextlib.suppress(NotReady):
            eventually(lambda: False, within_s=moments.uniform(0.2, 0.9))
        counting.program.kill()
        if number % 2:
            log.rename(log.with_name(f"app.log.{number}"))
    counting.start()
    counting.wait_noted(len(written))
    for each in log.parent.glob("app.log.*"):
        each.unlink()
        deleted += 1
    write(log, written, 10)
    counting.wait_noted(len(written))
    counted = Notes(counting.directory).read(0, 0)
    noted = [hash_ for each in counted.files for hash_ in each.hashes]
    assert sorted(noted) == sorted(hashes_of(*written).elements())
    assert (deleted, len(counted.files)) == (3, 4)
    assert counting.program.stop() == 0


def test_one_directory_belongs_to_one_agent(counting: CountProcess, log: Path) -> None:
    """If one `agent count` uses a directory, a second one with the same directory ends with status
    65 and says which process uses the directory. The first one continues."""
    written: list[str] = []
    write(log, written, 10)
    counting.start()
    again = run_skidway("agent", "count", "--files", str(log), "--into", str(counting.directory))
    assert (again.returncode, str(counting.program.pid) in again.stderr) == (65, True)
    counting.wait_noted(10)


def test_wrong_options_are_refused(tmp_path: Path) -> None:
    """A relative pattern, and a directory that has an agent's state, are refused with one sentence
    and status 2."""
    (tmp_path / "agent.db").touch()
    for pattern, said in (("app.log", "must be absolute"), ("/log/app.log", "state of an agent")):
        done = run_skidway("agent", "count", "--files", pattern, "--into", str(tmp_path))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_rotations_as_logrotate_makes_them(counting: CountProcess, log: Path) -> None:
    """Each line of a log is noted once if rotation renames and compresses the log, or copies and
    truncates it. This holds while `agent count` runs and while it is down. `text_at` still finds
    the text of a noted line after the line's file was compressed."""
    written: list[str] = []
    for number in range(4):
        counting.start()
        write(log, written, 3_000)
        counting.wait_noted(len(written))
        old = log.with_name(f"app.log.{number}")
        if number in (1, 3):  # these rotations happen while `agent count` is down
            counting.program.kill()
        if number < 2:
            if number:
                write(log, written, 3_000)
            log.rename(old)
            with gzip.open(f"{old}.gz", "wb") as packed:
                packed.write(old.read_bytes())
            old.unlink()
        else:
            shutil.copyfile(log, old)
            os.truncate(log, 0)
        if counting.program.running:
            counting.program.kill()
    counting.start()
    write(log, written, 10)
    counting.wait_noted(len(written))
    counted = Notes(counting.directory).read(0, 0)
    assert Counter(x for each in counted.files for x in each.hashes) == hashes_of(*written)
    packed_file = next(each for each in counted.files if each.path.endswith(".gz"))
    first, length = packed_file.begins[-1], packed_file.lengths[-1]
    assert hash_of(packed_file.text_at(first, length)) == packed_file.hashes[-1]


def test_more_files_than_the_process_may_open_are_noted(tmp_path: Path, log: Path) -> None:
    """If there are more log files than a process may have open, `agent count` closes some files to
    open others, and notes the lines of all files."""
    for number in range(200):
        (log.parent / f"app-{number}.log").write_text(f"line of {number}\n" * 5)
    counting = CountProcess(tmp_path / "notes", f"{log.parent}/*.log")
    counting.program.command[:0] = ["prlimit", "--nofile=64:64"]
    try:
        counting.start()
        counting.wait_noted(1_000)
    finally:
        counting.program.kill()


def test_an_agent_beside_it_is_not_disturbed(
    agent: Make, counting: CountProcess, log: Path, own_broker: SkidwayBroker
) -> None:
    """If `agent run` and `agent count` read the same log at the same time, each line is sent once
    and noted once."""
    written: list[str] = []
    write(log, written, 2_000)
    sending = agent({"topic": "logs", "paths": [str(log)]})
    sending.start()
    counting.start()
    write(log, written, 2_000)
    log.rename(log.with_name("app.log.1"))
    write(log, written, 2_000)
    counting.wait_noted(len(written))
    sizes = {path: path.stat().st_size for path in log.parent.iterdir()}
    eventually(lambda: sending.settled(sizes), every_s=0.3, what="all settled")
    assert sorted(line for line, *_ in rows(own_broker.address, "logs")) == written
