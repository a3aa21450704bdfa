"""The list of an output's files, which the recount makes from manifests and checkpoints.

The list is on disk, because all loads together may have made more files than memory can list.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from skidway.audit.output import FileEntry

ROWS, REJECTS = "rows", "rejects"
COUNTED: Final = (ROWS, REJECTS)
OF_A_FILE: Final = ("path", "staged", "kind", "length", "crc32c", "rows", "checksum")
"""The properties that manifests and checkpoints state for each file."""


class NamedFile(NamedTuple):
    """A file that a manifest names, and the properties that the file must have. bucket_ms: the size
    of the buckets in which its rows were counted. removed: the load that removed the file; None if
    the file belongs to the output."""

    path: str
    staged: str
    load: int
    kind: str
    length: int
    crc32c: int
    rows: int
    checksum: int
    bucket_ms: int
    removed: int | None = None


class NamedFiles:
    """The files that manifests name, and the surplus files: files in the output's directories that
    do not belong to the output. `close` deletes the list."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")  # "" stands for a temporary file
        self._connection.executescript(
            "CREATE TABLE named (path TEXT PRIMARY KEY, staged TEXT, load INTEGER, kind TEXT,"
            " length INTEGER, crc32c INTEGER, rows INTEGER, checksum INTEGER, bucket_ms INTEGER,"
            " removed INTEGER);"
            "CREATE INDEX by_length ON named (length);"
            "CREATE TABLE surplus (path TEXT PRIMARY KEY, length INTEGER);"
            "CREATE TABLE removed_later (path TEXT PRIMARY KEY)"
        )

    def close(self) -> None:
        """Deletes the list from the disk."""
        self._connection.close()

    def clear(self) -> None:
        """Empties the list of files that manifests name."""
        self._connection.execute("DELETE FROM named")

    def add(self, files: Iterable[NamedFile]) -> Iterator[tuple[NamedFile, int]]:
        """Adds the files of a manifest. Yields each file that an earlier manifest has named
        already, with the load of that earlier manifest."""
        for file in files:
            added = self._connection.execute(
                "INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", file
            )
            if not added.rowcount:
                yield file, self.named(file.path)[0].load

    def remove(self, paths: Iterable[str], load: int) -> Iterator[tuple[str, int | None]]:
        """Stores the fact that a load removes these files of earlier loads. If one of these files
        does not belong to the output now, yields its path and the load that removed it before. The
        load is None if no manifest has named the file.
        """
        for path in paths:
            noted = self._connection.execute(
                "UPDATE named SET removed = ? WHERE path = ? AND removed IS NULL", (load, path)
            )
            if not noted.rowcount:
                yield path, next((file.removed for file in self.named(path)), None)

    def remove_later(self, paths: Iterable[str]) -> None:
        """Stores the fact that a later load, which the recount does not count, removes these files.
        For `count` and `all`, these files still belong to the output.
        """
        rows = ((path,) for path in paths)
        self._connection.executemany("INSERT OR IGNORE INTO removed_later VALUES (?)", rows)

    def is_removed_later(self, path: str) -> bool:
        """Whether a load that the recount does not count removes the file (see `remove_later`)."""
        query = "SELECT 1 FROM removed_later WHERE path = ?"
        return self._connection.execute(query, (path,)).fetchone() is not None

    def named(self, path: str) -> list[NamedFile]:
        """Looks for the file with this path among all files that manifests name, including files
        that a later manifest removed. The list is empty if there is none.
        """
        return self._select("WHERE path = ?", path)

    def of_length(self, length: int, limit: int) -> list[NamedFile]:
        """Looks for files of this length among all files that manifests name, including files that
        a later manifest removed. Returns at most `limit` files.
        """
        return self._select("WHERE length = ? LIMIT ?", length, limit)

    def staged(self, load: int | None) -> Iterator[str]:
        """Yields the staging paths of a load's files: where each file was before the loader moved
        it to its final path.
        """
        query = "SELECT staged FROM named WHERE load = ?"
        for (path,) in self._connection.execute(query, (load,)):
            yield path

    def count(self) -> int:
        """The number of files of rows and rejects that belong to the output."""
        query = "SELECT count(*) FROM named WHERE removed IS NULL AND kind IN (?, ?)"
        (count,) = self._connection.execute(query, COUNTED).fetchone()
        return int(count)

    def all(self) -> Iterator[NamedFile]:
        """Yields every file that belongs to the output, sorted by path. The caller must not add or
        remove files before this function has yielded the last file."""
        query = "SELECT * FROM named WHERE removed IS NULL ORDER BY path"
        for row in self._connection.execute(query):
            yield NamedFile(*row)

    def found(self, entry: FileEntry) -> None:
        """Checks a file that was found in a directory. If the file does not belong to the output,
        adds it to the surplus files."""
        if all(file.removed is not None for file in self.named(entry.path)):
            row = (entry.path, entry.length)
            self._connection.execute("INSERT OR IGNORE INTO surplus VALUES (?, ?)", row)

    def explain(self, path: str) -> None:
        """Removes a file from the surplus files, because a later manifest names the file."""
        self._connection.execute("DELETE FROM surplus WHERE path = ?", (path,))

    def surplus(self) -> Iterator[FileEntry]:
        """The surplus files, sorted by path. A surplus file is in a directory but does not belong
        to the output, because no manifest names it or because a manifest removed it."""
        for row in self._connection.execute("SELECT path, length FROM surplus ORDER BY path"):
            yield FileEntry(*row)

    def _select(self, condition: str, *values: object) -> list[NamedFile]:
        query = f"SELECT * FROM named {condition}"  # noqa: S608 - inserts only constants
        return [NamedFile(*row) for row in self._connection.execute(query, values)]
