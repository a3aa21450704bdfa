"""Defines the entries of the registry's log. Each entry is one change, as JSON.

A registry ignores unknown keys. It refuses entries of unknown kinds, because an older registry must
not misread what a newer registry wrote. So all registries must be upgraded before any of them
writes an entry of a new kind, or an entry with a new key that changes the entry's meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.errors import StateRefused
from skidway.schemas.compatibility import Level
from skidway.schemas.registry.kept import Reference
from skidway.schemas.registry.modes import Mode

ENTRY_BYTES_MAX: Final = 1_000_000
"""An entry has at most this many bytes. ZooKeeper refuses requests of 1 MiB (jute.maxbuffer), and a
request contains a path and a header besides the entry."""


class EntryTooLarge(Exception):
    """Raised if an entry is too large for a node of ZooKeeper. `size_bytes` is the size of the
    entry."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes")
        self.size_bytes = size_bytes


@dataclass(frozen=True, slots=True)
class VersionRegistered:
    """The change that adds a version to a subject. If several entries have the same schema id, only
    the first of them has `schema` and `references`."""

    subject: str
    version: int
    id: int
    schema: str | None
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionImported(VersionRegistered):
    """The change that imports a version into a subject, with the version number and the schema id
    that the version has in another registry."""


@dataclass(frozen=True, slots=True)
class VersionsDeleted:
    """The change that soft-deletes versions of a subject, or deletes them permanently."""

    subject: str
    versions: tuple[int, ...]
    permanent: bool


@dataclass(frozen=True, slots=True)
class LevelSet:
    """The change that sets the compatibility level of a subject. If `subject` is None, sets the
    global level, for all subjects without a level of their own. If `level` is None, removes the
    level."""

    subject: str | None
    level: Level | None


@dataclass(frozen=True, slots=True)
class ModeSet:
    """The change that sets the mode of a subject. If `subject` is None, sets the global mode, for
    all subjects without a mode of their own. If `mode` is None, removes the mode.

    `recursive`: whether the change also removes every subject's own mode.
    """

    subject: str | None
    mode: Mode | None
    recursive: bool = False


Change = VersionRegistered | VersionsDeleted | LevelSet | ModeSet


@dataclass(frozen=True, slots=True)
class LoggedChange:
    """A change, with the unique id of the write that made it, and the wall time of that write in
    ms."""

    change: Change
    writer: str
    time_ms: int


def encode(entry: LoggedChange) -> bytes:
    """Returns the entry as the content of a node of ZooKeeper. Raises `EntryTooLarge`."""
    document = _document(entry.change) | {"writer": entry.writer, "time": entry.time_ms}
    content = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    if len(content) > ENTRY_BYTES_MAX:
        raise EntryTooLarge(len(content))
    return content


def decode(content: bytes, number: int) -> LoggedChange:
    """Returns the entry that a node contains. number: the entry's number, for the error message.
    Raises `StateRefused` if this version of the program cannot read the entry."""
    try:
        document = json.loads(content)
        read = _READERS[document["change"]]
        return LoggedChange(read(document), document["writer"], document["time"])
    except (ValueError, KeyError, TypeError) as error:
        raise StateRefused(
            f"Entry {number} of the registry's log cannot be read ({error!r}): it was written by "
            "a newer version, or by something else."
        ) from error


def _document(change: Change) -> dict[str, Any]:
    if isinstance(change, VersionRegistered):
        kind = "IMPORT" if isinstance(change, VersionImported) else "VERSION"
        return {"change": kind} | _version(change)
    if isinstance(change, VersionsDeleted):
        return {
            "change": "DELETE",
            "subject": change.subject,
            "versions": change.versions,
            "permanent": change.permanent,
        }
    if isinstance(change, LevelSet):
        level = None if change.level is None else change.level.value
        return {"change": "LEVEL"} | _given(subject=change.subject, level=level)
    mode = None if change.mode is None else change.mode.value
    given = _given(subject=change.subject, mode=mode, recursive=change.recursive or None)
    return {"change": "MODE"} | given


def _version(change: VersionRegistered) -> dict[str, Any]:
    references = [
        {"name": each.name, "subject": each.subject, "version": each.version, "id": each.id}
        for each in change.references
    ]
    return _given(
        subject=change.subject,
        version=change.version,
        id=change.id,
        schema=change.schema,
        references=references or None,
    )


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _read_registered(document: Mapping[str, Any]) -> Change:
    return VersionRegistered(*_read_version(document))


def _read_imported(document: Mapping[str, Any]) -> Change:
    return VersionImported(*_read_version(document))


def _read_version(
    document: Mapping[str, Any],
) -> tuple[str, int, int, str | None, tuple[Reference, ...]]:
    schema = document.get("schema")
    references = tuple(
        Reference(str(each["name"]), str(each["subject"]), int(each["version"]), int(each["id"]))
        for each in document.get("references", ())
    )
    text = None if schema is None else str(schema)
    return (
        str(document["subject"]),
        int(document["version"]),
        int(document["id"]),
        text,
        references,
    )


def _read_deleted(document: Mapping[str, Any]) -> Change:
    versions = tuple(int(each) for each in document["versions"])
    return VersionsDeleted(str(document["subject"]), versions, bool(document["permanent"]))


def _read_level(document: Mapping[str, Any]) -> Change:
    level = document.get("level")
    return LevelSet(document.get("subject"), None if level is None else Level(level))


def _read_mode(document: Mapping[str, Any]) -> Change:
    mode, recursive = document.get("mode"), bool(document.get("recursive"))
    return ModeSet(document.get("subject"), None if mode is None else Mode(mode), recursive)


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Change]]] = {
    "VERSION": _read_registered,
    "IMPORT": _read_imported,
    "DELETE": _read_deleted,
    "LEVEL": _read_level,
    "MODE": _read_mode,
}
