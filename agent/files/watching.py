"""Receives the operating system's events about log files. Events only make the agent notice changes
earlier.

A thread of the library watchdog receives the events. This thread puts the changed paths into a set
of limited size. The agent's loop waits on a descriptor, which the thread then makes readable. The
loop takes the paths out of the set. Events can be lost if there are too many, if the kernel has no
watch left, or if the file system reports no events. The next look through the patterns finds what
the lost events would have shown.

Handling an event takes more time than reading the line that caused the event. So while too many
events come, the agent watches nothing. After a directory was renamed, it watches anew, but seldom,
because this takes time for each directory. This delays no line of a busy file, because every turn
tries to read busy files even without an event.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers.api import BaseObserver

from skidway import log
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.trees import Trees

PATHS_MAX = 10_000
"""The set contains at most this many paths. If more paths change before the loop takes them, the
loop looks through all patterns instead.
"""

RATE_MAX = 400.0
"""If more events than this come in a second, the agent watches nothing for REST_S seconds. It
begins anew at most once in this time."""

RATE_WINDOW_S = 1.0
REST_S = 10.0

_log = log.get(__name__)


class Inbox(FileSystemEventHandler):
    """A set of changed paths. The thread of watchdog adds paths, and the agent's loop takes them
    out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[str, None] = {}
        self._everything = False
        self._count = 0
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Returns the descriptor on which the caller can wait: it is readable when there are paths
        to take."""
        return self._reader

    def dispatch(self, event: FileSystemEvent) -> None:
        """Adds the paths of an event to the set. If a directory has changed, or the set is full,
        makes the loop look through all patterns instead. watchdog's thread calls this method."""
        with self._lock:
            is_first = not self._paths and not self._everything
            self._count += 1
            if event.is_directory or len(self._paths) >= PATHS_MAX:
                self._everything = True
            else:
                self._paths[os.fsdecode(event.src_path)] = None
        if is_first:
            os.write(self._writer, b"\0")

    def take(self) -> tuple[list[str], bool, int]:
        """Empties the set of changed paths. Returns these paths, whether the loop should look
        through all patterns, and how many events came since the last call.
        """
        with self._lock:
            taken = list(self._paths), self._everything, self._count
            self._paths, self._everything, self._count = {}, False, 0
        try:
            os.read(self._reader, 4096)
        except BlockingIOError:
            pass
        return taken

    def close(self) -> None:
        """Closes the descriptors. The caller must make sure that no event comes after this call."""
        os.close(self._reader)
        os.close(self._writer)


class Watch:
    """Watches the directories of some patterns, and the directories to which links point. Stops
    watching for a while if events come too fast.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self.inbox = Inbox()
        self._roots: dict[str, bool] = {}
        for pattern in patterns:
            self._roots[pattern.root] = self._roots.get(pattern.root, False) or pattern.is_deep
        self._asked = self._linked = frozenset[str]()
        self._observer: BaseObserver | None = None
        self._trees: Trees | None = None
        self._watched: set[str] = set()
        self._window_end = 0.0
        self._window_count = 0
        self._rest_until = 0.0
        self._began = float("-inf")
        self._failed: set[str] = set()

    def start(self) -> None:
        """Starts watching. If a directory does not exist yet, later calls of `mind` try to watch
        it."""
        self._observer = BaseObserver(Trees)
        self._observer.start()
        try:
            self._observer.schedule(self.inbox, "/", recursive=True)
        except OSError as error:  # too many instances of inotify
            self._refuse("/", error)
            return
        (emitter,) = self._observer.emitters
        assert isinstance(emitter, Trees)
        self._trees = emitter
        self._watch_all()

    def stop(self) -> None:
        """Ends watchdog's threads."""
        self._end()
        self.inbox.close()

    def follow(self, directories: frozenset[str]) -> None:
        """Watches the directories to which links point now. Does nothing if `directories` is the
        same object as in the previous call.
        """
        if directories is self._asked:
            return
        self._asked = directories
        directories = directories - self._roots.keys()
        gone, self._linked = self._linked - directories, directories
        self._failed &= directories | self._roots.keys()
        if self._trees is None:
            return
        if gone & self._watched:
            self._trees.is_outdated = True
        if directories - self._watched:
            self._watch_all()

    def mind(self, events: int, now: float) -> bool:
        """Stops watching if too many events have come, and resumes it later. The agent's loop calls
        this method every turn. events: how many events have come since the last call. Returns True
        if nothing was watched for a while, so that the loop should look through all patterns.
        """
        self._window_count += events
        if not self._rest_until and now >= self._window_end:
            self._end_window(now)
        if not self._rest_until or now < self._rest_until:
            return False
        self._rest_until, self._began = 0.0, now
        self.start()
        return True

    def _end_window(self, now: float) -> None:
        if self._window_end and self._window_count > RATE_MAX * RATE_WINDOW_S:
            self._rest(now + REST_S)
        elif self._trees is None or self._trees.is_outdated:
            self._rest(max(now, self._began + REST_S))
        else:
            self._watch_all()
        self._window_end, self._window_count = now + RATE_WINDOW_S, 0

    def _rest(self, until: float) -> None:
        self._end()
        self._rest_until = until

    def _end(self) -> None:
        if self._observer is not None:
            self._observer.stop()
            self._observer.join(5)
        self._observer = self._trees = None
        self._watched.clear()

    def _watch_all(self) -> None:
        """Watches each directory that is not watched yet, or whose path leads to another directory
        by now."""
        if self._trees is None:
            return
        for root, deep in {**dict.fromkeys(self._linked, False), **self._roots}.items():
            try:
                self._trees.add(root, is_deep=deep)
            except (FileNotFoundError, NotADirectoryError):
                self._watched.discard(root)
            except OSError as error:
                self._watched.discard(root)
                self._refuse(root, error)
            else:
                self._watched.add(root)
                self._failed.discard(root)

    def _refuse(self, directory: str, error: OSError) -> None:
        if directory not in self._failed:
            self._failed.add(directory)
            reason = error.strerror or str(error)
            _log.warning("watch_refused", directory=directory, reason=reason)
