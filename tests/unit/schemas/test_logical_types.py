"""Tests which logical types are named because readers ignore them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skidway.schemas.avro_schema import parse
from skidway.schemas.codec.arrow import arrow_schema
from skidway.schemas.logical_types import ignored

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def record(avro: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "v", "type": avro, **more}]}


def logical(kind: str, name: Any, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, name: str, /, **more: Any) -> dict[str, Any]:
    return logical("fixed", name, name="F", size=size, **more)


def decimal(**more: Any) -> dict[str, Any]:
    return logical("bytes", "decimal", **more)


NEEDS = "v: decimal needs a precision from 1 to 76 that its bytes can hold, and a scale from 0"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (record("long", logicalType="timestamp-millis"),
         "v: logicalType stands beside the type and not in it, so readers take \"long\""),
        (record(["null", "long"], logicalType="date"), "v: logicalType stands beside"),
        (record(logical("long", "timestamp_millis")), 'v: Avro has no logical type "timestamp_mil'),
        (record(logical("long", "Timestamp-Millis")), "v: Avro has no logical type"),
        (record(logical("long", 7)), "v: Avro has no logical type 7"),
        (record(logical("long", "date")), "v: date belongs to int, so readers take \"long\""),
        (record(logical("string", "timestamp-millis")), "v: timestamp-millis belongs to long"),
        (record(logical("string", "decimal", precision=4)), "v: decimal belongs to bytes or fixed"),
        (record(decimal()), NEEDS),
        (record(decimal(precision="10")), NEEDS),
        (record(decimal(precision=4, scale=5)), NEEDS),
        (record(decimal(precision=4, scale="2")), NEEDS),
        (record(decimal(precision=77)), NEEDS),
        (record(fixed(2, "decimal", precision=9)), NEEDS),
        (record(fixed(8, "uuid")), "v: uuid has 16 bytes"),
        (record(fixed(8, "duration")), "v: duration has 12 bytes"),
        (record({"type": "long", "logicaltype": "date"}), "v: logicaltype is no property of Avro"),
        (record({"type": "long", "logical_type": "date"}), "v: logical_type is no property of Av"),
        (record({"type": "array", "items": logical("int", "day")}), 'v[]: Avro has no logical'),
        (record({"type": "map", "values": ["null", logical("int", "day")]}), 'v{}: Avro has no'),
        (record({**record(logical("int", "day")), "name": "I"}), 'v.v: Avro has no logical type'),
        (logical("long", "day"), 'the schema: Avro has no logical type "day"'),
        (record({"type": "array", "items": "int", "logicalType": "date"}), "v: date belongs to i"),
    ],
)  # fmt: skip
def test_what_readers_ignore_is_named(schema: Any, words: str) -> None:
    """A logical type that is unknown, misspelled, beside its type, on a wrong type, or without the
    numbers that it needs, is named with its place, in one sentence."""
    parse(schema)
    (sentence,) = ignored(json.dumps(schema))
    assert sentence.startswith(words)
    assert "timestamp" not in str(arrow_schema(parse(schema)))


@pytest.mark.parametrize(
    "schema",
    [
        "string",
        record("long", doc="logicalType"),
        record(MILLIS),
        record(MILLIS, logicalType="timestamp-millis"),
        record(["null", MILLIS]),
        record(decimal(precision=4)),
        record(fixed(4, "decimal", precision=9, scale=9)),
        record(fixed(16, "uuid")),
        record(fixed(12, "duration")),
        record(logical("string", "uuid")),
        record(logical("bytes", "big-decimal")),
        {"type": "string", "fields": [7], "items": {"logicalType": 7}},
    ],
)
def test_what_readers_know_is_not_named(schema: Any) -> None:
    """A logical type of Avro that is where it belongs is not named."""
    parse(schema)
    assert ignored(schema if isinstance(schema, str) else json.dumps(schema)) == []
