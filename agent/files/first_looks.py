"""Decides where reading begins in files that exist when the agent first looks at their source.

With `start_at: end`, such a file begins at its end, and what was written before is skipped. A
source's patterns decide one by one: a pattern that is added later is looked at for the first time
then. The state remembers each pattern, whatever `start_at` says. So neither a restart nor a change
of `start_at` skips bytes of files that appeared since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skidway.agent.files.host import Handle
from skidway.agent.files.sources import TailedSource
from skidway.agent.parsing.framing import READ_BYTES, Framer

Look = tuple[str, str]
"""A topic, and a pattern of one of its sources."""


class FirstLooks:
    """Owns the patterns at which the agent has looked."""

    def __init__(self) -> None:
        self._seen: set[Look] = set()
        self._new: list[Look] = []

    def load(self, seen: Iterable[Look]) -> None:
        """Takes over the patterns at which an earlier process has looked."""
        self._seen.update(seen)

    def is_first(self, source: TailedSource, path: str) -> bool:
        """Whether the agent never looked at a pattern that leads to this path."""
        looks = [(source.topic, each.text) for each in source.patterns if each.means(path)]
        return bool(looks) and self._seen.isdisjoint(looks)

    def end_look(self, sources: Sequence[TailedSource]) -> None:
        """Notes that the agent has looked at all patterns of these sources."""
        looks = {(source.topic, each.text) for source in sources for each in source.patterns}
        self._new += sorted(looks - self._seen)
        self._seen |= looks

    def take_new(self) -> list[Look]:
        """The patterns that the agent has looked at for the first time since the last call."""
        taken, self._new = self._new, []
        return taken


def last_record_begin(handle: Handle, size: int, framer: Framer) -> int:
    """The position at which the last record begins that may still be written to; `size` if the last
    record is whole. Looks at READ_BYTES at most. If they are one line, returns their beginning, so
    that the rest of the line is too long to become a record. Raises OSError.
    """
    unit = framer.lines.unit
    window = max(size - READ_BYTES, 0) // unit * unit
    data = handle.read(size - window, window)
    at = (framer.lines.end_inside(data) or 0) if window else 0
    return window + at + framer.whole_records_end(data[at:])
