"""A directory of this machine as an output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from audit.output import Entry, StoreFailed

NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LocalOutput:
    """Files below one directory, to be read."""

    def __init__(self, directory: str) -> None:
        self._root = Path(directory).absolute()

    @property
    def url(self) -> str:
        """The absolute path of the root."""
        return str(self._root)

    def length(self, path: str) -> int | None:
        """See Output."""
        with failures("look at", self._root / path):
            try:
                return (self._root / path).stat().st_size
            except NOT_THERE:
                return None

    def read(self, path: str) -> bytes | None:
        """See Output."""
        with failures("read", self._root / path):
            try:
                return (self._root / path).read_bytes()
            except NOT_THERE:
                return None

    def open(self, path: str) -> IO[bytes] | None:
        """See Output."""
        with failures("read", self._root / path):
            try:
                return (self._root / path).open("rb")
            except NOT_THERE:
                return None

    def files(self, path: str) -> Iterator[Entry]:
        """See Output. A directory at a time, in order of names."""
        with failures("list", self._root / path):
            for folder, below, names in os.walk(self._root / path, onerror=_raise):
                below.sort()
                for name in sorted(names):
                    file = Path(folder, name)
                    try:
                        length = file.stat().st_size
                    except NOT_THERE:
                        continue  # moved while we looked
                    yield Entry(str(file.relative_to(self._root)), length)

    def names(self, path: str) -> list[str]:
        """See Output."""
        with failures("list", self._root / path):
            try:
                return sorted(os.listdir(self._root / path))
            except NOT_THERE:
                return []


def _raise(error: OSError) -> None:
    """A directory that cannot be listed is not one without files; one that is gone is."""
    if not isinstance(error, NOT_THERE):
        raise error


@contextmanager
def failures(verb: str, path: Path) -> Iterator[None]:
    """Turns what the system raises into one sentence."""
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"cannot {verb} {path}: {error.strerror or error}") from error
