"""Reads the manifests of a topic, which say what is committed, as plain JSON.

    <root>/_skidway/<topic>/<load as 20 digits>.json    a manifest: one committed load
    files[].path      where a file is
    files[].staged    where the file still is if the loader has not moved it yet

The recount trusts the loader only in this: which files belong to the output, and the length,
CRC-32C, rows and checksum of each. All loads together made many files, so the list of these files
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
    of the buckets in which its rows were counted."""

    path: str
    staged: str
    load: int
    kind: str
    length: int
    crc32c: int
    rows: int
    checksum: int
    bucket_ms: int


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
    """The files that manifests name, and other files in the output's directories. `close` deletes
    the list."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")  # "" stands for a temporary file
        self._connection.executescript(
            "CREATE TABLE named (path TEXT PRIMARY KEY, staged TEXT, load INTEGER, kind TEXT,"
            " length INTEGER, crc32c INTEGER, rows INTEGER, checksum INTEGER, bucket_ms INTEGER);"
            "CREATE INDEX by_length ON named (length);"
            "CREATE TABLE unnamed (path TEXT PRIMARY KEY, length INTEGER)"
        )

    def close(self) -> None:
        """Deletes the list."""
        self._connection.close()

    def add(self, files: Iterable[NamedFile]) -> Iterator[tuple[NamedFile, int]]:
        """Adds the files of a manifest. Yields each file that an earlier manifest named too, with
        the load of that manifest."""
        for file in files:
            added = self._connection.execute(
                "INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", file
            )
            if not added.rowcount:
                yield file, self.named(file.path)[0].load

    def named(self, path: str) -> list[NamedFile]:
        """The named file with that path: one or none."""
        return self._select("WHERE path = ?", path)

    def of_length(self, length: int, limit: int) -> list[NamedFile]:
        """Some named files of this length."""
        return self._select("WHERE length = ? LIMIT ?", length, limit)

    def count(self) -> int:
        """The number of named files of rows and rejects."""
        query = "SELECT count(*) FROM named WHERE kind IN (?, ?)"
        (count,) = self._connection.execute(query, COUNTED).fetchone()
        return int(count)

    def all(self) -> Iterator[NamedFile]:
        """Every named file, by path. Nothing may be added meanwhile."""
        for row in self._connection.execute("SELECT * FROM named ORDER BY path"):
            yield NamedFile(*row)

    def found(self, entry: FileEntry) -> None:
        """Notes a file that is in a directory, unless a manifest has named it already."""
        if not self.named(entry.path):
            row = (entry.path, entry.length)
            self._connection.execute("INSERT OR IGNORE INTO unnamed VALUES (?, ?)", row)

    def explain(self, path: str) -> None:
        """Removes a file from the unnamed files, because a manifest names it by now."""
        self._connection.execute("DELETE FROM unnamed WHERE path = ?", (path,))

    def unnamed(self) -> Iterator[FileEntry]:
        """The files that are in the directories although no manifest names them, sorted by path."""
        for row in self._connection.execute("SELECT path, length FROM unnamed ORDER BY path"):
            yield FileEntry(*row)

    def _select(self, condition: str, *values: object) -> list[NamedFile]:
        query = f"SELECT * FROM named {condition}"  # noqa: S608 - our own text
        return [NamedFile(*row) for row in self._connection.execute(query, values)]
