"""Pressing turns the bytes of intents into record batches, by the rules of the source's recipe. An
intent is a stored promise to send certain bytes of a file."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from skidway.agent.batches import framed_lines, program_versions, routing
from skidway.agent.batches.press import AHEAD_MS_MAX, Press
from skidway.agent.batches.source_recipes import recipe_of
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.framing import READ_BYTES, Frames, LineFramer
from skidway.agent.parsing.parser import Reject
from skidway.agent.recipe import Schema, TopicSnapshot, from_json
from skidway.agent.settings import SourceSettings, TimestampSettings
from skidway.agent.values.intents import Intent, Reading
from skidway.audit.counts import checksum
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import SchemaUnsupported
from skidway.schemas.single_object import schema_text
from support.agent_press import AGENT, READ_MS, press, reading, recipe, records, regex, rejected
from support.agent_world import datum_text, pa_binary, records_of
from support.promises import promise


def test_a_record_says_which_bytes_it_came_from() -> None:
    """A record's origin gives the range of the line's bytes, including the line terminator. The
    record's value does not contain the line terminator."""
    found = records(press(recipe(), reading(b"one\r\n\ntwo")))
    assert [(datum_text(r.value), r.first, r.length) for r in found] == [
        ("one", 100, 5), ("", 105, 1), ("two", 106, 3)
    ]  # fmt: skip
    assert {(r.agent, r.file, r.timestamp, r.key) for r in found} == {(AGENT, 5, READ_MS, None)}
    assert found[0].value[:5] == b"\0\0\0\0\1"


@promise("2 re-send", "clocks reading")
def test_pressing_again_gives_the_same_bytes() -> None:
    """An intent is a stored promise to send certain bytes. A recipe is the set of rules by which a
    source's lines become records. The same intent and the same recipe always give the same
    batches."""
    made = recipe(**regex(r"(?P<a>\S+) (?P<b>.*)", key="a"), partitions=3)
    data = b"".join(b"%d line\nbad\n" % i for i in range(300))
    first, again = press(made, reading(data)), press(from_json(made.to_json()), reading(data))
    assert [b.encoded.body for b in first.batches] == [b.encoded.body for b in again.batches]
    assert [b.tp for b in first.batches] == [b.tp for b in again.batches]


def test_what_a_line_becomes_does_not_depend_on_what_travels_with_it() -> None:
    """An intent is a stored promise to send certain bytes. The agent makes the same records from
    these bytes whether it processes them alone or together with the bytes of other intents."""
    made = recipe(**regex(r"(?P<a>[0-9]+) (?P<b>.*)", key="a"), partitions=3)
    readings = [
        reading(b"1 x\nbad\n2 \xff\n", file=1), reading(b"3 y", file=2, first=0),
        reading(b"4 z\n", file=1, first=900),
    ]  # fmt: skip
    together = press(made, *readings)
    alone = [press(made, each) for each in readings]
    for topic in ("logs", "logs.rejected"):
        expected = [r for each in alone for r in records(each, topic)]
        assert sorted(records(together, topic), key=str) == sorted(expected, key=str)
    for outcome, each in zip(together.outcomes, alone, strict=True):
        assert dict(outcome.counts.items()) == dict(each.outcomes[0].counts.items())
        assert outcome.delivered_bytes == each.outcomes[0].delivered_bytes
        assert outcome.rejected_bytes == each.outcomes[0].rejected_bytes


@promise("2 partition")
def test_each_file_keeps_its_partition_whatever_travels_with_it() -> None:
    """With the default partitioning, all records of a file go to the file's partition, even if
    batches are made from files of several partitions together."""
    made = recipe(partitions=8)
    readings = [reading(b"x\n", file=file) for file in range(1, 9)]
    alone = [press(made, each).batches[0].tp for each in readings]
    assert len(set(alone)) > 1
    for batch in press(made, *readings).batches:
        assert {alone[index] for index in batch.readings} == {batch.tp}


def test_lines_that_do_not_fit_go_whole_to_the_rejected_topic() -> None:
    """A line that the source's parser rejects goes unchanged to the rejected topic, with its
    position, a reason and the time at which it was read. The line is counted under the rejected
    topic."""
    pressed = press(recipe(**regex(r"(?P<a>[0-9]+)")), reading(b"1\nno\n\xff\xfe\r\n"))
    assert [(r["reason"], r["line"], r["first"], r["length"]) for r in rejected(pressed)] == [
        ("no-match", b"no", 102, 3), ("encoding", b"\xff\xfe", 105, 4)
    ]  # fmt: skip
    row = rejected(pressed)[0]
    assert (row["topic"], row["host"], row["path"], row["agent"], row["file"]) == (
        "logs", "host", "/log/a", AGENT, 5
    )  # fmt: skip
    assert row["original_file"] is None
    assert {r.timestamp for r in records(pressed, "logs.rejected")} == {READ_MS}
    (outcome,) = pressed.outcomes
    assert (outcome.delivered_bytes, outcome.rejected_bytes) == (2, 7)
    counted = {key[0].topic: sums.count for key, sums in outcome.counts.items()}
    assert counted == {"logs": 1, "logs.rejected": 2}


def test_counts_are_those_of_the_records() -> None:
    """For each bucket of event time, the count, the bytes and the checksum that the agent reports
    to the audit agree with the records of the bucket."""
    source = regex(
        r"(?P<t>\d+) .*", timestamp=TimestampSettings(fields=["t"], format="epoch", timezone="UTC")
    )
    pressed = press(recipe(**source), reading(b"60 a\n61 bb\n120 c\n"))
    found = {key[2]: sums for key, sums in pressed.outcomes[0].counts.items()}
    assert {bucket: (s.count, s.bytes) for bucket, s in found.items()} == {
        60_000: (2, 11), 120_000: (1, 6)
    }  # fmt: skip
    rows = [r for r in records(pressed) if r.timestamp < 120_000]
    columns = [
        np.array([getattr(r, name) for r in rows]) for name in ("agent", "file", "first", "length")
    ]
    assert found[60_000].checksum == checksum.total(checksum.record_hash(*columns))


@promise("4 times ahead", "clocks reading")
def test_times_that_cannot_be_believed_are_those_of_reading() -> None:
    """If a line's time is before 1970, or more than an hour ahead of the agent's clock, the line's
    record gets the time at which the line was read."""
    source = regex(
        r"(?P<t>-?\d+)",
        timestamp=TimestampSettings(fields=["t"], format="epoch_ms", timezone="UTC"),
    )
    limit = READ_MS + AHEAD_MS_MAX
    pressed = press(recipe(**source), reading(f"{limit}\n{limit + 1}\n-5\n".encode()))
    assert [r.timestamp for r in records(pressed)] == [limit, READ_MS, READ_MS]
    assert pressed.unbelieved_times == 2


@pytest.mark.parametrize("parser", ["regex", "json"])
def test_a_time_that_cannot_be_read_is_the_time_of_reading_if_this_is_set(parser: str) -> None:
    """With `timestamp.on_error: read_time`, a line whose time cannot be read becomes a record. The
    record's time is the time at which the agent read the line, its field `timestamp_replaced` is
    true, and the agent counts the records of this kind."""
    time = TimestampSettings(fields=["t"], format="rfc3339", on_error="read_time")
    if parser == "regex":
        made = recipe(timestamp=time, **regex("(?P<t>.*)"))
        data = b"2023-11-14T22:13:00Z\nyesterday\n"
    else:
        schema = {
            "type": "record", "name": "L", "fields": [
                {"name": "t", "type": ["null", "string"], "default": None},
                {"name": "timestamp_replaced", "type": "boolean", "default": False},
            ]
        }  # fmt: skip
        source = SourceSettings(
            topic="logs", paths=["/log/*"], parser=ParserSettings(type="json"), schema="s.avsc",
            timestamp=time,
        )  # fmt: skip
        plain = recipe()
        made = recipe_of(
            source, plain.data, plain.rejected, Schema(1, json.dumps(schema)),
            plain.rejected_schema, 900_000,
        )  # fmt: skip
        data = b'{"t": "2023-11-14T22:13:00Z"}\n{"t": "yesterday"}\n'
    pressed = press(made, reading(data))
    assert [each.timestamp for each in records(pressed)] == [1_700_000_000_000 - 20_000, READ_MS]
    values = pa_binary([each.value[5:] for each in records(pressed)])
    rows = Codec(made.schema.text).decode(values).batch.to_pylist()
    assert [row["timestamp_replaced"] for row in rows] == [False, True]
    assert (pressed.unread_times, pressed.rejected) == (1, [])
    strict = replace(made, time_on_error="reject")
    assert [row["reason"] for row in rejected(press(strict, reading(data)))] == ["timestamp"]


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("latin-1", "Grüße"),
        ("iso-8859-15", "10 €"),
        ("windows-1252", "„Zitat“ €"),
        ("shift-jis", "ソフト表示"),
        ("euc-jp", "ソフト表示"),
        ("gb18030", "日志 😀"),
        ("big5", "許功蓋"),
        ("koi8-r", "журнал"),
    ],
)
def test_lines_of_other_encodings_become_utf8(encoding: str, words: str) -> None:
    """Lines in the encoding that the source's settings name become records in UTF-8. The positions
    and lengths in the records' origins count the bytes in the file, that is, in the file's
    encoding."""
    lines = [f"{words} {number}" for number in (1, 22, 333)]
    sizes = [len(line.encode(encoding)) + 1 for line in lines]
    pressed = press(recipe(encoding=encoding), reading("\n".join([*lines, ""]).encode(encoding)))
    places = [100, 100 + sizes[0], 100 + sizes[0] + sizes[1]]
    assert [(datum_text(each.value), each.first, each.length) for each in records(pressed)] == [
        *zip(lines, places, sizes, strict=True)
    ]
    assert "python-" in recipe(encoding=encoding).program


@pytest.mark.parametrize("on_error", ["reject", "replace"])
@pytest.mark.parametrize("encoding", ["utf-8", "shift-jis"])
def test_a_character_that_a_runtime_divided_is_whole_again(encoding: str, on_error: str) -> None:
    """A container's runtime may divide a line inside a character. The agent joins the parts before
    it decodes them. So the character is whole again, and no byte of the line is replaced."""
    text = "表示".encode(encoding)
    time = b"2023-11-14T22:13:00Z stdout"
    data = time + b" P " + text[:1] + b"\n" + time + b" F " + text[1:] + b"\n"
    made = recipe(container="cri", encoding=encoding, on_error=on_error)
    pressed = press(made, reading(data))
    values = pa_binary([each.value[5:] for each in records(pressed)])
    (row,) = Codec(made.schema.text).decode(values).batch.to_pylist()
    assert (row["line"], pressed.replaced, pressed.rejected) == ("表示", 0, [])


def test_lines_that_are_not_in_their_encoding() -> None:
    """If a line is not in the source's encoding, only this line is rejected. With `on_error:
    replace`, the line becomes a record with U+FFFD in place of the invalid bytes, and only this
    record is marked and counted as replaced."""
    data = "表\n".encode("shift_jis") + b"\x81\n" + b"b\n"
    pressed = press(recipe(encoding="shift-jis"), reading(data))
    assert [datum_text(each.value) for each in records(pressed)] == ["表", "b"]
    (row,) = rejected(pressed)
    assert (row["reason"], row["first"], row["line"]) == ("encoding", 103, b"\x81")
    made = recipe(encoding="shift-jis", on_error="replace")
    pressed = press(made, reading(data))
    values = pa_binary([each.value[5:] for each in records(pressed)])
    rows = Codec(made.schema.text).decode(values).batch.to_pylist()
    assert [(row["line"], row["encoding_replaced"]) for row in rows] == [
        ("表", False), ("\ufffd", True), ("b", False)
    ]  # fmt: skip
    assert (pressed.replaced, pressed.rejected) == (1, [])


def test_an_overlong_line_is_cut_and_keeps_its_length() -> None:
    """A line that is too long to be read at once is rejected. The rejected record contains only the
    beginning of the line, but its origin covers the whole line."""
    intent = Intent(1, 5, 100, 100 + 3 * READ_BYTES, 0, READ_MS, b"")
    pressed = press(recipe(), Reading(intent, b"x" * READ_BYTES, "host", "/log/a"))
    (row,) = rejected(pressed)
    assert (row["reason"], row["first"], row["length"]) == ("too-long", 100, 3 * READ_BYTES)
    assert 0 < len(row["line"]) < 900_000
    assert pressed.outcomes[0].rejected_bytes == 3 * READ_BYTES
    assert records(pressed) == []


def test_lines_longer_than_allowed_are_rejected() -> None:
    """A line is rejected if it is longer than max.line.bytes, or if its record is larger than a
    batch may be. The lines before and after this line are delivered."""
    made = recipe(max_line_bytes=100)
    pressed = press(made, reading(b"a\n" + b"x" * 101 + b"\n" + b"y" * 100 + b"\n"))
    assert [datum_text(r.value)[0] for r in records(pressed)] == ["a", "y"]
    assert [r["reason"] for r in rejected(pressed)] == ["too-long"]
    small = recipe(limit=20_000, batch=900_000)
    pressed = press(small, reading(b"a\n" + b"x" * 20_000 + b"\n"))
    (row,) = rejected(pressed)
    assert (row["reason"], row["length"]) == ("too-long", 20_001)
    assert all(batch.encoded.uncompressed_bytes <= 20_000 for batch in pressed.batches)


def test_many_rejected_lines_take_no_longer_than_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time to process rejected lines grows only in proportion to their number: the agent does
    not compute the lengths of all lines again for each rejected line. If it did, a log in which no
    line fits the parser would block the agent."""
    lines = framed_lines.FramedLines([reading(b"x\n" * 50)], LineFramer())
    lines.frames = Spied(lines.frames.first, lines.frames.content_end, lines.frames.end)
    lines.rejected(Reject(7, "no-match", ""))
    assert Spied.looks == 0
    monkeypatch.setattr("skidway.agent.parsing.framing.Frames", Spied)
    found = press(recipe(), reading(b"\0a\n" * 50))
    assert {row["reason"] for row in rejected(found)} == {"nul-bytes"}
    assert 0 < Spied.looks < 10


class Spied(Frames):
    """A subclass of `Frames` (the positions of lines). It counts in `looks` how often a caller
    computes the lengths of all lines."""

    looks = 0

    @property
    def length(self) -> Any:
        Spied.looks += 1
        return super().length


def test_lines_that_are_all_too_long_are_rejected_by_a_source_with_times() -> None:
    """If all lines that the agent reads at once are too long, all are rejected. The code that
    parses the lines' times then gets no lines at all, and must not fail."""
    time = TimestampSettings(fields=["time"], format="rfc3339")
    made = recipe(max_line_bytes=64, timestamp=time, **regex("(?P<time>.*)"))
    pressed = press(made, reading(b"x" * 70 + b"\n" + b"y" * 70 + b"\n"))
    assert [row["reason"] for row in rejected(pressed)] == ["too-long", "too-long"]
    assert pressed.records == 0


def test_batches_stay_below_the_limit() -> None:
    """Before compression, no batch is larger than batch.size or than the topic's
    max.message.bytes."""
    data = b"".join(b"%05d" % i + b"x" * 500 + b"\n" for i in range(400))
    pressed = press(recipe(limit=30_000), reading(data))
    assert len(pressed.batches) > 5
    assert all(batch.encoded.uncompressed_bytes + 61 <= 30_000 for batch in pressed.batches)
    assert [r.first for r in records(pressed)] == [100 + 506 * i for i in range(400)]


def test_records_keep_the_order_of_their_file_in_each_partition() -> None:
    """In each partition, the records of a file are in the order of their positions in the file.
    Programs that read the topic need this order to recognize repeated records by their
    positions."""
    made = recipe(**regex(r"(?P<k>\S+) .*", key="k"), partitions=4)
    data = b"".join(b"k%d v\n" % (i % 50) for i in range(500))
    pressed = press(made, reading(data))
    for partition in range(4):
        mine = [
            r.first
            for b in pressed.batches
            if b.tp == ("logs", partition)
            for r in records_of(b.encoded)
        ]
        assert mine == sorted(mine)
        assert mine
    assert len(records(pressed)) == 500


def test_null_keys_follow_their_file() -> None:
    """If the field that `key` names is null in a record, the record goes to the partition of its
    file."""
    avro = (
        '{"type":"record","name":"r","fields":[{"name":"k","type":["null","string"],'
        '"default":null}]}'
    )
    source = SourceSettings(
        topic="logs", paths=["/l"], parser=ParserSettings(type="json"), schema="s", key="k"
    )
    made = recipe_of(
        source,
        TopicSnapshot("logs", 8, 10**6),
        TopicSnapshot("logs.rejected", 1, 10**6),
        Schema(1, avro),
        Schema(2, schema_text("Rejected")),
        900_000,
    )
    pressed = press(made, reading(b'{"k": "a"}\n{}\n{"k": "b"}\n'))
    assert {r.key for r in records(pressed)} == {b"a", b"b", None}
    keys = {b.tp.partition: {r.key for r in records_of(b.encoded)} for b in pressed.batches}
    assert keys[routing.of_file(5, 8)] == {None}


def test_a_key_that_is_no_field_is_refused() -> None:
    """The agent refuses a source whose setting `key` names no field of the schema."""
    with pytest.raises(ConfigurationRefused, match="nope"):
        Press(recipe(key="nope"))


def test_a_schema_that_contains_itself_is_refused() -> None:
    """The agent refuses a source whose schema has a field of the schema's own record type. The
    error names the field."""
    fields = [{"name": "line", "type": "string"}, {"name": "of", "type": ["null", "R"]}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    with pytest.raises(SchemaUnsupported, match="Field of contains itself: its values are only"):
        Press(replace(recipe(), schema=Schema(1, text)))


def test_recipes_are_known_by_their_fingerprint() -> None:
    """A recipe is the set of rules by which a source's lines become records. Equal recipes have
    equal fingerprints (hashes). If two recipes make different records, their fingerprints
    differ."""
    assert recipe().fingerprint == recipe().fingerprint
    assert from_json(recipe().to_json()) == recipe()
    others = [recipe(partitions=2), recipe(limit=5), recipe(max_line_bytes=99), recipe(key="line")]
    assert len({each.fingerprint for each in [recipe(), *others]}) == 5
    assert "framing-" in program_versions.program_version()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"path_pattern": "(?P<line>x)"}, "two fields would have the name 'line'"),
        ({"fields": {"app": "x"}, "path_pattern": "(?P<app>x)"}, "two fields"),
        (
            {
                **regex("(?P<timestamp_replaced>.*)"),
                "timestamp": TimestampSettings(
                    fields=["timestamp_replaced"], format="rfc3339", on_error="read_time"
                ),
            },
            "two fields would have the name 'timestamp_replaced'",
        ),
    ],
)
def test_fields_that_are_filled_twice_are_refused(source: dict[str, Any], sentence: str) -> None:
    """If two settings fill the same field (for example `fields` and a group of `path.pattern`), the
    agent refuses the settings before it stores the first intent (a promise to send certain
    bytes)."""
    with pytest.raises(ConfigurationRefused, match=sentence):
        Press(recipe(**source))


def own_schema(schema: dict[str, Any], **source: Any) -> Press:
    """Returns the press (which makes records from lines) of a source whose setting `schema` names
    the given schema."""
    configured = SourceSettings(topic="logs", paths=["/log/*"], schema="s.avsc", **source)
    plain = recipe()
    return Press(
        recipe_of(
            configured, plain.data, plain.rejected, Schema(1, json.dumps(schema)),
            plain.rejected_schema, 900_000,
        )
    )  # fmt: skip


def test_a_schema_whose_fields_are_filled_twice_or_not_at_all_is_refused() -> None:
    """A source whose settings name a schema is refused in three cases. In the first case, the
    setting `fields` fills every field of the schema and leaves none to the parser; a schema without
    fields leaves none either. In the second case, two settings fill the same field. In the third
    case, the field `timestamp_replaced`, which marks replaced times, is not a boolean."""
    schema = {"type": "record", "name": "L", "fields": [{"name": "a", "type": "string"}]}
    with pytest.raises(ConfigurationRefused, match="no fields for what a line says"):
        own_schema({**schema, "fields": []}, parser=ParserSettings(type="json"))
    with pytest.raises(ConfigurationRefused, match="leave no field to the parser"):
        own_schema(schema, fields={"a": "x"}, **regex("(?P<b>.*)"))
    schema["fields"].append({"name": "b", "type": "string"})  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationRefused, match="both fill the field 'a'"):
        own_schema(schema, fields={"a": "x"}, **regex("(?P<a>x)(?P<b>.*)"))
    with pytest.raises(ConfigurationRefused, match="both fill the field 'a'"):
        own_schema(schema, fields={"a": "x"}, path_pattern="(?P<a>x)", **regex("(?P<b>.*)"))
    schema["fields"].append({"name": "timestamp_replaced", "type": "string"})  # type: ignore[attr-defined]
    time = TimestampSettings(fields=["a"], format="rfc3339", on_error="read_time")
    with pytest.raises(ConfigurationRefused, match="must be a boolean"):
        own_schema(schema, timestamp=time, **regex("(?P<a>x)(?P<b>.*)"))
