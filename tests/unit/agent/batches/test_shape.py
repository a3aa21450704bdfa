"""The rules of the setting `shape` change records after they are parsed and before they are encoded
in Avro. The tests check which fields the schema must have, and what becomes of fields that the
schema lacks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.batches.press import Press, Pressed
from skidway.agent.batches.program_versions import at_present, key_of
from skidway.agent.batches.source_recipes import derived_schema, recipe_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.recipe import Recipe, Schema, TopicSnapshot, from_json
from skidway.agent.settings import SourceSettings, TimestampSettings
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.shaped_schemas import private_rules
from skidway.agent.validation.preview import preview
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec
from skidway.schemas.single_object import schema_text
from support.agent_press import READ_MS, press, reading, recipe, records, regex, rejected
from support.agent_world import pa_binary
from support.promises import promise

PATTERN = r"(?P<level>\w+) (?P<status>\d+) (?P<message>.*)"
LINES = b"DEBUG 200 a\nINFO 500 b\nno match\nINFO 200 c\n"


def rows(made: Recipe, pressed: Pressed) -> list[dict[str, Any]]:
    values = pa_binary([each.value[5:] for each in records(pressed)])
    return list(Codec(made.schema.text).decode(values).batch.to_pylist())


def given(fields: list[dict[str, Any]], /, **source: Any) -> Recipe:
    """Returns the recipe (the rules by which lines become records) of a source whose schema has
    these fields."""
    text = json.dumps({"type": "record", "name": "logs", "fields": fields})
    configured = SourceSettings(topic="logs", paths=["/log/*"], schema="logs", **source)
    topics = (TopicSnapshot("logs", 1, 1_048_588), TopicSnapshot("logs.rejected", 1, 1_048_588))
    rejected_schema = Schema(2, schema_text("Rejected"))
    return recipe_of(configured, *topics, Schema(1, text), rejected_schema, 900_000)


def member(name: str, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def maybe(name: str, **more: Any) -> dict[str, Any]:
    return member(name, ["null", "string"], default=None, **more)


EXTRA = member("_extra", {"type": "map", "values": "string"}, default={})


@promise("2 filtered")
def test_a_record_is_a_row_a_reject_or_left_out() -> None:
    """Each line becomes either a record in the topic, a rejected record, or a filtered line (one
    that a rule leaves out). The list of filtered lines contains the origin and the event time that
    the record of each line would have had."""
    made = recipe(shape='drop level = "DEBUG" as d\nkeep status >= 300 as k', **regex(
        PATTERN, ))  # fmt: skip
    with pytest.raises(ConfigurationRefused, match="status is a text"):
        Press(made)
    made = recipe(
        shape='drop level = "DEBUG" as d\nkeep status >= 300 as k',
        parser=ParserSettings(type="regex", pattern=PATTERN, types={"status": "int"}),
    )
    found = press(made, reading(LINES), reading(LINES, file=6))
    assert [row["message"] for row in rows(made, found)] == ["b", "b"]
    assert [row["first"] for row in rejected(found)] == [123, 123]
    left_out = found.filtered
    assert left_out is not None
    assert left_out.by_rule == {"d": (2, 24), "k": (2, 22)}
    assert left_out.first.tolist() == [100, 132, 100, 132]
    assert left_out.file.tolist() == [5, 5, 6, 6]
    assert set(left_out.times.tolist()) == {READ_MS}
    for outcome in found.outcomes:
        total = outcome.delivered_bytes + outcome.rejected_bytes + outcome.filtered_bytes
        assert total == len(LINES)


def test_a_derived_schema_follows_the_rules() -> None:
    """If the agent derives a schema, the fields that rules rename have their new names in it, and
    the fields that rules remove are not in it. Fields that rules keep or rename have the types that
    the settings name, and conditions of rules see the values in these types."""
    parser = ParserSettings(type="regex", pattern=PATTERN, types={"status": "int"})
    for shape, name in (("remove level", "status"), ("rename status to code", "code")):
        schema = Codec(recipe(shape=shape, parser=parser).schema.text).arrow_schema
        kinds = [str(schema.field(each).type) for each in (name, "message")]
        assert kinds == ["int32", "string"]
    made = recipe(
        shape="drop status = 200 as ok\nremove status\nrename message to text",
        parser=parser,
        fields={"env": "prod"},
        key="text",
    )
    assert Codec(made.schema.text).arrow_schema.names == ["level", "text", "env"]
    found = press(made, reading(LINES))
    assert rows(made, found) == [{"level": "INFO", "text": "b", "env": "prod"}]
    assert [each.key for each in records(found)] == [b"b"]
    assert from_json(made.to_json()) == made


def test_a_given_schema_is_that_of_the_shaped_records() -> None:
    """If the settings name a schema, the schema must contain the fields that rules rename, under
    their new names. It need not contain the fields that rules remove. The conditions of rules can
    nevertheless use the removed fields; the values of removed fields are then texts."""
    made = given(
        [member("text"), member("level", default="?")],
        shape='drop status starts with "2" as ok\nrename message to text\nremove status, level',
        **regex(PATTERN),
    )
    found = press(made, reading(LINES))
    assert rows(made, found) == [{"text": "b", "level": "?"}]
    for fields, words in (
        ([member("text")], "the schema has no field body"),
        ([member("body"), member("message")], "the schema has a field message"),
        ([member("body"), member("level")], "level, which has no default"),
    ):
        with pytest.raises(ConfigurationRefused, match=words):
            Press(given(fields, shape="rename message to body\nremove level", **regex(PATTERN)))


def test_a_removed_member_may_have_any_type(tmp_path: Path) -> None:
    """If the rules of `shape` only remove a JSON member, the member may have any type. A removed
    member never gets into `_extra` (the map of members for which the schema has no field), and a
    masked or hashed member never as it is in the line."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    made = given(
        [maybe("user"), maybe("name"), EXTRA],
        parser=ParserSettings(type="json"),
        shape="mask user for emails\nhash name\nremove password, pin",
        hash_key_location=key,
    )
    line = b'{"user": {"mail": "a@b.org"}, "name": ["x"], "password": {"a": 1}, "pin": 1, "b": 2}\n'
    found = press(made, reading(line))
    extra = [("b", "2"), ("name", "[withheld]"), ("user", '{"mail": "[email]"}')]
    assert rows(made, found) == [{"user": None, "name": None, "_extra": extra}]


def test_rules_may_ask_for_fields_that_have_their_defaults() -> None:
    """If the parser does not fill a field, the conditions of rules see the field's default in the
    schema."""
    made = given(
        [member("line"), member("env", default="prod"), member("n", ["null", "int"], default=None)],
        shape='keep env = "prod" as prod\ndrop n > 5 as large',
    )
    found = press(made, reading(b"a\nb\n"))
    assert [row["line"] for row in rows(made, found)] == ["a", "b"]


def test_what_is_not_utf_8_is_rejected_and_not_left_out() -> None:
    """A line that is not UTF-8 is rejected, even if it contains a text by which a rule leaves lines
    out."""
    made = recipe(shape='keep line matches "." as some\ndrop line contains "a" as a')
    found = press(made, reading(b"\xffa\na\nb\n\n"))
    assert [row["line"] for row in rows(made, found)] == ["b"]
    assert [(row["reason"], row["first"]) for row in rejected(found)] == [("encoding", 100)]
    assert found.filtered is not None
    assert found.filtered.by_rule == {"a": (1, 2), "some": (1, 1)}


def test_a_hashed_key_is_the_key(tmp_path: Path) -> None:
    """If a rule hashes the field that is the record's key, the key is the hash. If the file with
    the secret key changes later, a running agent continues to use the secret key that it has
    read."""
    secret = tmp_path / "key"
    secret.write_text("0123456789abcdef")
    made = recipe(shape="hash line", hash_key_location=secret, key="line")
    found = press(made, reading(b"ann\nann\nbob\n"))
    keys = [each.key for each in records(found)]
    assert keys[0] == keys[1] != keys[2]
    assert [row["line"].encode() for row in rows(made, found)] == keys
    secret.write_text("fedcba9876543210")
    assert [each.key for each in records(press(made, reading(b"ann\nann\nbob\n")))] == keys
    assert at_present(made) == made


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (None, "cannot read"), (15, "has 15 bytes"), (16, ""), (4096, ""), (5000, "has 5000 bytes"),
    ],
)  # fmt: skip
def test_a_hash_key_that_cannot_be_used_is_refused(
    size: int | None, words: str, tmp_path: Path
) -> None:
    """A rule `hash` needs a key of 16 to 4096 bytes, not counting white space at its ends. The
    agent refuses a shorter or longer key, and a key file that it cannot read."""
    key = tmp_path / "key"
    if size is not None:
        key.write_bytes(b"\n\n" + b"k" * size + b"\n\n")
    made = recipe(shape="hash line", hash_key_location=key)
    if not words:
        read = key_of(made)
        assert read is not None
        assert len(read.secret) == size
        return
    with pytest.raises(ConfigurationRefused, match=words):
        Press(made)


def test_settings_refuse_a_key_without_a_rule() -> None:
    """The agent refuses a source with a rule `hash` but without the setting `hash.key.location`,
    and a source with this setting but without a rule `hash`. The error names the setting."""
    for source in ({"shape": "hash line"}, {"hash_key_location": Path("/k")}):
        with pytest.raises(ConfigurationRefused, match=r"hash\.key\.location"):
            SourceSettings(topic="logs", paths=["/log/*"], **source).check()
    with pytest.raises(ConfigurationRefused, match=r"shape, line 1, column 16: "):
        SourceSettings(topic="logs", paths=["/log/*"], shape='drop a matches "("').check()
    with pytest.raises(ConfigurationRefused, match="leave no field"):
        derived_schema(SourceSettings(topic="logs", paths=["/log/*"], shape="remove line"))


@promise("2 another program")
def test_rules_that_a_program_refuses_are_of_another_program() -> None:
    """If a stored recipe has rules that the present version of the program does not know, the agent
    does not fail. The recipe (the stored settings by which lines become records) counts as a recipe
    of another program. So the agent does not make the records of the recipe's intents again, but
    reads them back from the brokers."""
    made = recipe(shape="drop line is null")
    unknown = replace(made, shape="forget line")
    assert "shape-4" in made.program
    assert at_present(made) == made
    assert at_present(unknown) != unknown
    with pytest.raises(ConfigurationRefused, match="a rule begins with"):
        Press(unknown)


def test_rules_that_are_only_comments_are_no_rules() -> None:
    """If the setting `shape` has only comments, the recipe (the stored settings by which lines
    become records) is the same as without `shape`."""
    assert recipe(shape="# nothing\n\n") == recipe()


@pytest.mark.parametrize("kind", ["json", "logfmt", "prefixed"])
def test_further_keys_may_get_another_name(kind: str) -> None:
    """No text of a line is lost silently: the keys for which the schema has no field are kept in
    the map `_extra`, even if a rule renames this map."""
    parsers = {
        "json": (ParserSettings(type="json"), b'{"a": "1", "b": "2"}\n'),
        "logfmt": (ParserSettings(type="logfmt"), b"a=1 b=2\n"),
        "prefixed": (
            ParserSettings(type="regex", pattern=r"(?P<a>\S+) (?P<j>\{.*\})", json_field="j"),
            b'1 {"b": "2"}\n',
        ),
    }
    parser, line = parsers[kind]
    fields = [maybe("a"), {**EXTRA, "name": "others"}]
    made = given(fields, parser=parser, shape="rename _extra to others")
    assert rows(made, press(made, reading(line))) == [{"a": "1", "others": [("b", "2")]}]


@pytest.mark.parametrize("kind", ["json", "logfmt"])
def test_private_keys_do_not_reach_extra_by_another_name(kind: str, tmp_path: Path) -> None:
    """If rules mask, hash or remove a field, its value is never sent as it is in `_extra`, the
    map of values for which the schema has no field. This is so even if the key in the line is an
    alias of the field, or the name that the field has before or after a rule renames it."""

    def line(**pairs: str) -> bytes:
        if kind == "json":
            return json.dumps(pairs).encode() + b"\n"
        return " ".join(f"{name}={value}" for name, value in pairs.items()).encode() + b"\n"

    parser = ParserSettings(type=kind)
    count = member("ssn", ["null", "long"], default=None, aliases=["SSN"])
    made = given([maybe("level"), count, EXTRA], parser=parser, shape="remove ssn")
    found = rows(made, press(made, reading(line(level="a", SSN="078-05-1120"))))
    assert found == [{"level": "a", "ssn": None, "_extra": []}]
    made = given(
        [maybe("message"), maybe("at"), EXTRA],
        parser=parser,
        shape="rename msg to message\nmask message for cards\nremove x\nrename when to at",
    )
    found = rows(made, press(made, reading(line(msg="a", message="4111111111111111", at="b"))))
    extra = [("at", "b"), ("message", "[card]")]
    assert found == [{"message": "a", "at": None, "_extra": extra}]
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    made = given(
        [maybe("user"), EXTRA],
        parser=parser,
        shape="rename name to user\nhash user",
        hash_key_location=key,
    )
    found = rows(made, press(made, reading(line(user="ann", other="b"))))
    extra = [("other", "b"), ("user", "[withheld]")]
    assert found == [{"user": None, "_extra": extra}]


def test_a_private_member_that_its_field_does_not_take_is_masked_in_extra() -> None:
    """No value is lost silently: if a rule masks a field that cannot take the member of its name,
    because of the value's type or because a group of the pattern fills the field, `_extra` takes
    the value, masked. If escapes hide a secret in it, `_extra` says `[withheld]`."""
    made = given(
        [maybe("msg"), EXTRA], parser=ParserSettings(type="json"), shape="mask msg for emails"
    )
    lines = [{"msg": {"to": "a@b.org", "n": 5}}, {"msg": ["a"]}, {"msg": {"to": "x\\u0040y.org"}}]
    found = press(made, reading(b"".join(json.dumps(each).encode() + b"\n" for each in lines)))
    assert [dict(row["_extra"])["msg"] for row in rows(made, found)] == [
        '{"to": "[email]", "n": 5}', '["a"]', "[withheld]",
    ]  # fmt: skip
    made = given(
        [maybe("user"), EXTRA],
        parser=ParserSettings(type="regex", pattern=r"(?P<user>\S+) (?P<j>.*)", json_field="j"),
        shape="mask user for emails",
    )
    found = press(made, reading(b'bob {"user": "ann@b.org", "n": 1}\n'))
    extra = [("n", "1"), ("user", "[email]")]
    assert rows(made, found) == [{"user": "bob", "_extra": extra}]


def test_names_of_private_fields_through_renames() -> None:
    """A field that rules mask, hash or remove is private. The function `private_rules` returns all
    names that such a field has: in the line, and after each rule that renames it."""
    for text, names in (
        ("rename a to b\nmask b for cards\nrename b to c", {"a", "b", "c"}),
        ("mask a for cards\nrename a to b\nrename c to a", {"a", "b"}),
        ("rename a to b\nrename c to a\nremove a", {"a", "c"}),
        ("rename a to b\nhash b, d\nrename d to e", {"a", "b", "d", "e"}),
    ):
        assert private_rules(parse(text)).keys() == names


def test_what_fills_no_field_of_the_schema_may_be_removed() -> None:
    """Rules of `shape` may also remove values for which the schema has no field: the line's time,
    the names of the pod and the container, and the groups that a pattern finds before a JSON
    object."""
    fields = [maybe("message"), EXTRA]
    for ts in ('"2020-01-01T00:00:00Z"', "1577836800"):
        form = "rfc3339" if ts[0] == '"' else "epoch"
        made = given(
            fields,
            parser=ParserSettings(type="json"),
            timestamp=TimestampSettings(fields=["ts"], format=form),
            shape="remove ts",
        )
        found = press(made, reading(b'{"ts": %s, "message": "x"}\n' % ts.encode()))
        assert rows(made, found) == [{"message": "x", "_extra": []}]
        assert [each.timestamp for each in records(found)] == [1_577_836_800_000]
    wrapped = json.dumps({"message": "x"}).encode()
    made = given(
        fields, parser=ParserSettings(type="json"), container="cri",
        shape="remove pod, namespace, container, container_stream",
    )  # fmt: skip
    line = b"2026-11-20T08:15:01.66Z stdout F " + wrapped + b"\n"
    assert rows(made, press(made, reading(line))) == [{"message": "x", "_extra": []}]
    made = given(
        fields, fields={"env": "prod"}, shape="remove level, env",
        parser=ParserSettings(type="regex", pattern=r"(?P<level>\S+) (?P<j>\{.*)", json_field="j"),
    )  # fmt: skip
    assert rows(made, press(made, reading(b"INFO " + wrapped + b"\n"))) == [
        {"message": "x", "_extra": []}
    ]


def test_a_private_group_of_the_path_is_noted() -> None:
    """If a rule removes a group of `path.pattern`, the agent's preview of rows contains a note. The
    note names the group, and says that rejected records and the audit have the whole path."""
    source = SourceSettings(
        topic="logs", paths=["/log/*/a"], path_pattern="/log/(?P<user>[^/]+)/", shape="remove user"
    )
    made = preview(source, b"x\n", "/log/ann/a")
    assert [row.row for row in made.rows] == [{"line": "x"}]
    (note,) = made.notes
    assert "remove user, but" in note
    assert "have the whole path of the file" in note
    assert preview(replace(source, shape=None), b"x\n", "/log/ann/a").notes == ()


@pytest.mark.parametrize(
    ("lines", "source"),
    [
        (
            b"2026-11-23T08:15:01.1Z stdout P 1,2,password\n"
            b"2026-11-23T08:15:01.1Z stdout F =hunter2secret\n",
            {"parser": ParserSettings(type="csv", columns=["a", "b"]), "container": "cri"},
        ),
        (
            b"order_4111111111111111 x\n",
            {"parser": ParserSettings(
                type="regex", pattern=r"order_(?P<c>\d+) (?P<n>\S+)", types={"n": "int"}
            )},
        ),
        (
            b"2026-11-23T08:15:01.1Z stdout F host10.0.0.1 x\n",
            {"parser": ParserSettings(
                type="regex", pattern=r"host(?P<c>[\d.]+) (?P<n>\S+)", types={"n": "int"}
            ), "container": "cri"},
        ),
    ],
)  # fmt: skip
def test_a_reject_shows_no_secret_that_a_row_would_hide(
    lines: bytes, source: dict[str, Any]
) -> None:
    """A rejected line is withheld if a secret that masks would find in a field is divided by a
    container's runtime, or stands beside other letters."""
    made = recipe(shape="mask * for cards, keys, ips", **source)
    [row] = rejected(press(made, reading(lines)))
    assert row["line"] == b"[withheld]"


@pytest.mark.parametrize(
    ("parser", "line"),
    [
        (
            {"pattern": r"(?P<user>[^;]*);(?P<role>[^;]*);(?P<text>.*)"},
            "eve\x1b];guest;x\x07;admin;y",
        ),
        ({"pattern": r"(?P<user>[^;]*);(?P<role>\d+);(?P<text>.*)"}, "eve\x1b[1;403;7mx"),
        (
            {"type": "csv", "columns": ["user", "role", "text"], "delimiter": ";"},
            "eve\x1b];guest;x\x07",
        ),
    ],
)
def test_a_code_for_a_terminal_swallows_no_field(parser: dict[str, Any], line: str) -> None:
    """Who chooses the text of a field cannot have what stands behind the field taken for a part of
    a code for terminals."""
    made = recipe(parser=ParserSettings(**{"type": "regex", **parser}))
    [row] = rows(made, press(made, reading(f"{line}\n".encode())))
    assert row["user"].startswith("eve")
    assert row["role"] in ("guest", "403")
