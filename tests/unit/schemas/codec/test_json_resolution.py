"""Values of recursive types become JSON texts. They are converted from one version of a schema to
another by Avro's schema resolution, at every depth. The results are the values that Apache's Avro
library returns."""

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

from skidway.schemas.codec import DatumReader, Unresolvable
from support.circles import MONEY, NODE, TEXTS, datum, decoded, nodes, wanted
from support.randomness import share_of

common = settings(
    max_examples=share_of(25), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def field(name: str, avro: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro, **more}


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
        (link(V), link(V, next={"type": "array", "items": "Link"}), None),
        (link(V), link(field("v", "string")), None),
    ],
)  # fmt: skip
def test_versions_of_a_list(writer: Any, reader: Any, expected: str | None) -> None:
    """If fields of a recursive record were added, dropped, renamed or made a union of several
    types, its values are converted at every depth. Versions that Avro cannot resolve are refused
    before any datum is read."""
    if expected is None:
        with pytest.raises(Unresolvable, match=r"Field (next|v) "):
            DatumReader(writer, reader)
    else:
        assert resolved(writer, reader, LONGER)["next"] == expected


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FINER = {**MONEY, "precision": 11, "scale": 4}
AB = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("written", "read", "value", "expected"),
    [
        (MILLIS, MICROS, 5, "5000"),
        (MICROS, MILLIS, 5000, "5"),
        (MICROS, MILLIS, 5001, None),
        (MONEY, FINER, b"\x01", '"0.0100"'),
        ("bytes", MONEY, b"\xff", '"-0.01"'),
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
def test_leaves_are_resolved_as_in_columns(
    written: Any, read: Any, value: Any, expected: str | None
) -> None:
    """In the JSON text of a recursive value, timestamps, decimals, enums and unions are converted
    to the reader's types as in columns. If a value cannot be kept, its row is refused."""
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
         {"v": 1, "next": {"v": 2, "next": "x"}},
         "field next: Field next was written as record and is string now."),
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


def test_nothing_rests_on_a_pair_of_records_that_turned_out_bad() -> None:
    """While the codec prepares the conversion of a recursive record to the reader's version, it
    assumes that the conversion is possible. If a nested field then proves the opposite, the codec
    drops all conversions that depend on this assumption. So a value with such a record is refused,
    and no part of the value is silently lost."""
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
    assert resolved(writer, reader, {"u": ("P", {"p": None, "q": {"a": bad}})}) == (
        "field u: Field u.q.a was written as record and is union now."
    )


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
    row = resolved(writer, reader, {"at": moment, "next": {"at": moment, "next": None}})
    assert row["at"] == moment
    assert json.loads(row["next"])["at"] == int(moment.timestamp()) * 1_000_000
