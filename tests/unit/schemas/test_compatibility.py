"""Which schema may follow which: Avro's rules, the levels, and reasons that say where."""

from __future__ import annotations

import json
from typing import Any

import avro.schema
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas import compatibility
from schemas.avro_schema import Enum, SchemaInvalid, parse
from schemas.compatibility import Level, check, incompatibilities

pytestmark = pytest.mark.filterwarnings("ignore::avro.errors.IgnoredLogicalType")


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def field(name: str, avro: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro, **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


A, B = field("a", "int"), field("b", "int", default=0)


@pytest.mark.parametrize(
    ("reader", "writer", "found"),
    [
        (record(A, B), record(A), []),
        (record(A), record(A, B), []),
        (
            record(A, field("b", "int")),
            record(A),
            [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/1")],
        ),
        (record(field("z", "int", aliases=["a"])), record(A), []),
        (record(field("a", "int", aliases=["a"])), record(A), []),
        (
            record(field("a", "int", aliases=["b"])),
            record(A, field("b", "int")),
            [("READER_FIELD_AMBIGUOUS", "/fields/0")],
        ),
        (record(field("a", "string")), record(A), [("TYPE_MISMATCH", "/fields/0/type")]),
        ("long", "int", []),
        ("double", "long", []),
        ("float", "double", [("TYPE_MISMATCH", "/")]),
        ("int", "long", [("TYPE_MISMATCH", "/")]),
        ("bytes", "string", []),
        ("string", "bytes", []),
        (["null", "int"], "int", []),
        ("int", ["null", "int"], [("TYPE_MISMATCH", "/")]),
        (["null", "long"], ["null", "int"], []),
        (["null", "int"], ["null", "string"], [("MISSING_UNION_BRANCH", "/1")]),
        (["null", "int"], "string", [("MISSING_UNION_BRANCH", "/")]),
        (enum("A"), enum("A", "B"), [("MISSING_ENUM_SYMBOLS", "/symbols")]),
        (enum("A", default="A"), enum("A", "B"), []),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": "string"},
            [("TYPE_MISMATCH", "/items")],
        ),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, []),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            [("FIXED_SIZE_MISMATCH", "/size")],
        ),
        (record(A), record(A, name="S"), [("NAME_MISMATCH", "/name")]),
        (record(A, aliases=["S"]), record(A, name="S"), []),
        (record(A, namespace="n", aliases=["S"]), record(A, name="S", namespace="n"), []),
        (record(A, namespace="m"), record(A, namespace="n"), []),
        (record(field("a", ["null", "R"])), record(field("a", ["null", "R"])), []),
    ],
)
def test_avros_rules(reader: Any, writer: Any, found: list[tuple[str, str]]) -> None:
    """Each rule of schema resolution, with the kind and the place of what does not fit."""
    got = incompatibilities(parse(reader), parse(writer))
    assert [(each.kind, each.path) for each in got] == found


def test_messages_say_which_field_and_which_schema() -> None:
    """In Confluent's form, and as one sentence for people."""
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
    """Direction and reach of each level; the newest failing version is named."""
    versions = [(at, parse(each)) for at, each in enumerate(earlier, 1)]
    found = check(parse(new), versions, Level(level))
    assert (None if found is None else found[0]) == failed


def test_symbols_are_looked_up_once_each() -> None:
    """Thirty thousand symbols compared pair by pair would hold up every request for minutes."""
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
    """A cycle holds only as long as the type it leads back to fits: here A does not."""

    def a(bad: str, namespace: str, back: Any) -> Any:
        inside = {"type": "record", "name": "X", "fields": [field("back", back)]}
        fields = [field("x", inside), field("bad", bad)]
        return {"type": "record", "name": "A", "namespace": namespace, "fields": fields}

    writer = record(field("f", a("string", "n", ["null", "n.A"])), field("g", "n.X"))
    union = [a("int", "n", ["null", "n.A"]), a("string", "o", ["null", "o.A"])]
    reader = record(field("f", union), field("g", "n.X"))
    assert incompatibilities(parse(reader), parse(writer))


def test_unions_too_large_to_compare_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every branch is compared with every branch: bounded, in a sentence."""
    monkeypatch.setattr(compatibility, "PAIRS_MAX", 100)
    old, new = (
        parse([{"type": "enum", "name": f"{name}{at}", "symbols": []} for at in range(20)])
        for name in "ab"
    )
    with pytest.raises(SchemaInvalid, match="too many types"):
        incompatibilities(new, old)


def test_a_type_in_many_places_does_not_multiply_messages() -> None:
    """Thirty levels of two references each would be a thousand million messages."""

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


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """Small schemas with few names, so that pairs often nearly fit."""
    return draw(_types(st.just(0)))


def _types(depth: Any) -> st.SearchStrategy[Any]:
    leaf = (
        st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
        | st.sampled_from([enum("A"), enum("A", "B"), enum("A", default="A")])
        | st.sampled_from([{"type": "fixed", "name": "F", "size": n} for n in (1, 2)])
    )
    nested = st.recursive(leaf, _composed, max_leaves=6)
    return nested.filter(_is_valid)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(
        st.tuples(
            st.sampled_from("abc"), inner, st.booleans(), st.sampled_from([[], ["a"], ["b"]])
        ),
        max_size=3,
        unique_by=lambda each: each[0],
    )
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda values: {"type": "map", "values": values}, inner)
        | st.lists(inner, min_size=1, max_size=3)
        | st.builds(
            lambda some, name: {
                "type": "record",
                "name": name,
                "fields": [
                    {"name": n, "type": t, "aliases": aliases}
                    | ({"default": None} if t == "null" and default else {})
                    | ({"default": 0} if t == "int" and default else {})
                    for n, t, default, aliases in some
                ],
            },
            fields,
            st.sampled_from(["R", "S"]),
        )
    )


def _is_valid(schema: Any) -> bool:
    from schemas.avro_schema import SchemaInvalid

    try:
        parse(schema)
    except SchemaInvalid:
        return False
    return True


@settings(max_examples=400, deadline=None)
@given(schemas(), schemas())
def test_verdicts_are_those_of_avros_own_library(reader: Any, writer: Any) -> None:
    """Where that library is right: no aliases in namespaces, no invalid defaults here.

    And no two fields read as one, which Avro Java refuses and this library takes.
    """
    found = incompatibilities(parse(reader), parse(writer))
    assume(all(each.kind != "READER_FIELD_AMBIGUOUS" for each in found))
    result = ReaderWriterCompatibilityChecker().get_compatibility(
        avro.schema.parse(json.dumps(reader)), avro.schema.parse(json.dumps(writer))
    )
    theirs = result.compatibility is SchemaCompatibilityType.compatible
    assert (not found) == theirs
