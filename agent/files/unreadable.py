"""The paths that the agent could not list or read at the last look, when it went through the
directories of all sources, or since then. While a topic has such a path, the agent does not seal
the topic.
"""

from __future__ import annotations

import errno

from skidway.agent.files.host import Scan


class Unreadable:
    """Owns the unreadable paths. by_topic: for each topic and each unreadable path, the reason why
    it is unreadable. passing: those of the paths that are no errors, because a later look will
    probably find out more.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[str, str]] = {}
        self.passing: set[tuple[str, str]] = set()
        self._dead: set[str] = set()

    def begin_look(self) -> None:
        """Forgets all paths, because this look tries them again."""
        self.by_topic = {}
        self.passing = set()
        self._dead = set()

    def add_scan(self, topic: str, scan: Scan) -> None:
        """Lists as unreadable the paths that `scan` could not list or read. The scan searched for
        the files of one of the topic's sources.
        """
        self._dead.update(scan.dead)
        for path, reason in scan.unreadable:
            self.add(topic, path, reason)

    def add(self, topic: str, path: str, reason: str | OSError) -> None:
        """Lists a path as unreadable, with the reason why its content is unknown."""
        if isinstance(reason, OSError):
            if reason.errno == errno.EAGAIN:  # the file is being decompressed, or renamed
                self.wait(topic, path, reason.strerror or str(reason))
                return
            reason = reason.strerror or str(reason)
        self.by_topic.setdefault(topic, {})[path] = reason
        self.passing.discard((topic, path))

    def wait(self, topic: str, path: str, reason: str) -> None:
        """Lists a path for which a later look will probably find out more. Such a path is not an
        error."""
        if path not in self.by_topic.get(topic, {}):
            self.by_topic.setdefault(topic, {})[path] = reason
            self.passing.add((topic, path))

    def go_on(self, topic: str, path: str) -> None:
        """Removes a path that `wait` listed."""
        if (topic, path) in self.passing:
            self.passing.discard((topic, path))
            del self.by_topic[topic][path]

    def hidden(self) -> set[str]:
        """Returns the unreadable paths at or below which there may be files. Broken links are left
        out, because they hide no file.
        """
        return {path for reasons in self.by_topic.values() for path in reasons} - self._dead

    def hides(self, location: str) -> bool:
        """Whether a path is below a path that the agent could not list or read."""
        return any(
            location.startswith(path.rstrip("/") + "/")
            for reasons in self.by_topic.values()
            for path in reasons
        )
