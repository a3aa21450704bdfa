"""Tests the check whether a schema is compatible with earlier versions: Avro's rules, the
compatibility levels, and the reasons with their paths."""

from __future__ import annotations

import json
from typing import Any

import avro.schema
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skidway.schemas import compatibility
from skidway.schemas.avro_schema import Enum, SchemaInvalid, parse
from skidway.schemas.compatibility import REPORTED_MAX, Level, check, incompatibilities
from support.avro_rules import RULES, A, B, enum, field, record
from support.avro_schemas import mutated, schemas
from support.randomness import share_of

pytestmark = pytest.mark.filterwarnings("ignore::avro.errors.IgnoredLogicalType")


@pytest.mark.parametrize(("reader", "writer", "found"), RULES)
def test_avros_rules(reader: Any, writer: Any, found: list[tuple[str, str]]) -> None:
    """If a schema violates a rule of Avro's schema resolution, the compatibility check reports the
    violation with its kind and path."""
    got = incompatibilities(parse(reader), parse(writer))
    assert [(each.kind, each.path) for each in got] == found


def test_messages_say_which_field_and_which_schema() -> None:
    """Each incompatibility has a sentence, which names the field and says what is wrong in which of
    the two schemas. The message in Confluent's form contains this sentence."""
    old, new = parse(record(A)), parse(record(A, field("c", "int")))
    version, (found,) = check(new, [(3, old)], Level.BACKWARD) or (0, [])
    assert version == 3
    assert found.description == (
        "The field 'c' at path '/fields/1' in the new schema has no default value and is missing "
        "in the old schema"
    )
    assert str(found) == (
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'c' at path "
        "'/fields/1' in the new schema has no default value and is missing in the old schema', "
        "additionalInfo:'c'}"
    )
    _, (found,) = check(old, [(3, new)], Level.FORWARD) or (0, [])
    assert "in the old schema has no default value and is missing in the new" in found.description


PLAIN, WITH_B, NEEDS_B = record(A), record(A, B), record(A, field("b", "int"))


@pytest.mark.parametrize(
    ("level", "new", "earlier", "failed"),
    [
        ("NONE", "string", [PLAIN], None),
        ("BACKWARD", WITH_B, [PLAIN], None),
        ("BACKWARD", NEEDS_B, [PLAIN], 1),
        ("BACKWARD", NEEDS_B, [PLAIN, WITH_B], None),
        ("BACKWARD_TRANSITIVE", NEEDS_B, [PLAIN, WITH_B], 1),
        ("BACKWARD_TRANSITIVE", NEEDS_B, [PLAIN, PLAIN], 2),
        ("FORWARD", PLAIN, [NEEDS_B], 1),
        ("FORWARD", NEEDS_B, [PLAIN], None),
        ("FORWARD_TRANSITIVE", PLAIN, [NEEDS_B, WITH_B], 1),
        ("FULL", WITH_B, [PLAIN], None),
        ("FULL", NEEDS_B, [PLAIN], 1),
        ("FULL", PLAIN, [NEEDS_B], 1),
        ("FULL_TRANSITIVE", PLAIN, [NEEDS_B, WITH_B], 1),
        ("FULL", PLAIN, [NEEDS_B, WITH_B], None),
    ],
)
def test_levels(level: str, new: Any, earlier: list[Any], failed: int | None) -> None:
    """A compatibility level decides which of two schemas must be able to read datums of the other
    one, and whether a new schema is compared with all versions or only with the latest. The
    compatibility check returns the newest version that does not fit."""
    versions = [(at, parse(each)) for at, each in enumerate(earlier, 1)]
    found = check(parse(new), versions, Level(level))
    assert (None if found is None else found[0]) == failed


def test_symbols_are_looked_up_once_each() -> None:
    """The compatibility check looks up each symbol of an enum in a set, a few times at most.
    Comparing 30,000 symbols pair by pair would take minutes."""
    hashed = 0

    class Symbol(str):
        __slots__ = ()

        def __hash__(self) -> int:
            nonlocal hashed
            hashed += 1
            return super().__hash__()

    symbols = tuple(map(Symbol, (f"s{at}" for at in range(1000))))
    old, new = parse(enum("A")), parse(enum("A"))
    assert isinstance(old, Enum)
    assert isinstance(new, Enum)
    old.symbols = new.symbols = symbols
    assert incompatibilities(new, old) == []
    assert hashed <= 3 * len(symbols)


def test_what_was_good_inside_a_pair_that_is_not_is_compared_again() -> None:
    """The compatibility check may find two nested types compatible only because it assumes that the
    recursive types around them are compatible. If these recursive types then turn out to be
    incompatible, the check compares the nested types again."""

    def a(bad: str, namespace: str, back: Any) -> Any:
        inside = {"type": "record", "name": "X", "fields": [field("back", back)]}
        fields = [field("x", inside), field("bad", bad)]
        return {"type": "record", "name": "A", "namespace": namespace, "fields": fields}

    writer = record(field("f", a("string", "n", ["null", "n.A"])), field("g", "n.X"))
    union = [a("int", "n", ["null", "n.A"]), a("string", "o", ["null", "o.A"])]
    reader = record(field("f", union), field("g", "n.X"))
    assert incompatibilities(parse(reader), parse(writer))


def test_unions_too_large_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compatibility check refuses unions that are too large to be compared branch by branch,
    with an error message."""
    monkeypatch.setattr(compatibility, "STEPS_MAX", 100)
    old, new = (
        parse([{"type": "enum", "name": f"{name}{at}", "symbols": []} for at in range(20)])
        for name in "ab"
    )
    with pytest.raises(SchemaInvalid, match="too many types"):
        incompatibilities(new, old)


def test_the_fields_of_records_in_unions_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compatibility check compares the types of two unions whose names fit, up to a limit of
    steps. The fields of records in the unions count as steps, too."""
    monkeypatch.setattr(compatibility, "STEPS_MAX", 5000)
    old, new = (
        parse(
            [
                record(*(field(f"{name}{n}", "int") for n in range(100)), name=f"{name}{at}.R")
                for at in range(10)
            ]
        )
        for name in "ab"
    )
    with pytest.raises(SchemaInvalid, match="too many types"):
        incompatibilities(new, old)


def test_a_type_in_many_places_is_named_at_each() -> None:
    """The compatibility check reports a type that does not fit for each field that uses the
    type."""
    old, new = (
        parse(
            record(
                field("x", record(field("i", avro), name="S")),
                field("y", {"type": "map", "values": "S"}),
            )
        )
        for avro in ("string", "int")
    )
    assert [each.path for each in incompatibilities(new, old)] == [
        "/fields/0/type/fields/0/type",
        "/fields/1/type/values/fields/0/type",
    ]


def test_both_places_are_told() -> None:
    """An incompatibility has the path in the reader's schema and the path in the writer's schema,
    because the order of fields may differ."""
    old = parse(
        record(field("b", "int"), field("a", ["null", {"type": "array", "items": "string"}]))
    )
    new = parse(record(field("a", {"type": "array", "items": "int"})))
    null, items = incompatibilities(new, old)
    assert (null.path, null.reader_place, null.writer_place) == (
        "/fields/0/type/0", "/fields/0/type", "/fields/1/type/0",
    )  # fmt: skip
    assert (items.path, items.reader_place, items.writer_place) == (
        "/fields/0/type/1/items", "/fields/0/type/items", "/fields/1/type/1/items",
    )  # fmt: skip


def test_a_type_in_many_places_does_not_multiply_messages() -> None:
    """If each of thirty levels of records refers twice to the next level, an incompatibility in the
    last level leads to at most 50 messages, not a thousand million."""

    def chain(leaf: str) -> Any:
        made: Any = {"type": "record", "name": "R0", "fields": [field("x", leaf)]}
        for at in range(1, 31):
            name = made["name"]
            made = {
                "type": "record", "name": f"R{at}",
                "fields": [field("l", made), field("r", name)],
            }  # fmt: skip
        return parse(made)

    assert 0 < len(incompatibilities(chain("int"), chain("string"))) <= 50


@settings(max_examples=share_of(400), deadline=None)
@given(st.data())
def test_verdicts_are_those_of_avros_own_library(data: st.DataObject) -> None:
    """The compatibility check accepts and refuses the same schemas as Avro's Python library, except
    where that library is wrong. The Python library does not find aliases without their namespace.
    It also accepts schemas in which two fields of the writer match the same field of the reader;
    Avro's Java library refuses these schemas."""
    reader = data.draw(schemas().filter(lambda each: '"aliases"' not in json.dumps(each)))
    writer = data.draw(mutated(reader))
    found = incompatibilities(parse(reader), parse(writer))
    assume(all(each.kind != "READER_FIELD_AMBIGUOUS" for each in found))
    result = ReaderWriterCompatibilityChecker().get_compatibility(
        avro.schema.parse(json.dumps(reader)), avro.schema.parse(json.dumps(writer))
    )
    theirs = result.compatibility is SchemaCompatibilityType.compatible
    assert (not found) == theirs


@settings(max_examples=share_of(200), deadline=None)
@given(schemas())
def test_every_schema_may_follow_itself(schema: Any) -> None:
    """Each schema is compatible with itself at every compatibility level, except a schema in which
    a field has another field's name as an alias."""
    _, found = check(parse(schema), [(1, parse(schema))], Level.FULL_TRANSITIVE) or (0, [])
    assert {each.kind for each in found} <= {"READER_FIELD_AMBIGUOUS", "MISSING_UNION_BRANCH"}
    if "aliases" not in json.dumps(schema):
        assert not found


@settings(max_examples=share_of(200), deadline=None)
@given(st.data())
def test_a_level_is_the_sum_of_its_parts(data: st.DataObject) -> None:
    """The level FULL checks both directions, a TRANSITIVE level checks every version, and NONE
    checks nothing. Two checks of the same schemas give the same result."""
    first = data.draw(schemas())
    second, new = data.draw(mutated(first)), data.draw(mutated(first))
    versions = [(1, parse(first)), (2, parse(second))]

    def may(level: str) -> bool:
        found, again = (check(parse(new), versions, Level(level)) for _ in range(2))
        assert str(found) == str(again)
        return found is None

    assert may("NONE")
    for suffix in ("", "_TRANSITIVE"):
        assert may(f"FULL{suffix}") == (may(f"BACKWARD{suffix}") and may(f"FORWARD{suffix}"))
    for level in ("BACKWARD", "FORWARD", "FULL"):
        first_too = check(parse(new), versions[:1], Level(level)) is None
        assert may(f"{level}_TRANSITIVE") == (may(level) and first_too)


def test_reasons_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    """If many fields use an incompatible type, the compatibility check makes at most twice as many
    reasons as it reports."""
    made: list[int] = []
    inside = compatibility.Incompatibility.inside

    def counted(*given: Any) -> Any:
        made.append(1)
        return inside(*given)

    monkeypatch.setattr(compatibility.Incompatibility, "inside", counted)
    bare = record(name="P")
    more = record(*(field(f"a{n}", "int") for n in range(50)), name="P")
    old, new = (
        parse(record(field("f0", each), *(field(f"f{n}", "P") for n in range(1, 200))))
        for each in (bare, more)
    )
    assert len(incompatibilities(new, old)) == REPORTED_MAX
    assert len(made) <= 2 * REPORTED_MAX


def test_symbols_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compatibility check compares the types of two unions whose names fit, up to a limit of
    steps. The symbols of enums in the unions count as steps, too."""
    monkeypatch.setattr(compatibility, "STEPS_MAX", 5000)
    old, new = (
        parse(
            [
                {
                    "type": "enum",
                    "name": f"{name}{at}.R",
                    "symbols": [f"{name}{n}" for n in range(99)],
                }
                for at in range(10)
            ]
        )
        for name in "ab"
    )
    with pytest.raises(SchemaInvalid, match="too many types"):
        incompatibilities(new, old)
