"""An emitter for watchdog: it reports changes in directories, and in the directories below them.

watchdog's own emitter notes the number of each directory by its path, and the path by the number,
and changes both when a directory is renamed. If directories are renamed faster than it reads, the
two contradict each other, and its threads end with KeyError. This emitter notes for each number
only the path under which the directory was added last. After a watched directory was renamed, a
path may be wrong. Then `is_outdated` is true, and the owner makes a new emitter.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

from watchdog.events import (
    DirCreatedEvent,
    DirModifiedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileSystemEvent,
)
from watchdog.observers.api import EventEmitter

from skidway.agent.files import inotify
from skidway.agent.files.inotify import Inotify, Notice
from skidway.agent.files.patterns import DEPTH_MAX

QUEUE_MAX: Final = 10_000
"""While more events than this wait in watchdog's queue, the emitter reads none. The kernel then
keeps a limited number of further events."""


class Trees(EventEmitter):
    """Watches directories. The thread that calls `add` is another one than the emitter's own. Links
    below a directory are not followed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_outdated = False
        self._lock = threading.Lock()
        self._paths: dict[int, tuple[str, bool]] = {}
        self._inotify = Inotify()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._inotify.descriptor, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)

    def add(self, path: str, *, is_deep: bool) -> None:
        """Watches a directory, if it is not watched yet; if `is_deep`, also those below it. Raises
        OSError if the directory itself cannot be watched."""
        with self._lock:
            is_new = self._add(path, is_deep)
            for below in _below(path) if is_new else ():
                try:
                    self._add(below, is_deep)
                except OSError:
                    continue  # looks find the changes there

    def run(self) -> None:
        """Reports events until the emitter is stopped."""
        try:
            super().run()
        finally:
            with self._lock:
                self._inotify.close()
                os.close(self._wake)
                self._wake = -1

    def queue_events(self, timeout: float) -> None:
        """Waits for events, and reports them."""
        if self._event_queue.qsize() > QUEUE_MAX:
            self.stopped_event.wait(0.1)
            return
        self._poll.poll(timeout * 1000)
        for event in self._events(self._inotify.read()):
            self.queue_event(event)

    def on_thread_stop(self) -> None:
        """Ends the wait of the emitter's thread. watchdog calls this method."""
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def _add(self, path: str, is_deep: bool) -> bool:
        number = self._inotify.add(path)
        before = self._paths.get(number)
        was_deep = before is not None and before[1]
        self._paths[number] = path, is_deep or was_deep
        return is_deep and not was_deep

    def _events(self, notices: Iterable[Notice]) -> Iterator[FileSystemEvent]:
        for notice in notices:
            if notice.mask & (inotify.MOVE_SELF | inotify.Q_OVERFLOW):
                self.is_outdated = True
                yield DirModifiedEvent("/")
                continue
            with self._lock:
                if notice.mask & inotify.IGNORED:
                    self._paths.pop(notice.directory, None)
                known = self._paths.get(notice.directory)
            if known is None or not notice.name:
                continue
            path = os.path.join(known[0], notice.name)
            if notice.mask & inotify.IS_DIRECTORY:
                if notice.mask & (inotify.CREATE | inotify.MOVED_TO) and known[1]:
                    self._go_into(path)
                if not notice.mask & inotify.ATTRIB:
                    yield DirCreatedEvent(path)
            elif notice.mask & (inotify.CREATE | inotify.MOVED_TO):
                yield FileCreatedEvent(path)
            elif notice.mask & (inotify.DELETE | inotify.MOVED_FROM):
                yield FileDeletedEvent(path)
            else:
                yield FileModifiedEvent(path)

    def _go_into(self, path: str) -> None:
        try:
            self.add(path, is_deep=True)
        except OSError:
            return  # it is gone again, or the kernel has no watch left; looks find the changes


def _below(path: str) -> Iterator[str]:
    """Yields the directories below a directory, as deep as a search goes."""
    waiting = [(path, 0)]
    while waiting:
        directory, depth = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                names = [each.path for each in entries if each.is_dir(follow_symlinks=False)]
        except OSError:
            continue  # it is gone again, or nobody may list it
        yield from names
        if depth < DEPTH_MAX:
            waiting += [(name, depth + 1) for name in names]
