"""Serves all partitions that this broker leads: writes and flushes their logs, raises their high
watermarks, and handles failures of their disks.

During a turn of the loop, `touch` remembers which logs have something to write. At the end of the
turn, `write` writes the appended batches to the files. Flushes run on the disk worker. When a flush
is done, the high watermark rises, and the requests that wait for it are checked again (see
`broker.purgatory`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass

from skidway import log
from skidway.broker.log.files import PASSING, DamagedLog, StorageFailed
from skidway.broker.log.flusher import DiskWorker, NothingSynced, WorkOutcome, sync
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.partition_log import Flush
from skidway.broker.network.timers import Timers
from skidway.broker.partitions.flush_policy import Flushing, must_flush
from skidway.broker.partitions.replica import Replica
from skidway.broker.purgatory import Purgatory
from skidway.clock import Clock
from skidway.kafka.types import TopicPartition

SLOW_FLUSH_S = 1.0
FLUSH_AGAIN_S = 0.1
_NOT_OPENED = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors that say that no descriptor is free. Only opening a file raises them. So if a flush fails
with one of them, no fsync has failed, and the data to be synced is still in the page cache.
"""
_log = log.get(__name__)


@dataclass(slots=True)
class FlushCounts:
    """How many flushes there were so far, and how long they took. The metrics endpoint reads these
    counts from its own thread."""

    count: int = 0
    seconds: float = 0.0
    failed: int = 0
    unfinished: int = 0


class HostedPartitions:
    """The partitions that this broker leads. Only the loop uses it."""

    def __init__(
        self,
        logs: LogManager,
        purgatory: Purgatory,
        worker: DiskWorker,
        timers: Timers,
        clock: Clock,
    ) -> None:
        self.replicas: dict[TopicPartition, Replica] = {}
        self.logs = logs
        self.flushes = FlushCounts()
        self._purgatory = purgatory
        self._worker = worker
        self._timers = timers
        self._clock = clock
        self._touched: dict[Replica, None] = {}
        self._unflushed_since: dict[Replica, float] = {}
        self._idle: list[Callable[[], None]] = []

    def get(self, partition: TopicPartition) -> Replica | None:
        """Returns the replica of a partition that this broker serves; None for any other
        partition.
        """
        return self.replicas.get(partition)

    def host(self, replica: Replica) -> None:
        """Begins to serve a partition that this broker leads."""
        self.replicas[replica.partition] = replica

    def drop(self, partition: TopicPartition) -> None:
        """Stops serving a partition. Then checks the requests that wait for a change of the
        partition, so that they are answered.
        """
        replica = self.replicas.pop(partition, None)
        if replica is not None:
            replica.served = False
            self._touched.pop(replica, None)
            self._unflushed_since.pop(replica, None)
        self._purgatory.check(partition)
        self._tell_if_idle()

    def touch(self, replica: Replica) -> None:
        """Notes that batches were appended to the replica's log; `write` then writes them."""
        self._touched[replica] = None

    def write(self) -> None:
        """Writes the batches that were appended in this turn, and begins the flushes that are due.
        If the write of a log fails, the log undoes the appends that were not written.
        """
        touched, self._touched = self._touched, {}
        for replica in touched:
            try:
                replica.log.write()
            except StorageFailed as error:
                self.storage_failed(error)
            else:
                self.logs.note_written(replica.partition)
            if replica.log.unflushed_messages:
                self._unflushed_since.setdefault(replica, self._clock.monotonic())
                self.flush_if_due(replica)

    def flush_if_due(self, replica: Replica) -> None:
        """Begins a flush of the replica's log if the flush policy (`must_flush`) demands it. If
        not, sets a timer; when the timer fires, this method is called again.
        """
        since = self._unflushed_since.get(replica)
        if since is None or replica.log.flush_running:
            return
        # The time is rounded: without rounding it might be 49.9999 ms when a timer of 50 ms has
        # fired, and the broker would set the timer again.
        waited_ms = round((self._clock.monotonic() - since) * 1000, 3)
        state = Flushing(
            replica.log.unflushed_messages,
            running=replica.log.flush_running,
            awaited=self._purgatory.waits_for(replica.partition),
            waited_ms=waited_ms,
        )
        if must_flush(state, replica.log.config):
            self._begin_flush(replica)
        elif not replica.flush_timer:
            self._set_timer(replica, since)

    def flush(self, partition: TopicPartition) -> None:
        """Begins a flush of a partition's log, unless everything is flushed or a flush is running.
        If the storage refuses the flush and the log has unflushed records, a timer tries the flush
        again. If the log has none (only a new segment without records needs the flush), the caller
        has to call again later.
        """
        replica = self.replicas.get(partition)
        if replica is not None:
            self._begin_flush(replica)

    def flush_all(self, idle: Callable[[], None]) -> None:
        """Flushes every log, and calls `idle` when no log has unflushed records any more. A clean
        stop uses this."""
        self._idle.append(idle)
        for replica in list(self.replicas.values()):
            if replica.log.unflushed_messages and not replica.log.flush_running:
                self._begin_flush(replica)
        self._tell_if_idle()

    def storage_failed(self, failure: StorageFailed) -> None:
        """Called when an operation in a log directory has failed. Takes the directory offline,
        unless the cause of the failure may pass without a repair (see
        `StorageFailed.is_passing`)."""
        if failure.is_passing:
            _log.error("append_refused", reason=str(failure))
            if failure.is_disk_full:
                self.logs.note_full(failure)
            return
        for partition in self.logs.fail(failure):
            self.drop(partition)

    def damaged(self, partition: TopicPartition, damage: DamagedLog) -> None:
        """Stops a partition because damage was found in its log."""
        self.logs.stop(partition, str(damage))
        self.drop(partition)

    def _set_timer(self, replica: Replica, since: float) -> None:
        def due() -> None:
            replica.flush_timer = False
            if replica.partition in self.replicas:
                self.flush_if_due(replica)

        replica.flush_timer = True
        self._timers.call_at(since + replica.log.config.flush_ms / 1000, due)

    def _begin_flush(self, replica: Replica) -> None:
        try:
            flush = replica.log.begin_flush()
        except StorageFailed as error:
            # The flush has not begun, so nothing is lost. Probably the process had no free
            # descriptor. A timer starts the next attempt.
            self.storage_failed(error)
            if replica.log.unflushed_messages:
                self._unflushed_since[replica] = self._clock.monotonic()
                self._set_timer(replica, self._clock.monotonic())
            return
        if flush is not None:
            self._unflushed_since.pop(replica, None)
            self._submit(replica, flush)

    def _submit(self, replica: Replica, flush: Flush) -> None:
        def done(outcome: WorkOutcome) -> None:
            try:
                self._flushed(replica, flush, outcome)
            except Exception as error:  # noqa: BLE001 - the error stops only this log
                self._give_up(replica, error)

        self._worker.submit(lambda: sync(flush), done)

    def _flushed(self, replica: Replica, flush: Flush, outcome: WorkOutcome) -> None:
        self.flushes.count += 1
        self.flushes.seconds += outcome.seconds
        partition = replica.partition
        if outcome.error is not None:
            self.flushes.failed += 1
            if replica.served and _can_be_repeated(outcome.error):
                _log.error("flush_put_off", partition=str(partition), reason=str(outcome.error))
                again = self._clock.monotonic() + FLUSH_AGAIN_S
                self._timers.call_at(again, lambda: self._submit(replica, flush))
            elif replica.served:
                # `final`: the broker does not try again. After a failed fsync the kernel may have
                # dropped the pages that it could not write. A second fsync might then succeed
                # although the data in these pages is lost.
                failure = StorageFailed("flush", replica.log.directory, outcome.error, final=True)
                self.storage_failed(failure)
            return
        if outcome.seconds > SLOW_FLUSH_S:
            _log.warning("slow_flush", partition=str(partition), seconds=round(outcome.seconds, 3))
        replica.log.finish_flush(flush)
        if replica.served:
            if replica.advance():
                self._purgatory.check(partition)
            if replica.log.unflushed_messages:
                self._unflushed_since.setdefault(replica, self._clock.monotonic())
                self.flush_if_due(replica)
        self._tell_if_idle()

    def _give_up(self, replica: Replica, error: Exception) -> None:
        """Stops a partition after an unexpected exception, because the broker does not know which
        part of the partition's log is on disk."""
        self.flushes.unfinished += 1
        _log.error("flush_not_finished", exc=error, partition=str(replica.partition))
        if replica.served:
            self.logs.stop(replica.partition, f"a flush could not be finished: {error!r}")
            self.drop(replica.partition)

    def _tell_if_idle(self) -> None:
        if not self._idle:
            return
        for replica in self.replicas.values():
            if replica.log.unflushed_messages and replica.log.flush_running:
                return
            if replica.log.unflushed_messages:
                self._begin_flush(replica)
                return
        idle, self._idle = self._idle, []
        for each in idle:
            each()


def _can_be_repeated(error: OSError) -> bool:
    """Returns whether a flush that has failed with `error` can be repeated: the data is still in
    the page cache, and the cause of the error may pass.
    """
    return error.errno in (PASSING if isinstance(error, NothingSynced) else _NOT_OPENED)
