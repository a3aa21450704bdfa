"""Remembers the greatest time that the clock showed before it was set back, because unread lines
may have times up to this time.

If lines are lost before the agent reads them, they were written after their topic's newest seal. If
the clock was set back after the agent noted the file sizes for that seal, these lines can have
times up to the greatest time that the clock showed. The state does not keep that greatest time.
After a restart, the agent knows only the times of seals.
"""

from __future__ import annotations

from collections.abc import Iterable


class SetBacks:
    """Owns the times that the agent reads from the clock, one in each turn of its loop."""

    def __init__(self) -> None:
        self._last_ms = 0
        self._count = 0
        self._greatest: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def read(self, now_ms: int, topics: Iterable[str]) -> None:
        """Notes the time that the clock shows in this turn of the agent's loop, and whether the
        clock was set back since the last turn. topics: all topics."""
        if now_ms < self._last_ms:
            self._count += 1
            for topic in topics:
                self._greatest[topic] = max(self._greatest.get(topic, 0), self._last_ms)
        self._last_ms = now_ms

    def noted(self, topic: str) -> None:
        """Remembers how often the clock was set back before the agent noted file sizes for a seal
        of the topic."""
        self._noted[topic] = self._count

    def sealed(self, topic: str) -> None:
        """Notes that the topic's seal is sent. The seal confirms all lines that were written before
        the agent noted the file sizes (`noted`). If the clock was not set back after that, every
        unread line was written after the last set-back, so the topic's greatest time is forgotten.
        """
        if self._noted.get(topic) == self._count:
            self._greatest.pop(topic, None)

    def greatest(self, topic: str, now_ms: int) -> int:
        """Returns the greatest time (ms) that an unread line of the topic can have."""
        return max(now_ms, self._greatest.get(topic, now_ms))
