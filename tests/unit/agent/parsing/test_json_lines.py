import json
from typing import Any

import pyarrow as pa
import pytest

from skidway.agent.parsing.aliases import aliases_of
from skidway.agent.parsing.json_lines import DEPTH_MAX, JsonParser
from skidway.agent.parsing.parser import NO_TIME, NOT_JSON, Parsed
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec

SCHEMA = Codec(
    {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "text", "type": ["null", "string"], "default": None},
            {"name": "x", "type": "double", "default": 0.5},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
            {
                "name": "inner",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "Inner",
                        "fields": [{"name": "k", "type": "long"}],
                    },
                ],
                "default": None,
            },
        ],
    }
)
DEFAULTS = {"text": None, "x": 0.5, "tags": [], "inner": None}


def parse(*texts: str | bytes, **others: Any) -> Parsed:
    values = [text.encode() if isinstance(text, str) else text for text in texts]
    parser = JsonParser(SCHEMA.arrow_schema, DEFAULTS, **others)
    return parser.parse(pa.array(values, pa.binary()), 0)


def test_members_are_fields_and_missing_ones_take_their_default() -> None:
    """JSON members become fields, in whatever order they come. Members that are not in the schema
    are left out, and a field without a member gets its default."""
    parsed = parse('{"x": 2, "n": 1, "more": {}}', '{"n": 2, "tags": ["a"], "inner": {"k": 7}}')
    assert parsed.batch.to_pylist() == [
        {"n": 1, "text": None, "x": 2.0, "tags": [], "inner": None},
        {"n": 2, "text": None, "x": 0.5, "tags": ["a"], "inner": {"k": 7}},
    ]
    assert SCHEMA.encode_rows_checked(parsed.batch)[1] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not-json"),
        ("plain text", "not-json"),
        ('{"n": 1', "not-json"),
        ('{"n": 1} {"n": 2}', "not-json"),
        ('{"n": NaN}', "not-json"),
        ("[1]", "not-json"),
        ("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1), "not-json"),
        ('{"n": 1.5}', "schema"),
        ('{"n": true}', "schema"),
        ('{"n": "1"}', "schema"),
        ('{"n": 5000000000}', "schema"),
        ('{"n": 1, "text": 5}', "schema"),
        ('{"n": 1, "text": "\\ud800"}', "schema"),
        ('{"n": 1, "tags": [1]}', "schema"),
        ('{"n": 1, "inner": {"k": 1.5}}', "schema"),
        ('{"n": 1, "inner": {}}', "schema"),
        (b'{"n": 1, "text": "\xff"}', "encoding"),
    ],
)
def test_a_line_that_does_not_fit_is_rejected_alone(line: str | bytes, reason: str) -> None:
    """If a line is no JSON object, is not UTF-8 or does not fit the schema, only this line is
    rejected. The parser turns no string into a number, and no fraction into an integer."""
    parsed = parse('{"n": 1}', line, '{"n": 3}')
    assert parsed.rows.tolist() == [0, 2]
    assert [(r.row, r.reason) for r in parsed.rejects] == [(1, reason)]


def test_a_line_without_a_required_member_is_left_to_the_codec() -> None:
    """The parser passes on a line that lacks a required member, and the Avro codec, which encodes
    the records, rejects the line."""
    parsed = parse('{"text": "a"}')
    assert [index for index, _ in SCHEMA.encode_rows_checked(parsed.batch)[1]] == [0]


def test_times_come_from_members() -> None:
    """A line gets its time from a configured JSON member. A line without this member has no time,
    and a line whose time cannot be parsed is rejected."""
    parsed = parse(
        '{"n": 1, "text": "2020-01-02T00:00:00Z"}', '{"n": 2}', '{"n": 3, "text": "soon"}',
        time_fields=["text"], time_format=TimeFormat("rfc3339"),
    )  # fmt: skip
    assert parsed.event_ms.tolist() == [1577923200000, NO_TIME]
    assert [(r.row, r.reason) for r in parsed.rejects] == [(2, "timestamp")]


def test_timestamp_fields_take_numbers_and_rfc3339() -> None:
    """A field with a logical timestamp type accepts a number in the unit of this type, or an RFC
    3339 string."""
    codec = Codec(
        {
            "type": "record",
            "name": "T",
            "fields": [{"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}],
        }
    )
    texts = [b'{"t": 5}', b'{"t": "1970-01-01T00:00:01Z"}', b'{"t": "x"}']
    parsed = JsonParser(codec.arrow_schema, {}).parse(pa.array(texts, pa.binary()), 0)
    assert parsed.batch.column("t").cast(pa.int64()).to_pylist() == [5, 1_000_000]
    assert [r.row for r in parsed.rejects] == [2]


def test_deep_but_legal_objects_are_read() -> None:
    """The parser reads JSON objects that are nested as deeply as the limit allows."""
    deep: Any = 1
    for _ in range(DEPTH_MAX - 1):
        deep = [deep]
    assert parse(json.dumps({"n": 1, "deep": deep})).rejects == []


def test_fields_that_json_cannot_fill_are_refused() -> None:
    """A schema with a bytes field is refused, because JSON has no form for bytes."""
    with pytest.raises(ConfigurationRefused, match="'b'"):
        JsonParser(pa.schema([("b", pa.binary())]), {})


WITH_EXTRA = Codec(
    {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "text", "type": ["null", "string"], "default": None},
            {"name": "_extra", "type": {"type": "map", "values": "string"}, "default": {}},
        ],
    }
)


def with_extra(*texts: str) -> Parsed:
    lines = pa.array([text.encode() for text in texts], pa.binary())
    defaults = {"text": None, "_extra": {}}
    return JsonParser(WITH_EXTRA.arrow_schema, defaults).parse(lines, 0)


def test_members_without_a_field_go_to_extra() -> None:
    """If the schema has a field `_extra`, this field gets all members that have no field of their
    own. It also gets each value whose type is not the type of its field, and the value's own field
    becomes null."""
    parsed = with_extra(
        '{"n": 1, "b": {"c": [1, null]}, "a": "x"}',
        '{"n": 2, "text": {"no": "text"}}',
        '{"n": 3, "_extra": "mine", "half\\ud800": "\\ud800"}',
        '{"n": 4}',
    )
    assert [(row["n"], row["text"], dict(row["_extra"])) for row in parsed.batch.to_pylist()] == [
        (1, None, {"a": "x", "b": '{"c": [1, null]}'}),
        (2, None, {"text": '{"no": "text"}'}),
        (3, None, {"_extra": "mine", "half?": "?"}),
        (4, None, {}),
    ]
    assert WITH_EXTRA.encode_rows_checked(parsed.batch)[1] == []


def test_a_value_of_another_type_in_a_needed_field_is_rejected() -> None:
    """If a value does not have the type of its field, and the field cannot be null, the line is
    rejected, even if the schema has a field `_extra`."""
    (reject,) = with_extra('{"n": "1"}').rejects
    assert (reject.reason, "field n" in reject.detail) == ("schema", True)


def test_an_extra_field_of_another_type_is_refused() -> None:
    """The field `_extra` must be a map of strings."""
    schema = pa.schema([("_extra", pa.string())])
    with pytest.raises(ConfigurationRefused, match="'_extra' must be a map of strings"):
        JsonParser(schema, {})


def test_members_are_found_by_the_aliases_of_fields() -> None:
    """A member fills the field that has the member's name as an alias, at every depth. If a line
    also has a member with the field's own name, that member fills the field."""
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "user_agent", "type": "string", "aliases": ["user-agent"]},
            {
                "name": "headers",
                "type": ["null", {"type": "array", "items": {
                    "type": "record", "name": "H", "fields": [
                        {"name": "x_id", "type": "int", "aliases": ["x-id"]}
                    ],
                }}],
                "default": None,
            },
        ],
    }  # fmt: skip
    parser = JsonParser(Codec(schema).arrow_schema, {"headers": None}, aliases=aliases_of(schema))
    lines = [
        b'{"user-agent": "a", "headers": [{"x-id": 1}]}',
        b'{"user_agent": "b", "user-agent": "c"}',
    ]
    assert parser.parse(pa.array(lines, pa.binary()), 0).batch.to_pylist() == [
        {"user_agent": "a", "headers": [{"x_id": 1}]},
        {"user_agent": "b", "headers": None},
    ]
    plain = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    assert aliases_of(plain) is None


def test_a_time_that_is_no_field_is_refused() -> None:
    """The settings name the member that contains the time. If the schema has no field of this name,
    the settings are refused, so that a misspelt name is noticed."""
    with pytest.raises(ConfigurationRefused, match="'tiem', which is no field of the schema"):
        parse(time_fields=["tiem"], time_format=TimeFormat("rfc3339"))


NESTED = {
    "type": "record",
    "name": "R",
    "fields": [
        {
            "name": "meta",
            "aliases": ["@meta"],
            "type": ["null", {"type": "record", "name": "M", "fields": [
                {"name": "ts", "type": ["null", "string"], "aliases": ["t.s"], "default": None},
            ]}],
            "default": None,
        },
        {"name": "more", "type": {"type": "map", "values": "string"}, "default": {}},
        {"name": "n", "type": "int", "default": 0},
    ],
}  # fmt: skip


def test_times_inside_objects_are_found() -> None:
    """`timestamp.fields` may name a member inside an object. The setting may use the names in the
    line or the names of the schema's fields. If a line does not have this member, its record gets
    the time at which the agent reads the line. If the schema does not have the member, the settings
    are refused."""

    def parsed(name: str, form: str, *lines: str) -> list[int]:
        parser = JsonParser(
            Codec(NESTED).arrow_schema,
            {"meta": None, "more": {}, "n": 0},
            [name],
            TimeFormat(form),
            aliases=aliases_of(NESTED),
        )
        made = parser.parse(pa.array([line.encode() for line in lines], pa.binary()), 0)
        assert not made.rejects
        return [int(each) for each in made.event_ms]

    lines = ('{"@meta": {"ts": "7"}, "ts": "8"}', '{"meta": {"ts": "9"}}', '{"meta": null}', "{}")
    for name in ("@meta.ts", "meta.ts"):
        assert parsed(name, "epoch", *lines) == [7000, 9000, int(NO_TIME), int(NO_TIME)]
    assert parsed("more.at", "epoch_ms", '{"more": {"at": "5"}}') == [5]
    for name in ("meta.x", "n.ts", "x.ts", "more.at.x"):
        with pytest.raises(ConfigurationRefused, match=f"'{name}', which is no field"):
            parsed(name, "epoch")


def test_numbers_that_no_double_can_be_are_refused() -> None:
    """If a number is too large for a double, the line is rejected, so that no row has an infinite
    number that no program wrote. Other large numbers, and texts that look like such numbers, are
    accepted."""
    lines = [
        b'{"x": 1e400}', b'{"x": -1E+400}', b'{"other": [1e999]}', b'{"x": 1%s.0}' % (b"0" * 400),
        b'{"x": 1e308}', b'{"x": 1e0003}', b'{"x": 2, "text": "1e400"}',
    ]  # fmt: skip
    schema = pa.schema([pa.field("x", pa.float64())])
    parsed = JsonParser(schema, {}).parse(pa.array(lines, pa.binary()), 0)
    assert parsed.batch.column("x").to_pylist() == [1e308, 1000.0, 2.0]
    assert [(each.row, each.reason) for each in parsed.rejects] == [
        (row, NOT_JSON) for row in range(4)
    ]
