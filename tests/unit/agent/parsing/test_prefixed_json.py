"""A line that consists of a prefix and a JSON object becomes a row with the fields of both."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.formats.catalog import of_source
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.recipe import from_json
from skidway.agent.settings import SourceSettings
from skidway.agent.settings import TimestampSettings as Times
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused
from support.agent_press import recipe

PATTERN = r"(?P<time>\S+) (?P<level>[A-Z]+) (?:(?P<json>\{.*\})|(?P<text>.*))"
TIMES = Times(fields=["time"], format="rfc3339")


def source(**more: Any) -> SourceSettings:
    parser = {"type": "regex", "pattern": PATTERN, "json_field": "json", **more.pop("parser", {})}
    settings = ParserSettings(**parser)
    settings.check()
    made = SourceSettings(topic="logs", paths=["/a"], parser=settings, **more)
    made.check()
    return of_source(made)


def made_of(settings: SourceSettings, *lines: str, schema: str | None = None) -> Preview:
    data = "".join(f"{line}\n" for line in lines).encode()
    return preview(settings, data, "/a", schema=schema, now_ms=1_800_000_000_000)


def test_groups_and_members_become_fields() -> None:
    """The pattern's groups become fields, and so do the members that `parser.types` names. The map
    `_extra` gets the other members. If a group and a member have the same name, the field gets the
    group's text."""
    types = {"user": "string", "ms": "int"}
    made = made_of(
        source(parser={"types": types}, timestamp=TIMES),
        '2026-11-23T08:15:01Z INFO {"user": "ann", "ms": 7, "level": "x", "deep": {"a": [1]}}',
        '2026-11-23T08:15:02Z WARN {"ms": "slow"}',
        "2026-11-23T08:15:03Z INFO plain text",
    )
    assert made.rejects == []
    assert [each.time and each.time.second for each in made.rows] == [1, 2, 3]
    names = ("level", "text", "user", "ms", "_extra")
    assert [tuple(each.row[name] for name in names) for each in made.rows] == [
        ("INFO", "", "ann", 7, {"deep": '{"a": [1]}', "level": "x"}),
        ("WARN", "", None, None, {"ms": "slow"}),
        ("INFO", "plain text", None, None, {}),
    ]


def test_lines_that_do_not_fit_are_rejected_at_their_places() -> None:
    """If a line's prefix does not match the pattern, if its time cannot be parsed, or if its JSON
    is not valid, only this line is rejected. The reject contains the bytes of the rejected line."""
    lines = [
        "odd", '2026-11-23T08:15:01Z INFO {"a": }', "soon INFO {}", '2026-11-23T08:15:01Z X {"a":1}'
    ]  # fmt: skip
    made = made_of(source(timestamp=TIMES), *lines)
    assert [(x.reason, x.line.decode()) for x in made.rejects] == [
        ("no-match", lines[0]), ("not-json", lines[1]), ("timestamp", lines[2])
    ]  # fmt: skip
    assert [each.row["_extra"] for each in made.rows] == [{"a": "1"}]


VALUES = st.text(st.characters(codec="utf-8"), max_size=6)


@given(
    st.lists(
        st.dictionaries(VALUES, VALUES | st.integers() | st.booleans() | st.none(), max_size=4),
        min_size=1,
        max_size=6,
    )
)
def test_every_member_is_kept(objects: list[dict[str, Any]]) -> None:
    """Whatever members an object has, they are all in the row."""
    lines = [f"1 INFO {json.dumps(each)}" for each in objects]
    made = made_of(source(colours="keep"), *lines)
    assert made.rejects == []
    assert [dict(each.row["_extra"]) for each in made.rows] == [
        {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in each.items()
        }
        for each in objects
    ]


SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "logs",
        "fields": [
            {"name": "level", "type": "string"},
            {"name": "message", "type": "string"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "user_agent", "type": "string", "aliases": ["user-agent"], "default": ""},
            {"name": "sizes", "type": {"type": "array", "items": "int"}, "default": []},
        ],
    }
)


def test_a_schema_takes_groups_and_members() -> None:
    """With a schema, members are converted to the types of their fields. A field also takes a
    member whose name is an alias of the field. A member may have the same name as the group that
    contains the object. The event time can come from a member."""
    settings = source(
        parser={"type": "log4j", "pattern": "%p - %m%n", "json_field": "message"},
        timestamp=Times(fields=["at"], format="rfc3339"),
        schema="s",
    )
    made = made_of(
        settings,
        'INFO - {"message": "hi", "at": "2026-11-23T08:15:01Z", "user-agent": "x", "sizes": [1]}',
        'INFO - {"at": "2026-11-23T08:15:01Z"}',
        schema=SCHEMA,
    )
    (row,) = made.rows
    assert {name: row.row[name] for name in ("level", "message", "user_agent", "sizes")} == {
        "level": "INFO", "message": "hi", "user_agent": "x", "sizes": [1]
    }  # fmt: skip
    assert row.time is not None
    assert row.time.isoformat() == "2026-11-23T08:15:01+00:00"
    assert len(made.rejects) == 1


@pytest.mark.parametrize("runtime", ["cri", "docker"])
def test_json_in_a_containers_log(runtime: str) -> None:
    """JSON lines that a container wrote become rows, whether or not there is a prefix before the
    object."""
    text = '2026-11-23T08:15:01Z INFO {"user": "ann"}'

    def wrapped(line: str) -> str:
        if runtime == "cri":
            return f"2026-11-23T08:15:02Z stdout F {line}"
        return json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-11-23T08:15:02Z"})

    extra = {"container": runtime, "path_pattern": "(?P<pod>a)"}
    made = made_of(source(**extra), wrapped(text))
    assert [(x.row["_extra"], x.row["container_stream"]) for x in made.rows] == [
        ({"user": "ann"}, "stdout")
    ]
    plain = SourceSettings(
        topic="logs", paths=["/a"], parser=ParserSettings(type="json"), schema="s", **extra
    )
    fields = [{"name": name, "type": "string"} for name in ("user", "pod")]
    schema = json.dumps({"type": "record", "name": "logs", "fields": fields})
    made = made_of(plain, wrapped('{"user": "ann"}'), schema=schema)
    assert [each.row for each in made.rows] == [{"user": "ann", "pod": "a"}]


def test_unreadable_times_of_the_prefix_are_marked() -> None:
    """With `on_error: read_time`, a row is marked in the field `timestamp_replaced` if the time in
    its prefix cannot be read. If this time can be read, the row is not marked, although the JSON
    object contains no time."""
    lenient = Times(fields=["time"], format="rfc3339", on_error="read_time")
    made = made_of(source(timestamp=lenient), "soon INFO {}", '2026-11-23T08:15:01Z X {"a":1}')
    assert [each.row["timestamp_replaced"] for each in made.rows] == [True, False]


def test_a_recipe_says_which_group_is_json() -> None:
    """A recipe (the rules by which lines become records) is stored with the settings of its parser,
    and the version of the JSON decoder if the parser uses one."""
    made = recipe(parser=ParserSettings(type="regex", pattern=PATTERN, json_field="json"))
    assert from_json(made.to_json()) == made
    assert "python-" in made.program
    table = recipe(parser=ParserSettings(type="csv", columns=["a", "b"], delimiter="tab"))
    assert from_json(table.to_json()) == table
    assert (table.columns, table.delimiter, "python-" in table.program) == (("a", "b"), "\t", False)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"parser": {"json_field": "x"}}, "parser.json_field: 'x' is no group of parser.pattern"),
        ({"parser": {"type": "csv", "pattern": None, "columns": ["a"]}}, "parser.json_field does"),
        (
            {"timestamp": Times(fields=["time", "x"], format="rfc3339")},
            "all of them from groups of parser.pattern",
        ),
        ({"timestamp": Times(fields=["x"], format="rfc3339")}, "'x', which is no field"),
        ({"parser": {"types": {"x": "date"}}}, "'date' is none of"),
    ],
)
def test_settings_that_cannot_work_are_refused(more: dict[str, Any], sentence: str) -> None:
    """Settings that cannot work are refused in one sentence that names the setting."""
    with pytest.raises(ConfigurationRefused, match=sentence):
        made_of(source(**more), "x")
