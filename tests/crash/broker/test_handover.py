"""A partition can be moved to another broker or to another disk, with the commands `hand-over` and
`take-over`. If one of these commands is killed at any moment, no record is lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from skidway.broker.coordination import documents, reassignment
from skidway.broker.handover.hand_over import HandOver
from skidway.broker.handover.take_over import TakeOver
from skidway.broker.log import checkpoints
from skidway.broker.log.config import LogConfig
from skidway.broker.log.log_directory import LogDirectory, open_directories
from skidway.coordination import Coordinator
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from skidway.kafka.types import TopicPartition
from support.batches import sized, stored
from support.brokers import SkidwayBroker
from support.processes import Program, eventually, run_skidway
from support.raw_client import RawClient

LOGS = TopicPartition("logs", 0)
BATCHES = 10
DELETED = 3
STATE_PATH = documents.state_path("logs", 0)


@dataclass
class Pair:
    """Two brokers of one cluster. The partition logs-0 is moved from `old` to `new`. The broker
    `new` also has the partition logs-1."""

    old: SkidwayBroker
    new: SkidwayBroker

    def start(self) -> None:
        for each in (self.old, self.new):
            each.start()

    def end(self) -> None:
        for each in (self.old, self.new):
            each.end()


@pytest.fixture
def pair(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    """Two brokers of one cluster that were stopped cleanly. Ten batches were produced to the
    partition logs-0, and the first three of these batches were deleted."""
    brokers = []
    for number in (1, 2):
        folder = tmp_path / f"broker{number}"
        folder.mkdir()
        broker = SkidwayBroker(folder, zookeeper, **{"log_segment.bytes": 4096})
        broker.settings["broker.id"] = number
        brokers.append(broker)
    found = Pair(*brokers)
    try:
        found.start()
        fill(found)
        for each in brokers:
            assert each.program.stop() == 0
        yield found
    finally:
        found.end()


def fill(pair: Pair) -> None:
    with RawClient(pair.old.port) as client:
        assignments = tuple(
            CreatableReplicaAssignment(partition_index=at, broker_ids=(at + 1,)) for at in (0, 1)
        )
        wanted = CreatableTopic(
            name="logs", num_partitions=-1, replication_factor=-1, assignments=assignments
        )

        def created() -> bool:  # can fail until the brokers know each other
            answer = client.ask(CreateTopicsRequest(topics=(wanted,)), 5, CreateTopicsResponse)
            assert isinstance(answer, CreateTopicsResponse)
            code = answer.topics[0].error_code
            return code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

        eventually(created)
        for number in range(BATCHES):
            assert client.produce("logs", sized(500)).base_offset == number
        partition = DeleteRecordsPartition(partition_index=0, offset=DELETED)
        asked = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name="logs", partitions=(partition,)),), timeout_ms=10_000
        )
        answer = client.ask(asked, 1, DeleteRecordsResponse)
        assert isinstance(answer, DeleteRecordsResponse)
        assert answer.topics[0].partitions[0].error_code == 0


def options(broker: SkidwayBroker) -> list[str]:
    """Returns the options with which `skidway broker hand-over`, `take-over` and `run` are called
    for this broker."""
    words = broker.command()
    return words[words.index("--set") :]


def moved(broker: SkidwayBroker) -> Path:
    return broker.logs / "logs-0.moved"


def hand_over(broker: SkidwayBroker) -> None:
    done = run_skidway("broker", "hand-over", "logs-0", *options(broker))
    assert done.returncode == 0, done.stderr
    assert f"offsets {DELETED} to {BATCHES}" in done.stdout


def take_over(broker: SkidwayBroker) -> None:
    done = run_skidway("broker", "take-over", str(moved(broker)), *options(broker))
    assert done.returncode == 0, done.stderr


def refused(broker: SkidwayBroker, *words: str, status: int = 65) -> str:
    done = run_skidway("broker", *words, *options(broker))
    assert done.returncode == status, done.stdout + done.stderr
    return done.stderr


def test_a_partition_goes_to_another_broker(pair: Pair) -> None:
    """A partition that is moved to another broker keeps its records, offsets and log start offset.
    Between hand-over and take-over, no broker serves the partition. After the new broker has taken
    over the partition, the old broker cannot take over the copy that it still has."""
    before = stored(pair.old.logs / "logs-0")
    hand_over(pair.old)
    hand_over(pair.old)  # repeating the command is harmless
    pair.old.program = Program(pair.old.command(), pair.old.folder / "again.out")
    pair.old.program.start().wait_until(pair.old.up)
    said = pair.old.health()["stopped_partitions"]["logs-0"]
    assert said.startswith(f"logs-0 was handed over and lies in {moved(pair.old)}; take it over")
    with RawClient(pair.old.port) as client:
        assert client.produce("logs", sized(500)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    shutil.copytree(moved(pair.old), moved(pair.new), copy_function=shutil.copyfile)
    take_over(pair.new)
    pair.new.start()
    with RawClient(pair.new.port) as client:
        first = client.fetch("logs", DELETED)
        assert (first.log_start_offset, first.high_watermark) == (DELETED, BATCHES)
        assert client.fetch("logs", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert client.produce("logs", sized(500)).base_offset == BATCHES
    assert stored(pair.new.logs / "logs-0")[:-1] == before
    eventually(lambda: pair.old.health()["ok"], what="the old broker has nothing to do with it")
    assert pair.old.program.stop() == 0
    said = refused(pair.old, "take-over", str(moved(pair.old)))
    assert "this copy is older than what is served" in said
    pair.old.start()
    assert pair.old.health()["stopped_partitions"] == {}


def test_the_old_broker_takes_its_own_back(pair: Pair) -> None:
    """After a hand-over, the old broker itself can take over the partition. The new broker can then
    no longer take over the copy that was made for it."""
    hand_over(pair.old)
    shutil.copytree(moved(pair.old), moved(pair.new))
    take_over(pair.old)
    pair.old.start()
    with RawClient(pair.old.port) as client:
        assert client.produce("logs", sized(500)).base_offset == BATCHES
    said = refused(pair.new, "take-over", str(moved(pair.new)))
    assert "led by broker 1 in leader epoch 1" in said


def test_a_partition_goes_to_another_disk(pair: Pair) -> None:
    """A partition can be moved to another disk of the same broker with hand-over, `mv` and
    take-over, in this order."""
    other = pair.old.folder / "other"
    other.mkdir()
    before = stored(pair.old.logs / "logs-0")
    hand_over(pair.old)
    pair.old.settings["log.dirs"] = f"[{pair.old.logs}, {other}]"
    shutil.move(moved(pair.old), other)
    path = other / "logs-0.moved"
    done = run_skidway("broker", "take-over", str(path), *options(pair.old))
    assert done.returncode == 0, done.stderr
    pair.old.start()
    with RawClient(pair.old.port) as client:
        assert client.fetch("logs", DELETED).log_start_offset == DELETED
    assert stored(other / "logs-0") == before


def test_what_may_not_be_moved_is_refused(pair: Pair) -> None:
    """hand-over fails if the broker runs, or if the broker does not have the partition. take-over
    fails if the copy is changed or incomplete, or lies outside of log.dirs."""
    pair.old.start()
    assert "in use by process" in refused(pair.old, "hand-over", "logs-0")
    assert pair.old.program.stop() == 0
    assert "has no directory logs-1" in refused(pair.old, "hand-over", "logs-1")
    hand_over(pair.old)
    assert "not in one of this broker's log.dirs" in refused(
        pair.new, "take-over", str(moved(pair.old))
    )
    shutil.copytree(moved(pair.old), moved(pair.new))
    segment = moved(pair.new) / "00000000000000000000.log"
    data = segment.read_bytes()
    segment.write_bytes(data[:-1] + b"?")
    assert "is not the file that was handed over" in refused(
        pair.new, "take-over", str(moved(pair.new))
    )
    segment.unlink()
    assert "is missing" in refused(pair.new, "take-over", str(moved(pair.new)))
    (moved(pair.new) / "waybill.json").unlink()
    assert "hand the partition over first" in refused(pair.new, "take-over", str(moved(pair.new)))


def test_a_damaged_log_is_not_handed_over(pair: Pair) -> None:
    """If a log is damaged, hand-over prints the file and the position of the damage, and does not
    move the partition."""
    segment = min((pair.old.logs / "logs-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    said = refused(pair.old, "hand-over", "logs-0", status=1)
    assert f"{segment} is damaged at position" in said
    assert not moved(pair.old).exists()


class Moving:
    """Examines the files and ZooKeeper nodes that a killed command has left behind, and runs the
    command again, in the test's own process."""

    def __init__(self, pair: Pair, coordinator: Coordinator) -> None:
        self._homes = {1: pair.old.logs, 2: pair.new.logs}
        self._coordinator = coordinator
        self._nodes = {path: self._get(path) for path in (documents.topic_path("logs"), STATE_PATH)}
        self._kept: dict[Path, Path] = {}

    def keep(self, folder: Path) -> None:
        """Copies the current log directories of both brokers. `reset` restores these copies."""
        self._kept = {
            home: shutil.copytree(home, folder / str(number))
            for number, home in self._homes.items()
        }

    def reset(self) -> None:
        for home, copy in self._kept.items():
            shutil.rmtree(home)
            shutil.copytree(copy, home)
        for path, content in self._nodes.items():
            self._coordinator.client.set(path, content)

    def served(self) -> list[int]:
        """Returns the numbers of the brokers that would serve the partition logs-0 according to
        their directories and to ZooKeeper."""
        now = reassignment.read(self._coordinator, LOGS)
        assert now.replicas[0] == (now.state.leader,), "assigned to one, led by another"
        return [
            number
            for number, home in self._homes.items()
            if (home / "logs-0").exists() and now.state.leader == number
        ]

    def hand_over(self) -> None:
        with self._locked(1) as directories:
            worker = HandOver(1, LogConfig(), directories, self._coordinator, 0)
            _, bill = worker.hand_over(LOGS, _quiet)
        assert (bill.log_start_offset, bill.log_end_offset) == (DELETED, BATCHES)

    def take_over(self) -> None:
        with self._locked(2) as directories:
            worker = TakeOver(2, directories, self._coordinator)
            worker.take_over(self._homes[2] / "logs-0.moved", _quiet)

    @contextlib.contextmanager
    def _locked(self, number: int) -> Iterator[list[LogDirectory]]:
        directories = open_directories([self._homes[number]])
        try:
            yield directories
        finally:
            directories[0].lock.release()

    def _get(self, path: str) -> bytes:
        found = self._coordinator.get(path)
        assert found is not None
        return found.data


def _quiet(_sentence: str) -> None:
    """Receives a progress message and ignores it."""


def test_a_hand_over_killed_at_any_moment(pair: Pair, tmp_path: Path) -> None:
    """The test runs hand-over many times, and each time kills it at a different change of a file.
    Afterwards, either the old broker or no broker serves the partition, and no record is lost. When
    hand-over is run again, it succeeds."""
    before = stored(pair.old.logs / "logs-0")
    command = ("broker", "hand-over", "logs-0", *options(pair.old))
    with Coordinator(zookeeper_of(pair), session_timeout_s=20) as coordinator:
        moving = Moving(pair, coordinator)
        moving.keep(tmp_path / "kept")
        step = 0
        while killed_at(step := step + 1, tmp_path, *command):
            assert moving.served() == ([] if moved(pair.old).exists() else [1])
            moving.hand_over()
            assert moving.served() == []
            assert stored(moved(pair.old)) == before
            moving.reset()
    assert step > 4


def test_a_take_over_killed_at_any_moment(pair: Pair, tmp_path: Path) -> None:
    """The test runs take-over many times, and each time kills it at a different change of a file.
    Afterwards, either the new broker or no broker serves the partition, and no record is lost. If
    take-over was killed before its end, it succeeds when it is run again."""
    hand_over(pair.old)
    shutil.copytree(moved(pair.old), moved(pair.new))
    before = stored(moved(pair.old))
    command = ("broker", "take-over", str(moved(pair.new)), *options(pair.new))
    with Coordinator(zookeeper_of(pair), session_timeout_s=20) as coordinator:
        moving = Moving(pair, coordinator)
        moving.keep(tmp_path / "kept")
        step = 0
        while killed_at(step := step + 1, tmp_path, *command):
            assert moving.served() == ([2] if (pair.new.logs / "logs-0").exists() else [])
            if list(pair.new.logs.glob("logs-0*/waybill.json")):
                moving.take_over()
            assert moving.served() == [2]
            assert not (pair.new.logs / "logs-0" / "waybill.json").exists()
            assert stored(pair.new.logs / "logs-0") == before
            starts = checkpoints.read_offsets(pair.new.logs / "log-start-offset-checkpoint")
            assert starts[LOGS] == DELETED
            moving.reset()
    assert step > 4
    pair.start()
    with RawClient(pair.new.port) as raw:
        assert raw.produce("logs", sized(500)).base_offset == BATCHES


def zookeeper_of(pair: Pair) -> str:
    return str(pair.old.settings["zookeeper.connect"])


PROGRAM = """
import os, signal, sys
left, folder = int(sys.argv.pop(1)), sys.argv.pop(1)
EVENTS = {"os.rename", "os.remove", "os.truncate", "os.utime", "os.mkdir", "open"}
WRITING = os.O_WRONLY | os.O_RDWR

def hook(event, args):
    global left
    if event not in EVENTS or (event == "open" and not args[2] & WRITING):
        return
    path = str(args[0])
    if not path.startswith(folder) or path.endswith(".lock"):
        return
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

from skidway.cli.commands import main
sys.argv[0] = "skidway"
import skidway.broker.handover.cli
sys.addaudithook(hook)
sys.exit(main())
"""


def killed_at(step: int, folder: Path, *arguments: str) -> bool:
    """Runs the command, and kills it just before its operation number `step` on the files of the
    folder: opening one for writing, renaming, removing, truncating, setting times, making a
    directory. Before each operation, Python calls an audit hook (PEP 578) in the command's process.
    Returns True if the command was killed, and False if it ended with fewer operations."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(step), str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0
