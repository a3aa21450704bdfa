"""Assigns producer ids from the block that this broker owns.

When a block is used up, the broker takes a new block from ZooKeeper. Meanwhile, requests for ids
wait for the new block. The ids of a new block are higher than the ids of every earlier block, and
higher than the highest id in the broker's logs. So even if ZooKeeper was restored from an older
state, the broker assigns no id that is in its logs. When the broker stops, the unused ids of its
block are never used.
"""

from __future__ import annotations

from collections.abc import Callable

from skidway.errors import SkidwayError

WAITING_MAX = 10_000

Given = Callable[[int | SkidwayError], None]
Block = tuple[int, int]


class ProducerIds:
    """Assigns this broker's producer ids. Only the loop may use this object. take_block: a function
    that gets a block of ids from ZooKeeper, and then calls its argument with the block or the
    error, on the loop's thread."""

    def __init__(
        self, take_block: Callable[[Callable[[Block | SkidwayError], None]], None]
    ) -> None:
        self._take_block = take_block
        self._next = 0
        self._last = -1
        self._waiting: list[Given] = []

    def give(self, given: Given) -> None:
        """Calls `given` with an unused id as soon as there is one. If the broker gets no block of
        ids, calls `given` with the error.
        """
        if self._next <= self._last and not self._waiting:
            self._next += 1
            given(self._next - 1)
            return
        if len(self._waiting) >= WAITING_MAX:
            given(SkidwayError("too many producers wait for an id"))
            return
        self._waiting.append(given)
        if len(self._waiting) == 1:
            self._take_block(self._taken)

    def _taken(self, block: Block | SkidwayError) -> None:
        waiting, self._waiting = self._waiting, []
        if isinstance(block, SkidwayError):
            for given in waiting:
                given(block)
            return
        self._next, self._last = block
        for given in waiting:
            self.give(given)
