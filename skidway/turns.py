"""Who begins next, if only some of those that wait can run at once. Does no I/O.

An address may begin another one only while more places are free than it has: so no address has all
places, and one is left for the first of another address. The addresses with the fewest places take
turns; within an address, who came first begins first.

A limited number may wait. If one more does, somebody gives way (see `Holders`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from skidway.holders import Holders

Who = TypeVar("Who", bound=Hashable)


class Turns(Generic[Who]):
    """Those that run and those that wait. One thread uses it."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        self._running: Holders[Who] = Holders(at_once)
        self._waiting: Holders[Who] = Holders(waiting_max)

    def wait(self, who: Who, address: str) -> None:
        """Notes that `who` waits."""
        self._waiting.hold(who, address, 1)

    def leave(self, who: Who) -> None:
        """Notes that `who` waits or runs no more."""
        self._waiting.release(who)
        self._running.release(who)

    def begin(self) -> Who | None:
        """Returns who begins now; None if nobody can."""
        address = min(self._waiting.addresses(), key=self._running.of_address, default=None)
        free = self._running.limit - self._running.total
        if address is None or self._running.of_address(address) >= free:
            return None
        who = self._waiting.take_first(address)
        self._running.hold(who, address, 1)
        return who

    def gives_way(self) -> Who | None:
        """Returns who must leave, because too many wait; None while there is room."""
        return self._waiting.gives_way()
