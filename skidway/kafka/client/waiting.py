"""Waits for sockets and for other descriptors, on the caller's thread."""

from __future__ import annotations

import selectors
from collections.abc import Sequence


class SelectorWatcher:
    """A `Watcher` (see the module `network`) that uses a selector."""

    __slots__ = ("_selector",)

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        """From now on, reports when a descriptor is readable (`read`) or writable (`write`)."""
        events = read * selectors.EVENT_READ | write * selectors.EVENT_WRITE
        if fd in self._selector.get_map():
            self._selector.modify(fd, events)
        else:
            self._selector.register(fd, events)

    def unwatch(self, fd: int) -> None:
        """Stops watching a descriptor."""
        self._selector.unregister(fd)

    def wait(self, timeout_s: float, wake: Sequence[int]) -> list[tuple[int, bool, bool]]:
        """Waits at most `timeout_s` until a descriptor is ready. Returns each ready descriptor as
        (descriptor, readable, writable), including the descriptors in `wake`."""
        for fd in set(wake):
            self._selector.register(fd, selectors.EVENT_READ)
        try:
            ready = self._selector.select(max(timeout_s, 0))
        finally:
            for fd in set(wake):
                self._selector.unregister(fd)
        return [
            (key.fd, bool(mask & selectors.EVENT_READ), bool(mask & selectors.EVENT_WRITE))
            for key, mask in ready
        ]

    def close(self) -> None:
        """Closes the selector."""
        self._selector.close()
