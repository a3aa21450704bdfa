"""Finds out what the references of versions mean, according to the contents of a registry or of a
dump. This module does no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.canonical import canonical
from skidway.schemas.client import Registered, RegistryRefused
from skidway.schemas.client.answers import AVRO, Stored
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.dump.contents import Contents, StoredVersion


def meaning(version: StoredVersion, contents: Contents) -> str | None:
    """Returns the version's schema as a text that itself declares every type that it uses. The
    references mean the versions that `contents` has under their subjects and numbers.

    Returns None if the schema is not Avro, cannot be read, or references a version that `contents`
    does not have.
    """
    if version.schema_type != AVRO:
        return None
    try:
        return canonical(Resolver(_Listed(contents)).of(version.registered()))
    except (RegistryRefused, SchemaInvalid):
        return None


@dataclass(frozen=True, slots=True)
class _Listed:
    """Gives a `Resolver` the versions of `contents`."""

    contents: Contents

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """Returns a version, even if it is soft-deleted. Ignores the argument `deleted`."""
        found = self.contents.versions.get((subject, version))
        if found is None:
            raise RegistryRefused(404, 0, f"{subject} version {version} is not in the list.")
        return found.registered()

    def resolved(self, schema_id: int) -> Stored | None:
        """Returns None, because `contents` does not have texts with resolved references."""
        return None
