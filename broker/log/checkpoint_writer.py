"""Writes the checkpoint files (see `checkpoints`) of all log directories in the background. A round
writes the checkpoint files of every directory. Rounds run one after the other.

A round writes the offsets that are current when it begins. If a caller asks for checkpoints while a
round is running, that round may write older offsets than the caller wants. So a second round
follows, and the caller's `done` is called after the second round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skidway import log
from skidway.broker.log.files import StorageFailed
from skidway.broker.log.flusher import DiskWorker, WorkOutcome
from skidway.broker.log.log_directory import LogDirectory, Offsets, write_checkpoints

Contents = Callable[[], Sequence[tuple[LogDirectory, Offsets, Offsets]]]
Done = Callable[[frozenset[Path]], None]
_log = log.get(__name__)


class Checkpoints:
    """Writes the checkpoint files. Only the loop's thread may use this object. If a directory's
    disk has failed, `failed` is called with the error."""

    def __init__(self, worker: DiskWorker, failed: Callable[[StorageFailed], None]) -> None:
        self._worker = worker
        self._failed = failed
        self._open = 0
        self._not_written: set[Path] = set()
        self._told: list[Done] = []
        self._next: list[Done] = []

    def write(self, contents: Contents, done: Done | None) -> None:
        """Begins a round (writes the checkpoint files of every directory), and calls `done` at its
        end. If a round is already running, a second round begins after it, and `done` is called at
        the end of the second round. If a round is running and `done` is None, does nothing.
        """
        if done is not None:
            self._next.append(done)
        if not self._open:
            self._begin(contents)

    def _begin(self, contents: Contents) -> None:
        self._told, self._next = self._next, []
        self._not_written = set()
        found = contents()
        self._open = len(found) + 1
        for directory, points, starts in found:
            self._submit(directory, points, starts, contents)
        self._ended(contents)

    def _submit(
        self, directory: LogDirectory, points: Offsets, starts: Offsets, contents: Contents
    ) -> None:
        named = points.keys() | starts.keys()
        directory.noted |= named

        def work() -> None:
            write_checkpoints(directory.path, points, starts)

        def done(outcome: WorkOutcome) -> None:
            if outcome.error is None:
                directory.noted = set(named)
                directory.note_written()
            else:
                self._not_written.add(directory.path)
                _log.warning(
                    "checkpoint_failed", directory=str(directory.path), reason=str(outcome.error)
                )
                failure = StorageFailed("write checkpoints in", directory.path, outcome.error)
                if failure.is_disk_full:
                    directory.note_full(str(failure))
                elif not failure.is_passing:
                    self._failed(failure)
            self._ended(contents)

        self._worker.submit(work, done)

    def _ended(self, contents: Contents) -> None:
        self._open -= 1
        if self._open:
            return
        told, self._told = self._told, []
        failed = frozenset(self._not_written)
        for done in told:
            done(failed)
        if self._next and not self._open:
            self._begin(contents)
