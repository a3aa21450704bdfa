"""Defines a stored schema with its id: its text, and the schemas that it references.

A reference names a version of a subject, and refers to the schema that this version had when the
reference was made. The reference contains the id of that schema. So a schema stays readable
permanently, even if the versions that it references are deleted.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

ID_MAX: Final = 2**31 - 1
"""The highest id. Confluent's wire format has four bytes for an id, and Java reads them as a signed
number."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema's reference to a version of a subject. The schema uses types that this version
    declares. `name` is the name that the schema's author chose for the reference. `id` is the id of
    the version's schema."""

    name: str
    subject: str
    version: int
    id: int


Identity = tuple[str, tuple[Reference, ...]]
"""A schema's canonical text and its references. If two schemas have the same text and the same
references, they count as one schema."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A stored schema with its id. `needs` contains the schemas that it references, in the order of
    `references`."""

    id: int
    text: str
    references: tuple[Reference, ...] = ()
    needs: tuple[Kept, ...] = ()

    @property
    def identity(self) -> Identity:
        """Returns the value that identifies the schema: its canonical text and its references."""
        return self.text, self.references

    @property
    def guid(self) -> str:
        """Returns the schema's GUID, which is the same in every registry: an MD5 of its text and
        references, computed as in Confluent's registry."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for each in self.references:
            digest.update(each.name.encode() + each.subject.encode())
            digest.update(each.version.to_bytes(4, "big", signed=True))
        return str(uuid.UUID(bytes=digest.digest()))


def everything_needed(needs: Iterable[Kept]) -> Iterator[Kept]:
    """Yields the given schemas and all schemas that they reference, directly or through other
    schemas. Each schema occurs once, after the schemas that it references."""
    done: set[int] = set()
    waiting = [(each, False) for each in reversed([*needs])]
    while waiting:
        kept, is_ready = waiting.pop()
        if kept.id in done:
            continue
        if is_ready:
            done.add(kept.id)
            yield kept
        else:
            waiting.append((kept, True))
            waiting.extend((each, False) for each in reversed(kept.needs))
