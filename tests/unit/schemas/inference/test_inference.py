"""Tests how a schema is inferred from a log. The types in the result fit the log's lines. The
result also says, for each field, which share of the fitting lines have the field."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.loader.datasource.columns import QUERY_RESERVED
from skidway.schemas.advice import advise
from skidway.schemas.avro_schema import SchemaInvalid, parse
from skidway.schemas.compatibility import Level
from skidway.schemas.inference import FormatUnknown, Inference, infer, read_lines
from skidway.schemas.inference.formats import CSV, JSON, LOGFMT, LineFormat, known
from skidway.schemas.inference.lines import LINE_BYTES_MAX
from skidway.schemas.inference.naming import EXTRA_FIELD, RESERVED
from skidway.schemas.inference.shapes import MEMBERS_MAX, SHAPES_MAX

LOGS = Path(__file__).parents[3] / "data" / "logs"


def of(*values: Any, **more: Any) -> Inference:
    """Infers a schema from a log that has one line of JSON for each of the given values."""
    lines = [json.dumps(each).encode() for each in values]
    return infer(lines, name="Log", kind=JSON, **more)


def types(found: Inference) -> dict[str, Any]:
    return {each["name"]: each["type"] for each in found.schema["fields"]}


@pytest.mark.parametrize(
    ("values", "avro"),
    [
        ([1, 2], "long"),
        ([1, 2**63 - 1], "long"),
        ([1, 2**63], "double"),
        ([1, 2**40, 1.5], "double"),
        ([True, False], "boolean"),
        (["a", ""], "string"),
        ([1, None], ["null", "long"]),
        ([None], ["null", "string"]),
        ([1, "a"], ["long", "string"]),
        ([[1], [2**40], []], {"type": "array", "items": "long"}),
        ([[1, None]], {"type": "array", "items": ["null", "long"]}),
        ([[]], {"type": "array", "items": "string"}),
        ([{}], {"type": "map", "values": "string"}),
        (
            ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.25+01:00"],
            {"type": "long", "logicalType": "timestamp-millis"},
        ),
        (
            ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123456Z"],
            {"type": "long", "logicalType": "timestamp-micros"},
        ),
        (["2024-01-01T00:00:00Z", "later"], "string"),
        (["2024-01-01T00:00:00"], "string"),
        (["2024-13-01T00:00:00Z"], "string"),
        (["2024-01-01T00:00:00Z", 7], ["long", "string"]),
    ],
)
def test_types_are_merged_over_lines(values: list[Any], avro: Any) -> None:
    """In a schema that is inferred from a log, a field gets a type that fits all its values. The
    type is a timestamp only if every value is a time."""
    assert types(of(*({"x": each} for each in values)))["x"] == avro


def test_objects_inside_are_records_and_say_what_may_be_missing() -> None:
    """In a schema that is inferred from a log, objects inside JSON objects become nested records.
    If some items of an array lack a field, the field becomes nullable."""
    found = of({"o": {"a": 1, "t": "2024-01-01T00:00:00Z"}, "l": [{"x": 1}, {"x": 2, "y": "z"}]})
    record = {"type": "record", "name": "Log_o", "fields": [
        {"name": "a", "type": "long"}, {"name": "t", "type": "string"},
    ]}  # fmt: skip
    item = {"type": "record", "name": "Log_l_item", "fields": [
        {"name": "x", "type": "long"}, {"name": "y", "type": ["null", "string"], "default": None},
    ]}  # fmt: skip
    assert types(found) == {
        "o": record, "l": {"type": "array", "items": item}, "_extra": EXTRA_FIELD["type"],
    }  # fmt: skip


def test_each_field_has_its_share_of_the_lines() -> None:
    """For each field, the result says which share of the fitting lines (the lines in the log's
    format) have the field. A line counts once for a field, even if an array in the line has the
    field twice. Blank lines never count."""
    found = infer(
        [b'{"a": 1, "l": [{"x": 1}, {"x": 2}]}', b"", b'{"a": 2, "b": null}', b'{"a": 3}', b"?"],
        name="Log",
    )
    assert [(each.place, each.lines) for each in found.fields] == [
        ("a", 3), ("l", 1), ("l[].x", 1), ("b", 1),
    ]  # fmt: skip
    assert [round(each.share, 2) for each in found.fields] == [1.0, 0.33, 0.33, 0.33]
    assert found.fields[1].type == "null or array of record Log_l_item"


def test_lines_that_do_not_fit_are_counted_by_reason() -> None:
    """When a schema is inferred from a log, lines that do not fit the format are counted by reason,
    and the other lines decide the schema."""
    lines = [b'{"a":1}'] * 4 + [b"{", b"[1]", b"\xff", b'{"a":NaN}', b"x" * (LINE_BYTES_MAX + 1)]
    deep = b'{"a":' + b"[" * 20 + b"]" * 20 + b"}"
    found = infer([*lines, deep], name="Log", kind=JSON)
    assert (found.lines, found.fitting) == (10, 4)
    assert found.unfit == {
        "not JSON": 2,
        "JSON, but no object": 1,
        "not UTF-8": 1,
        f"longer than {LINE_BYTES_MAX} bytes": 1,
        "nested more than 16 levels deep": 1,
    }


@pytest.mark.parametrize(
    ("text", "kind"),
    [("name,size\nann,1\nbob,2\n", "csv"), ('{"name":"a","size":1}\n', "json"),
     ("name=ann size=1\nname=bob size=2\n", "logfmt")],
)  # fmt: skip
def test_a_byte_order_mark_is_no_part_of_a_log(text: str, kind: str) -> None:
    """The schema of a log that begins with the byte order mark of UTF-8 is that of the log without
    it, in every format. A log in UTF-16 is refused by that name."""
    found = infer(read_lines(io.BytesIO(text.encode("utf-8-sig"))), name="Log")
    assert found == infer(read_lines(io.BytesIO(text.encode())), name="Log")
    assert (found.format.name, [each.place for each in found.fields]) == (kind, ["name", "size"])
    for encoding in ("utf-16", "utf-32"):
        with pytest.raises(FormatUnknown, match=encoding.upper()):
            infer(read_lines(io.BytesIO(text.encode(encoding))), name="Log", kind=known()[kind])


def test_names_that_avro_does_not_take_are_made_valid() -> None:
    """If the name of a member of a JSON object is invalid in Avro, the field of this member gets a
    valid and unique name. The field's alias and doc have the original name."""
    found = of({"user-agent": "x", "user_agent": 1, "1st": True, "": 0, "é": 0})
    by_name = {each["name"]: each for each in found.schema["fields"]}
    assert list(by_name) == ["user_agent_2", "user_agent", "_1st", "_", "__2", "_extra"]
    assert by_name["user_agent_2"]["aliases"] == ["user-agent"]
    assert "'user-agent'" in by_name["user_agent_2"]["doc"]
    assert "aliases" not in by_name["user_agent"]


def test_csv_is_read_with_its_names() -> None:
    """In a schema that is inferred from CSV with a header, a column is a string if one of its
    values may be meant as text, such as 007 or +1. An empty value is null."""
    found = infer(
        [
            b"time;status;code;bytes;ok;note",
            b'2024-01-01T00:00:00Z;200;007;;true;"a;b"',
            b"2024-01-01T00:00:01Z;404;100;1.5;false;+1",
            b"one;two",
            b"2024-01-01T00:00:01Z;-1;100;2;false;x",
        ],
        name="access-log",
    )
    assert (found.format, found.lines, found.unfit) == (CSV, 4, {"not 6 columns": 1})
    assert found.schema["name"] == "access_log"
    assert types(found) == {
        "time": {"type": "long", "logicalType": "timestamp-millis"},
        "status": "long",
        "code": "string",
        "bytes": ["null", "double"],
        "ok": "boolean",
        "note": "string",
    }


def test_csv_without_names_has_numbered_columns() -> None:
    """CSV without a header gets numbered columns if the caller says that the format is CSV. If the
    caller names no format, lines without a header are not taken for CSV."""
    lines = [b"1,a", b"2,b"]
    with pytest.raises(FormatUnknown):
        infer(lines, name="Log")
    assert types(infer(lines, name="Log", kind=CSV)) == {
        "column_1": "long",
        "column_2": "string",
    }


def test_a_first_line_that_is_no_csv_is_one_that_does_not_fit() -> None:
    """If the first line of a CSV log is not valid CSV, it is counted as a line that does not fit,
    and the columns come from the second line."""
    found = infer([b'"open', b"1,2", b"3,4"], name="Log", kind=CSV)
    assert (found.lines, found.fitting, found.unfit) == (3, 2, {"not CSV": 1})


def test_logfmt_is_read() -> None:
    """Lines in the format logfmt are read, with quoted values and keys without a value. Lines of
    prose are counted as lines that do not fit."""
    found = infer(
        [
            b'at=info path="/a b" status=200 cached',
            b'at=error msg="say \\"no\\"" status=503',
            b"just some words",
        ],
        name="Log",
    )
    assert (found.format, found.unfit) == (LOGFMT, {"not logfmt": 1})
    assert types(found) == {
        "at": "string",
        "path": ["null", "string"],
        "status": "long",
        "cached": ["null", "boolean"],
        "msg": ["null", "string"],
        "_extra": EXTRA_FIELD["type"],
    }


@pytest.mark.parametrize(
    "log", ["apache", "hadoop", "hdfs", "linux", "openssh", "spark", "zookeeper"]
)
def test_logs_of_prose_are_told_apart(log: str) -> None:
    """A log of sentences with commas is not mistaken for CSV."""
    with (LOGS / f"{log}.log").open("rb") as file, pytest.raises(FormatUnknown, match="regular"):
        infer(read_lines(file), name=log)


def test_a_real_table() -> None:
    """A schema is inferred from a CSV file of real log lines. Its fields have the names of the CSV
    columns. Columns of numbers become long, and other columns become string."""
    with (LOGS / "openssh.truth.csv").open("rb") as file:
        found = infer(read_lines(file), name="openssh")
    assert (found.format, found.unfit) == (CSV, {})
    assert types(found)["Pid"] == "long"
    assert types(found)["Content"] == "string"
    assert {each.share for each in found.fields} == {1.0}


def test_names_that_are_data_make_a_map() -> None:
    """If a JSON object in a log has more names than the limit for the fields of a record, it
    becomes a map in the inferred schema."""
    found = of({"users": {f"u{at}": at for at in range(MEMBERS_MAX + 1)}, "other": 1})
    assert types(found)["users"] == {"type": "map", "values": "long"}


def test_members_that_no_line_has_yet_find_a_place() -> None:
    """The schema of JSON lines and of logfmt always has the map `_extra`, and no other field has
    this name, whether in upper or in lower case. Rows of CSV have a fixed number of values."""
    found = of({"_extra": 1, "_EXTRA": 2, "a": 3})
    assert found.schema["fields"][-1] == EXTRA_FIELD
    assert [x["name"] for x in found.schema["fields"]] == ["EXTRA", "a", "_extra"]
    rows = infer([b"a,b", b"1,x", b"2,y"], name="Log", kind=CSV)
    assert [x["name"] for x in rows.schema["fields"]] == ["a", "b"]


def test_memory_is_bounded_whatever_the_lines_hold() -> None:
    """When a schema is inferred from a log, only a limited number of fields is stored, and further
    fields are only counted, so that memory is bounded."""
    found = of(
        *({f"f{line}_{at}": 1 for at in range(100)} for line in range(SHAPES_MAX // 100 + 1))
    )
    assert len(found.schema["fields"]) == SHAPES_MAX + 1  # the last is _extra
    assert found.left_out == 100


def test_a_file_is_read_line_by_line() -> None:
    """To infer a schema, a log file is read line by line. Lines end with LF or CRLF. Of a line that
    is too long, only the beginning is kept in memory."""
    long = b"x" * (LINE_BYTES_MAX * 3)
    made = [*read_lines(io.BytesIO(b"a\r\nb\n\n" + long + b"\nc"))]
    assert [made[0], made[1], made[2], made[4]] == [b"a", b"b", b"", b"c"]
    assert len(made[3]) == LINE_BYTES_MAX + 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_end_of_a_line_does_not_count_as_its_length(end: bytes) -> None:
    """A line of a log may be as long as the limit, whether it ends with LF, with CRLF, or with the
    file. A line that has one byte more is too long."""
    for length in (LINE_BYTES_MAX, LINE_BYTES_MAX + 1):
        made = [*read_lines(io.BytesIO(b"a\n" + b"x" * length + end))]
        assert [len(each) for each in made] == [1, length]
    made = [*read_lines(io.BytesIO(b"x" * (LINE_BYTES_MAX + 2) + b"\nb" + end))]
    assert [len(each) for each in made] == [LINE_BYTES_MAX + 1, 1]


def test_a_namespace_that_is_none_is_refused() -> None:
    """An invalid namespace is refused with the error of the schema parser."""
    assert of({"a": 1}, namespace="com.example").schema["namespace"] == "com.example"
    with pytest.raises(SchemaInvalid, match="no name"):
        of({"a": 1}, namespace="a-b")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), VALUES, max_size=5), min_size=1, max_size=6))
def test_every_proposal_is_a_schema(objects: list[dict[str, Any]]) -> None:
    """An inferred schema is valid for Skidway's parser and for Apache's. Each line fits the schema
    or is counted as a line that does not fit."""
    found = of(*objects)
    parse(found.schema)
    assert advise([], parse(found.text), Level.NONE).notes == ()
    assert found.fitting + sum(found.unfit.values()) == len(objects)
    assert parse(json.loads(found.text))


@given(st.lists(st.binary(max_size=60), max_size=20), st.sampled_from([JSON, LOGFMT, CSV]))
def test_no_lines_break_it(lines: list[bytes], kind: LineFormat) -> None:
    """Whatever the lines contain, the inferred schema is valid."""
    parse(infer(lines, name="?", kind=kind).schema)


def test_no_field_has_the_name_of_a_loaders_column() -> None:
    """If a member of a line's JSON object has the name of a column that the loader adds, its field
    gets another name, with the member's name as an alias. Members of nested objects keep their
    names."""
    found = of({"@timestamp": 1, "timestamp": 2, "_HOST": "a", "dt": 3, "deep": {"_file": "x"}})
    fields = found.schema["fields"]
    assert [each["name"] for each in fields] == [
        "timestamp_2", "timestamp", "HOST", "dt_2", "deep", "_extra",
    ]  # fmt: skip
    assert fields[0]["aliases"] == ["@timestamp"]
    assert fields[4]["type"]["fields"][0]["name"] == "_file"
    assert QUERY_RESERVED == RESERVED


def test_no_two_fields_differ_only_in_case() -> None:
    """If the names of two members of a JSON object differ only in case, the field of the second
    member gets another name. The reason is that the loader and Spark refuse fields whose names
    differ only in case."""
    fields = of({"userId": 1, "userid": "a", "deep": {"A": 1, "a": 2}}).schema["fields"]
    assert [each["name"] for each in fields] == ["userId", "userid_2", "deep", "_extra"]
    assert fields[1]["aliases"] == ["userid"]
    assert [each["name"] for each in fields[2]["type"]["fields"]] == ["A", "a_2"]
