"""Logs each unreadable path once. If the path becomes readable, a later failure is logged again."""

from __future__ import annotations

from skidway.agent import events
from skidway.agent.files.tracking import Tracker


class UnreadablePaths:
    """Owns the unreadable paths that the agent has already logged."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()

    def name(self, tracker: Tracker) -> None:
        """Logs the paths that could not be read at the last look, except those that the previous
        call already found unreadable.
        """
        found = {
            (topic, path): reason
            for topic, reasons in tracker.unreadable.items()
            for path, reason in reasons.items()
        }
        for (topic, path), reason in found.items():
            if (topic, path) not in self._named:
                is_passing = (topic, path) in tracker.passing
                events.unreadable(topic, path, reason, is_passing=is_passing)
        self._named = set(found)
