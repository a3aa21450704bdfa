"""All logs of a broker, in one or more log directories.

A log directory is locked (one broker), marked with broker and cluster id, and either in use or
offline. Offline means that the disk failed: its partitions are answered with an error until the
broker is started again, and nothing is written there any more.

A partition whose log is damaged is *stopped*: named, not served, not touched.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.log import checkpoints, names, retention
from broker.log.checkpoints import MetaProperties
from broker.log.config import LogConfig
from broker.log.files import DamagedLog, StorageFailed
from broker.log.flusher import DiskWorker, Outcome
from broker.log.partition_log import PartitionLog
from broker.log.recovery import Opening, Recovered, open_log
from broker.log.retention_clock import RetentionClock
from broker.log.segment import Segment
from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError, StateRefused
from skidway.files import DirectoryLock, fsync_directory, make_directory, write_atomically
from skidway.kafka.types import TopicPartition

_log = log.get(__name__)


@dataclass(slots=True)
class LogDirectory:
    """One of `log.dirs`; the offsets are those of its checkpoint files at the start."""

    path: Path
    lock: DirectoryLock
    meta: MetaProperties | None = None
    clean: bool = False
    offline: str | None = None
    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_start_offsets: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A partition's directory that was there at the start."""

    directory: LogDirectory
    topic_id: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class NewLog:
    """A partition that shall have an empty log."""

    partition: TopicPartition
    topic_id: uuid.UUID
    config: LogConfig


class LogManager:
    """Owned by the loop; the slow work goes to `worker`."""

    def __init__(self, clock: Clock, worker: DiskWorker) -> None:
        self._clock = clock
        self._retention_clock = RetentionClock(clock)
        self._worker = worker
        self.directories: list[LogDirectory] = []
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.stopped: dict[TopicPartition, str] = {}
        self.unclean: set[TopicPartition] = set()
        """Partitions whose logs had to be read again because the last stop was not clean."""
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._checkpoint_running = False

    def open_directories(self, paths: Iterable[Path]) -> None:
        """Locks the log directories and reads their small files. Raises SkidwayError."""
        for path in paths:
            make_directory(path)
            if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                raise SkidwayError(f"cannot use the log directory {path}: permission denied")
            lock = DirectoryLock(path)
            lock.acquire()
            directory = LogDirectory(path, lock, checkpoints.read_meta(path))
            directory.clean = (path / names.CLEAN_SHUTDOWN).exists()
            directory.recovery_points = checkpoints.read_offsets(path / names.RECOVERY_POINTS)
            directory.log_start_offsets = checkpoints.read_offsets(path / names.LOG_START_OFFSETS)
            self.directories.append(directory)

    def claim(self, broker_id: int, cluster_id: str) -> str:
        """Checks or sets whose directories these are; the first one's directory id.

        Raises StateRefused if they belong to another broker or cluster.
        """
        for each in self.directories:
            if each.meta is None:
                each.meta = MetaProperties(
                    broker_id, cluster_id, checkpoints.encode_id(uuid.uuid4())
                )
                try:
                    checkpoints.write_meta(each.path, each.meta)
                except OSError as error:
                    raise SkidwayError(
                        f"cannot write into the log directory {each.path}: {error.strerror}"
                    ) from error
            if each.meta.broker_id != broker_id:
                raise StateRefused(
                    f"the log directory {each.path} belongs to broker {each.meta.broker_id}, not "
                    f"to {broker_id}; set broker.id={each.meta.broker_id} or another log.dirs"
                )
            if each.meta.cluster_id != cluster_id:
                raise StateRefused(
                    f"the log directory {each.path} belongs to cluster {each.meta.cluster_id}, and "
                    f"ZooKeeper says that this is {cluster_id}; is zookeeper.connect right?"
                )
        assert self.directories
        assert self.directories[0].meta is not None
        return self.directories[0].meta.directory_id

    def discover(self) -> dict[TopicPartition, Found]:
        """The partitions whose directories are there; what was left of deleted ones goes."""
        found: dict[TopicPartition, Found] = {}
        for home in self.directories:
            for entry in sorted(home.path.iterdir()):
                if not entry.is_dir():
                    continue
                if names.is_deleted_directory(entry.name):
                    self._remove_tree(entry)
                    continue
                partition = names.partition_of(entry.name)
                if partition is None:
                    if not names.is_stray_directory(entry.name):
                        _log.warning("unknown_directory", path=str(entry))
                elif partition in found:
                    other = found[partition].directory.path
                    raise StateRefused(f"{partition} lies in both {other} and {home.path}")
                else:
                    try:
                        topic_id = checkpoints.read_partition_metadata(entry)
                    except StateRefused as error:  # one partition's trouble, not everybody's
                        self._homes[partition] = home
                        self.stop(partition, str(error))
                    else:
                        found[partition] = Found(home, topic_id)
        return found

    def adopt(self, partition: TopicPartition, found: Found, topic_id: uuid.UUID) -> None:
        """Notes the topic id in a directory that has none. Raises SkidwayError."""
        path = found.directory.path / names.partition_directory(partition)
        try:
            checkpoints.write_partition_metadata(path, topic_id)
        except OSError as error:
            raise SkidwayError(f"cannot write into {path}: {error.strerror}") from error

    def set_aside(self, partition: TopicPartition, found: Found, *, delete: bool = False) -> None:
        """Renames the directory of a partition that no topic owns; `delete` if it was deleted."""
        self._homes[partition] = found.directory
        suffix = names.DELETED_DIRECTORY if delete else names.STRAY_DIRECTORY
        self.delete(partition, suffix=suffix)

    def load(
        self, partition: TopicPartition, found: Found, config: LogConfig, *, fresh: bool = False
    ) -> None:
        """Opens the log of a partition that is there; a damaged one is stopped, with its name."""
        home = found.directory
        self._homes[partition] = home
        opening = Opening(
            partition,
            home.path / names.partition_directory(partition),
            config,
            self._clock.time_ms(),
            clean=home.clean or fresh,
            recovery_point=home.recovery_points.get(partition, 0),
            log_start_offset=home.log_start_offsets.get(partition, 0),
        )
        try:
            recovered = open_log(opening)
        except (DamagedLog, StorageFailed) as error:
            self.stop(partition, str(error))
            return
        self.logs[partition] = recovered.log
        if not (home.clean or fresh):
            self.unclean.add(partition)
            _report(partition, recovered)

    def loaded(self) -> None:
        """Notes that the start is done: from now on only another clean stop makes a mark."""
        for each in self.directories:
            (each.path / names.CLEAN_SHUTDOWN).unlink(missing_ok=True)
            fsync_directory(each.path)

    def create(self, wanted: Sequence[NewLog], done: Callable[[OSError | None], None]) -> None:
        """Makes new, empty logs in the background, all or none of them, and adds them.

        Each goes to the directory with the fewest partitions. `done` is called on the loop.
        """
        try:
            homes = [self._place(each.partition) for each in wanted]
        except OSError as error:
            done(error)
            return
        places = [
            (home.path / names.partition_directory(new.partition), new.topic_id)
            for home, new in zip(homes, wanted, strict=True)
        ]

        def work() -> None:
            _make_directories(places)

        def made(outcome: Outcome) -> None:
            if outcome.error is None:
                for new, home in zip(wanted, homes, strict=True):
                    self.load(new.partition, Found(home, new.topic_id), new.config, fresh=True)
            else:
                for new in wanted:
                    self._homes.pop(new.partition, None)
            done(outcome.error)

        self._worker.submit(work, made)

    def delete(self, partition: TopicPartition, *, suffix: str = names.DELETED_DIRECTORY) -> None:
        """Takes a partition's directory out of sight, and removes it in the background.

        With the suffix of strays it is only renamed.
        """
        home = self._homes.pop(partition, None)
        self.logs.pop(partition, None)
        self.stopped.pop(partition, None)
        if home is None:
            return
        path = home.path / names.partition_directory(partition)
        target = path.with_name(names.leaving_directory(partition, suffix))
        try:
            path.rename(target)
            fsync_directory(home.path)
            self._forget_checkpoints(home, partition)
        except FileNotFoundError:
            return
        except OSError as error:
            self.fail(StorageFailed("delete", path, error))
            return
        if suffix == names.DELETED_DIRECTORY:
            self._remove_tree(target)
        else:
            _log.warning("stray_partition_set_aside", partition=str(partition), path=str(target))

    def stop(self, partition: TopicPartition, reason: str) -> None:
        """Serves a partition no longer, because of what was found in its log."""
        self.logs.pop(partition, None)
        self.stopped[partition] = reason
        _log.error("partition_stopped", partition=str(partition), reason=reason)

    def fail(self, failure: StorageFailed) -> list[TopicPartition]:
        """Takes the log directory of a failure offline; its partitions, which stop."""
        home = self.directory_of(failure.path)
        if home is None or home.offline is not None:
            return []
        home.offline = str(failure)
        _log.error("log_directory_offline", directory=str(home.path), reason=str(failure))
        gone = [tp for tp in self.logs if self._homes[tp] is home]
        for partition in gone:
            del self.logs[partition]
            self.stopped[partition] = home.offline
        return gone

    def directory_of(self, path: Path) -> LogDirectory | None:
        """The log directory in which a path lies."""
        for each in self.directories:
            if path == each.path or each.path in path.parents:
                return each
        return None

    def highest_producer_id(self) -> int:
        """The highest producer id in any log; -1 if there is none."""
        return max((each.producers.highest_id for each in self.logs.values()), default=-1)

    def expire(
        self, held_from: Callable[[TopicPartition], int | None], producer_expiration_ms: int
    ) -> tuple[list[Path], list[StorageFailed]]:
        """Applies retention and forgets old producers.

        The files renamed, which the caller has removed later, and what went wrong on the way.
        """
        now_ms = self._retention_clock.now_ms()
        renamed: list[Path] = []
        failures: list[StorageFailed] = []
        for partition, each in self.logs.items():
            each.producers.expire(now_ms - producer_expiration_ms)
            for segment in each.segments[:-1]:
                segment.let_go()  # who reads it now holds it; a next reader opens it again
            try:
                renamed += _expire(each, now_ms, held_from(partition))
            except StorageFailed as error:
                failures.append(error)
        return renamed, failures

    def remove(self, paths: list[Path]) -> None:
        """Unlinks files in the background."""

        def work() -> None:
            for path in paths:
                path.unlink(missing_ok=True)

        self._worker.submit(work, _report_removal)

    def checkpoint(self) -> None:
        """Writes both checkpoint files of every directory in the background."""
        if self._checkpoint_running:
            return
        self._checkpoint_running = True
        contents = [(each, *self._checkpoint_of(each)) for each in self._online()]

        def work() -> None:
            for directory, points, starts in contents:
                _write_checkpoints(directory.path, points, starts)

        def done(outcome: Outcome) -> None:
            self._checkpoint_running = False
            if outcome.error is not None:
                _log.warning("checkpoint_failed", reason=str(outcome.error))

        self._worker.submit(work, done)

    def close(self, broker_epoch: int) -> None:
        """The clean stop: everything is flushed and the worker is done. Never raises."""
        for home in self._online():
            mine = [each for tp, each in self.logs.items() if self._homes[tp] is home]
            try:
                for each in mine:
                    each.close_cleanly()
                _write_checkpoints(home.path, *self._checkpoint_of(home))
                # A partition that was stopped has no right to be believed at the next start.
                if not any(self._homes[tp] is home for tp in self.stopped):
                    content = checkpoints.clean_shutdown_content(broker_epoch)
                    write_atomically(home.path / names.CLEAN_SHUTDOWN, content)
            except OSError as error:
                _log.warning("unclean_stop", directory=str(home.path), reason=str(error))
        self.release()

    def release(self) -> None:
        """Unlocks the log directories."""
        for each in self.directories:
            each.lock.release()

    def _online(self) -> list[LogDirectory]:
        return [each for each in self.directories if each.offline is None]

    def _checkpoint_of(
        self, home: LogDirectory
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        # What is stopped keeps the offsets that it had.
        points = {tp: home.recovery_points[tp] for tp in self.stopped if tp in home.recovery_points}
        starts = {
            tp: home.log_start_offsets[tp] for tp in self.stopped if tp in home.log_start_offsets
        }
        for tp, each in self.logs.items():
            if self._homes[tp] is home:
                points[tp] = each.flushed.offset
                starts[tp] = each.log_start_offset
        home.recovery_points, home.log_start_offsets = points, starts
        return points, starts

    def _forget_checkpoints(self, home: LogDirectory, partition: TopicPartition) -> None:
        """A topic of the same name that is made again must not meet the old one's offsets."""
        if partition in home.recovery_points or partition in home.log_start_offsets:
            home.recovery_points.pop(partition, None)
            home.log_start_offsets.pop(partition, None)
            points, starts = self._checkpoint_of(home)
            points.pop(partition, None)
            starts.pop(partition, None)
            _write_checkpoints(home.path, points, starts)

    def _place(self, partition: TopicPartition) -> LogDirectory:
        online = self._online()
        if not online:
            raise OSError(errno.EIO, "every log directory is offline")
        taken = list(self._homes.values())
        home = min(online, key=lambda each: sum(1 for other in taken if other is each))
        self._forget_checkpoints(home, partition)
        self._homes[partition] = home
        return home

    def _remove_tree(self, path: Path) -> None:
        self._worker.submit(lambda: shutil.rmtree(path, ignore_errors=True), _report_removal)


def _make_directories(places: Sequence[tuple[Path, uuid.UUID]]) -> None:
    made: list[Path] = []
    try:
        for path, topic_id in places:
            path.mkdir()
            made.append(path)  # one that was there is not ours to remove
            (path / names.segment_file(0, names.LOG)).touch()
            checkpoints.write_partition_metadata(path, topic_id)
        for parent in {path.parent for path, _ in places}:
            fsync_directory(parent)
    except OSError:
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _expire(each: PartitionLog, now_ms: int, held_from: int | None) -> list[Path]:
    ages = [
        retention.SegmentAge(segment.base_offset, segment.size, segment.last_append_ms)
        for segment in each.segments
    ]
    decision = retention.expired(
        ages,
        each.config,
        now_ms=now_ms,
        log_start_offset=each.log_start_offset,
        flushed_offset=each.flushed.offset,
        held_from=held_from,
    )
    if decision.roll and each.flushed.offset == each.log_end_offset:
        each.roll(now_ms)  # it goes at the next look, when the new segment's name is durable
    return _take_out(each, decision.count) if decision.count else []


def _take_out(each: PartitionLog, count: int) -> list[Path]:
    gone: list[Segment] = each.take_out(count)
    try:
        renamed = [path for segment in gone for path in segment.rename_deleted()]
    except OSError as error:
        raise StorageFailed("delete a segment in", each.directory, error) from error
    _log.info(
        "segments_expired",
        partition=str(each.partition),
        segments=len(gone),
        bytes=sum(segment.size for segment in gone),
        log_start_offset=each.log_start_offset,
    )
    return renamed


def _write_checkpoints(
    directory: Path,
    points: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
) -> None:
    checkpoints.write_offsets(directory / names.LOG_START_OFFSETS, starts)
    checkpoints.write_offsets(directory / names.RECOVERY_POINTS, points)


def _report(partition: TopicPartition, recovered: Recovered) -> None:
    _log.info(
        "log_recovered",
        partition=str(partition),
        log_end_offset=recovered.log.log_end_offset,
        scanned_bytes=recovered.scanned_bytes,
        cut_bytes=recovered.cut_bytes,
        indexes_rebuilt=recovered.indexes_rebuilt,
    )


def _report_removal(outcome: Outcome) -> None:
    if outcome.error is not None:
        _log.warning("removal_failed", reason=str(outcome.error))
