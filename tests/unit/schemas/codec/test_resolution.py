"""Datums of a writer's schema become columns of a reader's schema, with the values that fastavro
reads, except where fastavro is wrong."""

from __future__ import annotations

import copy
import datetime as dt
import io
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from skidway.schemas.avro_schema import parse
from skidway.schemas.codec import Codec, DatumReader, Unresolvable
from skidway.schemas.codec.arrow import as_record
from skidway.schemas.compatibility import incompatibilities
from support.avro import batches, outgoing, raw
from support.avro_trees import field, record
from support.randomness import share_of

common = settings(
    max_examples=share_of(400),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def rows_of(writer: Any, reader: Any, rows: list[Any]) -> tuple[list[Any], list[Any]]:
    """Writes rows with the writer's schema and reads them with the reader's schema. Returns the
    rows that were read, and the refused datums."""
    codec = Codec(writer)
    datums = codec.encode(pa.RecordBatch.from_pylist(rows, codec.arrow_schema))
    decoded = DatumReader(writer, reader).decode(datums)
    decoded.batch.validate(full=True)
    return decoded.batch.to_pylist(), decoded.refused


PROMOTED = {
    "int": ["long", "float", "double"],
    "long": ["float", "double"],
    "float": ["double"],
    "string": ["bytes"],
    "bytes": ["string"],
}
ADDED = [("int", 7), ("string", "new"), (["null", "long"], None), ("double", 0.5)]


@st.composite
def evolved(draw: st.DrawFn) -> tuple[Any, Any, pa.BinaryArray]:
    """Draws a writer's schema, a reader's schema, and datums of the writer's schema. The reader's
    schema is a changed copy of the writer's schema."""
    writer, batch = draw(batches(flat=False))
    reader = _mutated(draw, copy.deepcopy(writer))
    return writer, reader, Codec(writer).encode(batch)


def _mutated(draw: st.DrawFn, avro: Any) -> Any:
    if isinstance(avro, list):
        branches = [_mutated(draw, each) for each in avro]
        if len({_name(each) for each in branches}) < len(branches):
            branches = avro
        if draw(st.booleans()):
            branches = draw(st.permutations(branches))
        return branches
    kind = avro if isinstance(avro, str) else avro["type"]
    if kind == "record":
        return _mutated_record(draw, avro)
    if kind == "array":
        return avro | {"items": _mutated(draw, avro["items"])}
    if kind == "map":
        return avro | {"values": _mutated(draw, avro["values"])}
    if kind == "enum":
        return _mutated_enum(draw, avro)
    if isinstance(avro, str) and kind in PROMOTED and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(PROMOTED[kind]))
    return avro


def _name(avro: Any) -> str:
    return avro if isinstance(avro, str) else avro.get("name", avro["type"])


def _mutated_enum(draw: st.DrawFn, avro: Any) -> Any:
    symbols = draw(st.sampled_from([["A", "B", "C"], ["C", "A"], ["B"], ["D", "C", "B", "A"]]))
    default = draw(st.sampled_from([{}, {"default": symbols[0]}]))
    return avro | {"symbols": symbols} | default


def _mutated_record(draw: st.DrawFn, avro: Any) -> Any:
    fields = []
    for each in avro["fields"]:
        choice = draw(st.integers(0, 7))
        if choice == 0:
            continue
        made = each | {"type": _mutated(draw, each["type"])}
        if choice == 1:
            made |= {"name": f"{each['name']}_new", "aliases": [each["name"]]}
        if choice == 2 and not isinstance(made["type"], list) and made["type"] != "null":
            made |= {"type": draw(st.permutations(["null", made["type"]]))}
        if choice == 3 and isinstance(each["type"], list):
            others = [branch for branch in made["type"] if branch != "null"]
            made |= {"type": others[0] if len(others) == 1 else others}
        fields.append(made)
    if draw(st.booleans()) or not fields:
        avro_type, default = draw(st.sampled_from(ADDED))
        fields.append(field("added", avro_type, default=default))
    if draw(st.booleans()):
        fields = draw(st.permutations(fields))
    return avro | {"fields": fields}


def bare(avro: Any, *, is_reader: bool) -> Any:
    """Returns the schema, changed so that fastavro reads its datums correctly.

    The result has no logical types, because fastavro converts by the writer's logical types, not by
    the reader's. In the unions of the reader's schema, narrow number types come before wide types.
    The reason is that fastavro takes the first branch to which the value can be promoted, even if a
    later branch has exactly the value's type. So in another order fastavro would read an int as a
    float (`test_a_branch_of_the_very_type_comes_first`).
    """
    if isinstance(avro, list):
        branches = [bare(each, is_reader=is_reader) for each in avro]
        return sorted(branches, key=lambda each: NARROW.get(_name(each), 0) * is_reader)
    if isinstance(avro, str):
        return avro
    made = {key: value for key, value in avro.items() if key not in LOGICAL}
    for key in ("items", "values", "type"):
        if key in made:
            made[key] = bare(made[key], is_reader=is_reader)
    if "fields" in made:
        made["fields"] = [bare(each, is_reader=is_reader) for each in made["fields"]]
    return made


LOGICAL = ("logicalType", "precision", "scale")
NARROW = {"int": 1, "long": 2, "float": 3, "double": 4}


def has_text_and_bytes(avro: Any) -> bool:
    """Returns whether the schema has a union with both string and bytes. The library fastavro reads
    every string and every bytes value of such a union as the type that comes first in the union,
    even if the writer's and the reader's schema are equal."""
    if isinstance(avro, list):
        both = {"string", "bytes"} <= {_name(each) for each in avro}
        return both or any(map(has_text_and_bytes, avro))
    if isinstance(avro, str):
        return False
    inside = [avro.get("items", "null"), avro.get("values", "null")]
    inside += [each["type"] for each in avro.get("fields", [])]
    return any(map(has_text_and_bytes, inside))


def has_numbers_out_of_order(avro: Any) -> bool:
    """Returns whether the schema has a union of number types that fastavro cannot read correctly,
    in whatever order `bare` puts the types.

    An example is the union of float and long, in this order. By Avro's rules, a long is read as a
    long, and an int as a float, the first branch to which it can be promoted. But fastavro reads
    both as the type that comes first in the union.
    """
    if isinstance(avro, list):
        numbers = [_name(each) for each in avro if _name(each) in NARROW]
        in_order = numbers == sorted(numbers, key=NARROW.__getitem__)
        unclear = not in_order and not {"int", "long"} <= set(numbers)
        return unclear or any(map(has_numbers_out_of_order, avro))
    if isinstance(avro, str):
        return False
    inside = [avro.get("items", "null"), avro.get("values", "null")]
    inside += [each["type"] for each in avro.get("fields", [])]
    return any(map(has_numbers_out_of_order, inside))


def expected(writer: Any, reader: Any, datum: bytes) -> Any:
    """Returns the value that fastavro reads, or None if fastavro refuses the datum."""
    written = fastavro.parse_schema(bare(writer, is_reader=False))
    read = fastavro.parse_schema(bare(reader, is_reader=True))
    try:
        return fastavro.schemaless_reader(io.BytesIO(datum), written, read)
    except (fastavro.read.SchemaResolutionError, UnicodeDecodeError):
        return None


def same(found: Any, wanted: Any) -> bool:
    """Returns whether two values are equal. Two values of the types float and double count as equal
    if both are NaN, or if, rounded to floats, they are the same or neighbours."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            same(one, other) for one, other in zip(found, wanted, strict=True)
        )
    if isinstance(found, float) and isinstance(wanted, float):
        with np.errstate(over="ignore"):
            near = abs(np.float32(found).view(np.int32) - np.float32(wanted).view(np.int32)) <= 1
        return found == wanted or (found != found and wanted != wanted) or bool(near)
    return type(found) is type(wanted) and found == wanted


@common
@given(evolved())
def test_columns_are_resolved_as_fastavro_resolves(case: tuple[Any, Any, pa.BinaryArray]) -> None:
    """If fields are dropped, added, renamed or reordered, or if there are promotions, unions and
    enums, the codec reads the same values as fastavro. Datums that fastavro refuses are refused,
    too."""
    writer, reader, datums = case
    assume(not has_text_and_bytes(reader) and not has_numbers_out_of_order(reader))
    wanted = [expected(writer, reader, datum) for datum in datums.to_pylist()]
    try:
        decoded = DatumReader(writer, reader).decode(datums)
    except Unresolvable:
        assert wanted == [None] * len(wanted)
        return
    decoded.batch.validate(full=True)
    avro = as_record(parse(reader))
    columns = pa.RecordBatch.from_arrays(
        list(map(raw, decoded.batch.columns)), names=decoded.batch.schema.names
    )
    found = [outgoing(avro, row, tagged=False) for row in columns.to_pylist()]
    assert decoded.good.tolist() == [each is not None for each in wanted]
    assert [index for index, _ in decoded.refused] == np.flatnonzero(~decoded.good).tolist()
    for one, other in zip(found, (each for each in wanted if each is not None), strict=True):
        assert same(one, other), (one, other)


LONG_MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LONG_MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL_MICROS = {"type": "long", "logicalType": "local-timestamp-micros"}
TIME_MILLIS = {"type": "int", "logicalType": "time-millis"}
TIME_MICROS = {"type": "long", "logicalType": "time-micros"}
MOMENT = dt.datetime(2011, 6, 12, 1, 2, 3, 4000, tzinfo=dt.UTC)


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


@pytest.mark.parametrize(
    ("written", "read", "value", "wanted"),
    [
        (LONG_MILLIS, LONG_MICROS, MOMENT, MOMENT),
        (LONG_MICROS, LONG_MILLIS, MOMENT, MOMENT),
        (LONG_MICROS, LONG_MILLIS, MOMENT.replace(microsecond=4001), None),
        (LONG_MILLIS, LOCAL_MICROS, MOMENT, MOMENT.replace(tzinfo=None)),
        (LONG_MILLIS, "long", MOMENT, 1307840523004),
        ("long", LONG_MILLIS, 1307840523004, MOMENT),
        (TIME_MILLIS, TIME_MICROS, dt.time(1, 2, 3, 4000), dt.time(1, 2, 3, 4000)),
        (TIME_MILLIS, "long", dt.time(0, 0, 1), 1000),
        ({"type": "int", "logicalType": "date"}, "int", dt.date(1970, 1, 3), 2),
        (decimal(5, 2), decimal(9, 4), Decimal("123.45"), Decimal("123.4500")),
        (decimal(5, 2), decimal(4, 1), Decimal("123.40"), Decimal("123.4")),
        (decimal(5, 2), decimal(4, 1), Decimal("123.45"), None),
        (decimal(5, 2), "bytes", Decimal("-0.01"), b"\xff"),
        ("bytes", decimal(5, 2), b"\x01\x00", Decimal("2.56")),
        ("bytes", decimal(2, 2), b"\x01\x00", None),
        ("bytes", "string", b"\xff", None),
    ],
)
def test_logical_types_keep_their_values(written: Any, read: Any, value: Any, wanted: Any) -> None:
    """Timestamps, times of day and decimals keep their value if the reader has another unit or
    scale; if that is impossible, their row is refused. If the writer or the reader has no logical
    type, the plain number or bytes are read. In contrast, fastavro ignores the reader's logical
    type."""
    writer, reader = record(field("x", written)), record(field("x", read))
    rows, refused = rows_of(writer, reader, [{"x": value}] * 2)
    assert rows == ([{"x": wanted}] * 2 if wanted is not None else [])
    assert len(refused) == (2 if wanted is None else 0)


def test_a_branch_of_the_very_type_comes_first() -> None:
    """A value is read as the branch of the reader's union that has the value's own type, even if
    the value could be promoted to an earlier branch. In contrast, fastavro takes the first branch
    to which the value can be promoted. So with fastavro a number can lose digits, and bytes that
    are not UTF-8 cannot be read if string comes first."""
    for written, value in (("int", 2**31 - 1), ("bytes", b"\xff"), ("string", "x")):
        reader = record(field("x", ["float", "string", "bytes", "int"]))
        rows, _ = rows_of(record(field("x", written)), reader, [{"x": value}])
        number = {"string": 1, "bytes": 2, "int": 3}[written]
        members = dict.fromkeys((f"member{at}" for at in range(4)), None)
        assert rows == [{"x": members | {f"member{number}": value}}]


NAMED: list[tuple[dict[str, Any], Any]] = [
    (record(field("p", "int")), {"p": 1}),
    ({"type": "enum", "symbols": ["A"]}, "A"),
    ({"type": "fixed", "size": 1}, b"a"),
]


@pytest.mark.parametrize(("avro", "value"), NAMED)
@pytest.mark.parametrize(
    ("names", "at"),
    [
        (["x.R", "y.R"], 1),
        (["y.R", "x.R"], 0),
        (["z.R", "x.R", "y.R"], 2),
        (["x.R", {"name": "z.Q", "aliases": ["y.R"]}], 1),
        ([{"name": "x.R", "aliases": ["y.R"]}, "y.R"], 1),
        (["x.R", "z.R"], 0),
    ],
)
def test_a_branch_of_the_full_name_comes_before_one_of_the_short_name(
    avro: dict[str, Any], value: Any, names: list[Any], at: int
) -> None:
    """A value is read as the branch of the reader's union with the full name of its type, else as
    the one with this name as an alias, and only then as the first one with the same name in another
    namespace."""
    branches = [avro | (each if isinstance(each, dict) else {"name": each}) for each in names]
    writer = record(field("u", [avro | {"name": "x.R"}, avro | {"name": "y.R"}]))
    reader = record(field("u", branches), field("added", "int", default=0))
    rows, refused = rows_of(writer, reader, [{"u": {"member0": None, "member1": value}}])
    members = dict.fromkeys((f"member{each}" for each in range(len(names))), None)
    assert (rows, refused) == ([{"u": members | {f"member{at}": value}, "added": 0}], [])
    assert not incompatibilities(parse(reader), parse(writer))


def test_no_other_branch_takes_the_place_of_the_one_with_the_full_name() -> None:
    """If the branch with the full name of a value's type cannot read the value, no other branch
    does, and the compatibility check says so."""
    first, second = (record(field("p", "int")) | {"name": each} for each in ("x.R", "y.R"))
    changed = second | {"fields": [*second["fields"], field("q", "int")]}
    writer, reader = record(field("u", [first, second])), record(field("u", [first, changed]))
    value = {"u": {"member0": None, "member1": {"p": 1}}}
    rows, refused = rows_of(writer, reader, [value])
    assert (rows, [index for index, _ in refused]) == ([], [0])
    found = incompatibilities(parse(reader), parse(writer))
    assert [each.kind for each in found] == ["MISSING_UNION_BRANCH"]


def test_else_the_first_branch_that_it_can_be_promoted_to() -> None:
    """If no branch of the reader's union has a value's own type, the value is read as the first
    branch to which it can be promoted."""
    reader = record(field("x", ["float", "long"]))
    for written, at in (("int", 0), ("long", 1)):
        rows, _ = rows_of(record(field("x", written)), reader, [{"x": 7}])
        assert rows == [{"x": {"member0": None, "member1": None} | {f"member{at}": 7}}]


def test_defaults_are_values_of_their_types() -> None:
    """The default of a bytes or decimal field becomes a value of the field's type. If the default
    of a record has only some of the record's fields, the other fields get their own defaults. In
    contrast, fastavro returns the JSON value in the schema: a string for bytes, and an incomplete
    record."""
    inner = record(field("a", "int", default=1), field("b", "bytes", default="\u00ff")) | {
        "name": "I"
    }
    reader = record(
        field("x", "int"),
        field("raw", "bytes", default="\u00fe"),
        field("money", decimal(4, 2), default="\u0001"),
        field("inner", inner, default={"a": 2}),
        field("either", ["string", "null", "int"], default="s"),
    )
    rows, _ = rows_of(record(field("x", "int")), reader, [{"x": 5}])
    assert rows == [
        {
            "x": 5,
            "raw": b"\xfe",
            "money": Decimal("0.01"),
            "inner": {"a": 2, "b": b"\xff"},
            "either": {"member0": "s", "member1": None},
        }
    ]


def test_a_name_counts_before_an_alias() -> None:
    """The writer's schema may have two fields that match one field of the reader's schema: one by
    its name and one by its alias. The field that matches by name is read. In contrast, fastavro
    reads whichever of the two fields comes last."""
    writer = record(field("x", "int"), field("old", "int"))
    reader = record(field("x", "int", aliases=["old"]))
    assert rows_of(writer, reader, [{"x": 1, "old": 2}]) == ([{"x": 1}], [])


@pytest.mark.parametrize(
    ("writer", "reader", "words"),
    [
        (record(field("x", "int")), record(field("y", "int")), "no field y, which has no default"),
        (record(field("x", "string")), record(field("x", "int")), "x was written as string"),
        (record(field("x", "int")), record(field("x", ["null", "string"])), "was written as int"),
        (record(field("x", "int")), record(field("x", "int")) | {"name": "S"}, "record R is S"),
        (record(field("x", ["int", "null"])), record(field("x", "string")), "x was written as int"),
        ('"int"', record(field("x", "int")), "written as int and is record"),
    ],
)
def test_schemas_that_cannot_be_resolved_are_refused(writer: Any, reader: Any, words: str) -> None:
    """Two schemas that cannot be resolved are refused before any datum is read. The error names the
    field or the types that do not fit."""
    with pytest.raises(Unresolvable, match=words):
        DatumReader(writer, reader)


def test_rows_without_a_place_are_set_apart_with_index_and_reason() -> None:
    """Invalid datums are refused with their index and a reason. The same holds for datums with a
    null, a symbol or a branch that the reader's schema does not have. Good rows keep their
    order."""
    enum = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    writer = record(field("n", ["null", "int"]), field("e", enum), field("u", ["int", "string"]))
    reader = record(field("n", "int"), field("e", enum | {"symbols": ["A"]}), field("u", "long"))
    codec = Codec(writer)
    rows = [
        {"n": 1, "e": "A", "u": {"member0": 1}},
        {"n": None, "e": "A", "u": {"member0": 1}},
        {"n": 1, "e": "B", "u": {"member0": 1}},
        {"n": 1, "e": "A", "u": {"member1": "x"}},
        {"n": 2, "e": "A", "u": {"member0": 2}},
    ]
    datums = codec.encode(pa.RecordBatch.from_pylist(rows, codec.arrow_schema)).to_pylist()
    decoded = DatumReader(writer, reader).decode(pa.array([b"\xff", *datums], pa.binary()))
    assert decoded.batch.to_pylist() == [{"n": 1, "e": "A", "u": 1}, {"n": 2, "e": "A", "u": 2}]
    assert decoded.good.tolist() == [False, True, False, False, False, True]
    assert [index for index, _ in decoded.refused] == [0, 2, 3, 4]
    words = [reason for _, reason in decoded.refused]
    assert words[1] == "field n: null in a required field"
    assert words[2].startswith("field e: a symbol that enum E has not")
    assert words[3].startswith("field u: ")


def test_a_value_becomes_a_branch_and_a_branch_a_value() -> None:
    """Schemas that are not records are resolved as well. For example, an int is read as the branch
    double of a union, and the branch int of the union of null and int is read as a double. A datum
    with the branch null of this union is refused."""
    codec = Codec('"int"')
    datums = codec.encode(pa.record_batch({"value": pa.array([1, 2], pa.int32())}))
    decoded = DatumReader('"int"', ["null", "double"]).decode(datums)
    assert decoded.batch.to_pylist() == [{"value": 1.0}, {"value": 2.0}]
    codec = Codec(["null", "int"])
    datums = codec.encode(pa.record_batch({"value": pa.array([1, None], pa.int32())}))
    decoded = DatumReader(["null", "int"], '"double"').decode(datums)
    assert decoded.batch.to_pylist() == [{"value": 1.0}]
    assert decoded.refused == [(1, "null in a required field")]
