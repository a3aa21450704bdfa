"""Whether generations were being renamed while a directory was looked at. Pure.

If so, what the patterns found and what the listing shows come from different moments: a listing may
have a renamed file twice, or not at all. Such a look is repeated, and nothing is sealed. Names that
no rotation gives may come and go. So other files beside a log never delay it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STILL_MS: Final = 50
"""A directory that changed this shortly before a look, or during it, may be seen half renamed."""

RESTLESS_S: Final = 30.0
"""After this long, the listing of a directory whose generations are always being renamed is
accepted.
"""

Seen = frozenset[tuple[str, object]]
"""Names, each with the file that has it."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Looks at a directory in which names change.

    since: when these looks began, s. seen, seen_ms: all that a rotation would change, and since
    when.
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """What a later look waits for, in a directory that changed just now; None if this look can be
    trusted.

    before: what the last look saw; now: s, of a clock that is never set.
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
