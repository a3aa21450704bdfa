"""Logs each path that is not read once. If the path becomes readable, a later failure is logged
again."""

from __future__ import annotations

from skidway.agent import events
from skidway.agent.files.tracking import Tracker


class UnreadablePaths:
    """Owns the paths that are not read, and that the agent has already logged."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()

    def name(self, tracker: Tracker) -> None:
        """Logs the paths that were not read at the last look, except those that the previous call
        already found.
        """
        found = {
            (topic, path): reason
            for topic, reasons in tracker.unreadable.items()
            for path, reason in reasons.items()
        }
        beside = {
            (topic, path): reason
            for topic, reasons in tracker.beside.items()
            for path, reason in reasons.items()
        }
        for (topic, path), reason in found.items():
            if (topic, path) not in self._named:
                is_passing = (topic, path) in tracker.passing
                events.unreadable(topic, path, reason, is_passing=is_passing)
        for (topic, path), reason in beside.items():
            if (topic, path) not in self._named:
                events.not_read(topic, path, reason)
        self._named = {*found, *beside}
