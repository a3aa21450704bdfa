"""A schema may use the types of other schemas by references. A schema that another schema
references cannot be deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skidway.schemas.registry.parsed import NEEDED_MAX
from support.registry_http import Registry, record, reference

PART = record("Part", a=None)
WHOLE = record("Whole", part="Part")
LARGE = record("Large", whole="Whole", part="Part")
INLINED = json.dumps(
    {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": json.loads(PART)}]}
)
TO_PART = reference("Part", "part")


def test_a_schema_uses_the_types_of_another_subject(registry: Registry) -> None:
    """A schema may use types from a schema of another subject. The answers for the schema's id and
    for its version also contain its reference to that subject."""
    assert registry.register("part", PART) == 1
    assert registry.register("whole", WHOLE, TO_PART) == 2
    for path in ("/schemas/ids/2", "/subjects/whole/versions/latest"):
        found = registry.good("GET", path)
        assert found["references"] == [TO_PART]
        assert json.loads(found["schema"]) == json.loads(WHOLE)
    assert list(registry.good("GET", "/schemas/ids/1")) == ["schema"]
    assert registry.good("GET", "/subjects/part/versions/1/referencedby") == [2]
    resolved = registry.good("GET", "/schemas/ids/2?format=resolved")
    assert json.loads(resolved["schema"]) == json.loads(INLINED)


def test_references_of_references_count(registry: Registry) -> None:
    """A schema may also use types that its referenced schemas get from their own references. Two
    references may lead to the same type. The resolved text declares each of the types once."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, TO_PART)
    assert registry.register("large", LARGE, reference("Whole", "whole")) == 3
    assert registry.register("large", LARGE, TO_PART, reference("Whole", "whole")) == 4
    assert registry.good("GET", "/subjects/part/versions/1/referencedby") == [2, 4]
    resolved = json.loads(LARGE)
    resolved["fields"][0]["type"] = json.loads(INLINED)
    for schema_id in (3, 4):
        found = registry.good("GET", f"/schemas/ids/{schema_id}?format=resolved")
        assert json.loads(found["schema"]) == resolved


def test_a_reference_to_the_latest_version_is_kept_with_its_number(registry: Registry) -> None:
    """A reference to version -1 is stored with the number that the latest version has at the time
    of the registration."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, reference("Part", "part", -1))
    registry.register("part", record("Part", a=None, b=0))
    assert registry.good("GET", "/schemas/ids/2")["references"] == [TO_PART]
    assert registry.register("whole", WHOLE, TO_PART) == 2
    assert registry.register("whole", WHOLE, reference("Part", "part", -1)) == 4


def test_an_inlined_schema_is_the_one_that_references_its_parts(registry: Registry) -> None:
    """Serializers send a text that itself declares the referenced types. The registry answers with
    the id of the registered schema that references these types, and creates no new version."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, TO_PART)
    assert registry.register("whole", INLINED) == 2
    assert registry.good("POST", "/subjects/whole", {"schema": INLINED})["id"] == 2
    assert registry.good("GET", "/subjects/whole/versions") == [1]


def test_the_same_text_with_other_references_is_another_schema(registry: Registry) -> None:
    """The same text with other references is another schema, because the names in the text then
    refer to other types."""
    registry.register("part", PART)
    registry.register("part", record("Part", a=None, b=0))
    assert registry.register("whole", WHOLE, TO_PART) == 3
    assert registry.register("whole", WHOLE, reference("Part", "part", 2)) == 4
    body = {"schema": WHOLE, "references": [reference("Part", "part", 2)]}
    assert registry.good("POST", "/subjects/whole", body)["version"] == 2


def test_normalize_orders_references(registry: Registry) -> None:
    """With the parameter normalize, a schema with the same references in another order, or with a
    reference twice, is not a new schema."""
    registry.register("part", PART)
    registry.register("other", record("Other", a=None))
    both = [reference("Part", "part"), reference("Other", "other")]
    schema = record("Both", p="Part", o="Other")
    path = "/subjects/both/versions?normalize=true"
    for references in (both, both[::-1], [*both, both[0]]):
        assert registry.good("POST", path, {"schema": schema, "references": references})["id"] == 3


def test_compatibility_sees_through_references(registry: Registry) -> None:
    """A schema is incompatible with its previous version if its reference changes to an
    incompatible version of the referenced subject."""
    registry.good("PUT", "/config/part", {"compatibility": "NONE"})
    registry.register("part", PART)
    registry.register("part", record("Part", a="string"))
    registry.register("whole", WHOLE, TO_PART)
    changed = {"schema": WHOLE, "references": [reference("Part", "part", 2)]}
    assert registry.refused("POST", "/subjects/whole/versions", changed) == (409, 409)
    path = "/compatibility/subjects/whole/versions/latest?verbose=true"
    verdict = registry.good("POST", path, changed)
    assert verdict["is_compatible"] is False
    assert "TYPE_MISMATCH" in verdict["messages"][0]


def test_what_is_referenced_cannot_be_deleted(registry: Registry) -> None:
    """While a live version references another version, a request to delete the referenced version
    or its subject gets the error code 42206."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, TO_PART)
    for path in ("/subjects/part", "/subjects/part/versions/1"):
        status, document = registry.ask("DELETE", path)
        assert (status, document["error_code"]) == (422, 42206)
        assert document["message"] == (
            "One or more references exist to the schema "
            "{magic=1,keytype=SCHEMA,subject=part,version=1}."
        )
    registry.good("DELETE", "/subjects/whole")
    assert registry.good("GET", "/subjects/part/versions/1/referencedby") == []
    assert registry.good("DELETE", "/subjects/part") == [1]
    assert registry.good("DELETE", "/subjects/part?permanent=true") == [1]
    kept = registry.good("GET", "/schemas/ids/2?format=resolved")  # id 2 stays readable
    assert json.loads(kept["schema"]) == json.loads(INLINED)


def test_a_subject_made_again_is_another_reference(registry: Registry) -> None:
    """If a referenced subject is deleted permanently and created again, a schema with the same
    reference counts as another schema."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, TO_PART)
    for path in ("/subjects/whole", "/subjects/part", "/subjects/part?permanent=true"):
        registry.good("DELETE", path)
    registry.register("part", record("Part", z="string"))
    assert registry.register("whole", WHOLE, TO_PART) == 4
    assert registry.good("GET", "/subjects/part/versions/1/referencedby") == [4]


@pytest.mark.parametrize(
    ("references", "words"),
    [
        ([], "no type"),
        ([reference("Part", "nobody")], "subject 'nobody', which is not there"),
        ([reference("Part", "part", 7)], "version 7 of subject 'part'"),
        ([reference("Part", "gone")], "subject 'gone', which is not there"),
        ([{"name": "Part"}], "name, subject and version"),
        ([{"name": "Part", "subject": "part", "version": "1"}], "version from 1 on"),
        ([{"name": "Part", "subject": "part", "version": 0}], "version from 1 on"),
        ("part", "no list"),
        ([7], "name, subject and version"),
        ([TO_PART] * (NEEDED_MAX + 1), "no list of at most"),
        ([TO_PART, reference("Part", "other")], "Two of the referenced schemas declare Part"),
    ],
)
def test_references_that_lead_nowhere_are_42201(
    registry: Registry, references: Any, words: str
) -> None:
    """A schema with an invalid reference gets the error code 42201 and a message that says what is
    wrong. A reference from a new schema to a deleted version is invalid, too."""
    registry.register("part", PART)
    registry.register("other", record("Part", other=None))
    registry.register("gone", PART)
    registry.good("DELETE", "/subjects/gone")
    body = {"schema": WHOLE, "references": references}
    status, document = registry.ask("POST", "/subjects/whole/versions", body)
    assert (status, document["error_code"]) == (422, 42201)
    assert words in document["message"]


def test_a_schema_may_not_declare_what_it_references(registry: Registry) -> None:
    """A schema is refused if it declares a type that it also gets from a reference."""
    registry.register("part", PART)
    body = {"schema": INLINED, "references": [TO_PART]}
    assert registry.refused("POST", "/subjects/whole/versions", body) == (422, 42201)


def test_chains_of_references_are_bounded(registry: Registry) -> None:
    """A schema that needs more than NEEDED_MAX other schemas is refused."""
    registry.register("s0", record("R0", a=None))
    for number in range(1, NEEDED_MAX + 1):
        before = f"R{number - 1}"
        schema = record(f"R{number}", a=before)
        registry.register(f"s{number}", schema, reference(before, f"s{number - 1}"))
    body = {
        "schema": record("Last", a=f"R{NEEDED_MAX}"),
        "references": [reference("R", f"s{NEEDED_MAX}")],
    }
    status, document = registry.ask("POST", "/subjects/last/versions", body)
    assert (status, document["error_code"]) == (422, 42201)
    assert f"more than {NEEDED_MAX} schemas" in document["message"]


def test_a_reference_that_another_registry_made_a_moment_ago(registry: Registry) -> None:
    """If a registry process does not know a referenced version, it first reads the newer entries of
    the log in ZooKeeper, because another process may just have written this version."""
    other = Registry(registry.log.shared)
    registry.log.visible = 0
    other.register("part", PART)
    assert registry.register("whole", WHOLE, TO_PART) == 2


def test_references_survive_a_restart(registry: Registry) -> None:
    """References survive a restart, because they are stored in the registry's log in ZooKeeper."""
    registry.register("part", PART)
    registry.register("whole", WHOLE, TO_PART)
    again = Registry(registry.log.shared)
    assert again.good("GET", "/schemas/ids/2") == registry.good("GET", "/schemas/ids/2")
    assert again.refused("DELETE", "/subjects/part") == (422, 42206)


def test_a_deleted_version_that_is_referenced_stays_when_its_schema_returns(
    registry: Registry,
) -> None:
    """A deleted version that is referenced stays, even when its schema is registered again, because
    readers look the version up by its subject and number."""
    registry.register("part", PART)
    registry.good("DELETE", "/subjects/part")
    registry.good("PUT", "/mode/whole", {"mode": "IMPORT"})
    registry.register("whole", WHOLE, TO_PART, id=7, version=1)
    assert registry.register("part", PART) == 1
    assert registry.good("GET", "/subjects/part/versions?deleted=true") == [1, 2]
    assert registry.good("GET", "/subjects/part/versions/1?deleted=true")["schema"]
