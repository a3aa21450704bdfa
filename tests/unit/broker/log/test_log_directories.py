"""Tests a broker with several log directories: which directory a new partition gets, and what
happens if a directory fails."""

from __future__ import annotations

import errno
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from skidway.broker.log import checkpoints, log_directory, names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager, NewLog
from skidway.errors import SkidwayError, StateRefused
from skidway.kafka.types import TopicPartition
from support.batches import append, batch, flush
from support.clock import ManualClock


class Later:
    """A disk worker that runs its jobs only when the test tells it to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], None], Callable[[WorkOutcome], None]]] = []

    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        self.jobs.append((work, done))

    def run(self) -> None:
        """Runs all jobs, including jobs that other jobs add."""
        while self.jobs:
            self.step()

    def step(self) -> None:
        """Runs the job that was submitted first."""
        work, done = self.jobs.pop(0)
        done(timed(work))


class World:
    def __init__(self, *paths: Path) -> None:
        self.worker = Later()
        self.logs = LogManager(ManualClock(), self.worker)
        self.logs.open_directories(paths)
        self.results: list[StorageFailed | None] = []

    def create(self, topic: str, count: int) -> None:
        topic_id = uuid.uuid4()
        wanted = [NewLog(TopicPartition(topic, n), topic_id, LogConfig()) for n in range(count)]
        self.logs.create(wanted, self.results.append)
        self.worker.run()

    def home(self, topic: str, partition: int) -> str:
        found = self.logs.home_of(TopicPartition(topic, partition))
        assert found is not None
        return found.path.name


def test_partitions_go_to_the_directory_with_the_fewest(tmp_path: Path) -> None:
    """A new partition goes to the log directory that has the fewest partitions of all topics
    together."""
    (tmp_path / "a").mkdir()
    world = World(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    world.create("first", 2)
    assert [world.home("first", n) for n in (0, 1)] == ["a", "b"]
    world.create("second", 4)
    assert [world.home("second", n) for n in range(4)] == ["c", "a", "b", "c"]
    assert world.results == [None, None]
    assert (tmp_path / "c" / "second-0" / names.PARTITION_METADATA).exists()


def test_each_has_a_lock_and_marks_of_its_own(tmp_path: Path) -> None:
    """Each log directory has its own lock and its own directory id. A broker refuses a directory
    that belongs to another broker."""
    paths = (tmp_path / "a", tmp_path / "b")
    world = World(*paths)
    world.logs.claim(1, "cluster")
    ids = {checkpoints.read_meta(path).directory_id for path in paths}  # type: ignore[union-attr]
    assert len(ids) == 2
    with pytest.raises(StateRefused, match="in use"):
        World(tmp_path / "b", tmp_path / "c")
    world.logs.release()
    with pytest.raises(StateRefused, match="belongs to broker 1"):
        World(*paths).logs.claim(2, "cluster")


def test_one_that_cannot_be_used_is_offline_from_the_start(tmp_path: Path) -> None:
    """If a log directory cannot be used when the broker starts, it is offline from the start, and
    the other directories work. If no directory can be used, the broker does not start."""
    (tmp_path / "file").touch()
    with pytest.raises(SkidwayError, match="file"):
        World(tmp_path / "file")
    world = World(tmp_path / "file", tmp_path / "good")
    assert world.logs.claim(1, "cluster")
    world.create("logs", 2)
    assert [world.home("logs", n) for n in (0, 1)] == ["good", "good"]
    assert "file" in world.logs.offline_words()


def test_one_fails_and_the_others_go_on(tmp_path: Path) -> None:
    """When a log directory fails, its partitions stop, and the broker stores the failure as the
    reason. New partitions go to the other directories. When the broker stops, it marks the stop as
    clean in the other directories, but not in the failed one."""
    world = World(tmp_path / "a", tmp_path / "b")
    world.create("logs", 4)
    failure = StorageFailed("read", tmp_path / "a" / "logs-0", OSError(errno.EIO, "broken"))
    gone = world.logs.fail(failure)
    assert sorted(tp.partition for tp in gone) == [0, 2]
    assert "broken" in world.logs.stopped[TopicPartition("logs", 0)]
    world.create("more", 2)
    assert {world.home("more", n) for n in (0, 1)} == {"b"}
    world.logs.close(7)
    assert not (tmp_path / "a" / names.CLEAN_SHUTDOWN).exists()
    assert (tmp_path / "b" / names.CLEAN_SHUTDOWN).exists()


def test_nothing_can_be_created_when_all_are_offline(tmp_path: Path) -> None:
    """When all log directories are offline, the broker does not try to create a new partition. The
    request to create the partition fails with the error of one of the directories."""
    world = World(tmp_path / "a")
    world.logs.fail(StorageFailed("read", tmp_path / "a", OSError(errno.EIO, "broken")))
    world.create("logs", 1)
    (result,) = world.results
    assert result is not None
    assert result.errno == errno.EIO


def test_a_full_disk_keeps_nobody_elses_checkpoint_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk of a log directory is full, the checkpoint files of the other directories are
    written nevertheless. The full directory stays online, and `LogManager.checkpoint` reports that
    its checkpoint files were not written. When the disk has space again, they are written."""
    world = World(tmp_path / "a", tmp_path / "b")
    world.create("logs", 2)
    write = log_directory.write_checkpoints

    def full(directory: Path, *offsets: dict[TopicPartition, int]) -> None:
        if directory.name == "a":
            raise OSError(errno.ENOSPC, "no space")
        write(directory, *offsets)

    told: list[frozenset[Path]] = []
    with monkeypatch.context() as patch:
        patch.setattr("skidway.broker.log.checkpoint_writer.write_checkpoints", full)
        world.logs.checkpoint(told.append)
        world.worker.run()
    assert told == [{tmp_path / "a"}]
    assert (tmp_path / "b" / names.LOG_START_OFFSETS).exists()
    assert not (tmp_path / "a" / names.LOG_START_OFFSETS).exists()
    assert all(each.offline is None for each in world.logs.directories)
    world.logs.checkpoint(told.append)
    world.worker.run()
    assert told[1:] == [frozenset()]
    assert (tmp_path / "a" / names.LOG_START_OFFSETS).exists()
    assert (tmp_path / "a" / names.RECOVERY_POINTS).exists()


def test_a_checkpoint_that_was_asked_for_is_newer_than_the_question(tmp_path: Path) -> None:
    """When `LogManager.checkpoint` reports that the checkpoint files are written, they contain the
    offsets of the time of the call, or newer ones. If the files are being written at the time of
    the call, they are written once more."""
    world = World(tmp_path / "a")
    world.create("logs", 1)
    log = world.logs.logs[TopicPartition("logs", 0)]
    append(log, batch(b"x"))
    append(log, batch(b"y"))
    flush(log)
    told: list[dict[TopicPartition, int]] = []
    path = tmp_path / "a" / names.LOG_START_OFFSETS
    world.logs.checkpoint(lambda _: told.append(checkpoints.read_offsets(path)))
    log.start_at(1)
    world.logs.checkpoint(lambda _: told.append(checkpoints.read_offsets(path)))
    world.worker.run()
    assert told == [{TopicPartition("logs", 0): 0}, {TopicPartition("logs", 0): 1}]


def test_a_topic_made_again_meets_no_old_offsets(tmp_path: Path) -> None:
    """A topic that was deleted and created again begins at offset 0. For this, the broker removes
    the entries of the old topic from the checkpoint files before it makes the new directory."""
    world = World(tmp_path / "a")
    world.create("logs", 1)
    partition = TopicPartition("logs", 0)
    log = world.logs.logs[partition]
    append(log, batch(b"x"))
    flush(log)
    world.logs.checkpoint()
    world.worker.run()
    files = [tmp_path / "a" / name for name in (names.RECOVERY_POINTS, names.LOG_START_OFFSETS)]
    assert [checkpoints.read_offsets(file) for file in files] == [{partition: 1}, {partition: 0}]
    world.logs.delete(partition)
    world.logs.create([NewLog(partition, uuid.uuid4(), LogConfig())], world.results.append)
    while world.worker.jobs:
        world.worker.step()
        if (tmp_path / "a" / "logs-0").exists():
            assert [checkpoints.read_offsets(file) for file in files] == [{}, {}]
    assert world.logs.logs[partition].log_end_offset == 0


def test_a_log_start_offset_survives(tmp_path: Path) -> None:
    """If the checkpoint file with the log start offsets was written before a kill, records below
    the log start stay deleted after the kill."""
    world = World(tmp_path / "a")
    world.create("logs", 1)
    partition = TopicPartition("logs", 0)
    log = world.logs.logs[partition]
    for _ in range(5):
        append(log, batch(b"x"))
    flush(log)
    log.start_at(3)
    world.logs.checkpoint()
    world.worker.run()
    world.logs.release()
    again = World(tmp_path / "a")
    for tp, found in again.logs.discover():
        again.logs.load(tp, found, LogConfig())
    assert again.logs.logs[partition].log_start_offset == 3


def test_a_broker_that_stops_makes_no_further_logs(tmp_path: Path) -> None:
    """When the broker stops while logs are being made, it makes no further directories, however
    many were asked for, and adds no logs. The next start finds the directories that were made."""
    world = World(tmp_path / "a")
    made: list[Path] = []

    def until_three(path: Path, _topic_id: uuid.UUID) -> None:
        made.append(path)
        if len(made) == 3:
            world.logs.end_creations()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "write_partition_metadata", until_three)
        world.create("logs", 10_000)
    assert len(made) == 3
    assert len([*(tmp_path / "a").glob("logs-*")]) == 3
    assert world.logs.logs == {}
    assert world.results == []
