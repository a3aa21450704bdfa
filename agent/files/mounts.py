"""Waits for known files whose file system is not mounted, for example because the agent started
before the mount.

Such files are not gone, but nobody can know which other files are in their directories. So for the
first hour after the agent's start, their directories count as unreadable. After that hour, missing
files count as gone, and the agent declares their unread bytes lost. But the agent still remembers
for REMEMBERED_S what it has read of these files: if the file system is mounted later with the same
files, the agent must not read them again. If a file system is unmounted while the agent runs, the
agent also remembers the files of that file system.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from skidway.agent.files.host import Host
from skidway.agent.files.likeness import renumbered
from skidway.agent.values.tracked import TrackedFile

MOUNT_WAIT_S: Final = 3_600.0
"""How many seconds a starting agent waits for a file system. The operating system may have to check
the file system before it mounts it.
"""

REMEMBERED_S: Final = 30 * 86_400.0
"""If a file id has ended and its file's file system is missing, the agent remembers the id for this
many seconds."""

UNMOUNTED: Final = "the file system on which its files lay is not mounted"


class Mounts:
    """Owns the known files whose file system is not mounted, while the agent waits for the
    mount."""

    def __init__(self, host: Host) -> None:
        self._host = host
        # by directory: the known files whose file system is not mounted there
        self._away: dict[str, list[TrackedFile]] = {}
        self._until: float | None = None
        # by directory: when another device was first found mounted there
        self._elsewhere: dict[str, float] = {}

    def load(self, files: Iterable[TrackedFile]) -> None:
        """Takes the files that were known before the agent started, and keeps those whose file
        system is not mounted. Called before the agent searches for files."""
        by_directory: dict[str, list[TrackedFile]] = {}
        for tracked in files:
            if not tracked.is_deleted:
                directory = os.path.dirname(tracked.location)
                by_directory.setdefault(directory, []).append(tracked)
        for directory, known in by_directory.items():
            device = self._host.device_of(directory)
            if device is not None and all(each.birth.key.device != device for each in known):
                self._away[directory] = known

    def is_away(self, tracked: TrackedFile) -> bool:
        """Whether the agent waits for the file's file system."""
        waiting = self._away.get(os.path.dirname(tracked.location), ())
        return any(each is tracked for each in waiting)

    def may_come_back(self, tracked: TrackedFile, now: float) -> bool:
        """Whether the file may return with its file system: the file's directory is now on another
        device, and this was first noticed less than REMEMBERED_S ago.
        """
        if tracked.is_deleted:
            return False
        directory = os.path.dirname(tracked.location)
        if self._host.device_of(directory) == tracked.birth.key.device:
            self._elsewhere.pop(directory, None)
            return False
        return now - self._elsewhere.setdefault(directory, now) < REMEMBERED_S

    def arrived(self, now: float) -> list[TrackedFile]:
        """Returns the files whose file system is mounted now, and the files for which the agent has
        waited MOUNT_WAIT_S. The agent no longer waits for them. The oldest file ids come first.
        """
        if not self._away:
            return []
        if self._until is None:
            self._until = now + MOUNT_WAIT_S
        come = [each for each in self._away if now >= self._until or self._is_there(each)]
        files = [tracked for directory in come for tracked in self._away.pop(directory)]
        return sorted(files, key=lambda tracked: tracked.birth.serial)

    def missing(self) -> Iterator[tuple[str, str]]:
        """Yields (topic, directory) of each file for which the agent waits."""
        for directory, files in self._away.items():
            yield from {(tracked.birth.topic, directory) for tracked in files}

    def _is_there(self, directory: str) -> bool:
        device, files = self._host.device_of(directory), self._away[directory]
        return any(
            tracked.birth.key.device == device or renumbered(self._host, tracked) is not None
            for tracked in files
        )
