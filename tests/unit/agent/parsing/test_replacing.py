"""With `on_error: replace`, a line that is not UTF-8 is delivered, and its invalid bytes are
replaced."""

import json

import pyarrow as pa
import pytest

from skidway.agent.batches.press import Press
from skidway.agent.batches.source_recipes import recipe_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.derived import schema as schema_of
from skidway.agent.parsing.lines import repaired
from skidway.agent.recipe import Recipe, Schema, TopicSnapshot, from_json
from skidway.agent.settings import SourceSettings
from skidway.errors import ConfigurationRefused
from skidway.schemas.avro_schema import parse
from skidway.schemas.codec import Codec
from skidway.schemas.compatibility import Level, check
from skidway.schemas.single_object import schema_text
from support.agent_press import press, reading, recipe, records, regex, rejected
from support.agent_world import pa_binary
from support.promises import promise

BROKEN = b"caf\xe9 \xf0\x9f\x98"
MENDED = "caf\ufffd \ufffd"
MARKED = {"name": "encoding_replaced", "type": "boolean", "default": False}


def json_recipe(*fields: dict[str, object]) -> Recipe:
    avro = {"type": "record", "name": "r", "fields": [{"name": "m", "type": "string"}, *fields]}
    source = SourceSettings(
        topic="logs", paths=["/l"], parser=ParserSettings(type="json"), schema="s",
        on_error="replace",
    )  # fmt: skip
    return recipe_of(
        source, TopicSnapshot("logs", 1, 10**6), TopicSnapshot("logs.rejected", 1, 10**6),
        Schema(1, json.dumps(avro)), Schema(2, schema_text("Rejected")), 900_000,
    )  # fmt: skip


def rows(made: Recipe, data: bytes) -> list[dict[str, object]]:
    values = [record.value[5:] for record in records(press(made, reading(data)))]
    return Codec(made.schema.text).decode(pa_binary(values)).batch.to_pylist()


def test_a_raw_line_is_delivered_with_what_is_not_text_replaced_and_marked() -> None:
    """Bytes that are not UTF-8 are replaced, and the field `encoding_replaced` of the record
    becomes true. The record's origin is still the line's range in the file. A U+FFFD that the line
    itself contains does not change the field."""
    made = recipe(on_error="replace")
    data = b"good\n" + BROKEN + b"\n\xef\xbf\xbd\n"
    pressed = press(made, reading(data))
    assert rows(made, data) == [
        {"line": "good", "encoding_replaced": False},
        {"line": MENDED, "encoding_replaced": True},
        {"line": "\ufffd", "encoding_replaced": False},
    ]
    assert [(r.first, r.length) for r in records(pressed)] == [(100, 5), (105, 9), (114, 4)]
    assert (pressed.replaced, pressed.rejected) == (1, [])


def test_a_regex_parser_matches_the_replaced_line() -> None:
    """A regex parser matches the text after the replacement. A line that does not match is rejected
    with its original bytes."""
    made = recipe(**regex(r"(?P<level>[A-Z]+) (?P<text>.*)", on_error="replace"))
    data = b"INFO " + BROKEN + b"\nno \xff\nWARN ok\n"
    assert rows(made, data) == [
        {"level": "INFO", "text": MENDED, "encoding_replaced": True},
        {"level": "WARN", "text": "ok", "encoding_replaced": False},
    ]
    assert [(r["reason"], r["line"]) for r in rejected(press(made, reading(data)))] == [
        ("no-match", b"no \xff")
    ]


def test_a_json_parser_reads_the_replaced_line() -> None:
    """Bytes that are not UTF-8 are replaced within JSON strings. If such bytes are elsewhere, the
    line is not valid JSON. A member of the line with the name `encoding_replaced` is ignored."""
    made = json_recipe(MARKED)
    data = b'{"m": "' + BROKEN + b'"}\n{"m": "ok", "encoding_replaced": true}\n{\xff}\n'
    assert rows(made, data) == [
        {"m": MENDED, "encoding_replaced": True},
        {"m": "ok", "encoding_replaced": False},
    ]
    assert [r["reason"] for r in rejected(press(made, reading(data)))] == ["not-json"]


@promise("2 encoding")
def test_without_the_setting_the_line_is_rejected_whole() -> None:
    """Without `on_error: replace`, a line that is not UTF-8 is rejected with its bytes unchanged,
    and the schema has no field `encoding_replaced`."""
    pressed = press(recipe(), reading(BROKEN + b"\n"))
    assert [(r["reason"], r["line"]) for r in rejected(pressed)] == [("encoding", BROKEN)]
    assert pressed.replaced == 0
    assert [f["name"] for f in json.loads(recipe().schema.text)["fields"]] == ["line"]


@promise("2 encoding")
def test_what_is_replaced_is_a_function_of_bytes_and_recipe() -> None:
    """The same recipe always replaces the same bytes of a line in the same way, even if the line is
    parsed together with other lines. A recipe consists of the settings and schemas by which lines
    become records."""
    made = recipe(on_error="replace", partitions=3, partitioning="key", key="line")
    alone, others = reading(BROKEN + b"\n", file=1), reading(b"fine\n\xff\n", file=2)
    kept = from_json(made.to_json())
    assert kept == made
    first, again = press(made, alone), press(kept, alone)
    assert [b.encoded.body for b in first.batches] == [b.encoded.body for b in again.batches]
    together = [r for r in records(press(made, others, alone)) if r.file == 1]
    assert together == records(first)


def test_the_setting_is_part_of_the_recipe() -> None:
    """A recipe consists of the settings and schemas by which lines become records. Two recipes that
    differ only in on_error have different fingerprints (hashes)."""
    assert recipe().fingerprint != recipe(on_error="replace").fingerprint


def test_replaced_text_that_outgrows_a_batch_is_rejected_by_name() -> None:
    """The replacement of invalid bytes makes a line longer: one byte becomes three bytes. If the
    line is then too large for a batch, it is rejected as too long."""
    made = recipe(on_error="replace", limit=20_000)
    pressed = press(made, reading(b"\xff" * 10_000 + b"\na\n"))
    (row,) = rejected(pressed)
    assert (row["reason"], row["length"]) == ("too-long", 10_001)
    assert (len(records(pressed)), pressed.replaced) == (1, 0)


def test_text_is_left_as_it_is() -> None:
    """Lines that are valid UTF-8 are passed on unchanged, without a copy in memory."""
    lines = pa.array([b"a", "ü".encode()], pa.binary())
    found, bad = repaired(lines)
    assert found is lines
    assert len(bad) == 0


def test_each_maximal_part_becomes_one_character() -> None:
    """Invalid bytes are replaced as Unicode recommends: an incomplete byte sequence becomes one
    U+FFFD, and so does each byte that cannot begin a sequence."""
    lines = pa.array([b"\xe2\x82", b"\xff\xfe", b"\xed\xa0\x80"], pa.binary())
    found, bad = repaired(lines)
    assert [value.decode() for value in found.to_pylist()] == ["\ufffd" * n for n in (1, 2, 3)]
    assert bad.tolist() == [0, 1, 2]


def test_a_schema_without_the_mark_is_refused_with_a_sentence() -> None:
    """With `on_error: replace`, a schema without a boolean field `encoding_replaced` is refused,
    because every changed record must be marked in this field."""
    words = (
        "source of topic logs: on_error: replace marks each record in the schema's field "
        "'encoding_replaced', and the schema has no boolean field of that name; "
        "add it, with the default false"
    )
    for made in (json_recipe(), json_recipe({**MARKED, "type": "string", "default": ""})):
        with pytest.raises(ConfigurationRefused) as refused:
            Press(made)
        assert str(refused.value) == words


def test_derived_schemas_with_and_without_the_mark_may_follow_each_other() -> None:
    """The derived schemas with and without the field `encoding_replaced` are compatible at every
    compatibility level. So the setting on_error can be changed and changed back."""
    without, marked = (
        parse(schema_of("logs", ["line"])),
        parse(schema_of("logs", ["line"], with_mark=True)),
    )
    assert check(marked, [(1, without)], Level.FULL_TRANSITIVE) is None
    assert check(without, [(1, without), (2, marked)], Level.FULL_TRANSITIVE) is None


def test_a_group_cannot_take_the_marks_name() -> None:
    """The agent marks changed records in the field `encoding_replaced`. If the schema has this
    field, a pattern with a group of the same name is refused. Otherwise such a group is allowed."""
    groups = ["encoding_replaced"]
    with pytest.raises(ConfigurationRefused, match="a group 'encoding_replaced'"):
        schema_of("logs", groups, with_mark=True)
    assert "encoding_replaced" in schema_of("logs", groups)
