"""The entries of the registry's log: one change each, as JSON.

Unknown keys are kept out and unknown kinds refused: an older registry must not misread what a
newer one wrote. Adding a kind is therefore a change that all registries have to be upgraded for.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from schemas.compatibility import Level
from skidway.errors import StateRefused

ENTRY_BYTES_MAX: Final = 1_000_000
"""ZooKeeper refuses requests of 1 MiB (jute.maxbuffer); path and header need some of it."""


class EntryTooLarge(Exception):
    """An entry that no node of ZooKeeper holds; `size_bytes` is how much it would take."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"{size_bytes} bytes")
        self.size_bytes = size_bytes


@dataclass(frozen=True, slots=True)
class VersionRegistered:
    """A subject got a version. `schema` only with the first version that uses the id."""

    subject: str
    version: int
    id: int
    schema: str | None


@dataclass(frozen=True, slots=True)
class VersionsDeleted:
    """Versions of a subject went: softly, or for ever."""

    subject: str
    versions: tuple[int, ...]
    permanent: bool


@dataclass(frozen=True, slots=True)
class LevelSet:
    """A compatibility level, of a subject or (None) of all that have none. None: back to that."""

    subject: str | None
    level: Level | None


Change = VersionRegistered | VersionsDeleted | LevelSet

_KINDS: Final[dict[str, type[Change]]] = {
    "VERSION": VersionRegistered,
    "DELETE": VersionsDeleted,
    "LEVEL": LevelSet,
}
_NAMES: Final = {cls: name for name, cls in _KINDS.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """A change with the mark of the write that made it and its wall time in ms."""

    change: Change
    writer: str
    time_ms: int


def encode(entry: Entry) -> bytes:
    """The node's content. Raises `EntryTooLarge`."""
    document: dict[str, Any] = {"change": _NAMES[type(entry.change)]}
    for field in dataclasses.fields(entry.change):
        value = getattr(entry.change, field.name)
        if value is not None:
            document[field.name] = value.value if isinstance(value, Level) else value
    document |= {"writer": entry.writer, "time": entry.time_ms}
    content = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    if len(content) > ENTRY_BYTES_MAX:
        raise EntryTooLarge(len(content))
    return content


def decode(content: bytes, number: int) -> Entry:
    """The entry of that number. Raises `StateRefused` for one that this version cannot read."""
    try:
        document = json.loads(content)
        return Entry(
            _change(_KINDS[document["change"]], document), document["writer"], document["time"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StateRefused(
            f"Entry {number} of the registry's log cannot be read ({error!r}): it was written by "
            "a newer version, or by something else."
        ) from error


def _change(cls: type[Change], document: Mapping[str, Any]) -> Change:
    if cls is VersionRegistered:
        return VersionRegistered(
            str(document["subject"]),
            int(document["version"]),
            int(document["id"]),
            document.get("schema"),
        )
    if cls is VersionsDeleted:
        versions = tuple(int(each) for each in document["versions"])
        return VersionsDeleted(str(document["subject"]), versions, bool(document["permanent"]))
    level = document.get("level")
    return LevelSet(document.get("subject"), None if level is None else Level(level))
