"""Hypothesis strategies for Avro record schemas that map to columns, and for batches that fit
them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    parse,
)
from skidway.schemas.codec.arrow import arrow_schema, branches_of, decimal_type
from skidway.schemas.codec.times import MILLIS_MAX

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**62) - 2, -(2**62) + 2)
MILLIS = st.integers(-MILLIS_MAX, MILLIS_MAX)
TEXT = st.text(max_size=12)
BYTES = st.binary(max_size=12)
FLOAT = st.floats(width=32)
DOUBLE = st.floats()

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An Avro type as JSON, and a strategy for the values that Arrow accepts for this type."""


def leaves() -> st.SearchStrategy[Typed]:
    """Returns a strategy for the types that the codec's fast path supports. None of them permits
    null.
    """
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
            ({"type": "long", "logicalType": "timestamp-millis"}, MILLIS),
            ({"type": "long", "logicalType": "timestamp-micros"}, LONG),
            ({"type": "long", "logicalType": "timestamp-nanos"}, LONG),
            ({"type": "long", "logicalType": "local-timestamp-millis"}, MILLIS),
            ({"type": "long", "logicalType": "no-such"}, LONG),
        ]
    )


def enums(number: Callable[[], int]) -> st.SearchStrategy[Typed]:
    """Returns a strategy for enum types. `number` returns a new number at each call, so that each
    enum gets a different name."""
    symbols = ["A", "B", "C"]
    return st.builds(
        lambda: (
            {"type": "enum", "name": f"E{number()}", "symbols": symbols},
            st.sampled_from(symbols),
        )
    )


def odd_leaves(number: Callable[[], int]) -> st.SearchStrategy[Typed]:
    """Returns a strategy for the types that the codec's fast path does not support."""
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
            lambda: (
                {"type": "fixed", "name": f"F{number()}", "size": 70},
                st.binary(min_size=70, max_size=70),
            ),
            lambda: (
                {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 1},
                st.decimals(-(10**20), 10**20, places=1),
            ),
            lambda: ({"type": "record", "name": f"N{number()}", "fields": []}, st.just({})),
        ][at](),
        st.integers(0, 7),
    )


def nullable(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Returns a strategy for unions of a type from `inner` and null, in both orders. A type from
    `inner` that is itself a union or null stays unchanged."""

    def made(typed: Typed, null_first: bool) -> Typed:
        if isinstance(typed[0], list) or typed[0] == "null":
            return typed
        branches = ["null", typed[0]] if null_first else [typed[0], "null"]
        return branches, st.none() | typed[1]

    return st.builds(made, inner, st.booleans())


def union_of(types: list[Typed], null_at: int | None) -> Typed:
    """Returns a union of several types. In Arrow its values are structs with one field for each
    member. Avro forbids several types of the same kind or name in a union, so this function uses
    only the first type of each kind and name. The function adds long and int if they are missing,
    so that the union always has several types. `null_at` is the index of null in the union, or None
    if the union has no null."""
    kinds: dict[str, Typed] = {}
    for avro, values in types:
        kind = avro if isinstance(avro, str) else avro.get("name", avro["type"])
        kinds.setdefault(kind, (avro, values))
    kinds.setdefault("long", ("long", LONG))
    kinds.setdefault("int", ("int", INT))
    branches = [avro for avro, _ in kinds.values()]
    values = st.one_of(
        [
            each.map(lambda value, at=at: {f"member{at}": value})
            for at, (_, each) in enumerate(kinds.values())
        ]
    )
    if null_at is None:
        return branches, values
    branches.insert(min(null_at, len(branches)), "null")
    return branches, st.none() | values


def record_of(types: list[Typed], name: str) -> Typed:
    """Returns a record type whose fields have these types."""
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
    """Draws a record schema and a strategy for its rows. If `flat` is true, the schema contains
    only types that the codec's fast path supports."""
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
        single = some.filter(lambda typed: not isinstance(typed[0], list) and typed[0] != "null")
        listed = some.map(_array) | some.map(_map)
        unions = st.builds(
            union_of,
            st.lists(single | listed, max_size=3),
            st.none() | st.integers(0, 4),
        )
        types = some | listed | unions | unions.map(_array) | listed.map(_array) | listed.map(_map)
    schema, rows = record_of(draw(st.lists(types, min_size=1, max_size=5)), "Top")
    return schema, rows


@st.composite
def batches(draw: st.DrawFn, *, flat: bool) -> tuple[dict[str, Any], pa.RecordBatch]:
    """Draws a schema and a batch with exactly the Arrow types of this schema."""
    schema, rows = draw(records(flat=flat))
    values = draw(st.lists(rows, max_size=6))
    columns = arrow_schema(parse(schema))
    arrays = [pa.array([row[field.name] for row in values], field.type) for field in columns]
    return schema, pa.RecordBatch.from_arrays(arrays, schema=columns)


def raw(array: pa.Array) -> pa.Array:
    """Replaces dates, times and timestamps in the array, at every depth of nesting, by integers,
    because Python's types have a smaller range than Arrow's types.

    This function does not use Arrow's cast, because the cast loses the items of a list if all of
    them are null.
    """
    array, arrow = array.take(pa.array(range(len(array)), pa.int64())), array.type
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow):
        return array.view(pa.int64())
    if pa.types.is_date32(arrow) or pa.types.is_time32(arrow):
        return array.view(pa.int32())
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(arrow) and arrow.num_fields:
        children = [raw(array.field(at)) for at in range(arrow.num_fields)]
        return pa.StructArray.from_arrays(children, names=arrow.names, mask=mask)
    if pa.types.is_list(arrow):
        return pa.ListArray.from_arrays(array.offsets, raw(array.values), mask=mask)
    if pa.types.is_map(arrow):
        return pa.MapArray.from_arrays(array.offsets, array.keys, raw(array.items), mask=mask)
    return array


def outgoing(avro: AvroType, value: Any, *, tagged: bool = True) -> Any:
    """Converts a value, as Arrow's `to_pylist` returns it, to the form that fastavro accepts. If
    `tagged` is true, each value of a union is paired with the name of the union's member to which
    it belongs.
    """
    if value is None or (isinstance(avro, Primitive | Enum) and decimal_type(avro) is None):
        return value
    if isinstance(avro, Union):
        members = [avro.branches[at] for at in branches_of(avro)]
        if len(members) == 1:
            return outgoing(members[0], value, tagged=tagged)
        ((name, inner),) = [pair for pair in value.items() if pair[1] is not None]
        made = outgoing(members[int(name.removeprefix("member"))], inner, tagged=tagged)
        return {name: made} if tagged else made
    if isinstance(avro, Record):
        return {
            each.name: outgoing(each.type, value[each.name], tagged=tagged) for each in avro.fields
        }
    if isinstance(avro, Array):
        return [outgoing(avro.items, each, tagged=tagged) for each in value]
    if isinstance(avro, Map):
        return {key: outgoing(avro.values, each, tagged=tagged) for key, each in value}
    return _unscaled(value, avro) if decimal_type(avro) is not None else value


def _unscaled(value: Decimal, avro: AvroType) -> bytes:
    """Returns the unscaled integer of a decimal, in two's complement, big-endian. If the Avro type
    is a fixed, the result has the length of this type. Otherwise the result is as short as
    possible."""
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    length = (number + (number < 0)).bit_length() // 8 + 1
    return number.to_bytes(avro.size if isinstance(avro, Fixed) else length, "big", signed=True)
