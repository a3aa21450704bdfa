"""A directory of this machine as an output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from skidway.audit.output import FileEntry, StoreFailed
from skidway.regular_file import open_regular, read_regular

NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class LocalOutput:
    """Reads the files below one directory."""

    def __init__(self, directory: str) -> None:
        self._root = Path(directory).absolute()
        self._odd: dict[str, Path] = {}  # files whose names are not UTF-8, by escaped name

    @property
    def url(self) -> str:
        """The absolute path of the root."""
        return str(self._root)

    def length(self, path: str) -> int | None:
        """See Output."""
        file = self._file(path)
        with failures("look at", file):
            try:
                return file.stat().st_size
            except NOT_THERE:
                return None

    def read(self, path: str) -> bytes | None:
        file = self._file(path)
        with failures("read", file):
            try:
                return read_regular(file)
            except NOT_THERE:
                return None

    def open(self, path: str) -> IO[bytes] | None:
        file = self._file(path)
        with failures("read", file):
            try:
                return open_regular(file)
            except NOT_THERE:
                return None

    def files(self, path: str) -> Iterator[FileEntry]:
        """See Output. Lists one directory at a time, sorted by name. Follows symbolic links, like
        the programs that read the rows. If a name is not UTF-8, escapes the bytes that are not
        UTF-8."""
        with failures("list", self._root / path):
            top = self._root / path
            for folder, below, names in os.walk(top, onerror=_raise, followlinks=True):
                below[:] = sorted(each for each in below if not _is_above(folder, each))
                for name in sorted(names):
                    file = Path(folder, name)
                    try:
                        length = file.stat().st_size
                    except NOT_THERE:
                        continue  # the file was moved meanwhile
                    yield FileEntry(self._called(file), length)

    def _file(self, path: str) -> Path:
        return self._odd.get(path, self._root / path)

    def _called(self, file: Path) -> str:
        name = str(file.relative_to(self._root))
        shown = os.fsencode(name).decode("utf-8", "backslashreplace")
        if shown != name:
            self._odd[shown] = file
        return shown

    def names(self, path: str) -> list[str]:
        with failures("list", self._root / path):
            try:
                return sorted(os.listdir(self._root / path))
            except NOT_THERE:
                return []


def _is_above(folder: str, name: str) -> bool:
    """Whether an entry of a folder is a link to the folder or to a directory above it. If the
    listing followed such a link, it would never end."""
    real, here = os.path.realpath(os.path.join(folder, name)), os.path.realpath(folder)
    return os.path.commonpath([real, here]) == real


def _raise(error: OSError) -> None:
    """Raises an error that occurred while a directory was listed. If the directory is gone, raises
    nothing, because a missing directory counts as empty.
    """
    if not isinstance(error, NOT_THERE):
        raise error


@contextmanager
def failures(verb: str, path: Path) -> Iterator[None]:
    """Turns errors of the operating system into `StoreFailed` with one sentence."""
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"cannot {verb} {path}: {error.strerror or error}") from error
