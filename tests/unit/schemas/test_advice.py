"""Advice for an incompatible schema names the incompatible field, the compatibility levels that
allow the schema, and an edit that makes the schema compatible."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skidway.schemas.advice import advise
from skidway.schemas.avro_schema import named_types, parse
from skidway.schemas.canonical import canonical
from skidway.schemas.compatibility import Level, check
from support.avro_schemas import mutated, schemas
from support.avro_trees import enum, field, record
from support.randomness import share_of

OURS = resources.files("skidway.schemas")


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


A, B, C = field("a", "int"), field("b", "string"), field("c", "long")


@pytest.mark.parametrize(
    ("level", "old", "new", "edits", "suggested"),
    [
        (
            "BACKWARD",
            record(A),
            record(A, B),
            ["make null the default of field b"],
            record(A, field("b", ["null", "string"], default=None)),
        ),
        (
            "BACKWARD",
            record(A),
            record(A, field("b", ["int", "null"])),
            ["make null the default of field b"],
            record(A, field("b", ["null", "int"], default=None)),
        ),
        (
            "BACKWARD",
            record(A, B),
            record(A, field("z", "string")),
            ["give field z the alias b, its former name"],
            record(A, field("z", "string", aliases=["b"])),
        ),
        ("BACKWARD", record(C), record(field("c", "int")), ["keep the type of c: long"], record(C)),
        (
            "BACKWARD",
            record(B),
            record(field("b", "int")),
            ["let b be string as well, as it was before"],
            record(field("b", ["int", "string"])),
        ),
        (
            "BACKWARD",
            record(field("a", ["null", "int"])),
            record(A),
            ["let a be null as well, as it was before"],
            record(field("a", ["int", "null"])),
        ),
        ("BACKWARD", enum("A", "B"), enum("A"), ["keep the symbols [B] of enum E"], enum("A", "B")),
        (
            "BACKWARD",
            record(A),
            record(A, name="S"),
            ["give record S the alias R, its former name"],
            record(A, name="S", aliases=["R"]),
        ),
        ("BACKWARD", fixed(2), fixed(3), ["keep the type of the schema: fixed F"], fixed(2)),
        (
            "BACKWARD",
            record(A, B),
            record(field("a", "int", aliases=["b"])),
            ["give field a no alias that is a field too"],
            record(A),
        ),
        ("FORWARD", record(A, B), record(A), ["keep field b: string"], record(A, B)),
        ("FORWARD", record(A), record(field("a", "long")), ["keep the type of a: int"], record(A)),
        (
            "FORWARD",
            record(A),
            record(field("a", ["null", "int"])),
            ["let a not be null"],
            record(A),
        ),
        ("FORWARD", record(A), record(A, name="S"), ["keep the name R"], record(A)),
        ("FORWARD", fixed(2), fixed(3), ["keep the type of the schema: fixed F"], fixed(2)),
        ("FULL", record(B), record(field("b", "int")), ["keep the type of b: string"], record(B)),
        (
            "FULL",
            record(A, B),
            record(A, C),
            ["make null the default of field c", "keep field b: string"],
            record(A, field("c", ["null", "long"], default=None), B),
        ),
    ],
)
def test_the_suggested_edit(
    level: str, old: Any, new: Any, edits: list[str], suggested: Any
) -> None:
    """The edit that the advice suggests for an incompatible schema keeps most of the author's
    schema and makes it compatible."""
    versions = [(7, parse(old))]
    advice = advise(versions, parse(new), Level(level))
    assert advice.suggestion is not None
    assert [*advice.suggestion.edits] == edits
    assert json.loads(advice.suggestion.schema) == suggested
    assert check(parse(advice.suggestion.schema), versions, Level(level)) is None


def test_new_symbols_for_readers_without_a_default_are_left_out() -> None:
    """If readers with the old schema cannot read new symbols of an enum, the suggested edit leaves
    these symbols out. The advice says how to add them."""
    advice = advise([(1, parse(enum("A")))], parse(enum("A", "B")), Level.FORWARD)
    assert advice.suggestion is not None
    assert json.loads(advice.suggestion.schema) == enum("A")
    assert "default first, in a version of its own" in advice.suggestion.edits[0]


def test_field_version_and_levels_are_named() -> None:
    """The advice for an incompatible schema contains the path of the field, the earlier version
    that does not fit, and the compatibility levels that allow the change."""
    line = {"type": "record", "name": "L", "fields": [A]}
    more = {"type": "record", "name": "L", "fields": [A, B]}
    old = record(field("lines", {"type": "array", "items": ["null", line]}))
    new = record(field("lines", {"type": "array", "items": ["null", more]}))
    advice = advise([(1, parse(old)), (2, parse(old))], parse(new), Level.BACKWARD_TRANSITIVE)
    (fault,) = advice.faults
    # If the records are in a union, Avro reports the path of the union's branch, not of the field
    # inside.
    assert (fault.place, fault.version) == ("lines[]", 2)
    assert advice.allowed_by == (Level.FORWARD, Level.FORWARD_TRANSITIVE)


def test_reasons_are_sentences() -> None:
    """Each reason in the advice is a sentence that names the field and the earlier version, and
    says which of the two schemas cannot read data of the other."""
    advice = advise(
        [(3, parse(record(A, field("x", "string"))))],
        parse(record(A, B, field("x", "int"))),
        Level.FULL,
    )
    assert [each.sentence for each in advice.faults] == [
        "b: version 3 does not have this field, and the new schema has no default for it",
        "x: int cannot read string, which version 3 wrote",
        "x: version 3 reads it as string, which cannot read int",
    ]


def test_all_versions_count_where_the_level_says_so() -> None:
    """At a transitive compatibility level, the schema that the advice suggests is compatible with
    all versions, not only with the latest."""
    versions = [(1, parse(record(A))), (2, parse(record(A, field("c", "string", default=""))))]
    advice = advise(versions, parse(record(A, field("c", "string"))), Level.FULL_TRANSITIVE)
    assert (advice.faults[0].version, advice.allowed_by) == (
        1, (Level.BACKWARD, Level.FORWARD, Level.FORWARD_TRANSITIVE, Level.FULL),
    )  # fmt: skip
    assert advice.suggestion is not None
    assert json.loads(advice.suggestion.schema)["fields"][1] == field("c", "string", default="")


def test_types_of_other_schemas_are_not_edited() -> None:
    """The edit that the advice suggests never changes a referenced schema, because it has another
    author."""
    known = named_types(parse({"type": "record", "name": "P", "fields": [A, B]}))
    before = {"type": "record", "name": "P", "fields": [A]}
    advice = advise(
        [(1, parse(record(field("p", before))))],
        parse(record(field("p", "P")), known),
        Level.BACKWARD,
        known,
    )
    assert advice.faults[0].place == "p.b"
    assert advice.suggestion is None
    assert '"default"' not in canonical(known["P"])


def test_as_little_is_edited_as_can_be() -> None:
    """If several edits remove an incompatibility, the advice suggests the edit after which the
    fewest incompatibilities are left."""
    advice = advise(
        [(1, parse(record(B, C)))],
        parse(record(field("b", "int"), field("c", "int"))),
        Level.FULL,
    )
    assert advice.suggestion is not None
    assert advice.suggestion.edits == ("keep the type of b: string", "keep the type of c: long")


def test_a_field_that_is_kept_has_a_default_for_those_before_it() -> None:
    """The edit that the advice suggests may keep a field that the author of the schema removed. If
    an even earlier version lacks this field, the edit also gives the field a default."""
    versions = [(1, parse(record(A))), (2, parse(record(A, B)))]
    advice = advise(versions, parse(record(A)), Level.FULL_TRANSITIVE)
    assert advice.suggestion is not None
    assert json.loads(advice.suggestion.schema) == record(A, field("b", "string", default=""))


def test_a_compatible_schema_has_no_faults() -> None:
    """A compatible schema has no faults and gets no suggestion, and neither does the first version
    of a subject."""
    for old in ([(1, parse(record(A)))], []):
        advice = advise(old, parse(record(A)), Level.FULL)
        assert (advice.faults, advice.suggestion, len(advice.allowed_by)) == ((), None, 6)


@pytest.mark.parametrize(
    "name", [each.name for each in OURS.iterdir() if each.name.endswith(".avsc")]
)
def test_our_own_schemas_are_read_by_everybody(name: str) -> None:
    """Apache's Python library accepts every schema of Skidway's own messages, and readers ignore
    nothing of it."""
    assert advise([], parse(OURS.joinpath(name).read_text()), Level.NONE).notes == ()


def test_what_apaches_python_library_does_not_take_is_told() -> None:
    """The advice says if Apache's Python library refuses a schema. In this test, a type without a
    namespace is used inside a type that has a namespace. The Python library does not find the type
    without a namespace, but Java's library does."""
    inner = {**record(field("e", "E")), "namespace": "n"}
    outer = {**record(field("e", enum("A")), field("i", inner)), "name": "O"}
    (note,) = advise([], parse(outer), Level.NONE).notes
    assert note.startswith("Apache Avro's Python library does not read it")
    assert '"E"' in note


@settings(max_examples=share_of(150), deadline=None)
@given(st.data(), st.sampled_from([each for each in Level if each is not Level.NONE]))
def test_what_is_suggested_may_follow(data: st.DataObject, level: Level) -> None:
    """For any schemas, the compatibility levels that the advice names allow the change, and the
    suggested schema is compatible."""
    old = data.draw(schemas())
    new = data.draw(mutated(old))
    versions = [(1, parse(old))]
    advice = advise(versions, parse(new), level)
    assume(advice.faults)
    assert level not in advice.allowed_by
    for each in advice.allowed_by:
        assert check(parse(new), versions, each) is None
    if advice.suggestion is not None:
        assert check(parse(advice.suggestion.schema), versions, level) is None
        assert advice.suggestion.edits
