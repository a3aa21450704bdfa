"""Tests the strict schema parser, and the canonical text, which the registry stores for a
schema."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.schemas.avro_schema import (
    CHARACTERS_MAX,
    FULL_NAME_MAX,
    NESTING_MAX,
    DefaultCheck,
    Enum,
    Record,
    SchemaInvalid,
    default_fault,
    defaults,
    named_types,
    parse,
)
from skidway.schemas.avro_schema.model import SHOWN_MAX, shown
from skidway.schemas.canonical import canonical
from support.avro import records
from support.avro_schemas import KEYS, broken, made
from support.avro_trees import record
from support.randomness import share_of


def field(avro: Any, **more: Any) -> dict[str, Any]:
    return {"name": "a", "type": avro, **more}


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("", "no JSON"),
        ("{", "no JSON"),
        ("NaN", "no type"),
        ('\ufeff"string"', "byte order mark"),
        ("\ufeffstring", "byte order mark"),
        ('{"type": NaN}', "NaN"),
        ("7", "neither a name nor a type"),
        ({}, '"type" is missing'),
        ({"type": 7}, "7 is no type"),
        ({"type": "Unknown"}, "no type"),
        (record(field("Later")), "no type"),
        ({"type": "record", "fields": []}, '"name" is missing'),
        ({"type": "record", "name": "R"}, '"fields" is missing'),
        ({"type": "record", "name": "R", "fields": {}}, "no list"),
        (record("a"), "no field"),
        (record({"name": "a"}), '"type" is missing'),
        (record(field("int", name="a-b")), "no name of a field"),
        (record(field("int", name="é")), "no name of a field"),
        (record(field("int"), field("int")), "field a is declared twice"),
        (record(field("int", order="up")), "no order"),
        (record(field("int", aliases="b")), "no list of names"),
        (record(field("int", doc=7)), '"doc" is no text'),
        (record(name="a..b"), "no name"),
        (record(name="1a"), "no name"),
        (record(namespace="a-b"), "no name"),
        (record(name="string"), "primitive"),
        (record(aliases=["a b"]), "no name"),
        (record(field(record())), "declared twice"),
        (record(field("R", default={})), "inside itself"),
        (["int", "int"], "int twice"),
        (["null", ["int"]], "directly in a union"),
        ([ENUM, "E"], "E twice"),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "array twice"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "twice"),
        ({"type": "enum", "name": "E", "symbols": ["a-b"]}, "no symbol"),
        ({"type": "enum", "name": "E", "symbols": "A"}, "no list"),
        ({**ENUM, "default": "C"}, "no symbol of enum"),
        ({**FIXED, "size": -1}, "no size"),
        ({**FIXED, "size": "2"}, "no size"),
        ({**FIXED, "size": True}, "no size"),
        ({"type": "array"}, '"items" is missing'),
        ({"type": "map"}, '"values" is missing'),
        (json.dumps("\ud800"), "UTF-8"),
    ],
)
def test_what_is_no_schema_is_refused_in_a_sentence(schema: Any, words: str) -> None:
    """A schema with an invalid name, a duplicate name or an invalid form is refused with an error
    of one line."""
    with pytest.raises(SchemaInvalid) as caught:
        parse(schema)
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("avro", "good", "bad"),
    [
        ("null", [None], [0, "null"]),
        ("boolean", [True], [0, None]),
        ("int", [0, 2**31 - 1], [2**31, 1.0, True, "0"]),
        ("long", [-(2**63)], [2**63, 1.5]),
        ("float", [1, 1.5], ["1", True]),
        ("string", ["x"], [1, None]),
        ("bytes", ["\u00ff"], ["\u0100", 1]),
        (FIXED, ["ab"], ["abc", 1]),
        (ENUM, ["A"], ["C", 0]),
        ({"type": "array", "items": "int"}, [[], [1]], [["x"], {}]),
        ({"type": "map", "values": "int"}, [{}, {"k": 1}], [{"k": "x"}, []]),
        (["null", "int"], [None, 7], ["x"]),
        (["int", "null"], [7, None], ["x"]),
        ({**record(field("int")), "name": "S"}, [{"a": 1}], [{}, {"a": "x"}, 7]),
        ({**record(field("int", default=3)), "name": "S"}, [{}], [{"a": None}]),
    ],
)
def test_defaults_must_fit_their_types(avro: Any, good: list[Any], bad: list[Any]) -> None:
    """The schema parser refuses a default that does not fit its type. Otherwise the mistake might
    be noticed only years later, when a reader needs the default."""
    for value in good:
        parse(record(field(avro, default=value)))
    for value in bad:
        with pytest.raises(SchemaInvalid, match="default of field a is invalid"):
            parse(record(field(avro, default=value)))


def test_numbers_that_do_not_fit_are_no_defaults() -> None:
    """The schema parser refuses a default that is too large for its type, for example 10**400 as a
    double, or 1e300 as a float."""
    for avro, value in (("double", 10**400), ("float", 1e300), ("float", -(10**39))):
        with pytest.raises(SchemaInvalid, match="default"):
            parse(record(field(avro, default=value)))
    parse(record(field("float", default=3.4028234e38)))


def test_a_default_is_checked_with_each_type_once() -> None:
    """The parser checks a default against each type only once. If it checked nested unions branch
    by branch, the check of a default with 50 levels would practically never end."""
    fields = []
    for level in range(50):
        inside = [f"A{level - 1}", f"B{level - 1}"] if level else "int"
        branches = [
            {"type": "record", "name": f"{letter}{level}", "fields": [field(inside)]}
            for letter in "AB"
        ]
        fields.append({"name": f"f{level}", "type": branches})
    value: Any = 1
    for _ in range(50):
        value = {"a": value}
    last = {"name": "last", "type": ["A49", "B49"], "default": value}
    parse({"type": "record", "name": "Top", "fields": [*fields, last]})


def test_names_are_found_in_their_namespaces() -> None:
    """A reference finds a type by its full name. In the same or an inherited namespace, it also
    finds the type by its short name."""
    inner = {"type": "record", "name": "In", "fields": [field("Out"), field("b.Fix", name="b")]}
    fix = {"type": "fixed", "name": "Fix", "namespace": "b", "size": 1}
    schema = {
        "type": "record", "name": "Out", "namespace": "n",
        "fields": [field(fix, name="f"), field(["null", inner], name="i")],
    }  # fmt: skip
    made = parse(schema)
    assert isinstance(made, Record)
    text = canonical(made)
    assert parse(text).name == "n.Out"  # type: ignore[union-attr]
    assert canonical(parse(text)) == text
    assert '"name":"In","fields":[{"name":"a","type":"Out"},{"name":"b","type":"b.Fix"}]' in text


def test_a_namespace_is_not_multiplied_without_limit() -> None:
    """Each name within a namespace becomes a full name, so a full name has a limit, and a small
    schema cannot take much memory. Names and aliases up to the limit are good."""
    space = "n" * (FULL_NAME_MAX - 2)
    assert parse(record(namespace=space, aliases=["A"])).aliases == (f"{space}.A",)
    for longer in (
        record(namespace=f"{space}x"),
        record(namespace=space, aliases=["AB"]),
        record(field({"type": "fixed", "name": "Fi", "size": 1}), namespace=space),
        record() | {"name": "N" * (FULL_NAME_MAX + 1)},
        record() | {"name": f"{space}.NN"},
    ):
        with pytest.raises(SchemaInvalid, match=f"more than {FULL_NAME_MAX} characters"):
            parse(longer)


def test_a_type_without_namespace_inside_one_says_so() -> None:
    """If a type has no namespace and the type around it has one, the canonical text gives the inner
    type an empty namespace. Otherwise the inner type would inherit the outer namespace."""
    inner = {"type": "enum", "name": "E", "namespace": "", "symbols": ["A"]}
    text = canonical(parse(record(field(inner), namespace="n")))
    assert '"name":"E","namespace":""' in text
    assert canonical(parse(text)) == text


def test_a_type_that_is_named_like_a_primitive_stays_itself() -> None:
    """A named type may have the name of a primitive type, for example a fixed with the full name
    n.int. The canonical text refers to this type by its full name, because `int` alone would be the
    primitive type."""
    fixed = {"type": "fixed", "name": "n.int", "size": 4}
    again = parse(
        canonical(parse(record(field(fixed), field("n.int") | {"name": "b"}, namespace="n")))
    )
    assert isinstance(again, Record)
    assert [each.type.kind for each in again.fields] == ["fixed", "fixed"]


def test_recursive_types_are_schemas() -> None:
    """A recursive record is a valid schema."""
    made = parse(record(field(["null", "R"], default=None)))
    assert canonical(made) == (
        '{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"],"default":null}]}'
    )


def test_attributes_come_in_avro_javas_order() -> None:
    """The canonical text has attributes in the order of Avro's Java library, so that the text is
    the same as in other registries."""
    schema = {
        "aliases": ["x.Old"], "custom": {"k": 1}, "namespace": "x", "fields": [
            {"aliases": ["b"], "prop": 1, "order": "ignore", "default": 0, "doc": "d",
             "type": {"type": "int"}, "name": "a"},
        ], "doc": "D", "name": "R", "type": "record",
    }  # fmt: skip
    assert canonical(parse(schema)) == (
        '{"type":"record","name":"R","namespace":"x","doc":"D","fields":[{"name":"a","type":"int",'
        '"doc":"d","default":0,"order":"ignore","aliases":["b"],"prop":1}],"custom":{"k":1},'
        '"aliases":["Old"]}'
    )


def test_a_schema_may_use_the_types_of_those_it_references() -> None:
    """A schema may use the types of referenced schemas by their full names. The canonical text
    names these types and does not declare them."""
    parent = parse({"type": "record", "name": "P", "namespace": "n", "fields": [field(ENUM)]})
    known = named_types(parent)
    assert list(known) == ["n.P", "n.E"]
    child = {"type": "record", "name": "C", "namespace": "n", "fields": [
        field("P"), field("n.E", name="b"), field("P", name="c"),
    ]}  # fmt: skip
    made = parse(child, known)
    assert canonical(made, known) == (
        '{"type":"record","name":"C","namespace":"n","fields":[{"name":"a","type":"P"},'
        '{"name":"b","type":"E"},{"name":"c","type":"P"}]}'
    )
    # if `canonical` does not get the referenced schemas, it writes the referenced types into the
    # text
    assert canonical(parse(canonical(made))) == canonical(made)
    with pytest.raises(SchemaInvalid, match="no type"):
        parse(child)


def test_a_type_of_a_referenced_schema_is_not_declared_again() -> None:
    """A schema is refused if it declares a type that a referenced schema already declares."""
    with pytest.raises(SchemaInvalid, match=r"n\.E is declared twice"):
        parse({**ENUM, "namespace": "n"}, named_types(parse({**ENUM, "namespace": "n"})))


def test_old_schemas_of_another_registry_may_keep_bad_defaults() -> None:
    """With `check_defaults=False` the parser accepts invalid defaults, because other registries
    have accepted schemas with such defaults, and these schemas are in use. It accepts no other
    mistake."""
    text = record(field("int", default="x"))
    assert '"default":"x"' in canonical(parse(text, check_defaults=False), normalize=True)
    with pytest.raises(SchemaInvalid, match="no type"):
        parse(record(field("Later")), check_defaults=False)


def test_normalized_spellings_are_one_schema() -> None:
    """Normalizing gives the same text for two spellings of a schema if they differ only in the
    order of aliases and properties, in the digits of numbers, or in the use of full and relative
    names. An empty doc, and the order "ascending" of a field, make no difference either."""
    one = {
        "type": "record", "name": "R", "namespace": "n", "doc": "", "aliases": ["B", "A"],
        "z": 1, "p": {"b": 1, "a": 2}, "fields": [
            {"name": "a", "type": ["null", {"type": "double", "y": 1, "x": 2}], "default": 1,
             "order": "ascending", "aliases": ["d", "c"]},
            {"name": "s", "type": "n.R"},
        ],
    }  # fmt: skip
    two = {
        "p": {"a": 2, "b": 1}, "z": 1, "type": "record", "name": "n.R", "aliases": ["n.A", "n.B"],
        "fields": [
            {"name": "a", "type": ["null", {"type": "double", "x": 2, "y": 1}], "default": 1.0,
             "aliases": ["c", "d"]},
            {"name": "s", "type": "R"},
        ],
    }  # fmt: skip
    texts = {canonical(parse(each), normalize=True) for each in (one, two)}
    assert texts == {
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":["null",'
        '{"type":"double","x":2,"y":1}],"default":1.0,"aliases":["c","d"]},'
        '{"name":"s","type":"R"}],"p":{"a":2,"b":1},"z":1,"aliases":["A","B"]}'
    }
    assert canonical(parse(one)) != canonical(parse(two))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (0.001, "0.001"), (0.0001, "1.0E-4"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (-12345678.5, "-1.23456785E7"), (1e300, "1.0E300"),
        (1.5e-10, "1.5E-10"), (123456789012.0, "1.23456789012E11"),
    ],
)  # fmt: skip
def test_numbers_have_javas_digits(value: float, text: str) -> None:
    """In the canonical text, numbers have the same digits as in Java, so that a registry in Java
    stores the same text."""
    assert canonical(parse({"type": "int", "p": value})) == f'{{"type":"int","p":{text}}}'


def test_texts_are_escaped_as_java_does() -> None:
    """In the canonical text, strings are escaped as in Java: only characters that must be escaped
    are escaped, with upper-case hexadecimal digits."""
    made = canonical(parse({"type": "int", "p": 'é\u2028\x1f\x7f\n"\\/'}))
    assert made == '{"type":"int","p":"é\u2028\\u001F\x7f\\n\\"\\\\/"}'


def test_size_is_bounded() -> None:
    """The text of a schema with more than CHARACTERS_MAX characters is refused before it is
    parsed."""
    with pytest.raises(SchemaInvalid, match="characters"):
        parse('"' + "x" * CHARACTERS_MAX + '"')


def test_nesting_is_bounded() -> None:
    """A schema that is nested beyond the limit is refused, and the stack is not exhausted."""
    deep: Any = "int"
    for _ in range(NESTING_MAX + 1):
        deep = {"type": "array", "items": deep}
    with pytest.raises(SchemaInvalid, match="nested"):
        parse(deep)
    with pytest.raises(SchemaInvalid, match="nested"):
        parse("[" * 100_000)


@given(records(flat=False))
def test_the_canonical_text_is_the_same_schema(case: tuple[Any, Any]) -> None:
    """A schema's canonical text can be parsed again, and the canonical text of the result is the
    same. White space in a schema makes no difference."""
    text = canonical(parse(case[0]))
    assert canonical(parse(text)) == text
    assert canonical(parse(json.dumps(case[0], indent=3))) == text


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda data: data.decode("latin-1")))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Any text is either parsed as a schema or refused with an error message."""
    try:
        parse(text)
    except SchemaInvalid:
        pass


WORDS = st.sampled_from(
    [
        "record",
        "error",
        "enum",
        "fixed",
        "array",
        "map",
        "int",
        "null",
        "string",
        "R",
        "n.R",
        "",
        ".",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*KEYS, "p"]),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@settings(max_examples=share_of(500), deadline=None)
@given(JSON)
def test_no_json_breaks_the_parser(value: Any) -> None:
    """Any JSON is either parsed as a schema, which has a stable canonical text, or refused with an
    error message."""
    refusal, tree = "", None
    try:
        tree = parse(json.dumps(value))
    except SchemaInvalid as error:
        refusal = str(error)
    assert len(refusal.splitlines()) == (tree is None)
    if tree is None:
        return
    for normalize in (False, True):
        text = canonical(tree, normalize=normalize)
        assert canonical(parse(text), normalize=normalize) == text


@settings(max_examples=share_of(300), deadline=None)
@given(st.integers(0, 2**32))
def test_nearly_schemas_do_not_break_the_parser(seed: int) -> None:
    """If a part of a valid schema is exchanged, duplicated or removed, the parser accepts or
    refuses the result, and does not fail in another way."""
    random = Random(seed)
    with contextlib.suppress(SchemaInvalid):
        text = canonical(parse(broken(made(random), random)))
        assert canonical(parse(text)) == text


def test_large_values_are_not_written_into_sentences() -> None:
    """The error about a large invalid default is short and does not contain the whole value."""
    large = {"k": ["x" * 1000] * 1000}
    with pytest.raises(SchemaInvalid) as caught:
        parse(record(field("int", default=large)))
    assert len(str(caught.value)) < 200


def test_symbols_of_a_default_are_looked_up() -> None:
    """The parser looks up the symbols of a default in a set, because comparing many symbols one by
    one would take far too long."""
    compared = 0

    class Symbol(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    symbols = [f"s{at}" for at in range(1000)]
    items = {"type": "array", "items": {"type": "enum", "name": "E", "symbols": symbols}}
    parse(record(field(items, default=[Symbol("s999") for _ in range(100)])))
    assert compared <= 200


def many_defaults(declared: Any, value: Any, count: int) -> Any:
    """Returns the schema of a record with `count` fields of the named type `declared`. All fields
    but the first have the default `value`."""
    first = {"name": "f0", "type": declared}
    others = ({"name": f"f{n}", "type": "T", "default": value} for n in range(1, count))
    return {"type": "record", "name": "R", "fields": [first, *others]}


def test_defaults_are_checked_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema is refused if it has so many defaults of one large record that checking or writing
    them would take hours."""
    fields = [{"name": f"a{n}", "type": "int", "default": 0} for n in range(50)]
    schema = many_defaults({"type": "record", "name": "T", "fields": fields}, {}, 50)
    found = parse(schema)
    monkeypatch.setattr(defaults, "STEPS_MAX", 1000)
    with pytest.raises(SchemaInvalid, match="defaults are too large"):
        parse(schema)
    with pytest.raises(SchemaInvalid, match="defaults are too large"):
        canonical(found, normalize=True)


def test_the_symbols_of_an_enum_are_gathered_once() -> None:
    """The symbols of an enum are put into a set only once, however many defaults of this enum are
    checked."""

    class Counted(tuple[str, ...]):
        walks = 0

        def __iter__(self) -> Iterator[str]:
            Counted.walks += 1
            return super().__iter__()

    found = parse({"type": "enum", "name": "T", "symbols": ["A", "B"]})
    assert isinstance(found, Enum)
    found.symbols = Counted(found.symbols)
    check = DefaultCheck()
    assert [check.of(found, text) is None for text in ("A", "B", "C")] == [True, True, False]
    assert Counted.walks == 1


def test_a_sentence_shows_little_of_a_large_value() -> None:
    """An error message shows only the beginning of a large value. To make the message, `shown`
    reads only a small part of the value."""

    class Counted(list[Any]):
        walks = 0

        def __iter__(self) -> Iterator[Any]:
            for each in super().__iter__():
                Counted.walks += 1
                yield each

    assert shown(Counted([Counted([Counted([0] * 60)] * 60)] * 60)).endswith("...")
    assert Counted.walks <= 2 * SHOWN_MAX


@pytest.mark.parametrize("key", ["default", "mine"])
def test_values_nested_too_deeply_are_refused(key: str) -> None:
    """Defaults and properties that are nested more than 100 levels deep are refused, because
    programs that read the schema later may have a smaller stack."""

    def nested(levels: int) -> Any:
        value: Any = 0
        for _ in range(levels):
            value = {"n": value} if key == "mine" else [value]
        items = {"name": "f", "type": "int", key: value}
        return {"type": "record", "name": "R", "fields": [items]}

    parse(nested(99), check_defaults=False)
    with pytest.raises(SchemaInvalid, match="more than 100 levels"):
        parse(nested(100), check_defaults=False)


def test_defaults_that_multiply_one_another_are_refused() -> None:
    """A default takes in the defaults of the fields that it leaves out. If few records multiply
    their defaults, or a default contains itself, the default is invalid, instead of taking all
    memory where it is used."""

    def pair(name: str, inner: Any) -> dict[str, Any]:
        fields = [{"name": each, "type": [inner, "null"], "default": {}} for each in "ab"]
        return {"type": "record", "name": name, "fields": fields}

    types = [{"type": "record", "name": "N0", "fields": []}]
    types += [pair(f"N{at}", f"N{at - 1}") for at in range(1, 41)]
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": f"f{at}", "type": each} for at, each in enumerate(types)],
    }
    with pytest.raises(SchemaInvalid, match="with the defaults inside it, it has more than 10000"):
        parse(schema)
    record = parse(pair("R", "R"), check_defaults=False)
    assert "has more than 10000 values" in str(default_fault(record, {}))
    long = [{**pair(f"L{at}", f"L{at - 1}" if at else "int"), "aliases": []} for at in range(2000)]
    for each in long:
        del each["fields"][1]
    schema["fields"] = [{"name": f"f{at}", "type": each} for at, each in enumerate(long)]
    last = named_types(parse(schema, check_defaults=False))["L1999"]
    assert default_fault(last, {}) == "it is nested too deeply"
