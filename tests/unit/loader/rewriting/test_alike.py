"""Tests the check whether plain Spark (without Skidway) can read files of two schemas in one
directory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skidway.loader.rewriting.alike import clashing, unlike

NAME = {"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"}]}
LARGER = {
    "type": "record",
    "name": "N",
    "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "int", "default": 0}],
}
OTHER = {
    "type": "record", "name": "N", "fields": [{"name": "y", "type": "int", "default": 0}],
}  # fmt: skip
EMPTY = {"type": "record", "name": "N", "fields": []}
SMALL_ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


OTHER_ENUM = {"type": "enum", "name": "F", "symbols": ["A"]}
FIXED = {"type": "fixed", "name": "X", "size": 2}
OTHER_FIXED = {"type": "fixed", "name": "Y", "size": 2}
A = {"type": "record", "name": "A", "fields": [{"name": "x", "type": "int"}]}
B = {"type": "record", "name": "B", "fields": [{"name": "x", "type": "int"}]}
MILLIS = {"type": "int", "logicalType": "time-millis"}
MICROS = {"type": "long", "logicalType": "time-micros"}


def decimal(precision: int, scale: int = 0) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def schema(*fields: Any) -> str:
    """Returns a schema with one field for each given type or field."""
    made = [
        each if "name" in each and "fields" not in each and "symbols" not in each
        else {"name": f"f{at}", "type": each}
        for at, each in enumerate(fields)
    ]  # fmt: skip
    return json.dumps({"type": "record", "name": "R", "fields": made})


def link(value: Any, *more: Any, next: Any = ("null", "L")) -> dict[str, Any]:
    """Returns the schema of a record whose last field is `next`. By default `next` contains another
    record of the same type, or null."""
    next = list(next) if isinstance(next, tuple) else next
    fields = [{"name": "x", "type": value}, *more, {"name": "next", "type": next}]
    return {"type": "record", "name": "L", "fields": fields}


LINK = link("int")
END = {"type": "record", "name": "L2", "aliases": ["L"], "fields": [{"name": "x", "type": "int"}]}
ALIKE = [
    ("int", "long"),
    ("float", "double"),
    ("int", ["null", "int"]),
    (SMALL_ENUM, ENUM),
    (ENUM, {**SMALL_ENUM, "default": "A"}),
    (ENUM, SMALL_ENUM),
    (NAME, LARGER),
    (["null", NAME], LARGER),
    ({"type": "array", "items": NAME}, {"type": "array", "items": LARGER}),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}),
    (["int", "string"], ["long", "string"]),
    (["int", "string"], ["int", "string", "boolean"]),
    (["null", "int", "string"], ["int", "null", "string"]),
    (EMPTY, EMPTY),
    ([A, "string"], [A, "string", B]),
    ([SMALL_ENUM, "string"], [ENUM, "string"]),
    ([ENUM, "string"], [{**SMALL_ENUM, "default": "A"}, "string"]),
    (LINK, LINK),
    (LINK, link("long")),
    (link(["null", "int"]), link(["int", "null"])),
    (link(SMALL_ENUM), link(ENUM)),
    (link(ENUM), link({**SMALL_ENUM, "default": "A"})),
    (link(["int", "string"]), link(["int", "string", "boolean"])),
    (["null", LINK], {**LINK, "doc": "a list"}),
]
NOT_ALIKE = [
    ("int", "double"),
    ("long", "float"),
    ("string", "bytes"),
    ("bytes", "string"),
    ("int", ["int", "string"]),
    (["int", "string"], "string"),
    (["int", "string"], ["string", "int"]),
    ([SMALL_ENUM, "string"], ["string", ENUM]),
    (["int", "long"], ["long", "int"]),
    (decimal(9), decimal(12)),
    (decimal(38), decimal(39)),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}),
    ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}),
    (NAME, OTHER),
    (EMPTY, NAME),
    (NAME, "string"),
    ([A, B], [B, A]),
    ([SMALL_ENUM, OTHER_ENUM], [OTHER_ENUM, SMALL_ENUM]),
    ([FIXED, OTHER_FIXED], [OTHER_FIXED, FIXED]),
    (["string", A], ["string", B, A]),
    (["int", "string"], ["long", "string", "int"]),
    (["float", "string"], ["double", "string", "float"]),
    (MILLIS, MICROS),
    (["null", MILLIS], MICROS),
    (MILLIS, "long"),
    ({"type": "array", "items": MILLIS}, {"type": "array", "items": MICROS}),
    (decimal(40, 2), decimal(41, 3)),
    ({"type": "int", "logicalType": "date"}, "int"),
    (LINK, link("double")),
    (LINK, link(["string", "int"])),
    (LINK, link("int", {"name": "y", "type": "int", "default": 0})),
    (link("int", {"name": "y", "type": "int"}), LINK),
    (LINK, link("int", next=["null", "string", "L"])),
    (LINK, link("int", next=["null", END])),
    (link("int", next=["null", END]), LINK),
    (LINK, link("int", next="string")),
    (link(["null", "int"]), LINK),
    (link(["int", "long"]), link(["long", "int"])),
    (link(decimal(9)), link(decimal(9, 2))),
]


@pytest.mark.parametrize(("old", "new"), ALIKE)
def test_alike(old: Any, new: Any) -> None:
    """Files of an old schema stay as they are if plain Spark reads the right values from them as
    columns of the new schema."""
    assert unlike(schema(old), schema(new)) == []


@pytest.mark.parametrize(("old", "new"), NOT_ALIKE)
def test_not_alike(old: Any, new: Any) -> None:
    """Files of an old schema are rewritten if plain Spark would otherwise refuse the directory or
    show wrong values."""
    assert unlike(schema(old), schema(new)) == ["f0"]


def test_new_and_dropped_fields_need_no_rewriting() -> None:
    """If a new schema only adds or drops fields, files of the old schema are not rewritten."""
    first, second = {"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}
    assert unlike(schema(first), schema(first, second)) == []
    assert unlike(schema(first, second), schema(first)) == []


@pytest.mark.parametrize("change", [{"name": "b", "aliases": ["a"]}, {"name": "A"}])
def test_a_renamed_field_needs_rewriting(change: dict[str, Any]) -> None:
    """Files are rewritten if a field was renamed with an alias, because the old files have its
    values under the old name. They are also rewritten if two names differ only in case, because
    plain Spark would confuse the two fields."""
    old = {"name": "a", "type": "int"}
    new = schema({"type": "int", "default": 0, **change})
    assert unlike(schema(old), new) == [change["name"]]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({"name": "a", "type": "int"}, {"name": "a", "type": "long"}, []),
        ({"name": "a", "type": "int"}, {"name": "a", "type": "string"}, ["a"]),
        ({"name": "a", "type": "int"}, {"name": "A", "type": "int"}, ["a"]),
        ({"name": "a", "type": "int"}, {"name": "c", "aliases": ["a"], "type": "int"}, ["a"]),
        ({"name": "a", "type": "int"}, {"name": "b", "aliases": ["a"], "type": "int"}, []),
        ({"name": "a", "type": "int"}, {"name": "c", "type": "int"}, []),
    ],
)
def test_columns_that_readers_would_mix_up(old: Any, new: Any, names: list[str]) -> None:
    """The column of an older schema is named if readers take it for another one of a newer schema,
    or do not find it under its new name. An alias does not count if the older schema has a field of
    the new name itself."""
    text = schema(old, {"name": "b", "type": "int"})
    assert clashing(text, {"a"}, schema(new), {new["name"]}) == names
    assert clashing(text, {"b"}, schema(new), {new["name"]}) == []
    assert clashing(text, {"a"}, schema(new), set()) == []
