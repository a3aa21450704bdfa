"""Nodes that are read again when they have changed. ZooKeeper's watches say which nodes these are.
A watch fires only once, and reading the node sets the watch again. So no change is missed, and a
node that changes twice before the next read is read only once.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kazoo.exceptions import NoNodeError

from skidway.broker.coordination.answers import answered
from skidway.coordination import Coordinator


class WatchedNodes:
    """The watches of one reader. It reads on the session's thread. When a node has changed, calls
    `changed` on kazoo's thread, so that the reader reads again.
    """

    def __init__(self, coordinator: Coordinator, changed: Callable[[], None]) -> None:
        self._coordinator = coordinator
        self._changed = changed
        # Kazoo's thread fills `_stale`, and the session's thread empties it. No lock is needed,
        # because each operation of a deque is atomic.
        self._stale: deque[str] = deque()
        self._watches: dict[str, Callable[[Any], None]] = {}

    def note(self, names: Iterable[str]) -> None:
        """Notes that nodes have changed."""
        self._stale.extend(names)

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[Any, set[str]]]:
        """Yields kazoo's client, and the names of which nodes have changed since the last read, for
        a `with` block that reads these again. If the block raises an exception, the next one gets
        their names again, because their watches do not fire again. Raises Unreachable."""
        stale = {self._stale.popleft() for _ in range(len(self._stale))}
        try:
            with answered(self._coordinator) as client:
                yield client, stale
        except BaseException:
            self._stale.extend(stale)
            raise

    def children(self, client: Any, path: str, name: str) -> list[str]:
        """Returns the names of a node's children, sorted; creates the node if it is missing.
        name: under which a change is noted, here and below."""
        client.ensure_path(path)
        return sorted(client.retry(client.get_children, path, watch=self._watch(name)))

    def get(self, client: Any, path: str, name: str) -> tuple[bytes, int] | None:
        """Returns the content and the version of a node; None if it is missing."""
        watch = self._watch(name)
        try:
            data, status = client.retry(client.get, path, watch=watch)
        except NoNodeError:
            if client.retry(client.exists, path, watch=watch) is not None:
                self._stale.append(name)
                self._changed()
            return None
        return data, status.version

    def _watch(self, name: str) -> Callable[[Any], None]:
        """Returns the function that kazoo calls when a node that belongs to `name` has changed. For
        the same name, always returns the same function: kazoo keeps the functions of a node in a
        set, so each change of the node causes only one call, even if the node was read several
        times.
        """
        watch = self._watches.get(name)
        if watch is None:

            def watch(_event: Any) -> None:
                self._stale.append(name)
                self._changed()

            self._watches[name] = watch
        return watch
