"""Counts the files that the agent does not read because they are older than `ignore.older.ms`.

The agent's state does not store these counts, but only a list of those files that are at paths that
a pattern matches (module `unbegun`). Each time that the agent goes through the directories of its
sources, it decides anew, by a file's time of change, whether the file is too old. So if such a file
is written to again, the agent reads it from its beginning. If a wrong clock makes a file seem too
old, the agent reads the file after the clock is set right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from skidway.agent.files.sources import TailedSource
from skidway.agent.values.found import Found


class Left(NamedTuple):
    """How many files of a topic are not read because they are too old, how many bytes they have
    together, and the path of one of them.
    """

    files: int = 0
    bytes: int = 0
    path: str = ""


class Ignored:
    """Owns the counts of old files, by topic: those of the present look, and those of the last look
    that has ended."""

    def __init__(self) -> None:
        self._now: dict[str, Left] = {}
        self.by_topic: Mapping[str, Left] = {}

    def begin_look(self) -> None:
        """Sets the counts of the present look to zero."""
        self._now = {}

    def end_look(self) -> list[str]:
        """Keeps the counts of this look. Returns the topics that have another number of old files
        than at the look before."""
        before, self.by_topic = self.by_topic, self._now
        topics = sorted(before.keys() | self._now.keys())
        none = Left()
        return [t for t in topics if before.get(t, none).files != self._now.get(t, none).files]

    def add(self, topic: str, found: Found) -> None:
        """Counts a file that is not read because it is too old."""
        left = self._now.get(topic, Left())
        size = left.bytes + max(found.size, 0)
        self._now[topic] = Left(left.files + 1, size, left.path or found.path)


def is_old(source: TailedSource, found: Found, now_ms: int) -> bool:
    """Whether a file was last changed longer ago than the source's `ignore.older.ms`."""
    older_ms = source.ignore_older_ms
    return older_ms is not None and now_ms - found.changed_ns // 1_000_000 > older_ms
