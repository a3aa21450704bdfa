"""Tests how the differences of two schemas are shown to developers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from skidway.schemas.advice import Difference, advise
from skidway.schemas.avro_schema import parse
from skidway.schemas.compatibility import Level
from support.avro import records
from support.avro_trees import enum, field, record


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


def differences(old: Any, new: Any) -> tuple[Difference, ...]:
    return advise([(1, parse(old))], parse(new), Level.NONE).differences


A, B, C = field("a", "int"), field("b", "string"), field("c", "long")
TIME = {"type": "long", "logicalType": "timestamp-millis"}


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        (record(A), record(A, B), ["b: field added: string"]),
        (record(A), record(A, field("b", "int", default=0)), ["b: field added: int, default 0"]),
        (record(A, B), record(A), ["b: field removed: string"]),
        (record(A), record(field("a", "long")), ["a: type changed from int to long"]),
        (
            record(C),
            record(field("c", TIME)),
            ["c: type changed from long to long (timestamp-millis)"],
        ),
        (
            record(A),
            record(field("z", "int", aliases=["a"])),
            ["z: field renamed from a to z", 'z: aliases changed from none to ["a"]'],
        ),
        (
            record(A, B, C),
            record(C, A, B),
            ["the schema: fields in another order from a, b, c to c, a, b"],
        ),
        (record(A), record(field("a", "int", default=1)), ["a: default changed from none to 1"]),
        (
            record(field("a", "null", default=None)),
            record(field("a", "null")),
            ["a: default changed from null to none"],
        ),
        (record(A), record(field("a", "int", doc="D")), ['a: doc changed from none to "D"']),
        (record(A), record(A, doc="D"), ['the schema: doc changed from none to "D"']),
        (
            record(A),
            record(field("a", "int", order="ignore")),
            ['a: order changed from "ascending" to "ignore"'],
        ),
        (record(A), record(field("a", "int", p=1)), ["a: p changed from none to 1"]),
        (record(A), record(A, name="S"), ['the schema: name changed from "R" to "S"']),
        (
            enum("A", "B"),
            enum("A", "C"),
            [
                "the schema: symbol added: C (Avro readers of the old schema refuse it)",
                "the schema: symbol removed: B (Avro readers of the new schema refuse it; "
                "the loader's rows keep it)",
            ],
        ),
        (
            record(field("e", enum("A", "B", default="A"))),
            record(field("e", enum("A", "C", default="A"))),
            [
                "e: symbol added: C (Avro readers of the old schema read it as A)",
                "e: symbol removed: B (Avro readers of the new schema read it as A; "
                "the loader's rows keep it)",
            ],
        ),
        (
            enum("A", "B"),
            enum("B", "A"),
            ["the schema: symbols in another order from A, B to B, A"],
        ),
        (enum("A"), enum("A", default="A"), ['the schema: default changed from none to "A"']),
        (fixed(1), fixed(2), ["the schema: size changed from 1 to 2"]),
        (
            ["null", "int"],
            ["null", "string"],
            [
                "the schema: type added: string",
                "the schema: type removed: int",
            ],
        ),
        (
            ["null", "int"],
            ["int", "null"],
            [
                "the schema: types in another order from null, int to int, null",
            ],
        ),
        (
            record(field("a", {"type": "array", "items": {"type": "map", "values": "int"}})),
            record(field("a", {"type": "array", "items": {"type": "map", "values": "long"}})),
            ["a[]{}: type changed from int to long"],
        ),
        (
            record(field("r", record(A, name="S"))),
            record(field("r", ["null", record(A, B, name="S")])),
            ["r: type added: null", "r.b: field added: string"],
        ),
        (
            record(field("f", {"type": "enum", "name": "F", "symbols": ["a"]})),
            record(field("f", fixed(4))),
            ["f: type changed from enum F to fixed F"],
        ),
    ],
)
def test_each_change_in_a_line(old: Any, new: Any, lines: list[str]) -> None:
    """The list of the differences of two schemas has one line for each change, and no other
    lines."""
    assert [str(each) for each in differences(old, new)] == lines


def test_a_new_logical_type_of_a_named_type_is_shown() -> None:
    """If a named type, such as a fixed type, gets a logical type, the line of the difference names
    the logical type. Without it, the old and the new type would look the same in the line."""
    price = {**fixed(8), "logicalType": "decimal", "precision": 9}
    assert [str(each) for each in differences(fixed(8), price)] == [
        "the schema: type changed from fixed F to fixed F (decimal)"
    ]


def test_both_sides_can_be_set_beside_each_other() -> None:
    """Each change between two schemas has a description of the field in the old and in the new
    schema. The description is None if a schema lacks the field."""
    added, removed = differences(record(A), record(B))
    assert (added.change, added.old, added.new) == ("field added", None, "string")
    assert (removed.change, removed.old, removed.new) == ("field removed", "int", None)


def test_recursive_schemas_end() -> None:
    """The comparison of recursive schemas compares a recursive record only once, so that it
    ends."""
    old = record(field("next", ["null", "R"]), A)
    new = record(field("next", ["null", "R"]), field("a", "long"))
    assert [str(each) for each in differences(old, new)] == ["a: type changed from int to long"]


@given(records(flat=False))
def test_a_schema_does_not_differ_from_itself(case: tuple[Any, Any]) -> None:
    """A schema has no differences from itself."""
    assert differences(case[0], case[0]) == ()
