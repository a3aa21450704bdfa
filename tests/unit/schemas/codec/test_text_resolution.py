"""Values of recursive types become JSON texts. With a newer version of the schema, Avro's schema
resolution reads these values, at every depth. The results are the values that Apache's Avro library
returns."""

from __future__ import annotations

import copy
import datetime as dt
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.schemas.avro_schema import parse
from skidway.schemas.codec import DatumReader, Unresolvable
from skidway.schemas.codec.text_resolution import UNFIT
from skidway.schemas.datum import plain_schema, write_datum
from support.avro_trees import field
from support.circles import MONEY, NODE, TEXTS, datum, decoded, nodes, wanted
from support.randomness import share_of

common = settings(
    max_examples=share_of(25), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def link(*fields: dict[str, Any], next: Any = ("null", "Link"), **more: Any) -> dict[str, Any]:
    every = [*fields, field("next", list(next) if isinstance(next, tuple) else next)]
    return {"type": "record", "name": "Link", "fields": every, **more}


def resolved(writer: Any, reader: Any, value: Any) -> Any:
    """Encodes `value` with the writer's schema and decodes it with the reader's schema. Returns the
    row that was read, or the reason why the value was refused."""
    found = DatumReader(writer, reader).decode(pa.array([datum(writer, value)], pa.binary()))
    found.batch.validate(full=True)
    return found.batch.to_pylist()[0] if not found.refused else found.refused[0][1]


def text(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Returns the schema NODE after a change. The function `change` gets a dictionary of the
    schema's fields by name, and changes it."""
    made = copy.deepcopy(NODE)
    change({each["name"]: each for each in made["fields"]})
    return made


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the same": lambda _: None,
    "dropped and added": lambda each: each["last"].update(name="added", default=False),
    "promoted": lambda each: (
        each["small"].update(type=["null", "long"]),
        each["half"].update(type="double"),
    ),
    "nullable": lambda each: each["text"].update(type=["null", "string"]),
    "grown": lambda each: each["level"]["type"].update(symbols=["NONE", "HIGH", "LOW"]),
}


@common
@given(st.lists(nodes(), min_size=1, max_size=3), st.sampled_from(sorted(CHANGES)))
def test_texts_are_resolved_as_the_library_resolves(values: list[Any], change: str) -> None:
    """If a value is read with a newer schema version, its JSON text represents the value that
    Apache's Avro library reads with this version, at every depth."""
    reader = changed(CHANGES[change])
    datums = [datum(NODE, value) for value in values]
    found = DatumReader(NODE, reader).decode(pa.array(datums, pa.binary()))
    assert not found.refused
    for row, raw in zip(found.batch.to_pylist(), datums, strict=True):
        expected = wanted(decoded(raw, NODE, reader))
        for name in TEXTS:
            assert row[name] == text(expected[name])


V, W = field("v", "int"), field("w", ["string", "long"], default=7)
LONGER = {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (link(V), link(V, W),
         '{"v":2,"w":{"member1":7},"next":{"v":3,"w":{"member1":7},"next":null}}'),
        (link(V), link(), '{"next":{"next":null}}'),
        (link(V), link(field("x", "int", aliases=["v"])), '{"x":2,"next":{"x":3,"next":null}}'),
        (link(V), link(field("v", ["string", "int"])),
         '{"v":{"member1":2},"next":{"v":{"member1":3},"next":null}}'),
        (link(V), link(V, next=("null", "string", "Link")),
         '{"member1":{"v":2,"next":{"member1":{"v":3,"next":null}}}}'),
        (link(V), link(V, next={"type": "array", "items": "Link"}), UNFIT),
        (link(V), link(field("v", "string")), None),
    ],
)  # fmt: skip
def test_versions_of_a_list(writer: Any, reader: Any, expected: str | None) -> None:
    """If fields of a recursive record were added, dropped, renamed or made a union of several
    types, its values are converted at every depth. If a value does not fit the other version, its
    row is refused. If no value of another field can fit, the versions are refused."""
    if expected is None:
        with pytest.raises(Unresolvable, match="Field v "):
            DatumReader(writer, reader)
    elif expected == UNFIT:
        assert resolved(writer, reader, LONGER) == f"field next: {UNFIT}"
    else:
        assert resolved(writer, reader, LONGER)["next"] == expected


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FINER = {**MONEY, "precision": 11, "scale": 4}
AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        (MILLIS, {**MILLIS, "logicalType": "local-timestamp-millis"}, 5, "5"),
        (MILLIS, "long", 5, "5"),
        ("int", MILLIS, 5, "5"),
        (MILLIS, MICROS, 5, None),
        (MONEY, {**MONEY, "precision": 12}, b"\x01", '"0.01"'),
        (MONEY, FINER, b"\x01", None),
        ("bytes", MONEY, b"\xff", '"-0.01"'),
        (MONEY, "string", b"1", None),
        ("bytes", "string", "é".encode(), '"é"'),
        ("bytes", "string", b"\xff", None),
        ("long", "double", 2**53, "9007199254740992.0"),
        (AB, {**AB, "symbols": ["A"]}, "B", None),
        (AB, {**AB, "symbols": ["A"], "default": "A"}, "B", '"A"'),
        (["null", "int"], "int", None, None),
        (["string", "int"], "long", 3, "3"),
        (["string", "int"], "long", "x", None),
    ],
)
def test_leaves_are_resolved(written: Any, read: Any, value: Any, expected: str | None) -> None:
    """In the JSON text of a recursive value, enums, unions and bytes are converted to the reader's
    types. Timestamps and decimals keep the number in the datum. A reader's type with another unit
    or scale would give this number another meaning. If a value cannot be kept, its row is
    refused."""
    writer, reader = link(field("x", written)), link(field("x", read))
    bare = copy.deepcopy(writer)
    if isinstance(written, dict) and "logicalType" in written:
        bare["fields"][0]["type"] = written["type"]
    raw = datum(bare, {"x": value, "next": {"x": value, "next": None}})
    found = DatumReader(writer, reader).decode(pa.array([raw], pa.binary()))
    if expected is None:
        assert not found.good.any()
    else:
        (row,) = found.batch.to_pylist()
        assert row["next"] == f'{{"x":{expected},"next":null}}'


PLAIN = {"type": "record", "name": "Plain", "fields": [V]}
BECAME = {
    "type": "record",
    "name": "Plain",
    "aliases": ["Link"],
    "fields": [V, field("next", ["null", "Plain"], default=None)],
}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        (link(V, next=("null", PLAIN)), BECAME, {"v": 1, "next": {"v": 2}}, '{"v":2,"next":null}'),
        (link(V, next=("null", PLAIN)), BECAME, {"v": 1, "next": None}, None),
        (link(V, next=("null", "string")), link(V, next=("null", "string", "Link")),
         {"v": 1, "next": "x"}, '{"member0":"x"}'),
        (link(V), link(V, next=("null", {**PLAIN, "aliases": ["Link"]})), LONGER, {"v": 2}),
        (link(V), link(V, next=("null", {**PLAIN, "aliases": ["Link"]})), LONGER["next"]["next"],
         None),
        (link(V, next=("string", "Link")), link(V, next="string"), {"v": 1, "next": "x"}, "x"),
        (link(V, next=("string", "Link")), link(V, next="string"),
         {"v": 1, "next": {"v": 2, "next": "x"}}, f"field next: {UNFIT}"),
    ],
)  # fmt: skip
def test_columns_become_texts_and_texts_columns(
    writer: Any, reader: Any, value: Any, expected: Any
) -> None:
    """A field can be recursive in one of two schema versions and not in the other one. If it is
    recursive only in the newer version, old values become JSON texts. If it is recursive only in
    the older version, old texts become columns. A value that does not fit the newer version is
    refused."""
    found = resolved(writer, reader, value)
    assert (found if isinstance(found, str) else found["next"]) == expected


def test_a_value_is_read_as_the_branch_of_its_type() -> None:
    """In the JSON text of a recursive value, each value of a union has the branch of its own type,
    even if it could be promoted to an earlier branch, or if the records in the union have the same
    fields. If there is no such branch, the value has the first branch to which it can be
    promoted."""
    one, two, other = ({"type": "record", "name": name, "fields": [V]} for name in "ABC")
    ints, longs = ({"type": "map", "values": each} for each in ("int", "long"))
    writer = link(field("u", [one, two, "string", "bytes", "int", "long", AB, ints]))
    reader = link(field("u", ["bytes", "double", "string", other, two, AB, longs, one, "long"]))
    expected = [
        ({"v": 1}, "member7", {"v": 1}), ({"v": 1}, "member4", {"v": 1}), ("A", "member2", "A"),
        (b"A", "member0", "A"), (5, "member1", 5.0), (5, "member8", 5), ("A", "member5", "A"),
        ({"v": 1}, "member6", {"v": 1}),
    ]  # fmt: skip
    plain = plain_schema(parse(writer), tagged=True)
    for number, (value, branch, shown) in enumerate(expected):
        inner = {"u": {f"member{number}": value}, "next": None}
        raw = write_datum(plain, {"u": {"member4": 5}, "next": inner})
        (row,) = DatumReader(writer, reader).decode(pa.array([raw], pa.binary())).batch.to_pylist()
        assert row["next"] == text({"u": {branch: shown}, "next": None})


def test_a_default_in_a_text() -> None:
    """In a JSON text, a field that the writer lacks has the default of the reader, also if the
    default has values of unions, bytes and further records. If the default is invalid, only rows
    that need it are refused."""
    inner = {"type": "record", "name": "In", "fields": [V, field("raw", "bytes", default="\u00ff")]}
    several = {"type": "array", "items": ["null", "string", inner]}
    reader = link(V, field("d", several, default=[None, "s", {"v": 5}]))
    made = '[null,{"member0":"s"},{"member1":{"v":5,"raw":"\u00ff"}}]'
    assert resolved(link(V), reader, LONGER["next"])["next"] == f'{{"v":3,"d":{made},"next":null}}'
    bad = link(V, next=("null", {**PLAIN, "fields": [V, field("next", ["null", "Link"]),
                                                     field("w", "int", default="x")]}))  # fmt: skip
    writer = link(V, next=("null", {**PLAIN, "fields": [V, field("next", ["null", "Link"])]}))
    assert resolved(writer, bad, {"v": 1, "next": None}) == {"v": 1, "next": None}
    found = resolved(writer, bad, {"v": 1, "next": {"v": 2, "next": None}})
    assert found == f"field next: {UNFIT}"


def test_a_record_that_does_not_fit_is_refused() -> None:
    """If a part of a recursive value does not fit the reader's schema, its row is refused, and no
    part of the value is silently lost. Values without this part are read."""
    inner = {"type": "record", "name": "B", "fields": [field("a", ["null", "A"])]}
    outer = {"type": "record", "name": "A", "fields": [field("b", inner), field("x", "string")]}
    both = {"type": "record", "name": "P", "fields": [field("p", ["null", outer]),
                                                      field("q", ["null", "B"])]}  # fmt: skip
    writer = {"type": "record", "name": "T", "fields": [field("u", ["null", both, "T"])]}
    reader = copy.deepcopy(writer)
    reader["fields"][0]["type"][1]["fields"][0]["type"][1]["fields"][1]["type"] = "int"
    bad = {"b": {"a": None}, "x": "o"}
    assert resolved(writer, reader, {"u": ("P", {"p": None, "q": {"a": None}})}) == {
        "u": '{"member0":{"p":null,"q":{"a":null}}}'
    }
    found = resolved(writer, reader, {"u": ("P", {"p": None, "q": {"a": bad}})})
    assert found == f"field u: {UNFIT}"


def test_a_deep_text_is_resolved_or_refused() -> None:
    """A value with the largest allowed depth is converted to the reader's schema with all its
    levels. A deeper value is refused."""
    value: Any = None
    for at in range(257):
        value = {"v": at, "next": value}
    reader = link(field("v", "double"))
    found = resolved(link(V), reader, value)["next"]
    assert found.count('"v":') == 256
    assert found.startswith('{"v":255.0,')
    deeper = resolved(link(V), reader, {"v": 257, "next": value})
    assert deeper == "it is nested more than 256 levels deep"


def test_a_moment_that_is_no_text_stays_a_column() -> None:
    """In a recursive record, only the fields through which the record contains itself become JSON
    texts. All other fields, for example a timestamp, stay columns, and are resolved as columns."""
    writer, reader = link(field("at", MILLIS)), link(field("at", MICROS))
    moment = dt.datetime(2011, 6, 12, 1, 2, 3, tzinfo=dt.UTC)
    row = resolved(writer, reader, {"at": moment, "next": None})
    assert row == {"at": moment, "next": None}


@pytest.mark.parametrize(
    ("names", "at"),
    [
        (["x.R", "y.R"], 1),
        (["y.R", "x.R"], 0),
        (["z.R", "x.R", "y.R"], 2),
        (["x.R", {"name": "z.Q", "aliases": ["y.R"]}], 1),
        (["x.R", "z.R"], 0),
    ],
)
def test_a_branch_of_the_full_name_comes_before_one_of_the_short_name(
    names: list[Any], at: int
) -> None:
    """In a value whose type contains itself, too, a union's value is read as the branch with the
    full name of its type, else with its alias, and only then with its name alone."""
    inner = {"type": "record", "fields": [V]}
    made = [inner | (each if isinstance(each, dict) else {"name": each}) for each in names]
    writer = link(field("u", [inner | {"name": "x.R"}, inner | {"name": "y.R"}]))
    value = {"u": ("y.R", {"v": 2}), "next": None}
    found = resolved(writer, link(field("u", made), W), {"u": ("x.R", {"v": 1}), "next": value})
    assert json.loads(found["next"])["u"] == {f"member{at}": {"v": 2}}
