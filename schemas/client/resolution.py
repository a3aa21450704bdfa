"""Resolves a schema's references to schemas of other subjects. Callers may ask for the referenced
types, for the parsed schema, or for a text of the schema that contains all referenced types.

A reference names a subject and a version. If this version is deleted permanently, its number may
get another schema, but an id never gets another schema. So only the registry knows for certain what
the references of an id mean, and the resolver requests the id's text with resolved references from
the registry (format=resolved). Some registries of other makes do not support this request. From
such a registry, the resolver requests the referenced versions one by one, and takes the schemas
that they have now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from skidway.schemas.avro_schema import AvroType, Named, SchemaInvalid, named_types, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.client.answers import Reference, Registered, Stored
from skidway.schemas.client.transport import RegistryRefused

KEPT_MAX: Final = 1000
"""A resolver caches the types of at most this many schemas. If the cache is full, the resolver
empties it."""
CHAIN_MAX: Final = 100
"""A chain of references (a schema references a second one, which references a third one, and so on)
may have at most this many schemas. Chains in real registries are shorter."""

Known = Mapping[str, Named]


class Schemas(Protocol):
    """A client of a registry, of which a resolver calls only these methods."""

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """Returns the version of the subject with this number. With `deleted`, the version may be
        soft-deleted."""

    def resolved(self, schema_id: int) -> Stored | None:
        """Returns the schema with this id, with the text in which the registry itself has resolved
        the references, or None if the registry refuses to resolve references."""


class Resolver:
    """Resolves references. Caches types by the id of their schema, and never by subject and
    version. Several threads may use one resolver.

    Raises the client's errors, and `SchemaInvalid`.
    """

    def __init__(self, client: Schemas) -> None:
        self._client = client
        self._known: dict[int, Known] = {}

    def parsed(self, schema: str, references: Sequence[Reference] = ()) -> AvroType:
        """Parses a schema that has no id yet. Its text may use types that the referenced versions
        declare now. Returns its type."""
        return parse(schema, self.types(references), check_defaults=False)

    def types(self, references: Sequence[Reference]) -> dict[str, Named]:
        """Returns every type that the referenced versions declare now, by full name."""
        return self._types(references, 0)

    def of(self, version: Registered) -> AvroType:
        """Returns the type of a registered version."""
        return self._read(version.id, version.schema, version.references, 0)[0]

    def inlined(self, schema_id: int, schema: str, references: Sequence[Reference]) -> str:
        """Returns the schema with this id as a text that itself declares every type that it uses.
        Returns a schema without references unchanged."""
        if not references:
            return schema
        return canonical(self._read(schema_id, schema, references, 0)[0])

    def _read(
        self, schema_id: int, schema: str, references: Sequence[Reference], depth: int
    ) -> tuple[AvroType, Known]:
        """Returns the type of the schema with this id. Also returns, by full name, all types that
        this schema, and the schemas that it references, declare."""
        resolved = self._client.resolved(schema_id) if references else None
        avro = None if resolved is None else _self_contained(resolved)
        if avro is not None:
            return avro, named_types(avro)
        inside = self._types(references, depth)
        avro = parse(schema, inside, check_defaults=False)
        return avro, inside | named_types(avro)

    def _types(self, references: Sequence[Reference], depth: int) -> dict[str, Named]:
        if depth > CHAIN_MAX:
            raise SchemaInvalid(f"The references go more than {CHAIN_MAX} schemas deep.")
        found: dict[str, Named] = {}
        for each in references:
            found |= self._types_of(self._version(each), depth)
        return found

    def _types_of(self, version: Registered, depth: int) -> Known:
        known = self._known.get(version.id)
        if known is None:
            _, known = self._read(version.id, version.schema, version.references, depth + 1)
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            self._known[version.id] = known
        return known

    def _version(self, reference: Reference) -> Registered:
        try:
            return self._client.version(reference.subject, reference.version, deleted=True)
        except RegistryRefused as refused:
            # The error has no error code, because the registry's code would say that it does not
            # have the subject or the schema for which the caller has asked.
            raise RegistryRefused(
                refused.status,
                0,
                f"The reference to version {reference.version} of {reference.subject} cannot be "
                f"resolved: {refused}",
            ) from refused


def _self_contained(found: Stored) -> AvroType | None:
    """Returns the type of a schema whose references the registry was asked to resolve. Returns None
    if the text still needs its references. (Confluent's registry returns the references even with a
    text that no longer needs them.)"""
    try:
        return parse(found.schema, check_defaults=False)
    except SchemaInvalid:
        if found.references:
            return None
        raise
