"""Tests with lines that real users' programs write: each member of a line is in a field, in
`_extra` or in a reject, or is counted by name. Dates and times in JSON are read from text and from
numbers."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.batches.fieldless import Fieldless, sentences
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.aliases import aliases_of
from skidway.agent.parsing.json_lines import JsonParser
from skidway.agent.parsing.logfmt import LogfmtParser
from skidway.agent.parsing.parser import EXTRA, Parsed
from skidway.agent.parsing.text_fields import TextTimes
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.preview import Preview, preview
from skidway.audit.topic.fieldless_note import (
    BYTES_MAX,
    KIND,
    NAME_CHARACTERS_MAX,
    NAMES_MAX,
    OTHERS,
    FieldlessMembers,
    body_of,
    by_topic,
    fieldless_of,
)
from skidway.audit.topic.notes import NOTE_BYTES_MAX, Note, decode, encode
from skidway.schemas.codec import Codec
from support.agent_world import World, settings

MAP = {"type": "map", "values": "string"}
EXTRA_FIELD = {"name": EXTRA, "type": MAP, "default": {}}
NOW = 1_795_248_901_000


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None, **more}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


ITEM = record("Item", field("sku", "string"))
ORDER = record(
    "Order",
    field("id", "string"),
    field("lines", {"type": "array", "items": ITEM}),
    field("by", {"type": "map", "values": "Item"}),
)
LINE = record("Line", field("level", "string"), field("user", "string"), field("order", ORDER))
WITH_EXTRA = {**LINE, "fields": [*LINE["fields"], EXTRA_FIELD]}


def parsed(
    parser: str, schema: dict[str, Any], *lines: str, removed: tuple[str, ...] = ()
) -> Parsed:
    made, texts = Codec(json.dumps(schema)).arrow_schema, [x.encode() for x in lines]
    defaults = {x["name"]: x["default"] for x in schema["fields"]}
    aliases = aliases_of(schema)
    if parser == "json":
        of_json = JsonParser(made, defaults, aliases=aliases)
        return of_json.parse(pa.array(texts, pa.binary()), NOW)
    of_pairs = LogfmtParser(made, defaults, TextTimes(), aliases=aliases)
    return of_pairs.parse(pa.array(texts, pa.binary()), NOW)


def source(parser: str = "json", shape: str | None = None, **more: Any) -> SourceSettings:
    made = SourceSettings(
        topic="logs", paths=["/log/*"], parser=ParserSettings(type=parser), shape=shape, **more
    )
    made.check()
    return made


def shown(schema: dict[str, Any], *lines: str, **more: Any) -> Preview:
    data = "".join(f"{x}\n" for x in lines).encode()
    return preview(source(schema="x.avsc", **more), data, "/log/a", schema=json.dumps(schema))


# --- members without a field ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "extra", "counted"),
    [
        ({"level": "a", "session": "s1"}, {"session": "s1"}, ["session"]),
        ({"Level": "a"}, {"Level": "a"}, ["Level"]),
        ({EXTRA: {"a": "b"}}, {EXTRA: '{"a": "b"}'}, [EXTRA]),
        ({"order": {"id": "1", "note": [1]}}, {"order.note": "[1]"}, ["order.note"]),
        (
            {"order": {"lines": [{"sku": "x"}, {"n": 1}, {"n": 2}]}},
            {"order.lines[1].n": "1", "order.lines[2].n": "2"},
            ["order.lines[].n"],
        ),
        ({"order": {"by": {"x": {"n": 1}}}}, {"order.by{x}.n": "1"}, ["order.by{}.n"]),
        ({"order": {"lines": "none", "note": 1}}, {"order": '{"lines": "none", "note": 1}'}, None),
    ],
)
def test_a_member_without_a_field_is_kept_or_counted(
    line: dict[str, Any], extra: dict[str, str], counted: list[str] | None
) -> None:
    """A member for which the schema has no field goes to `_extra`, also a member of a record inside
    the line. If the schema has no `_extra`, the member is counted by name, or the line is
    rejected."""
    kept = parsed("json", WITH_EXTRA, json.dumps(line))
    assert dict(kept.batch.column(EXTRA)[0].as_py()) == extra
    assert kept.fieldless == {}
    without = parsed("json", LINE, '{"level": "a"}', json.dumps(line))
    assert without.fieldless == dict.fromkeys(counted or [], 1)
    assert len(without.rejects) == (counted is None)


def test_two_members_with_one_place_are_both_visible() -> None:
    """If a member's name is the place of another one, `_extra` takes one and counts the other.
    Without `_extra`, both are counted as one name, once for each line."""
    found = parsed("json", WITH_EXTRA, '{"order": {"note": 1}, "order.note": 2}')
    assert found.batch.column(EXTRA)[0].as_py() == [("order.note", "2")]
    assert found.fieldless == {"order.note": 1}
    without = parsed("json", LINE, '{"order": {"note": 1}, "order.note": 2}')
    assert without.fieldless == {"order.note": 1}


def test_an_alias_beside_the_name_is_not_lost() -> None:
    """If a line has a field's name and its alias, the name fills the field, and the alias is kept
    in `_extra` or counted."""
    aliased = field("level", "string", aliases=["lvl", "severity"])
    for parser, text in (("json", '{"lvl": "a", "level": "b"}'), ("logfmt", "lvl=a level=b")):
        found = parsed(parser, record("Line", aliased), text)
        assert (found.batch.column("level").to_pylist(), found.fieldless) == (["b"], {"lvl": 1})
        found = parsed(parser, record("Line", aliased, EXTRA_FIELD), text)
        assert (found.batch.column(EXTRA).to_pylist(), found.fieldless) == ([[("lvl", "a")]], {})


def test_keys_of_logfmt_without_a_field_are_counted() -> None:
    """A key for which the schema has no field is counted in each line that has it; so is a key that
    a line has again, because only its last value counts."""
    pairs = record("Line", field("level", "string"), field("ms", "int"))
    lines = ("level=a session=1", "level=a session=2 session=3 x", "level=a level=b", "no pair")
    found = parsed("logfmt", pairs, *lines)
    assert found.fieldless == {"session": 2, "x": 1, "level (again)": 1}
    assert found.batch.column("level").to_pylist() == ["a", "a", "b"]
    kept = parsed("logfmt", {**pairs, "fields": [*pairs["fields"], EXTRA_FIELD]}, *lines)
    assert kept.batch.column(EXTRA)[1].as_py() == [("session", "3"), ("x", "true")]
    assert kept.fieldless == {"session (again)": 1, "level (again)": 1}


@pytest.mark.parametrize("parser", ["json", "logfmt"])
def test_what_a_rule_removes_is_not_counted(parser: str) -> None:
    """A member that a rule of `shape` removes is left out on purpose, and counts nowhere."""
    lines = {"json": '{"level": "a", "password": "x", "b": 1}', "logfmt": "level=a password=x b=1"}
    schema = record("Line", field("level", "string"))
    made = shown(schema, lines[parser], parser=parser, shape="remove password")
    assert [x.row for x in made.rows] == [{"level": "a"}]
    assert made.notes == ("member b has no field, in 1 of 1 line",)
    inside = shown(WITH_EXTRA, '{"order": {"password": "x"}, "b": 1}', shape="remove order")
    assert inside.rows[0].row[EXTRA] == {"b": "1"}


def test_test_and_validate_say_how_many_lines() -> None:
    """`skidway agent test` says which members have no field, and in how many of the lines."""
    lines = [json.dumps({"level": "a"} | ({"session": n} if n < 312 else {})) for n in range(2_000)]
    assert shown(LINE, *lines).notes == ("member session has no field, in 312 of 2,000 lines",)


MEMBERS = st.sampled_from(["level", "user", "order", "id", "sku", "lvl", "a", "Level", EXTRA, "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "a.b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS | st.just("lines"), inner),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(MEMBERS, VALUES, max_size=5), max_size=4), st.booleans())
def test_no_member_of_a_json_line_is_nowhere(lines: list[dict[str, Any]], with_extra: bool) -> None:
    """Each member of a JSON line is in a column, in `_extra`, in a reject, or counted by name."""
    schema = WITH_EXTRA if with_extra else LINE
    for line in lines:
        found = parsed("json", schema, json.dumps(line))
        assert len(found.rejects) + len(found.rows) == 1
        if found.rejects:
            continue
        row = found.batch.to_pylist(maps_as_pydicts="strict")[0]
        extra = row.pop(EXTRA, {})
        expected, counted = strays(line, row, extra), dict(found.fieldless)
        assert {x for x in expected if x not in extra} == set(counted)
        if with_extra:
            assert counted == {}


def strays(line: dict[str, Any], row: Any, extra: dict[str, str], name: str = "") -> set[str]:
    """Returns the members inside a value of a line that the row's value does not have."""
    found = set()
    for key, value in line.items():
        place = f"{name}{key}"
        if name == "" and key in extra:
            continue
        if key not in row or (value is not None and row[key] is None):
            found.add(place)
        elif isinstance(value, dict):
            found |= inside(value, row[key], extra, place)
        elif isinstance(value, list):
            for index, (item, made) in enumerate(zip(value, row[key], strict=True)):
                at = f"{place}[{index}]" if extra else f"{place}[]"
                found |= set() if item is None else strays(item, made, {}, f"{at}.")
    return found


def inside(value: dict[str, Any], made: Any, extra: dict[str, str], place: str) -> set[str]:
    if place.endswith("by"):
        return set().union(
            *(
                strays(x, made[key], {}, f"{place}{{{key if extra else ''}}}.")
                for key, x in value.items()
                if x is not None
            )
        )
    return strays(value, made, {}, f"{place}.")


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["level", "lvl", "ms", "a", "b"]),
                                st.sampled_from(["1", "x", ""])), min_size=1, max_size=6),
             max_size=4),
    st.booleans(),
)  # fmt: skip
def test_no_pair_of_a_logfmt_line_is_nowhere(
    lines: list[list[tuple[str, str]]], with_extra: bool
) -> None:
    """Each pair of a logfmt line is in a column, in `_extra`, in a reject, or counted by its
    key."""
    fields = [field("level", "string", aliases=["lvl"]), field("ms", "int")]
    schema = record("Line", *fields, *([EXTRA_FIELD] if with_extra else []))
    for line in lines:
        found = parsed("logfmt", schema, " ".join(f"{key}={value}" for key, value in line))
        if found.rejects:
            continue
        row = found.batch.to_pylist(maps_as_pydicts="strict")[0]
        last, again = dict(line), {key for key, _ in line if [x for x, _ in line].count(key) > 1}
        level = last.get("level", last.get("lvl"))
        assert row["level"] == level
        rest = {key: x for key, x in last.items() if key not in ("level", "ms")}
        if "level" not in last:
            rest.pop("lvl", None)
        if "ms" in last and row["ms"] is None and last["ms"]:
            rest["ms"] = last["ms"]
        names = {f"{key} (again)" for key in again if with_extra or key not in "ab"}
        assert row.get(EXTRA, rest) == rest
        assert set(found.fieldless) == names | (set() if with_extra else set(rest))


# --- counts -----------------------------------------------------------------------------------


def test_hostile_names_are_few_short_and_printable() -> None:
    """A program that writes a new name in each line fills neither the memory nor a terminal: a
    topic has at most 100 names, each of them short and printable, and one count for all others."""
    known = Fieldless()
    known.saw("logs", {"session": 7, "\x1b[2J\ud800": 3, "x" * 1_000_000: 2})
    for number in range(1_000):
        known.saw("logs", {f"n{number}": 1})
    known.saw("logs", {"session": 1})
    counts = known.copy()["logs"]
    assert len(counts) == NAMES_MAX + 1
    assert counts["session"] == 8
    assert counts[OTHERS] == 1_000 - (NAMES_MAX - 3)
    assert all(x.isprintable() and len(x) <= NAME_CHARACTERS_MAX for x in counts)
    assert sentences(counts, 2_000)[-1] == "further members have no field, 993 times"


def note_of(found: FieldlessMembers) -> Note:
    return decode(encode(Note(KIND, "7", "web7", "dc1", 1, 2, 3, body_of(found))))


def test_the_note_has_what_the_agent_counted() -> None:
    """The audit reads from the note of an agent what the agent put into it, and adds up the notes
    of several agents."""
    found = FieldlessMembers(5, {"logs": {"session": 312, OTHERS: 2}})
    assert fieldless_of(note_of(found)) == found
    assert by_topic([note_of(found)] * 2) == {("dc1", "logs"): {"session": 624, OTHERS: 4}}


def test_a_note_is_never_too_large() -> None:
    """However many names the topics have, the note is small enough, and its counts are whole."""
    names = {f"{number:03}" + "\N{SNOWMAN}" * 61: 1 for number in range(NAMES_MAX)}
    note = note_of(FieldlessMembers(5, {f"t{number:0200}": names for number in range(90)}))
    assert len(encode(note)) <= NOTE_BYTES_MAX
    assert sum(sum(x.values()) for x in fieldless_of(note).topics.values()) == 90 * NAMES_MAX
    assert len(json.dumps(names)) < BYTES_MAX  # one topic's names always have room


def test_a_note_of_another_form_is_read_as_nothing() -> None:
    """A note that is damaged, or of a newer version, names nothing that a page could not print."""
    members = {"ok": 1, "\x1b": 2, "x" * 99: 3, "text": "4", "less": -5}
    for topics in (None, 7, [None], [{"topic": 7}], [{"topic": "t", "members": members}]):
        found = fieldless_of(Note(KIND, "7", "web7", "dc1", 1, 2, 3, {"topics": topics}))
        assert {**found.topics}.get("t", {"ok": 1}) == {"ok": 1}


def told(world: World) -> list[dict[str, Any]]:
    world.publish()
    return [dict(x.body)["topics"] for x in world.of(Note) if x.kind == KIND]


def test_the_agent_tells_the_audit_and_forgets_at_a_reload() -> None:
    """A running agent reports the members without a field to the audit. When it takes changed
    settings, it counts anew, because its schemas may have the fields now."""
    configured = settings(source(schema=json.dumps(LINE)))
    world = World(configured)
    world.start()
    world.files.append("/log/a", b'{"level": "a", "session": 1}\n{"level": "b"}\n')
    world.settle(5)
    assert world.agent.fieldless.copy() == {"logs": {"session": 1}}
    world.clock.advance(60)
    world.settle(3)
    assert told(world) == [[], [{"topic": "logs", "members": {"session": 1}}]]
    world.reload(configured)
    world.clock.advance(60)
    world.settle(3)
    assert told(world)[-1] == []


# --- dates and times in JSON ------------------------------------------------------------------

NEST = record(
    "Nest", field("d", logical("int", "date")), field("t", logical("long", "timestamp-millis"))
)
TIMES = record(
    "Times",
    field("date", logical("int", "date")),
    field("tm", logical("int", "time-millis")),
    field("tu", logical("long", "time-micros")),
    field("tsm", logical("long", "timestamp-millis")),
    field("tsu", logical("long", "timestamp-micros")),
    field("tsn", logical("long", "timestamp-nanos")),
    field("ltm", logical("long", "local-timestamp-millis")),
    field("arr", {"type": "array", "items": logical("long", "timestamp-millis")}),
    field("mp", {"type": "map", "values": logical("long", "timestamp-millis")}),
    field("nest", NEST),
    field("n", "int"),
    field("s", "string"),
)
AT = datetime(2026, 11, 21, 8, 15, 1, tzinfo=UTC)
LOCAL = AT.replace(tzinfo=None, microsecond=500_000)
MS, DAY = int(AT.timestamp()) * 1_000, date(2026, 11, 21)


@pytest.mark.parametrize(
    ("name", "text", "number", "value"),
    [
        ("date", "2026-11-21", 20_778, DAY),
        ("date", "1969-12-31", -1, date(1969, 12, 31)),
        ("tm", "08:15:01.123", 29_701_123, time(8, 15, 1, 123_000)),
        ("tm", "08:15:01", 29_701_000, time(8, 15, 1)),
        ("tu", "08:15:01.123456789", 29_701_123_456, time(8, 15, 1, 123_456)),
        ("tsm", "2026-11-21T08:15:01Z", MS, AT),
        ("tsm", "2026-11-21T11:15:01+03:00", MS, AT),
        ("tsu", "2026-11-21T08:15:01.000456Z", MS * 1_000 + 456, AT.replace(microsecond=456)),
        ("tsu", "1969-12-31T23:59:59.999999Z", -1, datetime.fromtimestamp(-1e-6, UTC)),
        ("ltm", "2026-11-21T08:15:01.5", MS + 500, LOCAL),
        ("arr", ["2026-11-21T08:15:01Z"], [MS], [AT]),
        ("mp", {"a": "2026-11-21T08:15:01Z"}, {"a": MS}, [("a", AT)]),
        ("nest", {"d": "2026-11-21"}, {"d": 20_778}, {"d": DAY, "t": None}),
        ("nest", {"t": "2026-11-21T08:15:01Z"}, {"t": MS}, {"d": None, "t": AT}),
    ],
)  # fmt: skip
def test_a_date_or_time_is_read_from_text_and_number(
    name: str, text: Any, number: Any, value: Any
) -> None:
    """A date or time in JSON is read from a text and from the number that Avro stores, also inside
    a record, an array or a map, with all digits that its type has."""
    for given_ in (text, number):
        found = parsed("json", TIMES, json.dumps({name: given_}))
        assert found.rejects == []
        assert found.batch.column(name).to_pylist() == [value]


def test_a_time_of_nanoseconds_has_all_digits() -> None:
    """A text with nine digits of a second fills a timestamp of nanoseconds with all of them."""
    found = parsed("json", TIMES, '{"tsn": "2026-11-21T08:15:01.123456789Z"}')
    assert found.batch.column("tsn").cast(pa.int64()).to_pylist() == [MS * 1_000_000 + 123_456_789]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ({"date": "2026-02-30"}, "field date: not a value of date"),
        ({"date": "20261121"}, "field date: not a value of date"),
        ({"date": "2026-11-21T08:15:01Z"}, "field date: not a value of date"),
        ({"tm": "24:00:00"}, "field tm: not a value of time-millis"),
        ({"tu": "8:15"}, "field tu: not a value of time-micros"),
        ({"tsm": "today"}, "field tsm: not a value of timestamp-millis"),
        ({"tsm": "\ud800"}, "field tsm: not a value of timestamp-millis"),
        ({"ltm": "2026-11-21T08:15:01+03:00"}, "field ltm: not a value of local-timestamp-millis"),
        ({"arr": [MS, "x"]}, "field arr[]: not a value of timestamp-millis"),
        ({"nest": {"d": "2026-11-21", "t": "x"}}, "field nest.t: not a value of timestamp-millis"),
        ({"n": 1 << 40}, "field n: not a value of int"),
        ({"s": "cut \ud83d"}, "field s: the text has half of a surrogate pair"),
    ],
)
def test_what_is_no_time_is_rejected_with_the_name_of_avros_type(
    line: dict[str, Any], detail: str
) -> None:
    """A text that is no date or time of its field's type is rejected. The message names the type as
    the schema does. A local timestamp takes no zone, because a zone would shift it."""
    found = parsed("json", TIMES, json.dumps(line))
    assert [x.detail for x in found.rejects] == [detail]


def test_a_value_that_does_not_fit_is_kept_as_the_line_has_it() -> None:
    """If a record goes to `_extra`, because one of its members does not fit, its times are still
    the texts of the line."""
    schema = {**TIMES, "fields": [*TIMES["fields"], EXTRA_FIELD]}
    found = parsed("json", schema, '{"nest": {"d": "2026-11-21", "t": "x"}}')
    assert found.batch.column(EXTRA)[0].as_py() == [("nest", '{"d": "2026-11-21", "t": "x"}')]


def test_times_beyond_the_range_of_python_are_shown_as_numbers() -> None:
    """`skidway agent test` shows rows whose dates or times no calendar of Python has."""
    made = shown(TIMES, json.dumps({"date": 3_000_000, "nest": {"t": 1_764_230_400_000_000}}))
    assert made.rows[0].row["date"] == 3_000_000
    assert made.rows[0].row["nest"] == {"d": None, "t": 1_764_230_400_000_000}


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ({"tsm": 10**6 * MS}, "field tsm: a time that"),
        ({"ltm": -(2**63)}, "field ltm: a time that"),
        ({"arr": [MS, 10**6 * MS]}, "field arr: a time that"),
        ({"mp": {"a": 10**6 * MS}}, "field mp: value: a time that"),
        ({"nest": {"t": 10**6 * MS}}, "field nest: t: a time that"),
    ],
)
def test_nanoseconds_in_a_field_for_milliseconds_are_rejected(
    line: dict[str, Any], detail: str
) -> None:
    """A line with a time that programs cannot read from the loader's files is rejected by name. The
    lines beside it are rows."""
    lines = [json.dumps({"tsm": MS}), json.dumps(line), json.dumps({"tsm": MS * 1_000})]
    made = shown(TIMES, *lines)
    assert [row.row["tsm"] for row in made.rows] == [AT, MS * 1_000]
    assert [x.detail for x in made.rejects] == [f"{detail} microseconds of 64 bits cannot hold"]


def test_a_number_that_its_type_cannot_hold_is_rejected() -> None:
    """A number that is too large for a float or a double is rejected, from JSON and from a text,
    and does not become infinity without a word. A text may say that a number is infinite."""
    numbers = record("Numbers", field("f", "float"), field("d", "double"))
    nested = record("Nested", field("a", {"type": "array", "items": "float"}))
    assert len(parsed("json", numbers, '{"f": 1e300}', '{"f": 3e38, "d": 1e300}').rejects) == 1
    assert len(parsed("json", nested, '{"a": [1, -1e39]}').rejects) == 1
    found = parsed(
        "logfmt", numbers, "f=1e300", "d=1e400", "f=-1e39 d=1", "f=+Inf d=1e300", "f=1.5"
    )
    assert [x.row for x in found.rejects] == [0, 2, 1]
    assert found.batch.column("f").to_pylist() == [float("inf"), 1.5]
