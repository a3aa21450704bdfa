"""Lines of key=value pairs become rows."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing import key_values
from skidway.agent.parsing.key_values import pairs_of, split, unescaped
from skidway.agent.settings import SourceSettings
from skidway.agent.settings import TimestampSettings as Times
from skidway.agent.validation.preview import Preview, preview
from skidway.errors import ConfigurationRefused


def pairs(lines: list[str | None]) -> tuple[dict[int, list[tuple[str, str]]], dict[int, str]]:
    """Returns the pairs of each line that can be split, and the error of each other line."""
    found = pairs_of(pa.array(lines, pa.string()))
    by_line: dict[int, list[tuple[str, str]]] = {}
    columns = (found.line.tolist(), found.keys.to_pylist(), found.values.to_pylist())
    for line, key, value in zip(*columns, strict=True):
        by_line.setdefault(line, []).append((key, value))
    return by_line, found.faults


PIECES = ('a="b c"', "a=", '"', " ", "b", 'ü="', '\\"', "\\\\", "\t", 'a="b"', "c=d", "\\n", '""')
LINES = st.text(st.sampled_from('ab=" \\nu\tü'), max_size=14) | st.lists(
    st.sampled_from(PIECES), max_size=5
).map("".join)


@example(['a="b"c', '"a="', '\\"a="b c"', 'a="b" c="d"'])
@given(st.lists(st.none() | LINES, max_size=12))
def test_lines_are_cut_together_as_one_by_one(lines: list[str | None]) -> None:
    """If many lines are split together, each line has the same pairs as if it was split alone."""
    found, faults = pairs(lines)
    for index, line in enumerate(lines):
        wanted = [] if line is None else split(line)
        if isinstance(wanted, str):
            assert faults[index] == wanted
            assert index not in found
        else:
            assert found.get(index, []) == wanted
            assert index not in faults


KEYS = st.text(st.characters(codec="utf-8", exclude_characters='="'), min_size=1).filter(
    lambda key: all(char > " " for char in key)
)


@given(
    st.lists(
        st.dictionaries(KEYS, st.text(st.characters(codec="utf-8")), min_size=1, max_size=4),
        max_size=6,
    ),
    st.booleans(),
)
def test_what_others_write_is_read_back(lines: list[dict[str, str]], is_ascii: bool) -> None:
    """Values that were quoted and escaped as in JSON are read back, whatever characters they
    contain."""
    texts = [
        " ".join(f"{key}={json.dumps(value, ensure_ascii=is_ascii)}" for key, value in x.items())
        for x in lines
    ]
    found, faults = pairs([*texts])
    assert [dict(found[index]) for index in range(len(lines))] == lines
    assert faults == {}


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (r"a\nb\t\"c\"\\", 'a\nb\t"c"\\'),
        (r"C:\dir\x", r"C:\dir\x"),
        (r"\u00fc \ud83d\ude00 \ud83d", "ü 😀 ?"),
        (r"\u12", r"\u12"),
    ],
)
def test_escapes(text: str, meaning: str) -> None:
    """In quoted values, escapes have the same meaning as in JSON. Other backslashes are ordinary
    characters."""
    assert unescaped(text) == meaning
    assert split(f'a="{text}"') == [("a", meaning)]


def source(**parser: Any) -> SourceSettings:
    more = {key: parser.pop(key) for key in ("timestamp", "schema") if key in parser}
    settings = ParserSettings(type="logfmt", **parser)
    settings.check()
    made = SourceSettings(topic="logs", paths=["/a"], parser=settings, **more)
    made.check()
    return made


def made_of(settings: SourceSettings, *lines: str, schema: str | None = None) -> Preview:
    return preview(settings, "".join(f"{x}\n" for x in lines).encode(), "/a", schema=schema)


def test_keys_become_fields_and_the_rest_is_kept() -> None:
    """The keys that the settings name become fields of the configured types. The map `_extra` gets
    all other keys, and the values that do not fit their types. If a key is missing, its field is
    null."""
    made = made_of(
        source(columns=["level", "dur"], types={"dur": "int"}),
        'level=info dur=3 msg="a b" slow',
        "dur=x b=2 a=1 a=3",
        "level= dur=",
    )
    assert [each.row for each in made.rows] == [
        {"level": "info", "dur": 3, "_extra": {"msg": "a b", "slow": "true"}},
        {"level": None, "dur": None, "_extra": {"a": "3", "b": "2", "dur": "x"}},
        {"level": "", "dur": None, "_extra": {}},
    ]


def test_lines_without_pairs_are_rejected() -> None:
    """A line is rejected if it has no key=value, if a value has no key, or if a quoted value does
    not end correctly. The reject's detail (a short text) says which of these mistakes the line has.
    Other lines are not rejected."""
    made = made_of(source(), "starting", "=1 a=2", 'a="b', 'a="b"c', "a=1", "word ")
    assert [each.row for each in made.rows] == [{"_extra": {"a": "1"}}]
    assert [each.detail for each in made.rejects] == [
        key_values.NO_PAIR, key_values.NO_KEY, key_values.OPEN_VALUE, key_values.AFTER_QUOTE,
        key_values.NO_PAIR,
    ]  # fmt: skip


def test_a_line_may_lack_its_time() -> None:
    """If a line does not have the key of the time, its record gets the time at which the agent
    reads the line. If a line has a time that cannot be parsed, the line is rejected. With
    `on_error: read_time`, the line is not rejected, and its record also gets the time at which the
    agent reads the line."""
    lines = ("ts=2026-11-23T08:15:01Z a=1", "a=2", "ts=soon a=3")
    made = made_of(source(timestamp=Times(fields=["ts"], format="rfc3339")), *lines)
    assert [each.time and each.time.isoformat() for each in made.rows] == [
        "2026-11-23T08:15:01+00:00", None
    ]  # fmt: skip
    assert [each.reason for each in made.rejects] == ["timestamp"]
    lenient = Times(fields=["ts"], format="rfc3339", on_error="read_time")
    made = made_of(source(timestamp=lenient), *lines)
    assert [each.row["timestamp_replaced"] for each in made.rows] == [False, True, True]


SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "logs",
        "fields": [
            {"name": "status", "type": "int", "aliases": ["http.status", "code"]},
            {"name": "app", "type": "string", "default": "shop"},
            {"name": "note", "type": ["null", "int"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    }
)


def test_a_schema_says_which_keys_count() -> None:
    """If a source has a schema, a key fills the field that has this key as its name or as an alias.
    If a line has both the field's name and an alias as keys, the value of the name is used. A field
    without a key gets its default. A line is rejected if a field has neither key nor default, or if
    a value does not fit its field."""
    made = made_of(
        source(schema="s"),
        "http.status=200 app=web other=1",
        "status=404 code=1",
        "code=1 http.status=x code=2",
        "app=web",
        "status=1 note=x",
        schema=SCHEMA,
    )
    assert [(each.row["status"], each.row["app"]) for each in made.rows] == [
        (200, "web"), (404, "shop"), (2, "shop")
    ]  # fmt: skip
    assert [each.detail for each in made.rejects] == [
        "field status: the line has no such key", "field note: not a value of int"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parser", "sentence"),
    [
        ({"types": {"a": "int"}}, "'a' is no group of parser.pattern, and none of parser.columns"),
        ({"columns": ["a.b"]}, "'a.b' is no name of a field"),
        ({"columns": ["a"], "schema": "s"}, "the schema already says which keys count"),
        ({"columns": ["_extra"]}, "two fields would have the name '_extra'"),
        ({"pattern": "x"}, "parser.pattern does not belong"),
    ],
)
def test_settings_that_cannot_work_are_refused(parser: dict[str, Any], sentence: str) -> None:
    """Settings that cannot work are refused in one sentence that names the setting."""
    with pytest.raises(ConfigurationRefused, match=sentence):
        made_of(source(**parser), "a=1")
