"""A folder of HDFS as an output."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Iterator
from typing import IO, Any, cast
from urllib.parse import urlsplit

from skidway.audit.output import FileEntry, OutputConnection
from skidway.audit.output.hdfs.answer import Answers
from skidway.audit.output.hdfs.client import connect
from skidway.audit.output.hdfs.failures import failures


class HdfsOutput:
    """Reads the files below one folder of HDFS."""

    def __init__(self, connection: OutputConnection) -> None:
        self._answers = Answers()
        address, self._client = connect(connection, self._answers)
        self._server, self._root = address.server, address.root

    @property
    def url(self) -> str:
        """The URL of the NameNode and the folder."""
        return self._server + self._root

    def length(self, path: str) -> int | None:
        """See Output."""
        with failures("look at", self._named(path)):
            try:
                found = self._answers.get(lambda: self._client.get_file_info(self._at(path)))
            except FileNotFoundError:
                return None
        return int(found.length)

    def read(self, path: str) -> bytes | None:
        opened = self.open(path)
        if opened is None:
            return None
        with opened:
            return opened.read()

    def open(self, path: str) -> IO[bytes] | None:
        with failures("read", self._named(path)):
            try:
                file = self._answers.get(lambda: self._client.read(self._at(path)))
            except FileNotFoundError:
                return None
        return cast("IO[bytes]", HdfsReader(self._named(path), file, self._answers))

    def files(self, path: str) -> Iterator[FileEntry]:
        below = len(self._root) + 1
        folders = [path]
        while folders:  # folder by folder: if one was deleted, the others are still listed
            for status in self._listed(folders.pop()):
                name = urlsplit(status.path).path[below:]
                if status.isdir:
                    folders.append(name)
                else:
                    yield FileEntry(name, int(status.length))

    def names(self, path: str) -> list[str]:
        return sorted(posixpath.basename(status.path) for status in self._listed(path))

    def _listed(self, path: str) -> list[Any]:
        with failures("list", self._named(path)):
            try:
                at = self._at(path)
                return self._answers.get(
                    lambda: list(self._client.list_status(at, recursive=False))
                )
            except FileNotFoundError:
                return []

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _named(self, path: str) -> str:
        """The path as error messages show it. The path contains the NameNode, because the NameNode
        may be the server that does not answer."""
        return self._server + self._at(path)


class HdfsReader(io.RawIOBase):
    """An open HDFS file. If a DataNode does not answer, reading raises `StoreUnreachable` and not
    `StoreFailed`, because the file may be undamaged."""

    def __init__(self, path: str, file: Any, answers: Answers) -> None:
        super().__init__()
        self._path, self._file, self._answers = path, file, answers

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads at most `size` bytes, or all bytes that are left if no size is given."""
        with failures("read", self._path):
            return bytes(self._answers.get(lambda: self._file.read(-1 if size is None else size)))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves to a position in the file, and returns this position."""
        with failures("read", self._path):
            self._file.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        """The position in the file, in bytes."""
        return int(self._file.tell())
