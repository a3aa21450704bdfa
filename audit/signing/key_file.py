"""A file with keys, which is read again when it changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from skidway.audit.signing.keys import FILE_BYTES_MAX, KeyRefused
from skidway.regular_file import open_regular

Keys = TypeVar("Keys")


class KeyFile(Generic[Keys]):
    """Knows which content of the file was used last. parse: returns the keys in a text. Raises
    KeyRefused, with a sentence that begins with a verb."""

    def __init__(self, path: Path, parse: Callable[[str], Keys]) -> None:
        self.path = path
        self._parse = parse
        self._seen: tuple[int, ...] | None = None

    def changed(self) -> Keys | None:
        """Returns the keys in the file; None if it has not changed since the last call. Raises
        KeyRefused, with a sentence that begins with a verb; the next call then reads the file
        again."""
        seen, self._seen = self._seen, None
        try:
            with open_regular(self.path) as file:
                status = os.fstat(file.fileno())
                found = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
                data = b"" if found == seen else file.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise KeyRefused(f"cannot be read: {error.strerror}") from error
        if len(data) > FILE_BYTES_MAX:
            raise KeyRefused("is too large for a key")
        keys = None if found == seen else self._parse(data.decode("utf-8", "replace"))
        self._seen = found
        return keys
