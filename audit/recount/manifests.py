"""Reads the manifests of a topic, which say what is committed, as plain JSON.

    <root>/_skidway/<topic>/<load as 20 digits>.json    a manifest: one committed load
    files[].path      where a file is
    files[].staged    where the file still is if the loader has not moved it yet
    removed           paths of files of earlier loads; this load's files have the same records.
                      Manifests of early builds may lack `removed`

The output consists of the files that a manifest adds and no later manifest removes. The recount
trusts the loader only in this: which files belong to the output, and the length, CRC-32C, rows and
checksum of each. All loads together made many files, so the list of these files
is kept on disk (`NamedFiles`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from skidway.audit.output import FileEntry, Output
from skidway.errors import SkidwayError
from skidway.kafka.source import Source

FORMAT: Final = 1
STATE: Final = "_skidway"
ROWS, REJECTS = "rows", "rejects"
COUNTED: Final = (ROWS, REJECTS)

_MANIFEST = re.compile(r"(\d{20})\.json")
_NEEDED: Final = {"number", "source", "producer", "files", "audit", "partitions"}

_OF_A_FILE: Final = ("path", "staged", "kind", "length", "crc32c", "rows", "checksum")


class ManifestUnreadable(SkidwayError):
    """A manifest cannot be understood. Guessing which files belong to the output would prove
    nothing."""


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


@dataclass(frozen=True, slots=True)
class Committed:
    """A topic of the output. source: None if the topic has no manifest at all, only rows."""

    topic: str
    source: Source | None
    producer: str = ""


def loads(output: Output, topic: str) -> list[int]:
    """The numbers of the loads that have a manifest, in order."""
    found = (_MANIFEST.fullmatch(name) for name in output.names(f"{STATE}/{topic}"))
    return [int(match[1]) for match in found if match]


def read(output: Output, topic: str, load: int) -> Mapping[str, Any]:
    """Reads a manifest. Raises ManifestUnreadable."""
    path = f"{STATE}/{topic}/{load:020}.json"
    data = output.read(path)
    if data is None:
        raise ManifestUnreadable(f"{path} vanished while it was read")
    try:
        manifest = json.loads(data)
        if not isinstance(manifest, dict) or manifest["format"] != FORMAT:
            raise ManifestUnreadable(f"{path} is no manifest of format {FORMAT}")
    except (ValueError, KeyError) as error:
        raise ManifestUnreadable(f"{path} is no manifest: {error!r}") from error
    missing = _NEEDED - set(manifest)
    if missing:
        raise ManifestUnreadable(f"{path} lacks {', '.join(sorted(missing))}")
    if manifest["number"] != load:
        raise ManifestUnreadable(f"{path} is the manifest of load {manifest['number']}")
    return manifest


def head(output: Output, topic: str) -> Committed:
    """The topic as its first manifest names it."""
    known = loads(output, topic)
    if not known:
        return Committed(topic, None)
    manifest = read(output, topic, known[0])
    try:
        source = Source(**{each: manifest["source"][each] for each in Source.__slots__})
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(
            f"the manifest of load {known[0]} of {topic} lacks {error}"
        ) from error
    return Committed(topic, source, manifest["producer"])


def files_of(manifest: Mapping[str, Any]) -> Iterator[NamedFile]:
    """The files that a manifest adds. Raises ManifestUnreadable."""
    load = manifest["number"]
    try:
        bucket_ms = manifest["audit"]["bucket_ms"]
        for each in manifest["files"]:
            known = {name: each[name] for name in _OF_A_FILE}
            yield NamedFile(**known, load=load, bucket_ms=bucket_ms)
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(f"the manifest of load {load} lacks {error}") from error


def removed_by(manifest: Mapping[str, Any]) -> list[str]:
    """The paths of the files that a load removes. Raises ManifestUnreadable."""
    removed = manifest.get("removed", [])
    if not isinstance(removed, list) or not all(isinstance(each, str) for each in removed):
        raise ManifestUnreadable(
            f"the manifest of load {manifest['number']} has no list of paths under removed"
        )
    return removed


def buckets_of(manifest: Mapping[str, Any]) -> Iterator[tuple[int, int, int]]:
    """The (agent, bucket, bucket_ms) of every count in a load's manifest. Raises
    ManifestUnreadable."""
    try:
        audit = manifest["audit"]
        for delta in audit["deltas"]:
            for each in delta["counts"]:
                yield each["agent"], each["bucket"], audit["bucket_ms"]
    except (KeyError, TypeError) as error:
        raise ManifestUnreadable(
            f"the manifest of load {manifest['number']} lacks {error}"
        ) from error


class NamedFiles:
    """The files that manifests name, and those files in the directories that do not belong to the
    output (surplus files). `close` deletes the list."""

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
        """Deletes the list."""
        self._connection.close()

    def add(self, files: Iterable[NamedFile]) -> Iterator[tuple[NamedFile, int]]:
        """Adds the files of a manifest. Yields each file that an earlier manifest named too, with
        the load of that manifest."""
        for file in files:
            added = self._connection.execute(
                "INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", file
            )
            if not added.rowcount:
                yield file, self.named(file.path)[0].load

    def remove(self, paths: Iterable[str], load: int) -> Iterator[tuple[str, int | None]]:
        """Notes that a load removes files of earlier loads. Yields each path that does not belong
        to the output, with the load that removed the file already, or None if no manifest has named
        the file."""
        for path in paths:
            noted = self._connection.execute(
                "UPDATE named SET removed = ? WHERE path = ? AND removed IS NULL", (load, path)
            )
            if not noted.rowcount:
                yield path, next((file.removed for file in self.named(path)), None)

    def remove_later(self, paths: Iterable[str]) -> None:
        """Notes that a load of which `remove` knows nothing removes files. The files still belong
        to the output that `count` and `all` show."""
        rows = ((path,) for path in paths)
        self._connection.executemany("INSERT OR IGNORE INTO removed_later VALUES (?)", rows)

    def is_removed_later(self, path: str) -> bool:
        """Whether `remove_later` has noted the file."""
        query = "SELECT 1 FROM removed_later WHERE path = ?"
        return self._connection.execute(query, (path,)).fetchone() is not None

    def named(self, path: str) -> list[NamedFile]:
        """The named file with that path, removed or not: one or none."""
        return self._select("WHERE path = ?", path)

    def of_length(self, length: int, limit: int) -> list[NamedFile]:
        """Some named files of this length, removed or not."""
        return self._select("WHERE length = ? LIMIT ?", length, limit)

    def staged(self, load: int | None) -> Iterator[str]:
        """Where the files of a load were staged."""
        query = "SELECT staged FROM named WHERE load = ?"
        for (path,) in self._connection.execute(query, (load,)):
            yield path

    def count(self) -> int:
        """The number of files of rows and rejects that belong to the output."""
        query = "SELECT count(*) FROM named WHERE removed IS NULL AND kind IN (?, ?)"
        (count,) = self._connection.execute(query, COUNTED).fetchone()
        return int(count)

    def all(self) -> Iterator[NamedFile]:
        """Every file that belongs to the output, by path. Meanwhile nothing may be added or
        removed."""
        query = "SELECT * FROM named WHERE removed IS NULL ORDER BY path"
        for row in self._connection.execute(query):
            yield NamedFile(*row)

    def found(self, entry: FileEntry) -> None:
        """Notes a file that is in a directory, unless the file belongs to the output."""
        if all(file.removed is not None for file in self.named(entry.path)):
            row = (entry.path, entry.length)
            self._connection.execute("INSERT OR IGNORE INTO surplus VALUES (?, ?)", row)

    def explain(self, path: str) -> None:
        """Takes a file from the surplus files, because a manifest names it by now."""
        self._connection.execute("DELETE FROM surplus WHERE path = ?", (path,))

    def surplus(self) -> Iterator[FileEntry]:
        """The files that are in the directories, but do not belong to the output, sorted by path:
        those that no manifest names, and those that a manifest removed."""
        for row in self._connection.execute("SELECT path, length FROM surplus ORDER BY path"):
            yield FileEntry(*row)

    def _select(self, condition: str, *values: object) -> list[NamedFile]:
        query = f"SELECT * FROM named {condition}"  # noqa: S608 - our own text
        return [NamedFile(*row) for row in self._connection.execute(query, values)]
