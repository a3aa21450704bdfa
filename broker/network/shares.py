"""Who is served next, and for how long, so that everybody has a fair share of the loop. Pure.

Start-time fair queueing (Goyal, Vin, Cheng 1996): each connection has a *tag*, the cost of what was
done for it so far, and the one with the lowest is next. Who was away comes back at the tag of the
one that is served now: nothing is saved up, and what was not paid yet stays owed. So of two that
always have something to do each gets one half, by cost and not by the number of its requests, and
one that asks now and then is served before those that flood, however many they are. A new
connection begins one allowance behind: coming anew for each request gains nothing, and nobody
waits for ever.

A turn has a bound, so that timers, other threads, writing and answers have theirs soon. It is
divided among those who wait; with many it ends before all were served, and the next turn goes on.

Costs are whole numbers; one is about a microsecond of work. Their proportions matter, not more.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

TURN_COST: Final = 4_000
"""What is done in one turn before its batches are written and its answers go out."""
ALLOWANCE_MIN: Final = 250
"""Least that one is served for at a time: less would cost more in calls than it is worth."""

Who = TypeVar("Who", bound=Hashable)


class Shares(Generic[Who]):
    """All connections of the loop, which owns this."""

    def __init__(self, turn_cost: int = TURN_COST, allowance_min: int = ALLOWANCE_MIN) -> None:
        self._turn_cost = turn_cost
        self._allowance_min = allowance_min
        self._tags: dict[Who, int] = {}
        self._waiting: set[Who] = set()
        self._heap: list[tuple[int, bool, int, Who]] = []
        self._numbers = itertools.count()
        self._served_tag = 0
        self._left = turn_cost

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def join(self, who: Who) -> None:
        """A new one."""
        self._tags[who] = self._served_tag + self._allowance_min

    def leave(self, who: Who) -> None:
        """It is gone; harmless if it never came."""
        self._tags.pop(who, None)
        self._waiting.discard(who)
        if not self._waiting:
            self._heap.clear()

    def wait(self, who: Who) -> None:
        """There is something to do for it; harmless if it waits already."""
        if who in self._waiting:
            return
        self._waiting.add(who)
        tag = self._tags[who]
        was_away = tag < self._served_tag
        if was_away:
            tag = self._tags[who] = self._served_tag
        # Those that go on may all have one tag: who comes back is served before them.
        heapq.heappush(self._heap, (tag, not was_away, next(self._numbers), who))

    def begin_turn(self) -> None:
        """The bound of a turn counts from here."""
        self._left = self._turn_cost

    def next(self) -> Who | None:
        """Who is served now, and waits no longer; None if nobody waits or the turn is over."""
        while self._left > 0 and self._heap:
            tag, _, number, who = heapq.heappop(self._heap)
            if who not in self._waiting:
                continue  # gone meanwhile
            if tag < self._tags[who]:
                # It was charged while it waited.
                heapq.heappush(self._heap, (self._tags[who], True, number, who))
                continue
            self._waiting.remove(who)
            self._served_tag = tag
            return who
        return None

    @property
    def allowance(self) -> int:
        """What may be done for the one that `next` gave, before it waits again."""
        return max(self._turn_cost // (len(self._waiting) + 1), self._allowance_min)

    def charge(self, who: Who, cost: int) -> None:
        """Notes what was done for one of them."""
        self._tags[who] += cost
        self._left -= cost
