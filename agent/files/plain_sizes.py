"""Measures how many plain (uncompressed) bytes compressed files contain. To measure a file, a
thread decompresses the whole file.

The thread decompresses files in slices. Each new file gets one slice at once, which suffices for
most files. A slice of the larger files follows in turn with a slice of the new files. The larger
files take turns. A turn begins the file anew and is twice as long as the file's last one, so no
file delays others by much more than their own sizes need, and at most two files are decompressed at
the same time.
"""

from __future__ import annotations

import errno
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from skidway.agent.files.decompressed import INPUT_BYTES, Bounds, Decompressor

SLICE_BYTES: Final = 64 << 20
_STEP_BYTES: Final = 1 << 20
_KNOWN_MAX: Final = 10_000
_ASKED_MAX: Final = 1_000
_LARGE_MAX: Final = 100


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

    def __init__(self, bounds: Bounds, open_: Callable[[str], int]) -> None:
        """open_: returns a descriptor of the regular file at a path, if the agent may read it by
        the rules (module access). Raises OSError."""
        self._bounds = bounds
        self._open = open_
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
        large: deque[_Measurement] = deque()
        try:
            while True:
                new = self._next(is_waiting=not large)
                if new is not None and self._slice(new):
                    self._put_back(new, large)
                if large and not self._slice(large[0]):
                    large.popleft()
                elif len(large) > 1 and large[0].is_turn_over:
                    large[0].pause()
                    large.rotate(-1)
        finally:  # if a bug ends this thread, the next `ask` starts another thread
            for each in large:
                each.pause()
            self._asked.clear()

    def _next(self, *, is_waiting: bool) -> _Measurement | None:
        try:
            path, content = self._queue.get(block=is_waiting)
            return _Measurement(path, content, self._bounds, self._open)
        except queue.Empty:
            return None

    def _put_back(self, measurement: _Measurement, large: deque[_Measurement]) -> None:
        """Puts a file with more than one slice behind the other large files. If there are too many,
        does nothing; the caller of `ask` asks again later."""
        if large:
            measurement.pause()
        if len(large) < _LARGE_MAX:
            large.append(measurement)
        else:
            self._asked.discard(measurement.content)

    def _slice(self, measurement: _Measurement) -> bool:
        """Measures a slice of a file. Returns whether the file goes on after it."""
        try:
            if measurement.go_on():
                return True
            size: int | OSError | None = measurement.size
        except OSError as error:
            size = error
        measurement.pause()
        if size is not None:
            self.learn(measurement.content, size)
        self._asked.discard(measurement.content)
        return False


class _Measurement:
    """The measurement of one file. size: its plain bytes so far; None if the file at `path` no
    longer has this `content`, or is gone."""

    def __init__(
        self, path: str, content: Content, bounds: Bounds, open_: Callable[[str], int]
    ) -> None:
        self._path, self.content, self._bounds, self._open = path, content, bounds, open_
        self._descriptor: int | None = None
        self._plain: Decompressor | None = None
        self._slices, self._turn_slices = 0, 1
        self.size: int | None = 0

    @property
    def is_turn_over(self) -> bool:
        """Whether other files should be measured before this one goes on."""
        return self._slices >= self._turn_slices

    def go_on(self) -> bool:
        """Decompresses a slice. Returns whether the file goes on after it. Raises OSError."""
        plain = self._plain or self._begin()
        if plain is None:
            self.size = None
            return False
        size, until = self.size or 0, (self.size or 0) + SLICE_BYTES
        most = self._bounds.plain_bytes(self.content.size)
        for _ in range(SLICE_BYTES // INPUT_BYTES):
            if plain.is_at_end or size >= until:
                break
            size += len(plain.step(_STEP_BYTES))
            if size > most:
                raise OSError(errno.EFBIG, f"it cannot be decompressed: {_too_many(most)}")
        self.size = size
        self._slices += 1
        return not plain.is_at_end

    def pause(self) -> None:
        """Closes the file. If the measurement goes on later, it begins again, with a turn that is
        twice as long as what it has had."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = self._plain = None
        self._slices, self._turn_slices = 0, 2 * self._slices
        self.size = 0

    def _begin(self) -> Decompressor | None:
        try:
            self._descriptor = self._open(self._path)
        except (FileNotFoundError, PermissionError):
            return None  # something else is at the path by now
        if Content.of(os.fstat(self._descriptor)) != self.content:
            return None
        self._plain = Decompressor(self._path, self._descriptor, self._bounds)
        return self._plain


def _too_many(most: int) -> str:
    return f"it has more than {most:,} plain bytes, too many for a file of its size"


def not_yet() -> OSError:
    """Returns the error that `open` raises for a file whose plain size is still being measured."""
    return OSError(errno.EAGAIN, "it is being decompressed")
