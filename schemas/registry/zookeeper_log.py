"""The registry's log. Entry N is the ZooKeeper node `/skidway/schemas/log/<N in ten digits>`.

The first entry has number 1. Each write of a registry creates the node with the next number. Nodes
are never altered, so if two registries write at the same time, ZooKeeper lets only one of them
create the node. Every wait is bounded. If ZooKeeper does not answer a request in time,
`Unreachable` is raised; even then, the request may have taken effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from skidway.coordination import Coordinator, SessionState
from skidway.errors import Unreachable

ROOT: Final = "/skidway/schemas/log"
ANSWER_WITHIN_S: Final = 10.0


class ZookeeperLog:
    """The log in ZooKeeper. Several threads may use this object. The caller must close
    `coordinator`."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._wake: Callable[[], None] = _nobody
        coordinator.create_if_absent(ROOT)

    @property
    def connected(self) -> bool:
        """Returns whether ZooKeeper is connected, according to the session state that kazoo
        reported last."""
        return self._coordinator.state is SessionState.CONNECTED

    def create(self, number: int, content: bytes) -> bool:
        """Creates the entry with this number. Returns False if the entry exists already. An
        existing entry may be our own, from a request whose answer was lost."""
        return self._coordinator.create_if_absent(_path(number), content)

    def read(self, first: int, count: int) -> list[bytes]:
        """Returns at most `count` entries from number `first` on. The list ends before the first
        entry that does not exist. All `count` entries are requested at once."""
        get = self._coordinator.client.get_async
        pending = [get(_path(number)) for number in range(first, first + count)]
        contents = []
        for each in pending:
            try:
                contents.append(_answer(each)[0])
            except NoNodeError:
                break
        return contents

    def count(self) -> int:
        """Returns the number of entries. The number may soon be too low, because other registry
        processes also add entries."""
        found = _answer(self._coordinator.client.exists_async(ROOT))
        return 0 if found is None else int(found.children_count)

    def sync(self) -> None:
        """Waits until the ZooKeeper server to which this process is connected has all entries that
        the leader acknowledged before this call."""
        _answer(self._coordinator.client.sync_async(ROOT))

    def watch(self, number: int, wake: Callable[[], None]) -> None:
        """Calls `wake` on one of kazoo's threads when the entry with this number is created, or at
        once if the entry exists already.

        If `watch` is called again, the new `wake` replaces the earlier one.
        """
        self._wake = wake
        exists = self._coordinator.client.exists_async
        if _answer(exists(_path(number), watch=self._on_event)) is not None:
            wake()

    def on_session(self, wake: Callable[[], None]) -> None:
        """Calls `wake` on one of kazoo's threads whenever the state of the ZooKeeper session
        changes."""
        self._coordinator.on_state(lambda _state: wake())

    def _on_event(self, _event: Any) -> None:
        # kazoo has a set of watchers for each node, and `_on_event` is in the set only once. So an
        # event calls this method once, however often `watch` was called for the node.
        self._wake()


def _nobody() -> None:
    """Does nothing. Used as `wake` before the first call of `watch`."""


def _answer(pending: Any) -> Any:
    try:
        return pending.get(timeout=ANSWER_WITHIN_S)
    except NoNodeError:
        raise
    except (KazooException, KazooTimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Unreachable(f"ZooKeeper did not answer the registry ({why}).") from error


def _path(number: int) -> str:
    return f"{ROOT}/{number:010d}"
