"""`without_circles` replaces the field types through which a record contains itself, so that no
type of the schema is recursive."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Map,
    Record,
    Recursive,
    Union,
    parse,
    without_circles,
)
from skidway.schemas.canonical import canonical


def record(name: str, **fields: Any) -> dict[str, Any]:
    made = [{"name": field, "type": avro} for field, avro in fields.items()]
    return {"type": "record", "name": name, "fields": made}


def leading_back(avro: AvroType, path: str = "") -> list[str]:
    """Returns the paths of the fields whose type contains the field's own record."""
    if isinstance(avro, Recursive):
        return [path]
    if isinstance(avro, Union):
        return [found for each in avro.branches for found in leading_back(each, path)]
    if isinstance(avro, Array | Map):
        return leading_back(avro.items if isinstance(avro, Array) else avro.values, path)
    if not isinstance(avro, Record):
        return []
    return [
        found
        for each in avro.fields
        for found in leading_back(each.type, f"{path}.{each.name}".lstrip("."))
    ]


NODE = record("Node", value="int", next=["null", "Node"])
SIDE = record("Side", x="int", whole=["null", "Whole"])
INNER = record("Inner", whole={"type": "map", "values": "Whole"})


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        (NODE, ["next"]),
        (record("R", tree=NODE, x="int"), ["tree.next"]),
        (record("R", trees={"type": "array", "items": ["null", "string", NODE]}), ["trees.next"]),
        ({"type": "array", "items": NODE}, ["next"]),
        (record("Whole", a=SIDE, y="int"), ["a"]),
        (record("R", a=record("Whole", b=SIDE)), ["a.b"]),
        (record("Whole", a=record("Plain", x="int"), b={"type": "array", "items": INNER}), ["b"]),
        (record("Whole", a="Whole"), ["a"]),
    ],
)
def test_a_field_leads_back_if_its_type_contains_its_record(schema: Any, paths: list[str]) -> None:
    """`without_circles` replaces only the fields through which a record contains itself. Other
    fields of the same record, and fields around the record, are not changed."""
    assert leading_back(without_circles(parse(schema))) == paths


def test_a_schema_without_circles_stays_as_it_is() -> None:
    """For a schema without recursive types, `without_circles` returns the same object, even if the
    schema uses a type twice."""
    avro = parse(record("R", a=record("S", x="int"), b="S"))
    assert without_circles(avro) is avro


def test_a_schema_is_the_same_without_its_circles() -> None:
    """`without_circles` replaces the recursive types of a schema. The schema's canonical text stays
    the same, so the schema is not mistaken for another one."""
    avro = parse(record("R", tree=NODE, more=["null", "Node"]))
    assert canonical(without_circles(avro)) == canonical(avro)
    assert without_circles(once := without_circles(avro)) is once


def test_a_long_chain_of_references_is_no_deep_stack() -> None:
    """In a schema with a chain of 5,000 record types, each of which uses the type before it, the
    recursive types are found without deep recursion."""
    fields = {f"f{at}": record(f"R{at}", a=["null", f"R{at - 1}"]) for at in range(1, 5000)}
    avro = parse(record("Top", f0=record("R0", top=["null", "Top"]), **fields))
    found = without_circles(avro)
    assert isinstance(found, Record)
    assert all(isinstance(each.type, Recursive) for each in found.fields)
