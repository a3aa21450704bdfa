"""Finds, in the directories of a topic, the files that no manifest of the topic names.

It lists the directories whose files other programs read as rows: `<topic>` and the loader's
rejects. Like these programs, it skips names that begin with `_` or `.`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Final

from skidway.audit.output import FileEntry, Output, StoreFailed
from skidway.audit.recount import manifests, row_files
from skidway.audit.recount.faults import Fault, Kind, Whereabouts, by_name
from skidway.audit.recount.manifests import STATE, NamedFiles

LIKE_MAX: Final = 10
"""An unnamed file is compared with at most this many named files of the same length."""

_UNFINISHED: Final = "._COPYING_"
"""While Hadoop's own tools copy a file, the file's name ends with this."""

_ROWS = re.compile(r"/dt=[^/]+/hour=[^/]+/part-\d+-\d+-\d+\.parquet$")


def has_rows(output: Output, topic: str) -> bool:
    """Whether a loader has put rows into the topic's directory."""
    return any(_ROWS.search(entry.path) for entry in output.files(topic))


def look(output: Output, topic: str, named: NamedFiles) -> None:
    """Notes in `named` every file of the topic that programs read as rows."""
    for folder in (topic, f"{STATE}/{topic}/rejects"):
        for entry in output.files(folder):
            if _is_read(entry.path.removeprefix(folder)):
                named.found(entry)


def explain(output: Output, topic: str, named: NamedFiles, last: int) -> None:
    """Removes from the unnamed files those that a manifest of a load after `last` names. Such loads
    were committed while the directories were listed."""
    for load in manifests.loads(output, topic):
        if load > last:
            for file in manifests.files_of(manifests.read(output, topic, load)):
                named.explain(file.path)


def faults(output: Output, named: NamedFiles) -> Iterator[Fault]:
    """A fault for each file that no manifest names. Raises StoreUnreachable."""
    for entry in named.unnamed():
        words = f"{entry.path} is named by no manifest, but who reads the directory takes it"
        try:
            opened = output.open(entry.path)
            if opened is None:
                continue  # the file was deleted meanwhile
            with opened:
                yield _fault(entry, opened, named, words)
        except StoreFailed:
            yield Fault(Kind.UNNAMED, entry.path, words, by_name(entry.path))


def _fault(entry: FileEntry, opened: IO[bytes], named: NamedFiles, words: str) -> Fault:
    has, kind = row_files.measure(opened), Kind.UNNAMED
    for like in named.of_length(has.length, LIKE_MAX):
        if like.crc32c == has.crc32c:
            kind = Kind.TWICE
            words = f"{entry.path} is named by no manifest; it is a copy of {like.path}, whose "
            words += f"{like.rows} rows are there twice for who reads the directory"
    return Fault(kind, entry.path, words, _place(opened, by_name(entry.path)))


def _place(opened: IO[bytes], place: Whereabouts) -> Whereabouts:
    """What the file's columns show about its rows; `place` if the file has no such columns."""
    opened.seek(0)
    try:
        return row_files.whereabouts(opened, place.hour)
    except row_files.UNREADABLE:
        return place


def _is_read(path: str) -> bool:
    parts = [part for part in path.split("/") if part]
    hidden = (part.startswith(".") or (part[:1] == "_" and "=" not in part) for part in parts)
    return not any(hidden) and not path.endswith(_UNFINISHED)
