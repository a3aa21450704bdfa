"""All logs of a broker, in one or more log directories.

If a directory fails, the broker continues to use the other directories (see `log_directory`). A new
partition goes to the directory with the fewest partitions. If the log of a partition is damaged,
the partition is *stopped*: the broker reports it, does not serve it, and does not change its files.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from skidway import log
from skidway.broker.log import checkpoints, expiration, names
from skidway.broker.log.checkpoint_writer import Checkpoints
from skidway.broker.log.config import LogConfig
from skidway.broker.log.expiration import Expiration, HeldFrom
from skidway.broker.log.files import DEVICE_ERRORS, DamagedLog, StorageFailed
from skidway.broker.log.flusher import DiskWorker, WorkOutcome
from skidway.broker.log.log_directory import (
    LogDirectory,
    Offsets,
    only,
    open_directories,
    write_checkpoints,
)
from skidway.broker.log.opening import Opening
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.recovery import Recovered, open_log
from skidway.broker.log.retention_clock import RetentionClock
from skidway.clock import Clock
from skidway.errors import SkidwayError, StateRefused
from skidway.files import fsync_directory, write_atomically
from skidway.kafka.types import TopicPartition

CLOSING_THREADS = 16
"""At a clean stop, this many threads close logs. They are so many because the broker does nothing
else at that time."""
_log = log.get(__name__)
T = TypeVar("T")


def _nothing() -> None:
    """Does nothing. Used if nobody waits for the removal of files."""


@dataclass(frozen=True, slots=True)
class Found:
    """A partition's directory that the broker found at its start."""

    directory: LogDirectory
    topic_id: uuid.UUID | None


@dataclass(frozen=True, slots=True)
class NewLog:
    """A partition for which to create an empty log."""

    partition: TopicPartition
    topic_id: uuid.UUID
    config: LogConfig


# This class has many methods, because one class must know both the logs and their directories: for
# example, if a directory fails, the broker must stop all logs in the directory.
class LogManager:
    """All logs of a broker. Only the loop's thread may use it; `worker` does slow work in the
    background."""

    def __init__(self, clock: Clock, worker: DiskWorker) -> None:
        self._clock = clock
        self._retention_clock = RetentionClock(clock)
        self._worker = worker
        self.directories: list[LogDirectory] = []
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.stopped: Mapping[TopicPartition, str] = {}
        """The partitions that are not served, each with the reason. To change the entries, the
        LogManager replaces the mapping by a new object. So a caller may keep what it has derived
        from the mapping as long as `stopped` is still the same object.
        """
        self.unclean: set[TopicPartition] = set()
        """The partitions whose logs the broker had to read again because the last stop was not
        clean."""
        self.report: Callable[[StorageFailed], object] = self.fail
        """The LogManager calls this function when it notices a failure. If the failure does not
        pass by itself (see `StorageFailed.is_passing`), the function must call `fail`.
        """
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._checkpoints = Checkpoints(worker, self._failed)
        self._ending = threading.Event()

    def open_directories(self, paths: Iterable[Path]) -> None:
        """Locks the log directories, and reads the small files in them, such as meta.properties and
        the checkpoints. Raises SkidwayError.
        """
        self.directories = open_directories(paths)

    def claim(self, broker_id: int, cluster_id: str) -> str:
        """Checks that the directories belong to this broker. If a directory has no meta.properties,
        writes one for this broker. Returns the directory id of the first directory in use.

        Raises StateRefused if a directory belongs to another broker or cluster, and SkidwayError if
        no directory can be written to.
        """
        for each in self._online():
            try:
                each.claim(broker_id, cluster_id)
            except OSError as error:
                each.go_offline(f"cannot write into {each.path}: {error.strerror}")
        for each in self._online():
            assert each.meta is not None
            return each.meta.directory_id
        reasons = "; ".join(each.offline or "" for each in self.directories)
        raise SkidwayError(f"no log directory can be used: {reasons}")

    def offline_words(self) -> str:
        """Returns a clause that says which directories are offline, to be put at the end of a
        message for people; empty if none is offline.
        """
        offline = [str(each.path) for each in self.directories if each.offline is not None]
        return f" (offline: {', '.join(offline)})" if offline else ""

    def home_of(self, partition: TopicPartition) -> LogDirectory | None:
        """Returns the log directory that contains the log of a partition; None if this broker has
        no such log.
        """
        return self._homes.get(partition)

    def discover(self) -> list[tuple[TopicPartition, Found]]:
        """Returns the partitions that have a directory in a log directory. If the file
        partition.metadata of a partition is damaged, stops this partition and leaves it out of the
        result. Also removes, in the background, the directories of deleted partitions that an
        interrupted removal has left.

        The result may contain a partition twice, if its topic was recreated while a log directory
        was offline.
        """
        found: list[tuple[TopicPartition, Found]] = []
        for home in self._online():
            try:
                self._discover_in(home, found)
            except OSError as error:
                home.go_offline(f"cannot read {home.path}: {error.strerror}")
                found = [(tp, each) for tp, each in found if each.directory is not home]
        return found

    def _discover_in(self, home: LogDirectory, found: list[tuple[TopicPartition, Found]]) -> None:
        for entry in sorted(home.path.iterdir()):
            if not entry.is_dir():
                continue
            if names.is_deleted_directory(entry.name):
                self._remove_tree(entry)
                continue
            partition = names.partition_of(entry.name)
            if partition is None:
                if names.moved_partition(entry.name) is not None:
                    _log.info("moved_partition_left", path=str(entry))
                elif not names.is_stray_directory(entry.name):
                    _log.warning("unknown_directory", path=str(entry))
            else:
                try:
                    topic_id = checkpoints.read_partition_metadata(entry)
                except StateRefused as error:  # stop this partition, but start the broker
                    self._homes[partition] = home
                    self.stop(partition, str(error))
                else:
                    found.append((partition, Found(home, topic_id)))

    def adopt(self, partition: TopicPartition, found: Found, topic_id: uuid.UUID) -> None:
        """Writes the topic id into the directory of a partition that has no topic id yet. If the
        disk is full, leaves this to the next start. Raises SkidwayError."""
        path = found.directory.path / names.partition_directory(partition)
        try:
            checkpoints.write_partition_metadata(path, topic_id)
        except OSError as error:
            failure = StorageFailed("write into", path, error)
            if failure.is_disk_full:
                found.directory.note_full(str(failure))
                return
            raise SkidwayError(f"cannot write into {path}: {error.strerror}") from error

    def set_aside(self, partition: TopicPartition, found: Found, *, delete: bool = False) -> None:
        """Renames the directory of a partition that this broker must not serve. With `delete`, also
        removes the directory, because the partition's topic was deleted.
        """
        self._homes[partition] = found.directory
        suffix = names.DELETED_DIRECTORY if delete else names.STRAY_DIRECTORY
        self.delete(partition, suffix=suffix)

    def load(
        self, partition: TopicPartition, found: Found, config: LogConfig, *, fresh: bool = False
    ) -> None:
        """Opens the log of a partition that has a directory. If the log is damaged or cannot be
        read, stops the partition. fresh: whether the directory was just made for a new log.
        """
        home = found.directory
        self._homes[partition] = home
        opening = Opening(
            partition,
            home.path / names.partition_directory(partition),
            config,
            self._clock.time_ms(),
            clean=home.clean or fresh,
            recovery_point=0 if fresh else home.recovery_points.get(partition, 0),
            log_start_offset=0 if fresh else home.log_start_offsets.get(partition, 0),
        )
        if home.offline is not None:
            self.stopped = {**self.stopped, partition: home.offline}
            return
        try:
            recovered = open_log(opening)
        except DamagedLog as error:
            self.stop(partition, str(error))
            return
        except StorageFailed as error:
            self.stop(partition, str(error))
            if error.errno in DEVICE_ERRORS:
                self.report(error)
            return
        self.logs[partition] = recovered.log
        if recovered.log.torn_tail is not None:
            home.note_full(f"cannot remove the torn end of {opening.directory}: no space is left")
        if not (home.clean or fresh):
            self.unclean.add(partition)
            _report(partition, recovered)

    def loaded(self) -> None:
        """Called when all logs are open. Removes the files that mark the last stop as clean, so
        that a start after a crash checks the logs."""
        for each in self._online():
            try:
                (each.path / names.CLEAN_SHUTDOWN).unlink(missing_ok=True)
                fsync_directory(each.path)
            except OSError as error:
                self.report(StorageFailed("write into", each.path, error, final=True))

    def create(
        self, wanted: Sequence[NewLog], done: Callable[[StorageFailed | None], None]
    ) -> None:
        """Creates empty logs in the background, and adds them to this object. If one of them cannot
        be created, creates none. Puts each log into the log directory with the fewest partitions.
        Afterwards, calls `done` on the loop: with None, or with the failure; never after
        `end_creations`.
        """
        homes = self._place(wanted)
        if homes is None:
            error = OSError(errno.EIO, "every log directory is offline")
            done(StorageFailed("create", self.directories[0].path, error))
            return
        # If a topic was recreated, the checkpoint files may still have entries for its old log.
        # Then the broker first writes the checkpoint files without these entries. Otherwise, after
        # a crash, it would open the new log with the old log's offsets.
        if any(new.partition in home.noted for new, home in zip(wanted, homes, strict=True)):
            self.checkpoint(lambda failed: self._make(wanted, homes, done, failed))
        else:
            self._make(wanted, homes, done, frozenset())

    def _make(
        self,
        wanted: Sequence[NewLog],
        homes: Sequence[LogDirectory],
        done: Callable[[StorageFailed | None], None],
        not_written: frozenset[Path],
    ) -> None:
        places = [
            (home.path / names.partition_directory(new.partition), new.topic_id)
            for home, new in zip(homes, wanted, strict=True)
        ]

        def work() -> None:
            for home in homes:
                if home.path in not_written:
                    raise OSError(errno.ENOSPC, "its checkpoint files cannot be written")
            _make_directories(places, self._ending)

        def made(outcome: WorkOutcome) -> None:
            if self._ending.is_set():
                return
            if outcome.error is None:
                for new, home in zip(wanted, homes, strict=True):
                    self.load(new.partition, Found(home, new.topic_id), new.config, fresh=True)
                done(None)
                return
            for new in wanted:
                self._homes.pop(new.partition, None)
            path = Path(outcome.error.filename or homes[0].path)
            done(StorageFailed("create", path, outcome.error))

        self._worker.submit(work, made)

    def end_creations(self) -> None:
        """Makes no further directories, and adds no further logs, because the broker stops. The
        next start does it."""
        self._ending.set()

    def delete(self, partition: TopicPartition, *, suffix: str = names.DELETED_DIRECTORY) -> None:
        """Renames a partition's directory at once, and removes the directory in the background.

        With the suffix `STRAY_DIRECTORY`, only renames it.
        """
        home = self._homes.pop(partition, None)
        self.logs.pop(partition, None)
        if partition in self.stopped:
            self.stopped = {tp: why for tp, why in self.stopped.items() if tp != partition}
        if home is None:
            return
        path = home.path / names.partition_directory(partition)
        target = path.with_name(names.leaving_directory(partition, suffix))
        try:
            path.rename(target)
            fsync_directory(home.path)
        except FileNotFoundError:
            return
        except OSError as error:
            self.report(StorageFailed("delete", path, error))
            return
        if suffix == names.DELETED_DIRECTORY:
            self._remove_tree(target)
        else:
            _log.warning("stray_partition_set_aside", partition=str(partition), path=str(target))

    def stop(self, partition: TopicPartition, reason: str) -> None:
        """Stops a partition, for example because its log is damaged: from now on the broker does
        not serve it."""
        self.logs.pop(partition, None)
        self.stopped = {**self.stopped, partition: reason}
        _log.error("partition_stopped", partition=str(partition), reason=reason)

    def fail(self, failure: StorageFailed) -> list[TopicPartition]:
        """Takes a log directory offline, because a failure happened in it. Stops and returns the
        directory's partitions.
        """
        home = self.directory_of(failure.path)
        if home is None or home.offline is not None:
            return []
        home.go_offline(str(failure))
        gone = [tp for tp in self.logs if self._homes[tp] is home]
        for partition in gone:
            del self.logs[partition]
        self.stopped = {**self.stopped, **dict.fromkeys(gone, str(failure))}
        return gone

    def note_full(self, failure: StorageFailed) -> None:
        """Notes that a log directory has no space, after an operation in it has failed for lack of
        space."""
        home = self.directory_of(failure.path)
        if home is not None:
            home.note_full(str(failure))

    def note_written(self, partition: TopicPartition) -> None:
        """Notes that there is space in a partition's log directory."""
        home = self._homes.get(partition)
        if home is not None and home.full is not None:
            home.note_written()

    def why_full(self, partition: TopicPartition) -> str | None:
        """Returns the last operation that failed because a partition's log directory had no space;
        None if the directory has space.
        """
        home = self._homes.get(partition)
        return None if home is None else home.full

    def moved(self, partition: TopicPartition) -> Path | None:
        """Returns the directory of a partition that was handed over and not yet taken over. Returns
        None if this directory is in none of this broker's log directories.
        """
        name = names.moved_directory(partition)
        found = (each.path / name for each in self._online())
        return next((path for path in found if path.exists()), None)

    def directory_of(self, path: Path) -> LogDirectory | None:
        """Returns the log directory that contains a path."""
        for each in self.directories:
            if path == each.path or each.path in path.parents:
                return each
        return None

    def highest_producer_id(self) -> int:
        """Returns the highest producer id below ID_END in any log; -1 if there is none."""
        return max((each.producers.highest_id for each in self.logs.values()), default=-1)

    def held(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Returns the partitions that have expired segments and whose topic has `retention.hold`,
        each with the groups that this setting lists.
        """
        return expiration.held(self.logs.values(), self._retention_clock.now_ms())

    def expire(self, held_from: HeldFrom, producer_expiration_ms: int) -> Expiration:
        """Takes the expired segments out of the logs. The result lists the files that the caller
        must delete later. Also forgets the producers whose last append is more than
        `producer_expiration_ms` ago."""
        now_ms = self._retention_clock.now_ms()
        return expiration.expire(self.logs.values(), now_ms, held_from, producer_expiration_ms)

    def bound_producers(self, limit: int) -> TopicPartition | None:
        """Forgets producers if the logs remember more than `limit`: see `expiration`."""
        return expiration.bound_producers(self.logs.values(), limit)

    def delete_below_start(
        self, partitions: Iterable[TopicPartition], done: Callable[[], None]
    ) -> None:
        """Deletes the segments whose records are all below the log start offset, without the delay
        of `file.delete.delay.ms`. Calls `done` on the loop when the files are deleted."""
        paths: list[Path] = []
        for each in partitions:
            if each in self.logs:
                try:
                    paths += expiration.take_below_start(self.logs[each])
                except StorageFailed as error:
                    self.report(error)
        self.remove(paths, done)

    def remove(self, paths: list[Path], done: Callable[[], None] = _nothing) -> None:
        """Unlinks files in the background, and then calls `done` on the loop."""

        def work() -> None:
            for path in paths:
                path.unlink(missing_ok=True)

        def removed(outcome: WorkOutcome) -> None:
            _report_removal(outcome)
            done()

        self._worker.submit(work, removed)

    def checkpoint(self, done: Callable[[frozenset[Path]], None] | None = None) -> None:
        """Writes both checkpoint files of every directory in the background.

        Afterwards, `done` is called on the loop with the directories whose checkpoint files could
        not be written. In all other directories that are in use, the checkpoint files have the
        offsets that were current at the call, or newer ones.
        """
        self._checkpoints.write(self._contents, done)

    def measure(self, look: Callable[[Path], T], done: Callable[[dict[Path, T]], None]) -> None:
        """Calls `look` for each log directory in use, in the background, and then calls `done` on
        the loop with the results by directory. If a call of `look` fails, its directory has no
        entry in the results.
        """
        found: dict[Path, T] = {}
        paths = [each.path for each in self._online()]

        def work() -> None:
            for path in paths:
                with contextlib.suppress(OSError):
                    found[path] = look(path)

        self._worker.submit(work, lambda _: done(found))

    def _contents(self) -> list[tuple[LogDirectory, Offsets, Offsets]]:
        return [(each, *self._checkpoint_of(each)) for each in self._online()]

    def _failed(self, failure: StorageFailed) -> None:
        self.report(failure)

    def close(self, broker_epoch: int) -> None:
        """The last step of a clean stop: closes the logs, and writes the files that save the next
        start from reading the logs (indexes, producers, checkpoints). Before this call, the caller
        must have flushed all logs, and `worker` must have done all submitted work. Never raises an
        exception.
        """
        for home in self._online():
            mine = [each for tp, each in self.logs.items() if self._homes[tp] is home]
            try:
                with ThreadPoolExecutor(CLOSING_THREADS) as threads:
                    # Several threads wait for the disk at the same time, so that the disk can
                    # serve their writes together.
                    list(threads.map(PartitionLog.close_cleanly, mine))
                write_checkpoints(home.path, *self._checkpoint_of(home))
                # If a partition in the directory is stopped, the next start must check its log, so
                # the directory gets no file that says that the stop was clean.
                if not any(self._homes.get(tp) is home for tp in self.stopped):
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

    def _checkpoint_of(self, home: LogDirectory) -> tuple[Offsets, Offsets]:
        # For a stopped partition, the checkpoint files keep the offsets that they already contain.
        points = only(home.recovery_points, self.stopped)
        starts = only(home.log_start_offsets, self.stopped)
        for tp, each in self.logs.items():
            if self._homes[tp] is home:
                points[tp] = each.flushed.offset
                starts[tp] = each.log_start_offset
        home.recovery_points, home.log_start_offsets = points, starts
        return points, starts

    def _place(self, wanted: Sequence[NewLog]) -> list[LogDirectory] | None:
        """Chooses for each new log the directory with the fewest partitions. None if all
        directories are offline.
        """
        counts = dict.fromkeys(self._online(), 0)
        if not counts:
            return None
        for home in self._homes.values():
            if home in counts:
                counts[home] += 1
        chosen = []
        for new in wanted:
            home = min(counts, key=counts.__getitem__)
            counts[home] += 1
            self._homes[new.partition] = home
            chosen.append(home)
        return chosen

    def _remove_tree(self, path: Path) -> None:
        self._worker.submit(lambda: shutil.rmtree(path, ignore_errors=True), _report_removal)


def _make_directories(places: Sequence[tuple[Path, uuid.UUID]], ending: threading.Event) -> None:
    made: list[Path] = []
    try:
        for path, topic_id in places:
            if ending.is_set():
                return
            path.mkdir()
            # After an error, the directories in `made` are deleted. So a directory is added only
            # after mkdir has made it: a directory that existed before may belong to another log.
            made.append(path)
            (path / names.segment_file(0, names.LOG)).touch()
            checkpoints.write_partition_metadata(path, topic_id)
        for parent in {path.parent for path, _ in places}:
            fsync_directory(parent)
    except OSError:
        for path in made:
            shutil.rmtree(path, ignore_errors=True)
        raise


def _report(partition: TopicPartition, recovered: Recovered) -> None:
    _log.info(
        "log_recovered",
        partition=str(partition),
        log_end_offset=recovered.log.log_end_offset,
        scanned_bytes=recovered.scanned_bytes,
        cut_bytes=recovered.cut_bytes,
        indexes_rebuilt=recovered.indexes_rebuilt,
    )


def _report_removal(outcome: WorkOutcome) -> None:
    if outcome.error is not None:
        _log.warning("removal_failed", reason=str(outcome.error))
