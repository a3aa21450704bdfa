"""The connections whose clients are not known yet, because their TLS handshake or their first login
is not complete. Does no I/O.

There are at most `max.connections.unauthenticated` of them, each for at most `DEADLINE_S`. If there
is no room, one gives way to the newcomer: of an address that holds far more of them than the
newcomer's; else the first whose client has let the broker wait for the next step of handshake or
login, whatever else it has sent, for `PATIENCE_S`. In a rush of honest clients, these wait for the
broker, and none of them gives way.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Final, Generic, TypeVar

from skidway.holders import Holders

DEADLINE_S: Final = 10.0
HOG_RATIO: Final = 4
"""An address with this many times as many connections as the newcomer's address gives way."""
PATIENCE_S: Final = 0.5
"""At a limit, a client has this time for its next step, which takes a round trip."""

Who = TypeVar("Who", bound=Hashable)


class Unauthenticated(Generic[Who]):
    """Who is not known yet, and since when. Only the loop uses it. waits_for_client: whether what
    happens next with somebody is up to its client."""

    def __init__(self, limit: int, waits_for_client: Callable[[Who], bool]) -> None:
        self._held: Holders[Who] = Holders(limit)
        self._waits_for_client = waits_for_client
        self._began: dict[Who, float] = {}
        self._since: dict[Who, float] = {}
        """When the last step of each was, the oldest first."""

    def __len__(self) -> int:
        return len(self._began)

    def begin(self, who: Who, address: str, now: float) -> None:
        """Takes a new connection. There must be room. now: in s."""
        self._began[who] = self._since[who] = now
        self._held.hold(who, address, 1)

    def goes_on(self, who: Who, as_who: Who, address: str, now: float) -> None:
        """Notes that a connection, whose client is still not known, is now another object."""
        began = self._began[who]
        self.end(who)
        self.begin(as_who, address, now)
        self._began[as_who] = began

    def stepped(self, who: Who, now: float) -> None:
        """Notes that handshake or login have come a step further. Does nothing if it is not here.
        now: in s."""
        if self._since.pop(who, None) is not None:
            self._since[who] = now

    def end(self, who: Who) -> None:
        """Notes that the client is known, or gone. Does nothing if it is not here."""
        if self._began.pop(who, None) is not None:
            del self._since[who]
            self._held.release(who)

    @property
    def is_full(self) -> bool:
        """Whether somebody must give way before the next one may come."""
        return len(self._began) >= self._held.limit

    def gives_way(self, address: str, now: float) -> Who | None:
        """Returns who must go before a client of this address may come; None if nobody gives way.
        now: in s."""
        if self._held.most() >= HOG_RATIO * (self._held.of_address(address) + 1):
            return self._held.first()
        return next(self.slow(now), None)

    def slow(self, now: float) -> Iterator[Who]:
        """Returns those whose clients let the broker wait for long, the longest first. now: in
        s."""
        for who, since in self._since.items():
            if since > now - PATIENCE_S:
                return
            if self._waits_for_client(who):
                yield who

    def late(self, now: float) -> list[Who]:
        """Returns those whose time is over. now: in s."""
        return [who for who, began in self._began.items() if began <= now - DEADLINE_S]
