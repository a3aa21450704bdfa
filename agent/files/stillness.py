"""Whether generations were being renamed while a directory was looked at. Pure.

If so, what the patterns found and what the listing shows come from different moments: a listing may
have a renamed file twice, or not at all. Such a look is repeated, and nothing is sealed. Names that
no rotation gives may come and go. So other files beside a log never delay it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STILL_MS: Final = 50
"""If a directory changed during a look, or less than this time before it, the look may have seen
only a part of the renamings.
"""

RESTLESS_S: Final = 30.0
"""A directory's generations may always be in the middle of renamings. After this time, its listing
is accepted nevertheless.
"""

Seen = frozenset[tuple[str, object]]
"""Names, each with the file that has it."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Looks at a directory in which names change.

    since: when these looks began, s. seen: all that a rotation would change. seen_ms: since when
    `seen` has been the same.
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """What a later look at the directory waits for, because the directory changed just now. None if
    this look can be trusted.

    before: what the last look saw; now: s, of a clock that is never set.
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
