"""Parses schemas, together with the schemas that they reference, and caches the parsed types."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skidway.schemas.avro_schema import AvroType, Named, SchemaInvalid, named_types, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.registry.kept import Kept, everything_needed

CHARACTERS_MAX: Final = 4_000_000
"""The cached types were parsed from texts of at most this many characters in all. The types take
about twenty times as much memory as the texts."""
NEEDED_MAX: Final = 100
"""A schema may reference at most this many schemas, directly and through other schemas."""
NEEDED_CHARACTERS_MAX: Final = 4_000_000
"""The texts of all schemas that one schema references may together have at most this many
characters, because a client of the schema has to read all these texts.
"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed schema. `avro` is its type. `known` maps full names to the types that the referenced
    schemas declare."""

    avro: AvroType
    known: Mapping[str, Named]

    def canonical(self, *, normalize: bool = False) -> str:
        """Returns the text in which the schema is stored. This text names the types of referenced
        schemas, but does not declare them."""
        return canonical(self.avro, self.known, normalize=normalize)

    def inlined(self) -> str:
        """Returns the same schema as one text without references. This text declares all types that
        it uses."""
        return canonical(self.avro)


class ParsedSchemas:
    """A cache of parsed schemas. Several threads may use it. When the cache is full, it drops the
    least recently used schema."""

    def __init__(self, characters_max: int = CHARACTERS_MAX) -> None:
        self._max = characters_max
        self._lock = threading.Lock()
        self._parsed: OrderedDict[int, tuple[Parsed, int]] = OrderedDict()
        self._characters = 0

    @property
    def characters(self) -> int:
        """Returns how many characters the texts of all cached types have together."""
        return self._characters

    def of(self, kept: Kept) -> Parsed:
        """Returns a stored schema, parsed. Raises `SchemaInvalid` if this version of the program
        cannot read the schema."""
        with self._lock:
            if kept.id in self._parsed:
                self._parsed.move_to_end(kept.id)
                return self._parsed[kept.id][0]
        parsed = self.new(kept.text, kept.needs, check_defaults=False)
        self._remember(kept, parsed)
        return parsed

    def new(self, text: str, needs: Iterable[Kept], *, check_defaults: bool = True) -> Parsed:
        """Parses the text of a schema, and does not put the result into the cache. `needs` are the
        schemas that it references. Raises `SchemaInvalid`."""
        known: dict[str, Named] = {}
        declared_by: dict[str, int] = {}
        for kept in _bounded(needs):
            parsed = self.of(kept)
            for name, each in named_types(parsed.avro).items():
                if name in parsed.known:
                    continue
                if declared_by.setdefault(name, kept.id) != kept.id:
                    raise SchemaInvalid(f"Two of the referenced schemas declare {name}.")
                known[name] = each
        return Parsed(parse(text, known, check_defaults=check_defaults), known)

    def _remember(self, kept: Kept, parsed: Parsed) -> None:
        size = len(kept.text)
        with self._lock:
            if kept.id in self._parsed or size > self._max:
                return
            self._parsed[kept.id] = parsed, size
            self._characters += size
            while self._characters > self._max:
                _, (_, gone) = self._parsed.popitem(last=False)
                self._characters -= gone


def _bounded(needs: Iterable[Kept]) -> list[Kept]:
    needed: list[Kept] = []
    characters = 0
    for kept in everything_needed(needs):
        needed.append(kept)
        characters += len(kept.text)
        if len(needed) > NEEDED_MAX or characters > NEEDED_CHARACTERS_MAX:
            raise SchemaInvalid(
                f"The schema references more than {NEEDED_MAX} schemas or {NEEDED_CHARACTERS_MAX} "
                "characters, directly and through others."
            )
    return needed
