"""Whether generations were being renamed while a directory was looked at. Pure.

What the patterns found and what the listing said then come from different moments: a listing may
have a renamed file twice, or not at all. Such a look is repeated, and nothing is sealed. Names that
no rotation gives may come and go: a log's neighbours never keep it waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STILL_MS: Final = 50
"""A directory that changed this shortly before a look, or during it, may be seen half renamed."""

RESTLESS_S: Final = 30.0
"""After this long, a directory whose generations are always being renamed is taken as seen."""

Seen = frozenset[tuple[str, object]]
"""Names, each with the file that has it."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Looks at a directory in which names change.

    since: when they began, s; seen, seen_ms: what a rotation would change, and since when.
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """What to wait for in a directory that changed just now; None: what was seen is what is there.

    before: what the last look saw; now: s, of a clock that is never set.
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
