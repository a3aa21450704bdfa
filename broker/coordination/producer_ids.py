"""Assigns producer ids with the numbers of the block that this broker owns, and tells to whom an id
was given (see `log.producer_id`).

When a block is used up, the broker takes a new block from ZooKeeper. Meanwhile, requests for ids
wait for the new block. The numbers of a new block are higher than those of every earlier block, and
higher than the highest one in the broker's logs. So even if ZooKeeper was restored from an older
state, the broker assigns no id that is in its logs. When the broker stops, the unused numbers of
its block are never used.
"""

from __future__ import annotations

from collections.abc import Callable

from skidway.broker.log import producer_id
from skidway.errors import SkidwayError

WAITING_MAX = 10_000
KNOWN_MAX = 100_000

Given = Callable[[int | SkidwayError], None]
Block = tuple[int, int]


class ProducerIds:
    """Assigns this broker's producer ids. Only the loop may use this object. key: that of the
    cluster's producer ids. take_block: a function that gets a block of numbers from ZooKeeper, and
    then calls its argument with the block or the error, on the loop's thread."""

    def __init__(
        self, key: bytes, take_block: Callable[[Callable[[Block | SkidwayError], None]], None]
    ) -> None:
        self._key = key
        self._take_block = take_block
        self._next = 0
        self._last = -1
        self._waiting: list[tuple[str, Given]] = []
        self._known: dict[int, str] = {}

    def belongs_to(self, id_: int, principal: str) -> bool:
        """Returns whether this id was given to this principal."""
        if self._known.get(id_) == principal:
            return True
        if not producer_id.belongs_to(self._key, id_, principal):
            return False
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[id_] = principal
        return True

    def give(self, principal: str, given: Given) -> None:
        """Calls `given` with an unused id for this principal as soon as there is one. If the broker
        gets no block of numbers, calls `given` with the error.
        """
        if self._next <= self._last and not self._waiting:
            self._next += 1
            given(producer_id.make(self._key, self._next - 1, principal))
            return
        if len(self._waiting) >= WAITING_MAX:
            given(SkidwayError("too many producers wait for an id"))
            return
        self._waiting.append((principal, given))
        if len(self._waiting) == 1:
            self._take_block(self._taken)

    def _taken(self, block: Block | SkidwayError) -> None:
        waiting, self._waiting = self._waiting, []
        if isinstance(block, SkidwayError):
            for _, given in waiting:
                given(block)
            return
        self._next, self._last = block
        for principal, given in waiting:
            self.give(principal, given)
