"""The paths that the agent could not list or read at the last look, when it went through the
directories of all sources, or since then. While a topic has such a path, the agent does not seal
the topic.

Beside these, the module lists paths at which the agent reads nothing, and which hold no seal: a
FIFO, a socket, a device; what the rules of module access refuse; and a broken link, unless it led
to a file before. The file of such a link may have lines that nobody has read.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable

from skidway.agent.files.host import Scan


class Unreadable:
    """Owns the unreadable paths. by_topic: for each topic and each unreadable path, the reason why
    it is unreadable. passing: those of the paths that are no errors, because a later look will
    probably find out more. beside: the paths that hold no seal, in the same form as `by_topic`.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[str, str]] = {}
        self.passing: set[tuple[str, str]] = set()
        self.beside: dict[str, dict[str, str]] = {}
        self._dead: set[str] = set()
        self._led: set[str] = set()
        self._leads: set[str] = set()

    def load(self, paths: Iterable[str]) -> None:
        """Takes over the paths at which the files were that an earlier process knew."""
        self._led.update(paths)
        self._dead.update(self._led)

    def begin_look(self) -> None:
        """Forgets all paths, because this look tries them again."""
        self._led = self._leads | (self._led & self._dead)
        self.by_topic, self.beside = {}, {}
        self.passing = set()
        self._dead, self._leads = set(), set()

    def add_scan(self, topic: str, scan: Scan) -> None:
        """Lists as unreadable the paths that `scan` could not list or read. The scan searched for
        the files of one of the topic's sources.
        """
        self._dead.update(scan.dead)
        self._leads.update(each.path for each in scan.found if each.is_linked)
        for path, reason in scan.unreadable:
            if path in self._dead and path not in self._led:
                self.beside.setdefault(topic, {})[path] = reason
            else:
                self.add(topic, path, reason)
        for path, reason in scan.refused:
            self.beside.setdefault(topic, {})[path] = reason
        for path, kind in scan.special:
            self.beside.setdefault(topic, {})[path] = f"it is a {kind}, and is not read"

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
