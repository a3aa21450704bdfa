"""Decides whether generations, which are rotated files, were being renamed during a look at a
directory. In a look, the agent goes once through the directories of all sources, to find new,
renamed and deleted log files. Does no I/O.

If files are renamed during a look, the scan of the patterns and the listing of the directory show
different moments. The listing may even contain a renamed file twice or not at all. The agent then
repeats the look, and meanwhile seals none of the directory's topics. The agent does not repeat the
look if only names have changed that rotation cannot give. So other files beside a log never delay
the seals of the log's topic.
"""

from __future__ import annotations

from typing import Final

from skidway.dataclass import dataclass

STILL_MS: Final = 50
"""If the directory changed during a look, or less than this many milliseconds before it, the look
may have seen only some of the renamings.
"""

RESTLESS_S: Final = 30.0
"""If files in a directory are being renamed at every look, the agent accepts the directory's
listing after this many seconds, although a file may be missing in it.
"""

Seen = frozenset[tuple[str, object]]
"""What a look saw in a directory: pairs of a name and facts that identify the file with this
name."""


@dataclass(frozen=True, slots=True)
class Restless:
    """What successive looks found in a directory in which names change.

    since: when the first of these looks began (s, monotonic clock). seen: what the last of these
    looks saw (the result of `Look.seen`). seen_ms: the time (by the host's clock) at which one of
    these looks first saw exactly `seen`.
    """

    since: float
    seen: Seen
    seen_ms: int


def look_again(before: Restless, seen: Seen, now: float, now_ms: int) -> Restless | None:
    """Returns None if the agent may use this look's listing of the directory: two looks that were
    at least STILL_MS apart saw the same, or names have been changing for RESTLESS_S. Otherwise,
    returns the value with which the next look must be compared.

    before: the value from the last look. now: the monotonic time (s).
    """
    if now - before.since >= RESTLESS_S:
        return None
    if before.seen != seen:
        return Restless(before.since, seen, now_ms)
    is_still = abs(now_ms - before.seen_ms) >= STILL_MS
    return None if is_still else before
