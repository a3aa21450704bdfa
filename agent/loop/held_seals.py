"""If a file holds back a topic's seal for long, logs the file, but only once. If a seal no longer
waits for the file, a later wait is logged again."""

from __future__ import annotations

from collections.abc import Mapping

from skidway.agent import events


class HeldSeals:
    """Owns the files that the agent has already logged because a seal waits for them."""

    def __init__(self) -> None:
        self._named: set[tuple[str, str]] = set()

    def name(self, held: Mapping[str, Mapping[str, str]]) -> None:
        """Logs the files in `held`, except those that were in `held` at the previous call too.

        held: the files for which seals have waited for long: by topic and path, what is missing.
        """
        found = {
            (topic, path): reason
            for topic, reasons in held.items()
            for path, reason in reasons.items()
        }
        for (topic, path), reason in found.items():
            if (topic, path) not in self._named:
                events.seal_held_back(topic, path, reason)
        self._named = set(found)
