"""Threads that do the work for which the broker has to wait for the disk, so that the loop need not
wait.

The loop submits work as a function without arguments that uses only descriptors and paths. When the
work is done, its thread calls `post` to pass the result to the loop. At any time each partition has
at most one flush in the queue, and each log directory has at most one write of its checkpoints in
the queue. The number of other items in the queue has no limit. Each deletion of expired files, each
creation of logs, each removal of a partition's directory, and each query of the volumes' sizes is a
separate item. These items are small because they contain only paths, so it does no harm if many of
them wait for a slow disk.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from skidway.broker.log.partition_log import Flush
from skidway.files import fsync_directory, write_atomically

Post = Callable[[Callable[[], None]], None]
"""A function that makes the loop run the given function soon. Any thread may call it."""


@dataclass(frozen=True, slots=True)
class WorkOutcome:
    """How submitted work ended. `error` is None if the work succeeded."""

    error: OSError | None
    seconds: float


class NothingSynced(OSError):
    """Raised if a flush fails before its first fsync of a segment or index. The data is still in
    the page cache, so the flush can be repeated. (After a failed fsync, the kernel may have dropped
    the data.)"""


class DiskWorker(Protocol):
    """Does work that waits for the disk. A test can use another worker, which does the work at once
    or at a time that the test chooses.
    """

    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        """Does `work` outside the loop, then calls `done` on the loop."""
        ...


class Flusher:
    """A `DiskWorker` with several threads, which run from its creation until `close`."""

    def __init__(self, post: Post, *, threads: int) -> None:
        self._post = post
        self._queue: queue.SimpleQueue[
            tuple[Callable[[], None], Callable[[WorkOutcome], None]] | None
        ] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"flusher-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        """Does `work` on one of the threads, then calls `done` on the loop.

        The only exception that `work` may raise is OSError. In this case, `done` gets an outcome
        that contains the error.
        """
        self._queue.put((work, done))

    def close(self) -> None:
        """Waits until all submitted work is done, then ends the threads."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            outcome = timed(work)
            self._post(_bound(done, outcome))
            del item, work, done  # closes the descriptors that `work` uses


def timed(work: Callable[[], None]) -> WorkOutcome:
    """Calls `work`, and returns its error and its duration."""
    start = time.monotonic()
    try:
        work()
    except OSError as error:
        return WorkOutcome(error, time.monotonic() - start)
    return WorkOutcome(None, time.monotonic() - start)


def sync(flush: Flush) -> None:
    """Carries out a flush of one log: makes durable what `flush` names (the file of leader epochs,
    indexes, segments and the directory's entries).

    Raises OSError. If the file of leader epochs cannot be written, for example because the disk is
    full, raises NothingSynced, which is a kind of OSError.
    """
    if flush.epochs is not None:
        try:
            write_atomically(*flush.epochs)
        except OSError as error:
            raise NothingSynced(*error.args) from error
    for path in flush.indexes:
        _sync_path(str(path))
    for file in flush.files:
        os.fdatasync(file.descriptor)
    if flush.directory is not None:
        fsync_directory(flush.directory)


def _sync_path(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # there is no such file: the index has no entries, or its log was deleted
    try:
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def _bound(done: Callable[[WorkOutcome], None], outcome: WorkOutcome) -> Callable[[], None]:
    return lambda: done(outcome)
