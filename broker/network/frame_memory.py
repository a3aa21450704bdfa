"""Decides which connections may begin to receive a request, so that the requests that have arrived
in part need no more than a limit of memory. Does no I/O.

A request that has begun counts with the length that its client has announced. While the sum has
reached the limit, other connections wait: their bytes stay in the kernel, and TCP slows their
clients down. So a thousand agents that send all at once take turns, and nobody's bytes are thrown
away. When there is room, the connection whose address holds the least begins.

A client may leave its request unfinished. So while others wait, connections give way, and are
closed: the first that needs a large part of the limit for one request; else, if another address
waits and holds far less than the address that holds the most, the first of that address; and after
LATE_S each that has not received its whole request.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from skidway.holders import Holders

LATE_S: Final = 10.0
LARGE_PART: Final = 16
"""A request that needs this part of the limit, or more, is large."""
HOG_RATIO: Final = 4
"""An address that holds this many times as much as the address of a waiting connection, and at
least this part of the limit, gives way."""

Who = TypeVar("Who", bound=Hashable)


class FrameMemory(Generic[Who]):
    """What each connection holds, and who waits. Only the loop uses it."""

    def __init__(self, limit_bytes: int) -> None:
        self.held: Holders[Who] = Holders(limit_bytes)
        self._began: dict[Who, float] = {}
        self._large: dict[Who, None] = {}
        self._waiting: dict[str, dict[Who, None]] = {}

    @property
    def has_room(self) -> bool:
        """Whether a further request may begin."""
        return self.held.total < self.held.limit

    def may_receive(self, who: Who) -> bool:
        """Whether a connection may receive now: a request that has begun goes on."""
        return self.has_room or who in self.held

    def hold(self, who: Who, address: str, size_bytes: int, now: float, *, anew: bool) -> None:
        """Notes that the next request of a connection needs so much memory. anew: the request
        before it is handled. now: in s."""
        if anew or who not in self._began:
            self._began[who] = now
        self.held.hold(who, address, size_bytes, anew=anew)
        if size_bytes * LARGE_PART >= self.held.limit:
            self._large[who] = None
        else:
            self._large.pop(who, None)

    def release(self, who: Who) -> None:
        """Notes that a connection holds nothing. Does nothing if it held nothing."""
        if self._began.pop(who, None) is not None:
            self.held.release(who)
            self._large.pop(who, None)

    def wait(self, who: Who, address: str) -> Who | None:
        """Lets a connection wait for room. Returns the connection that gives way to it, if any."""
        self._waiting.setdefault(address, {})[who] = None
        if self._large:
            return next(iter(self._large))
        most = self.held.most()
        is_hog = most * HOG_RATIO >= self.held.limit
        return (
            self.held.first()
            if is_hog and most >= HOG_RATIO * self.held.of_address(address)
            else None
        )

    @property
    def waiting(self) -> int:
        """How many connections wait for room."""
        return sum(map(len, self._waiting.values()))

    def is_waiting(self, who: Who, address: str) -> bool:
        """Whether a connection waits for room."""
        return who in self._waiting.get(address, {})

    def leave(self, who: Who, address: str) -> None:
        """Ends the wait of a connection, if it waits."""
        of_address = self._waiting.get(address, {})
        if who in of_address:
            del of_address[who]
            if not of_address:
                del self._waiting[address]

    def next(self) -> Who | None:
        """Takes the next connection that may begin. Returns None if nobody waits, or there is no
        room."""
        if not self._waiting or not self.has_room:
            return None
        address = next((x for x in self._waiting if not self.held.of_address(x)), None)
        if address is None:
            address = min(self._waiting, key=self.held.of_address)
        who = next(iter(self._waiting[address]))
        self.leave(who, address)
        return who

    def late(self, now: float) -> list[Who]:
        """Returns the connections that must give way because they are too slow. now: in s."""
        if not self._waiting:
            return []
        return [who for who, began in self._began.items() if began < now - LATE_S]
