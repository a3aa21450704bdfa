"""Files that were found and could not be opened yet: each is read later, or declared lost.

They are durable: of a file that goes away before it can be read nothing else is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.agent.values.found import FileKey, Found, UnopenedFile


class Unopened:
    """Owns which there are."""

    def __init__(self) -> None:
        self._files: dict[FileKey, UnopenedFile] = {}
        self._is_changed = False

    def load(self, files: Iterable[UnopenedFile]) -> None:
        """Those from before the start."""
        self._files = {each.found.key: each for each in files}

    def take_changed(self) -> list[UnopenedFile] | None:
        """All of them; None if they are the same as at the last call."""
        is_changed, self._is_changed = self._is_changed, False
        return list(self._files.values()) if is_changed else None

    def all(self) -> list[UnopenedFile]:
        """Those that there are now."""
        return list(self._files.values())

    def add(self, file: UnopenedFile) -> None:
        """It was found, and cannot be opened. What may have bytes that nobody read stays so,
        however old it is by the looks since."""
        before = self._files.get(file.found.key)
        if before is not None and before.found.born_ns == file.found.born_ns:
            file = file._replace(may_begin=file.may_begin or before.may_begin)
        if before != file:
            self._files[file.found.key] = file
            self._is_changed = True

    def has(self, key: FileKey) -> bool:
        """Whether a file is among them."""
        return key in self._files

    def remove(self, key: FileKey) -> None:
        """It was opened, or is gone."""
        if self._files.pop(key, None) is not None:
            self._is_changed = True

    def was_cut(self, found: Found) -> bool:
        """Whether it has lost bytes since it was seen last; from now on it is as it was found."""
        before = self._files.get(found.key)
        if before is None or before.found.born_ns != found.born_ns:
            return False
        if found.size < 0 or found.size >= before.found.size:
            return False
        self.add(before._replace(found=found))
        return True
