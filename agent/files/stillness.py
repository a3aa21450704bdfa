"""Whether generations (rotated files) were being renamed while a directory was looked at. Pure.

If so, what the patterns found and what the listing shows come from different moments: a listing may
have a renamed file twice, or not at all. Such a look is repeated, and nothing is sealed. Names that
no rotation gives may come and go without such a repetition. So files beside a log that are no
generations never delay the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

STILL_MS: Final = 50
"""A look may have seen only a part of the renamings if the directory changed during the look, or
less than this time before the look.
"""

RESTLESS_S: Final = 30.0
"""In some directories, generations are being renamed at every look. After this time, the listing of
such a directory is accepted nevertheless.
"""

Seen = frozenset[tuple[str, object]]
"""Names, each with the file that has it."""


@dataclass(frozen=True, slots=True)
class Restless:
    """Looks at a directory in which names change.

    since: when the first of these looks began (s). seen: all that a rotation would change. seen_ms:
    when a look first saw exactly `seen`.
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """What a later look at the directory waits for, because the directory changed just now. None if
    this look can be trusted.

    before: what the last look saw. now: the time (s) of a clock that is never set.
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
