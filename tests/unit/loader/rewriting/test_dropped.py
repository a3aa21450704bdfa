"""Tests which fields of an older schema a newer schema dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skidway.loader.rewriting.dropped import dropped, lost, nested_dropped


def schema(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


def place(name: str, *aliases: str) -> dict[str, Any]:
    field = {"name": name, "type": "string", "default": "", "aliases": aliases}
    return {"type": "record", "name": "P", "fields": [field]}


def link(*names: str) -> dict[str, Any]:
    """Returns the schema of a record whose field `next` may contain another record of the type."""
    fields = [{"name": each, "type": "int", "default": 0} for each in names]
    following = {"name": "next", "type": ["null", "L"]}
    return {"type": "record", "name": "L", "fields": [*fields, following]}


def test_dropped_fields() -> None:
    """A field is dropped if no field of the newer schema has its name, or has it as an alias."""
    old = schema(*({"name": each, "type": "int"} for each in "abc"))
    new = schema({"name": "a", "type": "int"}, {"name": "d", "type": "int", "aliases": ["b"]})
    assert dropped(old, new) == {"c"}


ROOM, NOWHERE = place("room"), place("city")


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (ROOM, place("hall", "room"), []),
        (ROOM, NOWHERE, ["f.room"]),
        (["null", ROOM], NOWHERE, ["f.room"]),
        ({"type": "array", "items": ROOM}, {"type": "array", "items": NOWHERE}, ["f.room"]),
        ({"type": "map", "values": ROOM}, {"type": "map", "values": NOWHERE}, ["f.room"]),
        (ROOM, ["string", NOWHERE], ["f.room"]),
        (["string", ROOM], [NOWHERE, "string"], ["f.room"]),
        (ROOM, "string", []),
        (link("x", "y"), link("x"), ["f.y"]),
        (link("x"), link("x", "y"), []),
    ],
)
def test_nested_fields_that_were_dropped(old: Any, new: Any, paths: list[str]) -> None:
    """Dropped fields are found at any depth. A renamed field is not dropped, and a field of the
    outermost record is not nested."""
    older = schema({"name": "f", "type": old}, {"name": "g", "type": "int"})
    assert nested_dropped(older, schema({"name": "f", "type": new})) == paths


def field(name: str, *aliases: str) -> dict[str, Any]:
    return {"name": name, "type": "int", "default": 0, "aliases": list(aliases)}


@pytest.mark.parametrize(
    ("then", "now", "names"),
    [
        ([field("a")], [field("a")], []),
        ([field("a")], [field("b", "a")], []),
        ([field("a")], [field("b")], ["a"]),
        ([field("b", "a")], [field("b")], ["a"]),
        ([field("b", "a")], [field("b"), field("a")], ["a"]),
        ([field("b")], [field("b")], []),
        ([field("b")], [field("a")], []),
    ],
)
def test_values_that_would_leave_their_column(
    then: list[Any], now: list[Any], names: list[str]
) -> None:
    """Records that are read again lose a value if the newest schema has no field for it, or would
    put it into another column and leave its own column to another field. A renamed column, and a
    value that no load has put anywhere, are not lost."""
    assert lost(schema(field("a")), schema(*then), schema(*now)) == names
