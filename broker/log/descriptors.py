"""How many segments may be open at a time: thousands of partitions, and descriptors for all.

A segment opens its file when it is first used. Beyond the limit the one that was opened first lets
go of its own, and opens it again on use; readers and flushes that hold a descriptor keep it. So a
broker with more partitions than descriptors works, only slower.
"""

from __future__ import annotations

import resource
from typing import Protocol
from weakref import WeakKeyDictionary

_SHARE = 2
"""Of all descriptors one in so many is for segments; the others are for clients and all else."""


class Holder(Protocol):
    """Who holds a descriptor and can do without."""

    def let_go(self) -> None:
        """Drops it."""
        ...


class OpenSegments:
    """Owned by the loop's thread, as segments are."""

    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: WeakKeyDictionary[Holder, None] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Notes a holder; the oldest lets go if there are too many."""
        self._holders[holder] = None
        while len(self._holders) > self.limit:
            oldest = next(iter(self._holders))
            self.closed(oldest)
            oldest.let_go()

    def closed(self, holder: Holder) -> None:
        """Forgets a holder."""
        self._holders.pop(holder, None)


def segments_max() -> int:
    """How many segments may be open under the limit of this process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit // _SHARE, 1) if limit != resource.RLIM_INFINITY else 1 << 20


def raise_limit() -> None:
    """Takes as many descriptors as the machine allows; what it does not allow stays as it is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    OPEN.limit = segments_max()


OPEN = OpenSegments(segments_max())
