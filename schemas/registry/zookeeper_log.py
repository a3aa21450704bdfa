"""The registry's log as nodes of ZooKeeper: `/skidway/schemas/log/<ten digits>`, from 1 on.

A node is created once and never altered, so creating the next number is the compare-and-set that
every registry's writes go through. Every wait is bounded. A request that ZooKeeper does not answer
in time raises `Unreachable`; it may have taken effect all the same.
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
    """Safe to use from several threads. The coordinator belongs to the caller."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._wake: Callable[[], None] = _nobody
        coordinator.create_if_absent(ROOT)

    @property
    def connected(self) -> bool:
        """Whether ZooKeeper is there, as far as the session knows."""
        return self._coordinator.state is SessionState.CONNECTED

    def create(self, number: int, content: bytes) -> bool:
        """Puts an entry at that number; False if there is one, which may be our own."""
        return self._coordinator.create_if_absent(_path(number), content)

    def read(self, first: int, count: int) -> list[bytes]:
        """Up to `count` entries from `first` on, without a gap, asked for all at once."""
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
        """How many entries there are; more may have come since."""
        found = _answer(self._coordinator.client.exists_async(ROOT))
        return 0 if found is None else int(found.children_count)

    def sync(self) -> None:
        """After this, reads know all that ZooKeeper's leader had acknowledged before."""
        _answer(self._coordinator.client.sync_async(ROOT))

    def watch(self, number: int, wake: Callable[[], None]) -> None:
        """Calls `wake` on a thread of kazoo's when that entry comes; at once if it is there.

        Only the last `wake` is called, however often somebody watches.
        """
        self._wake = wake
        exists = self._coordinator.client.exists_async
        if _answer(exists(_path(number), watch=self._on_event)) is not None:
            wake()

    def on_session(self, wake: Callable[[], None]) -> None:
        """Calls `wake` on a thread of kazoo's whenever the session's state changes."""
        self._coordinator.on_state(lambda _state: wake())

    def _on_event(self, _event: Any) -> None:
        # kazoo keeps a set of watchers per node: one and the same method is one watcher.
        self._wake()


def _nobody() -> None:
    """The `wake` that is called before anybody watches."""


def _answer(pending: Any) -> Any:
    """ZooKeeper's answer to one request. Raises `NoNodeError`, `Unreachable`."""
    try:
        return pending.get(timeout=ANSWER_WITHIN_S)
    except NoNodeError:
        raise
    except (KazooException, KazooTimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Unreachable(f"ZooKeeper did not answer the registry ({why}).") from error


def _path(number: int) -> str:
    return f"{ROOT}/{number:010d}"
