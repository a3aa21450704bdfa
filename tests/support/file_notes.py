"""Collects in memory what agents' announcements for one source topic say about log files. An
announcement is a message in which an agent tells the audit which path a file id has.

A file id may be announced several times, and the announcements may come in any order. For each file
id, this module makes one `FileNote`. The `FileNote` has the path and the time of the file id's
earliest announcement. If announcements of a file id give different creation times, it has the
earliest of them. The audit's ledger keeps the same facts in its tables; tests compare the ledger
with this module. This module does no input or output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from skidway.audit.evidence.rereading import (
    FileIdentity,
    FileNote,
    identity_of,
    is_untold,
    replaced_by,
)
from skidway.audit.topic.messages import Announcement


class _Key(NamedTuple):
    """A file id, and the inode that its announcements contain."""

    host: str
    inode: int
    agent: int
    file: int


class _Known(NamedTuple):
    """What the announcements so far say about a file id. If the file's content was replaced on the
    same inode, so that a new file id began, `replaced` is the file id of the earlier content.
    """

    time_ms: int
    path: str
    born_ns: int | None
    replaced: int | None

    def and_said(self, other: _Known) -> _Known:
        """Combines the facts from two announcements of one file id. The result has the time and
        path of the earlier announcement. Of the two creation times, it has the earlier one. If the
        two announcements differ in `replaced`, the result's `replaced` is None."""
        first = min((self.time_ms, self.path), (other.time_ms, other.path))
        births = [x for x in (self.born_ns, other.born_ns) if x is not None]
        replaced = self.replaced if self.replaced == other.replaced else None
        return _Known(*first, min(births, default=None), replaced)


class FileNotes:
    """Makes the `FileNote` of each file id of one topic."""

    def __init__(self) -> None:
        self._ids: dict[_Key, _Known] = {}
        self._beginnings: dict[FileIdentity, dict[_Key, tuple[int, str]]] = {}

    def take(self, message: Announcement) -> None:
        """Adds the facts of an announcement. The same announcement may be given again."""
        key = _Key(message.host, message.inode, message.agent, message.file)
        said = _Known(message.time_ms, message.path, message.born_ns, replaced_by(message))
        self._ids[key] = self._ids.get(key, said).and_said(said)
        identity = identity_of(message)
        if identity is not None:
            first, known = (
                (message.time_ms, message.path),
                self._beginnings.setdefault(identity, {}),
            )
            known[key] = min(known.get(key, first), first)

    def files(self) -> Iterator[list[FileNote]]:
        """Yields, for each file, the `FileNote`s of all its file ids. File ids with the same host,
        inode and creation time belong to one file. File ids with the same first bytes also belong
        to one file if the creation time of at least one of these ids is unknown.
        """
        by_birth: dict[tuple[str, int, int], list[FileNote]] = {}
        for key, known in self._ids.items():
            if known.born_ns is not None:
                same = by_birth.setdefault((key.host, key.inode, known.born_ns), [])
                same.append(self._note(key, known.time_ms, known.path))
        yield from by_birth.values()
        for keys in self._beginnings.values():
            notes = [self._note(key, *first) for key, first in keys.items()]
            if is_untold(notes):
                yield notes

    def paths(self, files: Collection[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """Returns the path at which each file was first announced, by agent and file id. Leaves out
        files that were not announced."""
        known: dict[tuple[int, int], tuple[int, str]] = {}
        for key, said in self._ids.items():
            if (file := (key.agent, key.file)) in files:
                first = said.time_ms, said.path
                known[file] = min(known.get(file, first), first)
        return {file: path for file, (_, path) in known.items()}

    def _note(self, key: _Key, time_ms: int, path: str) -> FileNote:
        known = self._ids[key]
        replaced_ms = None
        if known.replaced is not None:
            before = self._ids.get(key._replace(file=known.replaced))
            if before is not None and before.born_ns == known.born_ns:
                replaced_ms = before.time_ms
        return FileNote(time_ms, key.agent, key.file, path, known.born_ns, replaced_ms)
