"""How many topics requests for unknown topics may create. Does no I/O.

Any client may send such a request, and nothing removes the topics again, so a single request with
many names must not fill ZooKeeper and the disk. A client that really needs more topics than this
gets them within minutes, because clients repeat the request; an operator makes them with
CreateTopics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

REQUEST_MAX: Final = 10
MINUTE_MAX: Final = 100
"""Topics that one client address may create in a minute."""
_MINUTE_S: Final = 60.0


class AutoCreation:
    """Counts the topics that each client address has created in this minute."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began_s = monotonic()
        self._created: Counter[str] = Counter()

    def room(self, address: str) -> int:
        """Returns how many topics one request of this address may create now."""
        now_s = self._monotonic()
        if now_s - self._began_s >= _MINUTE_S:
            self._began_s = now_s
            self._created.clear()
        return max(min(REQUEST_MAX, MINUTE_MAX - self._created[address]), 0)

    def count(self, address: str, created: int) -> None:
        """Notes that a request of this address has created so many topics."""
        if created:
            self._created[address] += created
