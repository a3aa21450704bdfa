"""Whether generations were being renamed while a directory was looked at. Pure.

What the patterns found and what the directory said are then of different moments: a listing may
have a renamed file twice, or not at all. Such a look is repeated, and nothing is sealed. Names that
no rotation gives may come and go: a log's neighbours never keep it waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STILL_MS: Final = 50
"""A directory that changed so shortly before a look, or in it, may have been seen half renamed."""

RESTLESS_S: Final = 30.0
"""After so long a directory in which generations are always renamed is taken as it is seen."""

Seen = frozenset[tuple[str, object]]
"""Names, each with what has it."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Looks at a directory in which names change.

    since: when they began, s; seen: what a rotation would change, since when (ms).
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """Of a directory that changed just now; None: what was seen can be taken for what is there.

    before: what the look before this one saw; now: s, of a clock that is never set.
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
