"""A real agent reads logs on a real file system. The logs are linked, rotated, deleted, copied and
compressed as on real hosts."""

from __future__ import annotations

import collections
import gzip
import itertools
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.promises import promise

Make = Callable[..., AgentProcess]


class Writer:
    """Writes numbered lines to a file."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def write(self, path: Path, count: int, first: str = "") -> None:
        lines = [f"line {len(self.written) + number}" for number in range(count)]
        self.written += lines
        with path.open("a") as out:
            out.write(first + "".join(f"{line}\n" for line in lines))


def source(pattern: Path) -> dict[str, Any]:
    return {"topic": "logs", "paths": [str(pattern)]}


def arrived(broker: SkidwayBroker) -> collections.Counter[str]:
    """Returns how often each line is in the topic `logs`. A record that the agent sent twice counts
    only once."""
    found = {(file, first, line) for line, file, first in rows(broker.address, "logs")}
    return collections.Counter(line for _, _, line in found)


def all_once(broker: SkidwayBroker, writer: Writer) -> None:
    eventually(lambda: set(writer.written) <= arrived(broker).keys(), what="each line arrives")
    assert set(arrived(broker).values()) == {1}


@promise("1 links")
@pytest.mark.quick
@pytest.mark.parametrize("how", ["running", "killed"])
def test_links_as_kubelet_lays_them_out(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker, how: str
) -> None:
    """If containers/web.log is a link to pods/0.log, the agent finds the rotated files of the log
    in the directory pods."""
    (tmp_path / "containers").mkdir()
    (tmp_path / "pods").mkdir()
    target, writer = tmp_path / "pods" / "0.log", Writer()
    writer.write(target, 100)
    (tmp_path / "containers" / "web.log").symlink_to(target)
    process = agent(source(tmp_path / "containers" / "*.log")).start()
    all_once(own_broker, writer)
    if how == "killed":
        process.program.kill()
    for number in range(3):
        writer.write(target, 100)
        target.rename(f"{target}.20261121-07000{number}")
        writer.write(target, 100)
    if how == "killed":
        process.start()
    all_once(own_broker, writer)
    assert "set_apart" not in process.program.output()
    assert "generations_unseen" not in process.program.output()


@pytest.mark.parametrize("name", ["app-11-02-2026-{}.log", "app.log.bak{}", "closed-app-{}"])
def test_rotations_to_any_name_while_the_agent_is_down(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker, name: str
) -> None:
    """A log is rotated twice while the agent is down. When the agent runs again, it reads the rest
    of the file that it had begun to read. It also reads the other rotated file, which was written
    while the agent was down."""
    (tmp_path / "log").mkdir()
    log, writer = tmp_path / "log" / "app.log", Writer()
    writer.write(log, 100)
    process = agent(source(log)).start()
    all_once(own_broker, writer)
    process.program.kill()
    for number in (1, 2):
        writer.write(log, 100)
        log.rename(tmp_path / "log" / name.format(number))
    writer.write(log, 100)
    process.start()
    all_once(own_broker, writer)
    assert "set_apart" not in process.program.output()


def test_a_log_that_is_deleted_while_the_broker_is_away_is_accounted_for(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker
) -> None:
    """If a log with undelivered lines is deleted, the agent still has it open. `agent state show`
    counts all its bytes, and the lines arrive when the broker is back."""
    (tmp_path / "log").mkdir()
    first, second, writer = tmp_path / "log/a.log", tmp_path / "log/b.log", Writer()
    writer.write(first, 100)
    process = agent(source(tmp_path / "log/*.log"))
    process.settings["close.rotated.ms"] = 600_000
    process.start()
    all_once(own_broker, writer)
    own_broker.end()
    writer.write(second, 100)
    size = second.stat().st_size
    eventually(lambda: len(process.ledger()) == 2, what="the agent knows the second log")
    second.unlink()
    file = process.ledger()[1]
    assert file["is_held"]
    assert (file["bytes"], file["acknowledged"], file["pending"]) == (size, 0, size)
    own_broker.start()
    all_once(own_broker, writer)


@promise("1 same file")
def test_an_inode_that_is_taken_again(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker
) -> None:
    """When a job's log is deleted, the log of the next job may get the same inode, as it does on
    ext4. Even if both logs also have the same first line, every line of both logs arrives."""
    (tmp_path / "log").mkdir()
    run, writer = tmp_path / "log" / "run.log", Writer()
    beginning = "Starting job\n"
    writer.write(run, 1, beginning)
    process = agent(source(tmp_path / "log" / "*.log")).start()
    all_lines = lambda: set(writer.written) <= arrived(own_broker).keys()  # noqa: E731
    eventually(all_lines, what="the first job")
    for number in range(3):
        process.program.kill()
        run.unlink()
        run = tmp_path / "log" / f"run{number}.log"
        writer.write(run, 3, beginning)
        process.start()
        eventually(all_lines, what="the next job")
    assert arrived(own_broker)["Starting job"] == 4


@pytest.mark.parametrize("keeps_older", [True, False])
def test_a_copy_is_no_generation(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker, keeps_older: bool
) -> None:
    """If a log is rotated by copying and truncating it, and the agent's pattern also matches the
    copies, each line still arrives only once, even if each copy is written over the older one. This
    also holds if the agent is killed before the rotation, as long as it has no unacknowledged bytes
    then."""
    (tmp_path / "log").mkdir()
    log, writer = tmp_path / "log" / "app.log", Writer()
    writer.write(log, 500)
    process = agent(source(tmp_path / "log" / "app.log*")).start()
    all_once(own_broker, writer)
    for how in ("running", "killed", "running"):
        if how == "killed":
            eventually(lambda: not process.has_pending(), what="all bytes are acknowledged")
            process.program.kill()
        writer.write(log, 500)
        if keeps_older and (tmp_path / "log" / "app.log.1").exists():
            (tmp_path / "log" / "app.log.1").rename(tmp_path / "log" / "app.log.2")
        shutil.copy(log, tmp_path / "log" / "app.log.1")
        with log.open("r+") as out:
            out.truncate()
        writer.write(log, 10)
        if how == "killed":
            process.start()
        all_once(own_broker, writer)


COMPRESSED_BY: dict[str, Callable[[Path], Any]] = {
    "gzip": lambda path: subprocess.run(["gzip", str(path)], check=True),
    "a program that keeps no times": lambda path: _compress(path, ".gz", gzip.compress),
    "zstd": lambda path: _compress(path, ".zst", zstandard.compress),
}


def _compress(path: Path, ending: str, how: Callable[[bytes], bytes]) -> None:
    Path(f"{path}{ending}").write_bytes(how(path.read_bytes()))
    path.unlink()


@promise("1 compression")
@pytest.mark.parametrize(
    ("by", "pattern"),
    [
        *itertools.product(sorted(COMPRESSED_BY.keys() - {"zstd"}), ["app.log", "app.log*"]),
        ("zstd", "app.log"),
        pytest.param("zstd", "app.log*", marks=pytest.mark.quick),
    ],
)
def test_generations_that_were_compressed_while_the_agent_was_down(
    tmp_path: Path, agent: Make, own_broker: SkidwayBroker, by: str, pattern: str
) -> None:
    """While the agent is down, a log is rotated several times, and its rotated files are
    compressed. When the agent runs again, it reads the rest of the file that it had begun to read,
    and all files that were written in the meantime. Each line arrives once, and the agent declares
    no loss."""
    (tmp_path / "log").mkdir()
    log, writer = tmp_path / "log" / "app.log", Writer()
    writer.write(log, 500)
    process = agent(source(tmp_path / "log" / pattern)).start()
    all_once(own_broker, writer)
    process.program.kill()
    for number in range(3):
        writer.write(log, 500)
        generation = log.rename(tmp_path / "log" / f"app.log.2026112{number}")
        COMPRESSED_BY[by](generation)
    writer.write(log, 500)
    process.start()
    all_once(own_broker, writer)
    process.program.kill()
    process.start()
    writer.write(log, 1)
    all_once(own_broker, writer)
    assert "set_apart" not in process.program.output()
    assert "generations_unseen" not in process.program.output()
