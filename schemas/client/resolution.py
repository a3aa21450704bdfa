"""Resolves a schema's references to schemas of other subjects. Callers may ask for the referenced
types, for the parsed schema, or for a text of the schema that contains all referenced types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from skidway.schemas.avro_schema import AvroType, Named, SchemaInvalid, named_types, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.client.answers import Reference, Registered

KEPT_MAX: Final = 1000
"""A resolver caches at most this many referenced versions. If the cache is full, the resolver
empties it."""
CHAIN_MAX: Final = 100
"""A chain of references (a schema references a second one, which references a third one, and so on)
may have at most this many schemas. Chains in real registries are shorter."""


class Versions(Protocol):
    """A client of a registry, of which a resolver calls only this method."""

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """Returns the version of the subject with this number. With `deleted`, the version may be
        soft-deleted."""


class Resolver:
    """Resolves references. Requests a referenced version only if it is not in the cache. Several
    threads may use one resolver.

    Raises the client's errors, and `SchemaInvalid`.
    """

    def __init__(self, client: Versions) -> None:
        self._client = client
        self._known: dict[tuple[str, int], Mapping[str, Named]] = {}

    def parsed(self, schema: str, references: Sequence[Reference] = ()) -> AvroType:
        """Parses a schema, whose text may use types that the referenced schemas declare. Returns
        its type."""
        return parse(schema, self.types(references), check_defaults=False)

    def inlined(self, schema: str, references: Sequence[Reference]) -> str:
        """Returns the schema as a text that itself declares every type that it uses. Returns a
        schema without references unchanged."""
        return canonical(self.parsed(schema, references)) if references else schema

    def types(self, references: Sequence[Reference], depth: int = 0) -> dict[str, Named]:
        """Returns every type that the referenced schemas declare, by full name."""
        if depth > CHAIN_MAX:
            raise SchemaInvalid(f"The references go more than {CHAIN_MAX} schemas deep.")
        found: dict[str, Named] = {}
        for each in references:
            found |= self._types_of(each, depth)
        return found

    def _types_of(self, reference: Reference, depth: int) -> Mapping[str, Named]:
        key = (reference.subject, reference.version)
        known = self._known.get(key)
        if known is None:
            version = self._client.version(*key, deleted=True)
            inside = self.types(version.references, depth + 1)
            avro = parse(version.schema, inside, check_defaults=False)
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            self._known[key] = known = inside | named_types(avro)
        return known
