"""Decides which connection is served next, and for how long, so that each gets a fair share. Pure.

Start-time fair queueing (Goyal, Vin, Cheng 1996): each connection has a *tag*, the cost of the work
done for it so far, and the connection with the lowest tag is next. A connection that was away comes
back with the tag of the connection served now, or with its own tag if its own tag is higher. So a
connection cannot save up a share, and it keeps a debt. Two connections that always have requests
get one half each, by the cost of their requests and not by their number. A connection that asks now
and then is served before the connections that ask without end, however many these are. A new
connection begins with a tag that is one allowance higher than that of the connection served now. So
a client that opens a connection for each request gains nothing, and nobody waits for ever.

A turn has a bound, so that timers, other threads, writes and answers come soon. The bound is
divided among the waiting connections. If many connections wait, the turn ends before all were
served, and the next turn goes on with the others.

Costs are whole numbers; a cost of 1 is about a microsecond of work. Only their proportions matter.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

TURN_COST: Final = 4_000
"""The cost that a turn may reach before its batches are written and its answers are sent."""
ALLOWANCE_MIN: Final = 250
"""The least allowance of a connection. A smaller allowance would cost more in calls than it is
worth.
"""

Who = TypeVar("Who", bound=Hashable)


class Shares(Generic[Who]):
    """The shares of all connections; owned by the loop."""

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
        """The number of waiting connections."""
        return len(self._waiting)

    def join(self, who: Who) -> None:
        """Adds a new connection."""
        self._tags[who] = self._served_tag + self._allowance_min

    def leave(self, who: Who) -> None:
        """Removes a connection; harmless if it never joined."""
        self._tags.pop(who, None)
        self._waiting.discard(who)
        if not self._waiting:
            self._heap.clear()

    def wait(self, who: Who) -> None:
        """Queues a connection that has something to do; harmless if it waits already."""
        if who in self._waiting:
            return
        self._waiting.add(who)
        tag = self._tags[who]
        was_away = tag < self._served_tag
        if was_away:
            tag = self._tags[who] = self._served_tag
        # Connections that were not away may have the same tag. A connection that comes back is
        # served before them.
        heapq.heappush(self._heap, (tag, not was_away, next(self._numbers), who))

    def begin_turn(self) -> None:
        """Starts a turn: the cost of the turn's work is counted from here."""
        self._left = self._turn_cost

    def next(self) -> Who | None:
        """Takes the next connection from the queue; None if none waits or the turn is over."""
        while self._left > 0 and self._heap:
            tag, _, number, who = heapq.heappop(self._heap)
            if who not in self._waiting:
                continue  # it left meanwhile
            if tag < self._tags[who]:
                # `charge` has raised the tag of this connection while it waited.
                heapq.heappush(self._heap, (self._tags[who], True, number, who))
                continue
            self._waiting.remove(who)
            self._served_tag = tag
            return who
        return None

    @property
    def allowance(self) -> int:
        """The cost that the connection from `next` may use before it waits again."""
        return max(self._turn_cost // (len(self._waiting) + 1), self._allowance_min)

    def charge(self, who: Who, cost: int) -> None:
        """Adds the cost of work done for a connection."""
        self._tags[who] += cost
        self._left -= cost
