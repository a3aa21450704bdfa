"""The registry's client gives each schema id one meaning for ever, even if the versions that the
schema references are deleted and their numbers get other schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from skidway.schemas.client import RegistryAdministration
from support.registry_client import InProcess, administration
from support.registry_http import Registry, record, reference

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
    """Deletes both subjects, `part` permanently. Registers another schema as version 1 of `part`,
    and `whole` as before. Returns the new id of `whole`."""
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
    """An old id keeps its meaning if a version that it references is deleted and made again."""
    new_id = replace_part(registry)
    asked = client_of(registry)
    assert fields(asked.schema(2)) == FIRST
    assert fields(asked.schema(new_id)) == SECOND


def test_a_client_that_knows_the_old_types_does_not_give_them_to_a_new_id(
    registry: Registry,
) -> None:
    """A client that has read an old id gives a new id the new types, by id and as the latest."""
    asked = client_of(registry)
    assert fields(asked.latest("whole").schema) == FIRST
    new_id = replace_part(registry)
    assert fields(asked.latest("whole").schema) == SECOND
    assert fields(asked.schema(new_id)) == SECOND
    assert fields(asked.schema(2)) == FIRST


def test_an_old_id_stays_readable_when_a_referenced_version_gets_another_number(
    registry: Registry,
) -> None:
    """An old id stays readable if the schema that it references returns under another number."""
    registry.good("DELETE", "/subjects/whole")
    registry.good("DELETE", "/subjects/part")
    registry.register("part", OLD)
    assert registry.good("GET", "/subjects/part/versions?deleted=true") == [2]
    assert fields(client_of(registry).schema(2)) == FIRST
