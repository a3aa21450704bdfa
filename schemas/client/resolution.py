"""Schemas of a registry as types, with those that they take from other subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from schemas.avro_schema import AvroType, Named, SchemaInvalid, named_types, parse
from schemas.client.answers import Reference
from schemas.client.registry_client import RegistryClient

CHAIN_MAX: Final = 100
"""References of references, and so on: more is no registry's."""


class Resolver:
    """Asks for each referenced version once. Raises as the client does, and `SchemaInvalid`."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._known: dict[tuple[str, int], Mapping[str, Named]] = {}

    def parsed(self, schema: str, references: Sequence[Reference] = ()) -> AvroType:
        """The schema, which may name types of its references."""
        return parse(schema, self.types(references), check_defaults=False)

    def types(self, references: Sequence[Reference], depth: int = 0) -> dict[str, Named]:
        """Every type that these references bring, by full name."""
        if depth > CHAIN_MAX:
            raise SchemaInvalid(f"The references go more than {CHAIN_MAX} schemas deep.")
        found: dict[str, Named] = {}
        for each in references:
            found |= self._types_of(each, depth)
        return found

    def _types_of(self, reference: Reference, depth: int) -> Mapping[str, Named]:
        key = (reference.subject, reference.version)
        if key not in self._known:
            version = self._client.version(*key, deleted=True)
            inside = self.types(version.references, depth + 1)
            avro = parse(version.schema, inside, check_defaults=False)
            self._known[key] = inside | named_types(avro)
        return self._known[key]
