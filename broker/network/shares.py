"""Decides which connection is served next in a turn of the loop, and for how long, so that each
connection gets a fair share of the time. Does no I/O.

The method is start-time fair queueing (Goyal, Vin, Cheng 1996). Each connection has a *tag*: a
number to which the cost of all work for the connection is added. The connection with the lowest tag
is served next. While a connection is idle, its tag does not rise. When it sends requests again, its
tag becomes at least the tag of the connection that is served now, so it gets no additional time for
having been idle. A connection that has used more than its share has a higher tag than the others,
so the others are served first.

If two connections always have requests, each gets half of the time. The time is measured by the
cost of the requests, not by their number. A connection that only sends a request now and then is
served before all connections that send without pause, however many they are. A new connection
begins with the tag of the connection that is served now, plus the smallest allowance. So a client
gains nothing by opening a new connection for each request, and no connection waits forever.

The cost of a turn is limited, so that timers, writes, answers and the calls that other threads have
posted do not wait long. The limit is divided equally among the waiting connections: each gets an
*allowance*. If many connections wait, the turn ends before all of them were served, and the next
turn continues with the others.

Costs are whole numbers. A cost of 1 is about a microsecond of work, but only the ratios of costs
matter.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

TURN_COST: Final = 4_000
"""The limit for the cost of a turn's requests. When the limit is reached, the loop writes the
turn's batches and sends the turn's answers."""
ALLOWANCE_MIN: Final = 250
"""The smallest allowance: each connection that is served may use at least this cost in a turn. With
a smaller allowance, the calls for serving the connection would cost more than the requests
themselves.
"""

Who = TypeVar("Who", bound=Hashable)


class Shares(Generic[Who]):
    """Decides which connection is served next. Only the loop uses it."""

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
        return len(self._waiting)

    def join(self, who: Who) -> None:
        """Adds a new connection."""
        self._tags[who] = self._served_tag + self._allowance_min

    def leave(self, who: Who) -> None:
        """Removes a connection. Does nothing if `join` never added the connection."""
        self._tags.pop(who, None)
        self._waiting.discard(who)
        if not self._waiting:
            self._heap.clear()

    def wait(self, who: Who) -> None:
        """Puts a connection that has requests or other work into the queue of connections to serve.
        Does nothing if the connection is in the queue already."""
        if who in self._waiting:
            return
        self._waiting.add(who)
        tag = self._tags[who]
        was_away = tag < self._served_tag
        if was_away:
            tag = self._tags[who] = self._served_tag
        # Of several connections with the same tag, those that were idle are served first.
        heapq.heappush(self._heap, (tag, not was_away, next(self._numbers), who))

    def begin_turn(self) -> None:
        """Begins a turn. In a turn, the work for all connections together may cost at most
        `turn_cost`."""
        self._left = self._turn_cost

    def next(self) -> Who | None:
        """Takes the next connection from the queue. Returns None if no connection waits, or if the
        turn is over."""
        while self._left > 0 and self._heap:
            tag, _, number, who = heapq.heappop(self._heap)
            if who not in self._waiting:
                continue  # the connection was removed meanwhile
            if tag < self._tags[who]:
                # While this connection waited, `charge` raised its tag, so it moves back in the
                # queue.
                heapq.heappush(self._heap, (self._tags[who], True, number, who))
                continue
            self._waiting.remove(who)
            self._served_tag = tag
            return who
        return None

    @property
    def allowance(self) -> int:
        """Returns the cost that the connection from `next` may use before it has to wait again."""
        return max(self._turn_cost // (len(self._waiting) + 1), self._allowance_min)

    def charge(self, who: Who, cost: int) -> None:
        """Adds `cost` to the connection's tag, and subtracts it from what is left of the turn's
        limit. The caller has done work of this cost for the connection."""
        self._tags[who] += cost
        self._left -= cost
