"""Columns of the writer's schema are converted to columns of the reader's schema by name, alias,
default and cast. The conversion never gives a wrong value."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

from skidway.loader.reading.projection import NotProjectable, Projection
from skidway.schemas.codec import Codec
from support.avro_trees import field


def record(*fields: dict[str, object]) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


def project(
    writer: str, reader: str, **columns: list[object]
) -> tuple[list[list[object]], list[bool]]:
    schema = Codec(writer).arrow_schema
    batch = pa.record_batch(
        [pa.array(columns[each.name], each.type) for each in schema], schema=schema
    )
    projected = Projection(writer, reader).apply(batch)
    return [column.to_pylist() for column in projected.columns], projected.fits.tolist()


LINE = field("line", "string")


def test_the_same_schema_is_passed_through() -> None:
    """Rows that were written with the reader's own schema are not changed."""
    assert project(record(LINE), record(LINE), line=["a", "b"]) == ([["a", "b"]], [True, True])


def test_fields_are_found_by_name() -> None:
    """Fields are matched by name, whatever their order is. A field that the reader's schema lacks
    is left out."""
    writer = record(field("x", "int"), LINE, field("y", "int"))
    reader = record(field("y", "int"), LINE)
    assert project(writer, reader, x=[1], line=["a"], y=[2])[0] == [[2], ["a"]]


def test_a_missing_field_takes_its_default() -> None:
    """If the writer's schema lacks a field, the field gets the default from the reader's schema.
    This default may be null."""
    reader = record(
        LINE, field("level", "string", default="INFO"), field("code", "int", default=5),
        field("note", ["null", "string"], default=None),
        field("at", {"type": "long", "logicalType": "timestamp-millis"}, default=0),
    )  # fmt: skip
    columns, _ = project(record(LINE), reader, line=["a"])
    assert columns[1:4] == [["INFO"], [5], [None]]
    assert columns[4][0].timestamp() == 0  # type: ignore[attr-defined]


def test_a_default_that_is_none_harms_only_those_who_need_it() -> None:
    """Imported schemas may have an invalid default. This is an error only for records that need the
    default, because their writer's schema lacks the field."""
    reader = record(LINE, field("code", "int", default="five"))
    assert project(reader, reader, line=["a"], code=[1]) == ([["a"], [1]], [True])
    writer = record(field("code", "int"), LINE)
    assert project(writer, reader, line=["a"], code=[1]) == ([["a"], [1]], [True])
    with pytest.raises(NotProjectable, match="the default of field code is none"):
        project(record(LINE), reader, line=["a"])


SYMBOLS = {"type": "enum", "name": "S", "symbols": ["A", "B", "C"], "default": "A"}
FEWER = {**SYMBOLS, "symbols": ["A", "B"]}
STRICT = {"type": "enum", "name": "S", "symbols": ["A", "B"]}
RENAMED = {**FEWER, "name": "T", "aliases": ["S"]}


def list_of(kind: object, **more: object) -> dict[str, object]:
    """Returns the type of a record that contains itself."""
    fields = [field("s", kind), field("next", ["null", "L"], default=None)]
    return {"type": "record", "name": "L", "fields": [*fields, *more.values()]}


@pytest.mark.parametrize("fewer", [FEWER, STRICT, RENAMED])
def test_a_symbol_that_was_dropped_stays_in_its_rows(fewer: dict[str, object]) -> None:
    """A row keeps the symbol that was written, also if the newest schema lacks it, and whether the
    enum is a field, in a record that got a field, in an array or union, or in a JSON text."""
    more = field("n", "int", default=1)
    inside = {"type": "record", "name": "I", "fields": [field("s", SYMBOLS)]}
    union = [SYMBOLS, "long"]
    kinds: list[tuple[object, object, object]] = [
        (SYMBOLS, fewer, "C"),
        ({"type": "array", "items": SYMBOLS}, ["null", {"type": "array", "items": fewer}], ["C"]),
        (inside, {**inside, "fields": [field("s", fewer), more]}, {"s": "C"}),
        (union, ["string", "long", fewer], {"member0": "C", "member1": None}),
    ]
    for written, read, value in kinds:
        (column,), fits = project(record(field("a", written)), record(field("a", read)), a=[value])
        assert fits == [True]
        assert "'C'" in repr(column)
        assert "'A'" not in repr(column)
    written, read = list_of(SYMBOLS), list_of(fewer, more=more)
    texts = ['{"s":"C","next":null}']
    (_, column, *_), fits = project(json.dumps(written), json.dumps(read), s=["B"], next=texts)
    assert (column, fits) == (['{"s":"C","next":null,"n":1}'], [True])


def test_a_renamed_field_is_found_by_its_alias() -> None:
    """If a field of the reader's schema has the name of a writer's field as an alias, the reader's
    field gets the values of the writer's field."""
    reader = record(field("text", "string", aliases=["line"]))
    assert project(record(LINE), reader, line=["a"])[0] == [["a"]]


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        ("int", "long", 5, 5),
        ("int", "double", 5, 5.0),
        ("float", "double", 0.5, 0.5),
        ("string", "bytes", "a", b"a"),
        ("bytes", "string", b"a", "a"),
        ("int", ["null", "long"], 5, 5),
    ],
)
def test_types_are_promoted(written: object, read: object, value: object, expected: object) -> None:
    """If the reader's type of a field is wider than the writer's (such as long for int), values are
    promoted to the reader's type as in Avro's schema resolution."""
    columns, fits = project(record(field("x", written)), record(field("x", read)), x=[value])
    assert (columns, fits) == ([[expected]], [True])


def test_a_text_follows_avros_resolution() -> None:
    """A field whose type contains itself is stored as JSON text. For a reader with another schema,
    the text is converted to the text that the same value has in the reader's schema. If the value
    does not fit the reader's schema, its row is rejected. The old text is never used unchanged."""
    old = record(field("v", "int"), field("next", ["null", "R"]))
    new = record(field("w", "double", aliases=["v"]), field("next", ["null", "R"]))
    texts: list[object] = ['{"v":2,"next":null}', None]
    columns, fits = project(old, new, v=[1, 1], next=texts)
    assert (columns, fits) == ([[1, 1], ['{"w":2.0,"next":null}', None]], [True, True])
    other = record(field("v", "int"), field("next", ["string", "null"]))
    assert project(old, other, v=[1, 1], next=texts) == ([[1], [None]], [False, True])
    for kind in ("string", {"type": "array", "items": "R"}):  # the reader's type has no null
        other = record(field("v", "int"), field("next", kind))
        assert project(old, other, v=[1, 1], next=texts) == ([[], []], [False, False])


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        ("null", ["null", "string"], None, None),
        ({"type": "int", "logicalType": "date"}, "long", date(1970, 1, 3), 2),
        (
            {"type": "int", "logicalType": "time-millis"},
            {"type": "long", "logicalType": "timestamp-millis"},
            time(0, 0, 1),
            datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        ),
        (
            "bytes",
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            b"\x01\x00",
            Decimal("2.56"),
        ),
    ],
)
def test_a_type_that_has_no_cast_follows_avros_resolution(
    written: object, read: object, value: object, expected: object
) -> None:
    """If Arrow cannot cast a field's type, but the registry accepts the change, the value is
    converted by the rules of Avro's schema resolution."""
    columns, fits = project(record(field("v", written)), record(field("v", read)), v=[value])
    assert (columns, fits) == ([[expected]], [True])


def test_a_row_that_does_not_fit_is_set_apart() -> None:
    """Only rows with values that do not fit the reader's schema are rejected. The other rows keep
    their order."""
    writer, reader = record(field("x", "long"), LINE), record(field("x", "int"), LINE)
    columns, fits = project(writer, reader, x=[1, 1 << 40, 3, -(1 << 40)], line=list("abcd"))
    assert fits == [True, False, True, False]
    assert columns == [[1, 3], ["a", "c"]]


@pytest.mark.parametrize(
    ("written", "read", "values", "kept", "fitting"),
    [
        ("double", "float", [0.5, 0.1, 1e300, None], [0.5, None], [True, False, False, True]),
        ("double", "float", [float("inf"), 1.0], [float("inf"), 1.0], [True, True]),
        ("long", "boolean", [1, 5, 0], [True, False], [True, False, True]),
        ("string", "long", ["7", "007"], [7], [True, False]),
    ],
)
def test_a_value_that_a_cast_would_change_is_set_apart(
    written: str, read: str, values: list[object], kept: list[object], fitting: list[bool]
) -> None:
    """A value is rejected if Arrow can cast it, but the cast back gives another value. Examples are
    a double that is too precise or too large for a float, the number 5 as a boolean, and the text
    007 as a long."""
    writer, reader = record(field("x", ["null", written])), record(field("x", ["null", read]))
    assert project(writer, reader, x=values) == ([kept], fitting)


def test_not_a_number_stays_one() -> None:
    """A value is rejected if a cast changes it. NaN is not rejected, although NaN is not equal to
    itself."""
    writer, reader = record(field("x", "double")), record(field("x", "float"))
    assert project(writer, reader, x=[float("nan")])[1] == [True]


def test_null_where_the_reader_has_none_is_set_apart() -> None:
    """A row with a null is rejected if the reader's field is not nullable. A null never becomes an
    empty value."""
    writer, reader = record(field("x", ["null", "string"])), record(field("x", "string"))
    assert project(writer, reader, x=["a", None]) == ([["a"]], [True, False])


def test_bytes_that_are_no_text_are_set_apart() -> None:
    """A row with bytes that are not UTF-8 is rejected if the reader's field is a string."""
    writer, reader = record(field("x", "bytes")), record(field("x", "string"))
    assert project(writer, reader, x=[b"a", b"\xff"]) == ([["a"]], [True, False])


def test_a_field_without_default_makes_schemas_irreconcilable() -> None:
    """If the writer's schema lacks a field for which the reader's schema has no default, the
    schemas are irreconcilable: no row can be converted. The error names the field."""
    with pytest.raises(NotProjectable, match="no field level, which has no default"):
        Projection(record(LINE), record(LINE, field("level", "string")))


def test_types_without_a_cast_make_schemas_irreconcilable() -> None:
    """If a field's type in the writer's schema cannot be cast to its type in the reader's schema,
    the schemas are irreconcilable (no row can be converted). The error names the field and the
    writer's type."""
    reader = record(field("line", {"type": "record", "name": "I", "fields": [field("x", "int")]}))
    with pytest.raises(NotProjectable, match="field line was written as string"):
        Projection(record(LINE), reader)


def inner(*fields: dict[str, object]) -> dict[str, object]:
    return {"type": "record", "name": "N", "fields": list(fields)}


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        (
            ["null", "int", "string"],
            ["null", "string", "int"],
            {"member0": 5, "member1": None},
            {"member0": None, "member1": 5},
        ),
        (
            ["int", "string"],
            ["int", "boolean", "string"],
            {"member0": None, "member1": "1"},
            {"member0": None, "member1": None, "member2": "1"},
        ),
        (
            {"type": "array", "items": ["int", "string"]},
            {"type": "array", "items": ["string", "int"]},
            [{"member0": 5, "member1": None}],
            [{"member0": None, "member1": 5}],
        ),
        (
            inner(field("a", ["null", "string"])),
            inner(field("b", ["null", "string"], aliases=["a"])),
            {"a": "x"},
            {"b": "x"},
        ),
        (
            inner(field("a", "int")),
            inner(field("a", "int"), field("b", "string", default="D")),
            {"a": 1},
            {"a": 1, "b": "D"},
        ),
        (
            inner(field("a", "int")),
            inner(field("a", "int"), field("b", ["string", "null"], default="D")),
            {"a": 1},
            {"a": 1, "b": "D"},
        ),
    ],
)
def test_inside_of_fields_avros_rules_hold(
    written: object, read: object, value: object, expected: object
) -> None:
    """The members of a union are matched by type, not by position. The fields of nested records are
    matched by name and alias, and missing fields get their default."""
    columns, fits = project(record(field("x", written)), record(field("x", read)), x=[value])
    assert (columns, fits) == ([[expected]], [True])


def test_a_union_that_lost_a_member_sets_its_rows_apart() -> None:
    """The writer's union may have a member that the reader's union lacks. Only rows with this
    member are rejected."""
    writer, reader = record(field("x", ["int", "string"])), record(field("x", "string"))
    values = [{"member0": 5, "member1": None}, {"member0": None, "member1": "a"}]
    assert project(writer, reader, x=values) == ([["a"]], [False, True])


def test_unions_of_other_records_are_not_taken_by_number() -> None:
    """If the members of the writer's union cannot be matched with those of the reader's union, the
    schemas are irreconcilable: no row can be converted."""
    a, b = ({"type": "record", "name": n, "fields": [field("x", "int")]} for n in "AB")
    c = {"type": "record", "name": "C", "fields": [field("y", "int")]}
    with pytest.raises(NotProjectable, match="x was written"):
        Projection(record(field("x", [a, b])), record(field("x", [c, "string"])))


def test_what_does_not_fit_in_a_list_sets_its_own_row_apart() -> None:
    """If a list contains a number that is too large, only the row of this list is rejected. The
    same holds for a list with a value that a cast would change."""
    lists = [{"type": "array", "items": kind} for kind in ("long", "int", "double", "float")]
    long, int_, double, float_ = (record(field("x", each)) for each in lists)
    values: list[object] = [[1, 2], [1 << 40], [3], [], [4, 1 << 33], [5]]
    assert project(long, int_, x=values) == (
        [[[1, 2], [3], [], [5]]],
        [True, False, True, True, False, True],
    )
    assert project(double, float_, x=[[0.5], [1e300]]) == ([[[0.5]]], [True, False])


def test_types_that_have_a_cast_for_no_rows_only_make_schemas_irreconcilable() -> None:
    """Arrow can cast a column of longs to a decimal of few digits only if the column is empty.
    Schemas that need such a cast count as irreconcilable from the start, so that no load fails
    later."""
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}
    with pytest.raises(NotProjectable, match="field x was written as int64"):
        Projection(record(field("x", "long")), record(field("x", decimal)))


def test_a_number_that_is_no_time_of_day_is_set_apart() -> None:
    """The writer's field may be a plain long while the reader's field is a time of day. Then
    negative numbers, and numbers that stand for a day or more, are rejected."""
    reader = record(field("x", {"type": "long", "logicalType": "time-micros"}))
    assert project(record(field("x", "long")), reader, x=[1, -5, 10**12])[1] == [True, False, False]


@pytest.mark.parametrize(
    ("written", "read", "values", "fits"),
    [
        pytest.param(
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "int", "logicalType": "date"},
            [1_000, 86_400_000],
            [False, True],
            id="time of day",
        ),
        pytest.param(
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
            "double",
            [Decimal("12345678901234567.123"), Decimal("0.125")],
            [False, True],
            id="digits",
        ),
        pytest.param("long", "double", [(1 << 63) - 1, 3], [False, True], id="largest long"),
    ],
)
def test_a_cast_that_would_change_a_value_sets_its_row_apart(
    written: object, read: object, values: list[object], fits: list[bool]
) -> None:
    """If a cast would lose a part of a value, only the row of this value is rejected."""
    assert project(record(field("x", written)), record(field("x", read)), x=values)[1] == fits


def test_too_many_types_that_contain_one_another_are_refused() -> None:
    """If so many types contain one another that it would take hours to prepare how old rows become
    new ones, the rows of the old schema are refused, with this reason."""

    def circle(kind: str) -> str:
        inside = [("back", ["null", "R"]), ("next", ["null", kind, "N0"])]
        types = [avro_record(f"N{at}", *inside) for at in range(400)]
        return json.dumps(avro_record("R", *((each["name"], each) for each in types)))

    with pytest.raises(NotProjectable, match="the schemas have too many types that contain one"):
        Projection(circle("int"), circle("long"))


def avro_record(name: str, *fields: tuple[str, object]) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}
