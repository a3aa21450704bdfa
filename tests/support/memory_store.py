"""A store of files in memory, in place of HDFS. It does what the docstrings of loader.store.Store
promise, and nothing more.

The store's whole content is one immutable value (`snapshot`), so a test that searches through
states can keep and compare these values.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import IO

from skidway.audit.output import FileEntry, StoreFailed
from skidway.loader.store import OutcomeUnclear, StoreConnection, StoreWriter

Snapshot = frozenset[tuple[str, bytes]]


class MemoryStore:
    """The store; it holds the bytes of each file by path. `lose_answer` says what happens at the
    next call of `create_if_absent`. With None, the store answers as usual. With True, the store
    creates the file (unless the file exists already), but the caller gets an error instead of the
    answer. With False, the store does not create the file, and the caller gets the same error."""

    def __init__(self, content: Snapshot = frozenset()) -> None:
        self._files = dict(content)
        self.lose_answer: bool | None = None

    @property
    def connection(self) -> StoreConnection:
        return StoreConnection("memory:")

    @property
    def url(self) -> str:
        return "memory:"

    @property
    def snapshot(self) -> Snapshot:
        return frozenset(self._files.items())

    def create(self, path: str) -> StoreWriter:
        return MemoryWriter(self._files, path)

    def put(self, path: str, data: bytes) -> None:
        self._files[path] = data

    def create_if_absent(self, path: str, data: bytes, scratch: str) -> bool:
        lost, self.lose_answer = self.lose_answer, None
        created = path not in self._files
        if created and lost is not False:
            self._files[path] = data
        if lost is not None:
            raise OutcomeUnclear(f"no answer about {path}")
        return created

    def rename(self, source: str, target: str) -> bool:
        if source not in self._files or target in self._files:
            return False
        self._files[target] = self._files.pop(source)
        return True

    def replace(self, source: str, target: str) -> bool:
        if source not in self._files:
            return False
        self._files[target] = self._files.pop(source)
        return True

    def length(self, path: str) -> int | None:
        data = self._files.get(path)
        return None if data is None else len(data)

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def open(self, path: str) -> IO[bytes] | None:
        data = self._files.get(path)
        return None if data is None else io.BytesIO(data)

    def files(self, path: str) -> Iterator[FileEntry]:
        below = f"{path}/" if path else ""
        found = [path for path in self._files if path.startswith(below)]
        return iter([FileEntry(path, len(self._files[path])) for path in sorted(found)])

    def names(self, path: str) -> list[str]:
        below = f"{path}/" if path else ""
        return sorted(
            {each[len(below) :].split("/")[0] for each in self._files if each.startswith(below)}
        )

    def delete(self, path: str) -> None:
        for each in [each for each in self._files if each == path or each.startswith(f"{path}/")]:
            del self._files[each]

    def sync(self, paths: Sequence[str]) -> None:
        """Does nothing, because a store in memory has nothing to sync."""


class MemoryWriter:
    def __init__(self, files: dict[str, bytes], path: str) -> None:
        self._files, self._path, self._data = files, path, bytearray()
        self._open = True

    def write(self, data: bytes | memoryview, /) -> int:
        if not self._open:
            raise StoreFailed(f"{self._path} is closed")
        self._data += data
        return len(data)

    def close(self) -> None:
        self._files[self._path] = bytes(self._data)
        self._open = False

    def abandon(self) -> None:
        self._open = False
