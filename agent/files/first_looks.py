"""Decides where reading begins in files that exist when the agent first looks at their source.

With `start_at: end`, reading of such a file begins at its last unfinished line, and the bytes
before are skipped. Each pattern of a source has its own first look. A pattern that is added later
has its first look at that time. The state remembers each pattern that had its first look, even if
`start_at` is `beginning`. So if a file appears after the first look, neither a restart nor a change
of `start_at` skips its bytes.
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
        """Whether the agent has not yet looked at any pattern that leads to this path."""
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
    """If the file's last record may not be whole yet, the position at which this record begins;
    otherwise `size`. Looks only at the last READ_BYTES of the file. If the file is longer, and all
    of these bytes belong to one line, returns the position of the first of these bytes; the part of
    the line from there on is too long to become a record. Raises OSError.
    """
    unit = framer.lines.unit
    window = max(size - READ_BYTES, 0) // unit * unit
    data = handle.read(size - window, window)
    at = (framer.lines.end_inside(data) or 0) if window else 0
    return window + at + framer.whole_records_end(data[at:])
