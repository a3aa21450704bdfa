"""Hypothesis strategies: Avro record schemas that have columns, with batches that fit them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from schemas.arrow import arrow_schema
from schemas.avro_schema import parse

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**62) - 2, -(2**62) + 2)
TEXT = st.text(max_size=12)
BYTES = st.binary(max_size=12)
FLOAT = st.floats(width=32)
DOUBLE = st.floats()

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An Avro type as JSON, and the values that Arrow takes for it."""


def leaves() -> st.SearchStrategy[Typed]:
    """Types of the fast path's subset, not nullable."""
    return st.sampled_from(
        [
            ("boolean", st.booleans()),
            ("int", INT),
            ("long", LONG),
            ("float", FLOAT),
            ("double", DOUBLE),
            ("bytes", BYTES),
            ("string", TEXT),
            ({"type": "string", "logicalType": "uuid"}, TEXT),
            ({"type": "int", "logicalType": "date"}, INT),
            ({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999)),
            ({"type": "long", "logicalType": "time-micros"}, st.integers(0, 86_399_999_999)),
            ({"type": "long", "logicalType": "timestamp-millis"}, LONG),
            ({"type": "long", "logicalType": "timestamp-micros"}, LONG),
            ({"type": "long", "logicalType": "timestamp-nanos"}, LONG),
            ({"type": "long", "logicalType": "local-timestamp-millis"}, LONG),
            ({"type": "long", "logicalType": "no-such"}, LONG),
        ]
    )


def enums(number: Callable[[], int]) -> st.SearchStrategy[Typed]:
    """An enum with a name of its own."""
    symbols = ["A", "B", "C"]
    return st.builds(
        lambda: (
            {"type": "enum", "name": f"E{number()}", "symbols": symbols},
            st.sampled_from(symbols),
        )
    )


def odd_leaves(number: Callable[[], int]) -> st.SearchStrategy[Typed]:
    """Types that only the slow path takes."""
    digits = Decimal("99999.99")
    money = st.decimals(-digits, digits, places=2)
    return st.builds(
        lambda at: [
            lambda: (
                {"type": "fixed", "name": f"F{number()}", "size": 3},
                st.binary(min_size=3, max_size=3),
            ),
            lambda: (
                {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 2},
                money,
            ),
            lambda: (
                {
                    "type": "fixed",
                    "name": f"F{number()}",
                    "size": 4,
                    "logicalType": "decimal",
                    "precision": 7,
                    "scale": 2,
                },
                money,
            ),
            lambda: ("null", st.none()),
            lambda: (["long"], LONG),
        ][at](),
        st.integers(0, 4),
    )


def nullable(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Unions with null, in both orders."""

    def made(typed: Typed, null_first: bool) -> Typed:
        if isinstance(typed[0], list) or typed[0] == "null":
            return typed
        branches = ["null", typed[0]] if null_first else [typed[0], "null"]
        return branches, st.none() | typed[1]

    return st.builds(made, inner, st.booleans())


def record_of(types: list[Typed], name: str) -> Typed:
    """A record with these fields."""
    fields = [{"name": f"f{at}", "type": avro} for at, (avro, _) in enumerate(types)]
    values = st.fixed_dictionaries({f"f{at}": each for at, (_, each) in enumerate(types)})
    return {"type": "record", "name": name, "fields": fields}, values


def _array(typed: Typed) -> Typed:
    return {"type": "array", "items": typed[0]}, st.lists(typed[1], max_size=3)


def _map(typed: Typed) -> Typed:
    pairs = st.dictionaries(TEXT, typed[1], max_size=3).map(lambda each: list(each.items()))
    return {"type": "map", "values": typed[0]}, pairs


@st.composite
def records(draw: st.DrawFn, *, flat: bool) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    """A record schema with its rows; `flat`: only what the fast path takes."""
    names = iter(range(1000))

    def number() -> int:
        return next(names)

    base = leaves() | enums(number)
    base = base | nullable(base)
    nested = st.builds(
        lambda types: record_of(types, f"R{number()}"), st.lists(base, min_size=1, max_size=2)
    )
    types = base | nested
    if not flat:
        odd = odd_leaves(number)
        some = types | odd | nullable(odd) | nullable(nested)
        solid = some.filter(lambda typed: typed[0] != "null")
        types = some | solid.map(_array) | solid.map(_map)
    schema, rows = record_of(draw(st.lists(types, min_size=1, max_size=5)), "Top")
    return schema, rows


@st.composite
def batches(draw: st.DrawFn, *, flat: bool) -> tuple[dict[str, Any], pa.RecordBatch]:
    """(schema, a batch of exactly its Arrow types)."""
    schema, rows = draw(records(flat=flat))
    values = draw(st.lists(rows, max_size=6))
    columns = arrow_schema(parse(schema))
    arrays = [pa.array([row[field.name] for row in values], field.type) for field in columns]
    return schema, pa.RecordBatch.from_arrays(arrays, schema=columns)
