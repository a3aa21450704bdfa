"""How many bytes one turn of the agent's loop may read of the files of each topic.

The brokers may acknowledge the batches of one topic, and not those of a second topic, for example
because the second topic was deleted, or because a leader of its partitions is away. The second
topic must not take all of `buffer.memory`. So a topic may be read only while its own unacknowledged
bytes are fewer than the bytes that are free. A topic that gets no acknowledgement stops at half of
the memory. Two such topics that are read together stop at a third each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping


class Room:
    """Counts the bytes that one turn of the agent's loop reads of each topic's files. The batches
    of these bytes are not made yet, so this class assumes that a batch will have as many bytes as
    its lines, although compression may make the batch smaller."""

    def __init__(self, free: int, held: Mapping[str, int], stopped: Collection[str] = ()) -> None:
        """free: how many bytes may still be unacknowledged, for all topics together. held: the
        unacknowledged bytes of each data topic, including those of its rejected topic. stopped: the
        topics of which nothing may be read."""
        self._free = free
        self._held = Counter(held)
        self._stopped = stopped

    @classmethod
    def unlimited(cls) -> Room:
        """Returns room for all bytes, for a program that keeps no batches."""
        return cls(sys.maxsize, {})

    def has(self, topic: str) -> bool:
        """Whether the turn may read more of this topic's files."""
        return topic not in self._stopped and self._held[topic] < self._free

    def take(self, topic: str, size: int) -> None:
        """Counts bytes that the turn has taken of this topic's files. The last range of bytes may
        exceed the room."""
        self._held[topic] += size
        self._free -= size
