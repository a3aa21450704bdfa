"""Remembers files that were found but could not be opened yet. The agent reads each of these files
later, or declares it lost. In a look, the agent goes once through the directories of all sources,
to find new, renamed and deleted log files. The state stores the files that could not be opened yet.
If such a file is deleted before it can be read, only the state shows that the file existed.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.agent.files.sighting import Sighting
from skidway.agent.values.found import FileKey, Found, UnopenedFile


class Unopened:
    """Owns the files that could not be opened yet."""

    def __init__(self) -> None:
        self._files: dict[FileKey, UnopenedFile] = {}
        self._is_changed = False

    def load(self, files: Iterable[UnopenedFile]) -> None:
        """Takes over the files that could not be opened before the agent started."""
        self._files = {each.found.key: each for each in files}

    def take_changed(self) -> list[UnopenedFile] | None:
        """Returns all files that could not be opened yet; None if they are the same as at the last
        call."""
        is_changed, self._is_changed = self._is_changed, False
        return list(self._files.values()) if is_changed else None

    def all(self) -> list[UnopenedFile]:
        """Returns all files that could not be opened yet."""
        return list(self._files.values())

    def add(self, file: UnopenedFile) -> None:
        """Adds a file that was found and cannot be opened. If the file was added before, `skip`
        keeps its first value. If `may_begin` (whether the agent may begin a file id for the file)
        was true, it stays true, even if the file seems too old by now.
        """
        before = self._files.get(file.found.key)
        if before is not None and before.found.born_ns == file.found.born_ns:
            file = file._replace(may_begin=file.may_begin or before.may_begin, skip=before.skip)
        if before != file:
            self._files[file.found.key] = file
            self._is_changed = True

    def has(self, key: FileKey) -> bool:
        """Whether a file is among the files that could not be opened yet."""
        return key in self._files

    def remove(self, key: FileKey) -> None:
        """Removes a file that has been opened or is gone."""
        if self._files.pop(key, None) is not None:
            self._is_changed = True

    def was_cut(self, found: Found) -> bool:
        """Whether a file has become shorter since the last look. If so, notes its new size."""
        before = self._files.get(found.key)
        if before is None or before.found.born_ns != found.born_ns:
            return False
        if found.size < 0 or found.size >= before.found.size:
            return False
        self.remove(found.key)
        # the truncation removed the bytes that the agent was to skip
        self.add(before._replace(found=found, skip=None))
        return True

    def skip_of(self, sighting: Sighting) -> int | None:
        """Returns how many of a file's first bytes are skipped; None if no bytes are skipped. If
        the file could not be opened at an earlier look, returns the number that was noted then.
        """
        found = sighting.found
        before = self._files.get(found.key)
        if before is None or before.found.born_ns != found.born_ns:
            return sighting.skip
        return before.skip
