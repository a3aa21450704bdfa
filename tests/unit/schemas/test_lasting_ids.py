"""The registry's client gives each schema id one meaning for ever, even if the versions that the
schema references are deleted and their numbers get other schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from skidway.schemas.client import RegistryAdministration
from support.registry_http import InProcess, Registry, administration, record, reference

OLD = record("Part", user="string", action="string")
NEW = record("Part", action="string", user="string")
WHOLE = record("Whole", part="Part")
TO_PART = reference("Part", "part")
FIRST = ["user", "action"]
SECOND = ["action", "user"]


@pytest.fixture
def registry() -> Registry:
    """Returns a registry in which the schema with id 2 references `part`."""
    made = Registry()
    made.register("part", OLD)
    made.register("whole", WHOLE, TO_PART)
    return made


def replace_part(registry: Registry) -> int:
    """Deletes the subject `whole`, and permanently deletes the subject `part`. Then registers
    another schema as version 1 of `part`, and the same text as before in `whole`. Returns the id
    that the schema in `whole` has now."""
    for path in ("/subjects/whole", "/subjects/part", "/subjects/part?permanent=true"):
        registry.good("DELETE", path)
    registry.register("part", NEW)
    return registry.register("whole", WHOLE, TO_PART)


def fields(text: str) -> Sequence[str]:
    """Returns the names of the fields of the type `part` in the schema `text`, in their order."""
    return [each["name"] for each in json.loads(text)["fields"][0]["type"]["fields"]]


def client_of(registry: Registry) -> RegistryAdministration:
    """Returns a new client of the registry."""
    return administration(InProcess(registry))


def test_an_old_id_keeps_its_types_when_a_referenced_version_is_made_again(
    registry: Registry,
) -> None:
    """A schema id keeps its meaning even if a version that its schema references is deleted, and
    another schema is registered under the version's number."""
    new_id = replace_part(registry)
    asked = client_of(registry)
    assert fields(asked.schema(2)) == FIRST
    assert fields(asked.schema(new_id)) == SECOND


def test_a_client_that_knows_the_old_types_does_not_give_them_to_a_new_id(
    registry: Registry,
) -> None:
    """A client has read a schema under its old id. After a referenced version got another schema,
    the same text has a new id. Under the new id, and as the latest version, the client returns the
    schema with the new types."""
    asked = client_of(registry)
    assert fields(asked.latest("whole").schema) == FIRST
    new_id = replace_part(registry)
    assert fields(asked.latest("whole").schema) == SECOND
    assert fields(asked.schema(new_id)) == SECOND
    assert fields(asked.schema(2)) == FIRST


def test_an_old_id_stays_readable_when_a_referenced_version_gets_another_number(
    registry: Registry,
) -> None:
    """The schema of an id can still be read if the version that it references was deleted, and the
    referenced schema was registered again as a version with another number."""
    registry.good("DELETE", "/subjects/whole")
    registry.good("DELETE", "/subjects/part")
    registry.register("part", OLD)
    assert registry.good("GET", "/subjects/part/versions?deleted=true") == [2]
    assert fields(client_of(registry).schema(2)) == FIRST
