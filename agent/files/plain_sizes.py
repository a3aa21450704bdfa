"""Measures how many plain (uncompressed) bytes compressed files contain. To measure a file, a
thread decompresses the whole file.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
from typing import Final, NamedTuple

from skidway.agent.files.decompressed import Decompressor

PLAIN_BYTES_MAX: Final = 1 << 40
_KNOWN_MAX: Final = 10_000
_ASKED_MAX: Final = 1_000


class Content(NamedTuple):
    """Identifies the content of a compressed file. Once the file is complete, its content does not
    change.
    """

    device: int
    inode: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Content:
        """Returns the `Content` of the file that a stat call has described."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


class PlainSizes:
    """Owns the plain size of each compressed file that was measured, or the reason why it cannot be
    measured. `ask` starts a thread that measures the files passed to `ask`, and passes each result
    to `learn`.
    """

    def __init__(self) -> None:
        self._found: dict[Content, int | OSError] = {}
        self._asked: set[Content] = set()
        self._queue: queue.Queue[tuple[str, Content]] = queue.Queue(_ASKED_MAX)
        self._thread: threading.Thread | None = None

    def known(self, content: Content) -> int | OSError | None:
        """Returns the plain size in bytes, or the error that prevents its measurement; None if the
        file was not measured yet.
        """
        return self._found.get(content)

    def learn(self, content: Content, size: int | OSError) -> None:
        """Notes the plain size of a file, or the reason why it cannot be measured."""
        if len(self._found) >= _KNOWN_MAX:
            self._found.clear()
        self._found[content] = size

    def ask(self, path: str, content: Content) -> None:
        """Asks the thread to measure a file. If too many files already wait, does nothing; the
        caller asks again later.
        """
        if content in self._asked:
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="plain sizes", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait((path, content))
            self._asked.add(content)
        except queue.Full:
            return

    def _work(self) -> None:
        while True:
            path, content = self._queue.get()
            try:
                self._look(path, content)
            finally:  # if a bug ends this thread, the next `ask` starts another thread
                self._asked.discard(content)

    def _look(self, path: str, content: Content) -> None:
        try:
            size: int | OSError | None = _measure(path, content)
        except OSError as error:
            size = error
        if size is not None:
            self.learn(content, size)


def _measure(path: str, content: Content) -> int | None:
    """Returns the plain size of the file at `path`; None if it no longer has this `content`, or is
    gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    try:
        if Content.of(os.fstat(descriptor)) != content:
            return None
        return Decompressor(path, descriptor).length(PLAIN_BYTES_MAX)
    finally:
        os.close(descriptor)


def not_yet() -> OSError:
    """Returns the error that `open` raises for a file whose plain size is still being measured."""
    return OSError(errno.EAGAIN, "it is being decompressed")
