"""Limits how many segments are open at a time, so that thousands of partitions can share a limited
number of descriptors.

A segment opens its file on first use. If more segments are open than the limit allows, the segment
that was opened first gives up its descriptor, and opens its file again on its next use. While a
reader or a flush is using a descriptor, it stays open. So a broker with more partitions than
descriptors still works, but more slowly.
"""

from __future__ import annotations

import resource
from typing import Protocol
from weakref import WeakKeyDictionary

_SHARE = 2
"""Segments may use one in `_SHARE` of the descriptors that the process may open. The others are for
connections of clients and for all other files."""


class Holder(Protocol):
    """An object that has a file descriptor open and can close it."""

    def let_go(self) -> None:
        """Gives up the descriptor, which is closed when no reader or flush uses it any more."""
        ...


class OpenSegments:
    """The segments that have a descriptor open. Only the loop's thread may use this object and the
    segments."""

    __slots__ = ("_holders", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._holders: WeakKeyDictionary[Holder, None] = WeakKeyDictionary()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Notes that a holder has opened its file. If too many files are open now, calls `let_go`
        of the holder whose file was opened first."""
        self._holders[holder] = None
        while len(self._holders) > self.limit:
            oldest = next(iter(self._holders))
            self.closed(oldest)
            oldest.let_go()

    def closed(self, holder: Holder) -> None:
        """Notes that a holder no longer has an open descriptor."""
        self._holders.pop(holder, None)


def segments_max() -> int:
    """Returns how many segments may be open, as computed from this process's limit of
    descriptors.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(limit // _SHARE, 1) if limit != resource.RLIM_INFINITY else 1 << 20


def raise_limit() -> None:
    """Raises the process's limit of descriptors as far as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    OPEN.limit = segments_max()


OPEN = OpenSegments(segments_max())
