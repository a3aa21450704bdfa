"""The detail of a rejected JSON line (a short text about the reason) names the value that does not
fit."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing import misfits
from skidway.agent.parsing.json_lines import JsonParser
from skidway.agent.parsing.parser import SCHEMA
from skidway.schemas.codec import Codec

ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "c", "type": "long"},
        {"name": "d", "type": ["null", {"type": "array", "items": "string"}], "default": None},
    ],
}
INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [
        {"name": "b", "type": {"type": "array", "items": ITEM}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
    ],
}
CODEC = Codec({"type": "record", "name": "Event", "fields": [{"name": "a", "type": INNER}]})
GOOD = {"b": [{"c": 1, "d": ["x"]}], "m": {"k": 1}}


def rejected(value: Any) -> list[str]:
    lines = pa.array([json.dumps({"a": value}).encode()], pa.binary())
    parsed = JsonParser(CODEC.arrow_schema, {}).parse(lines, 0)
    assert all(each.reason == SCHEMA for each in parsed.rejects)
    return [each.detail for each in parsed.rejects]


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (GOOD | {"b": [{"c": 1}, {"c": "secret"}]}, "field a.b[].c: not a value of long"),
        (GOOD | {"b": [{"c": 1}, {}]}, "field a.b[].c: the value is missing or null"),
        (GOOD | {"b": [{"c": 2**70}]}, "field a.b[].c: not a value of long"),
        (GOOD | {"b": [{"c": 1, "d": ["x", 5]}]}, "field a.b[].d[]: not a value of string"),
        (
            GOOD | {"b": [{"c": 1, "d": ["\ud800"]}]},
            "field a.b[].d[]: the text has half of a surrogate pair",
        ),
        (GOOD | {"b": {"c": 1}}, "field a.b: not an array"),
        (GOOD | {"b": [7]}, "field a.b[]: not an object"),
        (GOOD | {"m": {"secret": 1.5}}, "field a.m{}: not a value of int"),
        (7, "field a: not an object"),
    ],
)
def test_a_rejected_line_names_the_nested_member(value: Any, detail: str) -> None:
    """The detail of a rejected line (a short text about the reason) names the JSON member that does
    not fit, however deep it is. The detail quotes neither a value nor a key of a map."""
    assert rejected(value) == [detail]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["b", "c", "d", "m"]), inner, max_size=3)
    ),
)
ITEMS = st.fixed_dictionaries(
    {}, optional={"c": VALUES | st.integers(0, 9), "d": VALUES | st.lists(st.text(max_size=1))}
)


@given(
    VALUES
    | st.fixed_dictionaries(
        {"b": VALUES | st.lists(ITEMS, max_size=3), "m": VALUES | st.just({"k": 1})}
    )
)
def test_a_place_is_named_exactly_if_a_line_is_rejected(value: Any) -> None:
    """The parser rejects a line if and only if `_misfit` finds a value in the line that does not
    fit the value's field."""
    field = CODEC.arrow_schema.field("a")
    found = misfits._misfit(value, field)
    if value is None:
        return  # the codec refuses a missing field
    if found is None:
        assert rejected(value) == []
    else:
        assert rejected(value) == [f"field a{found[0]}: {found[1]}"]
