"""The connections whose clients are not known yet, because their TLS handshake or their first login
is not complete. Does no I/O.

There are at most `max.connections.unauthenticated` of them, each for at most `DEADLINE_S`. If there
is no room, an address that holds far more of them than the newcomer's gives way.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from skidway.holders import Holders

DEADLINE_S: Final = 10.0
HOG_RATIO: Final = 4
"""An address with this many times as many connections as the newcomer's address gives way."""

Who = TypeVar("Who", bound=Hashable)


class Unauthenticated(Generic[Who]):
    """Who is not known yet, and since when. Only the loop uses it."""

    def __init__(self, limit: int) -> None:
        self._held: Holders[Who] = Holders(limit)
        self._began: dict[Who, float] = {}

    def __len__(self) -> int:
        return len(self._began)

    def begin(self, who: Who, address: str, now: float) -> None:
        """Takes a new connection. There must be room. now: in s."""
        self._began[who] = now
        self._held.hold(who, address, 1)

    def goes_on(self, who: Who, as_who: Who, address: str) -> None:
        """Notes that a connection, whose client is still not known, is now another object."""
        began = self._began.pop(who)
        self._held.release(who)
        self._began[as_who] = began
        self._held.hold(as_who, address, 1)

    def end(self, who: Who) -> None:
        """Notes that the client is known, or gone. Does nothing if it is not here."""
        if self._began.pop(who, None) is not None:
            self._held.release(who)

    def has_room(self, address: str) -> bool:
        """Whether a client of this address may come, perhaps after somebody has given way."""
        is_full = len(self._began) >= self._held.limit
        return not is_full or self._held.most() >= HOG_RATIO * (self._held.of_address(address) + 1)

    def gives_way(self) -> Who | None:
        """Returns who must go before the next one may come; None if there is room."""
        return self._held.first() if len(self._began) >= self._held.limit else None

    def late(self, now: float) -> list[Who]:
        """Returns those whose time is over. now: in s."""
        return [who for who, began in self._began.items() if began <= now - DEADLINE_S]
