"""Keeps a limited number of log files open. To open one more file, closes the least recently used
file.
"""

from __future__ import annotations

import errno
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from skidway.agent.files.host import Handle, Host, Status
from skidway.agent.values.tracked import TrackedFile

OLDEST = 1_000
"""To find a file that can be closed and opened again, `Handles` checks at most this many of the
least recently used files.
"""

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


class Moved(Exception):
    """Raised if a tracked file is no longer in the directory in which the agent last saw it."""


class Handles:
    """Owns every descriptor of a log file. now: the time (s) of this turn of the agent's loop."""

    def __init__(self, host: Host, limit: int) -> None:
        self._host = host
        self._limit = limit
        self._open: OrderedDict[int, Handle] = OrderedDict()
        self._used: dict[int, float] = {}
        self.now = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def take_limit(self, limit: int) -> None:
        """Changes how many files may be open. If more are open, the next call of `keep` closes the
        surplus files."""
        self._limit = limit

    def held(self, file: int) -> Handle | None:
        """Returns the handle of a file; None if the file is not open."""
        return self._open.get(file)

    def get(self, tracked: TrackedFile) -> Handle:
        """Returns the file's handle; opens the file if it is not open. If the file is no longer at
        its path, searches the path's directory. Raises Moved if the file is not there, and OSError
        if the file cannot be opened or the directory cannot be read.
        """
        handle = self._open.get(tracked.file)
        if handle is not None:
            self._open.move_to_end(tracked.file)
            self._used[tracked.file] = self.now
            return handle
        handle = self._found(tracked)
        if tracked.birth.born_ns is None:
            tracked.verified = False  # by now another file may have this inode
        self.keep(tracked.file, handle)
        return handle

    @contextmanager
    def glance(self, tracked: TrackedFile) -> Iterator[Handle]:
        """Gives the file's handle to a `with` block. The block does not count as a use of the file:
        if the file was not open, it is closed again after the block; if it was open, it does not
        become the most recently used file. Raises the same errors as `get`."""
        handle = self._open.get(tracked.file)
        if handle is not None:
            yield handle
            return
        handle = self._found(tracked)
        try:
            yield handle
        finally:
            handle.close()

    def _found(self, tracked: TrackedFile) -> Handle:
        handle = self._opened_as(tracked, tracked.location)
        if handle is None:
            path = self._host.find(os.path.dirname(tracked.location), tracked.birth.key)
            handle = None if path is None else self._opened_as(tracked, path)
        if handle is None:
            raise Moved(tracked.location)
        return handle

    def keep(self, file: int, handle: Handle) -> None:
        """Adds a handle that the caller has opened. From now on, only this object closes the
        handle."""
        self._open[file] = handle
        self._used[file] = self.now
        while len(self._open) > self._limit:
            self._close_oldest()

    def drop(self, file: int) -> None:
        """Closes a file's handle, if it is open."""
        handle = self._open.pop(file, None)
        if handle is not None:
            del self._used[file]
            handle.close()

    def close_idle(self, before: float, may_close: Callable[[int], bool]) -> None:
        """Closes files that were last used before a time, if `may_close` (called with the file id)
        allows it, and if they still have a name: a deleted file cannot be opened again.
        """
        for file in list(islice(self._open, OLDEST)):
            if self._used[file] >= before:
                break
            if may_close(file) and _has_name(self._open[file]):
                self.drop(file)

    def close(self) -> None:
        """Closes all handles."""
        while self._open:
            self._close_oldest()

    def _opened_as(self, tracked: TrackedFile, path: str) -> Handle | None:
        """Opens the file at a path if it is this tracked file."""
        handle = self._opened(path)
        if handle is not None and not _is_of(handle.status(), tracked):
            handle.close()
            return None
        return handle

    def _opened(self, path: str) -> Handle | None:
        while True:
            try:
                return self._host.open(path)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS or not self._open:
                    raise
                self._close_oldest()

    def _close_oldest(self) -> None:
        """Closes the least recently used file that still has a name, because a deleted file could
        not be opened again. If none of the OLDEST least recently used files has a name, closes the
        least recently used file nevertheless.
        """
        oldest = list(islice(self._open, OLDEST))
        file = next((each for each in oldest if _has_name(self._open[each])), oldest[0])
        self.drop(file)


def _has_name(handle: Handle) -> bool:
    try:
        return handle.status().links > 0
    except OSError:
        return True


def _is_of(status: Status, tracked: TrackedFile) -> bool:
    births = (status.born_ns, tracked.birth.born_ns)
    is_reborn = None not in births and births[0] != births[1]
    return status.key == tracked.birth.key and not is_reborn
