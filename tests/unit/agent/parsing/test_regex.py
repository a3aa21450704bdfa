import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.agent.parsing import lines
from skidway.agent.parsing.derived import schema as schema_of
from skidway.agent.parsing.framing import LineFramer
from skidway.agent.parsing.parser import NO_TIME, Parsed
from skidway.agent.parsing.regex import RegexParser, anchored, groups_of
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec

LOGS = Path(__file__).parents[3] / "data" / "logs"
NOW_MS = 1_800_000_000_000

REAL = {
    "apache": (
        r"\[(?P<Time>[^\]]*)\] \[(?P<Level>[a-z]+)\] (?P<Content>.*)",
        ["Time"],
        "%a %b %d %H:%M:%S %Y",
    ),
    "hadoop": (
        r"(?P<Date>\S+) (?P<Time>\S+) (?P<Level>[A-Z]+) \[(?P<Process>.*?)\] "
        r"(?P<Component>[^ ]*): (?P<Content>.*)",
        ["Date", "Time"],
        "%Y-%m-%d %H:%M:%S,%f",
    ),
    "openssh": (
        r"(?P<Date>[A-Z][a-z]+) +(?P<Day>\d+) (?P<Time>\S+) (?P<Component>\S+) "
        r"sshd\[(?P<Pid>\d+)\]: (?P<Content>.*)",
        ["Date", "Day", "Time"],
        "%b %d %H:%M:%S",
    ),
}


def parse(texts: list[bytes], pattern: str, schema: pa.Schema, **others: object) -> Parsed:
    return RegexParser(pattern, schema, frozenset(), **others).parse(  # type: ignore[arg-type]
        pa.array(texts, pa.binary()), NOW_MS
    )


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_logs_are_parsed_as_others_parsed_them(name: str) -> None:
    """For every line of real logs, every field has the value that an independent parser found,
    apart from blanks around the value."""
    pattern, time_fields, time_format = REAL[name]
    data = (LOGS / f"{name}.log").read_bytes()
    column = lines.cut(data, LineFramer().frame(data, np.array([len(data)])))
    codec = Codec(schema_of(name, groups_of(pattern), with_time=True))
    parser = RegexParser(
        pattern, codec.arrow_schema, frozenset(), time_fields, TimeFormat(time_format)
    )
    parsed = parser.parse(column, NOW_MS)
    assert not parsed.rejects
    with (LOGS / f"{name}.truth.csv").open(newline="") as file:
        truth = list(csv.DictReader(file))
    rows = parsed.batch.to_pylist()
    assert len(rows) == len(truth)
    for row, wanted in zip(rows, truth, strict=True):
        for field in groups_of(pattern):
            assert row[field].strip() == wanted[field].strip()
    assert codec.encode_rows_checked(parsed.batch)[1] == []


def test_the_whole_line_must_match() -> None:
    """A pattern must match the whole line, and a blank line counts as a line."""
    schema = pa.schema([("a", pa.string())])
    parsed = parse([b"abc", b"xabc", b"abcx", b"", b"ab\xff"], "(?P<a>[a-c]+)", schema)
    assert parsed.rows.tolist() == [0]
    assert parsed.batch.to_pylist() == [{"a": "abc"}]
    assert {(r.row, r.reason) for r in parsed.rejects} == {
        (1, "no-match"), (2, "no-match"), (3, "no-match"), (4, "encoding")
    }  # fmt: skip
    assert parsed.event_ms.tolist() == [NO_TIME]


def test_groups_become_numbers_where_the_schema_says_so() -> None:
    """A group's text is converted to the type of its field. If one text cannot be converted, only
    the line with this text is rejected. An empty text becomes null if the field allows null."""
    schema = pa.schema(
        [pa.field("n", pa.int32(), False), pa.field("x", pa.float64()), pa.field("s", pa.string())]
    )
    texts = [b"1 2.5 a", b"x 1 b", b"3  c", b"99999999999 1 d"]
    parsed = parse(texts, r"(?P<n>\S+) (?P<x>\S*) (?P<s>.*)", schema)
    assert parsed.batch.to_pylist() == [
        {"n": 1, "x": 2.5, "s": "a"},
        {"n": 3, "x": None, "s": "c"},
    ]
    assert [(r.row, r.reason) for r in parsed.rejects] == [(1, "schema"), (3, "schema")]


def test_alternatives_may_have_groups_of_the_same_name() -> None:
    """If several alternatives of a pattern have a group of the same name, its field has the text of
    the alternative that matched. A line in which two of them match is rejected. A group may not be
    there twice without a `|` between."""
    schema = pa.schema([("a", pa.string()), pa.field("n", pa.int32())])
    pattern = r"(?:x=(?P<a>\w+) (?P<n>\d+)|(?P<n>\d+):(?P<a>\w*)|(?P<a>\w+))"
    assert groups_of(pattern) == ["a", "n"]
    rows = [{"a": "one", "n": 1}, {"a": "two", "n": 2}, {"a": "three", "n": None}]
    lines = [b"x=one 1", b"2:two", b"three"]
    assert parse(lines, pattern, schema).batch.to_pylist() == rows
    for line, row in zip(lines, rows, strict=True):
        assert parse([line], pattern, schema).batch.to_pylist() == [row]
    both = parse([b"x", b"1x", b"2", b""], r"(?:(?P<a>\d)|b)?(?P<a>x)?", schema.remove(1))
    assert both.batch.to_pylist() == [{"a": "x"}, {"a": "2"}, {"a": ""}]
    assert [(each.row, each.reason) for each in both.rejects] == [(1, "no-match")]
    for twice in (r"(?P<a>\w)(?P<a>\w)", r"(?P<a>\w)\|(?P<a>\w)"):
        with pytest.raises(ConfigurationRefused, match="two groups of the same name"):
            groups_of(twice)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<a>[ab]+?)(?P<b>.*)",
        r"(?P<a>a|ab)(?:-(?P<c>b*))?(?P<b>.*)$",
        r"(?P<a>.*?)b(?P<c>.*)-(?P<b>.*)",
        r"a(?P<a>.*)|b(?P<b>.*)",
        r"(?:a(?P<b>b)|(?P<a>b))+(?P<b>.*)",
        r"(?i)(?P<a>A+)(?-i)(?P<b>.*)",
        r"(?-s)(?P<a>a)(?P<b>.*)",
        r"(?s:(?P<a>a)(?P<b>.*))",
        r"(?U)(?P<a>a+)(?P<b>.*)",
        r"(?m)(?P<a>a+)$(?P<b>.*)$",
        r"(?P<a>[[:alpha:](])|[[:alpha:])](?P<b>.*)",
        r"(?P<a>a)\Q(\E|\Q)\E(?P<b>.*)",
        r"(?P<a>[)|(]\||a)\b(?P<b>.*)",
        r"(?P<head_a>a)(?P<a>b?)(?P<b>.*)",
        r"(?P<b>.*)",
    ],
)
@given(
    lines=st.lists(st.none() | st.text("ab-|()\n\u20ac", max_size=6)),
    is_multiline=st.booleans(),
    begin=st.integers(0, 2),
)
@example(lines=["ab-", "a(b", ")b", None, "", "aa-\u20acb", "a\nb"], is_multiline=True, begin=0)
def test_the_rest_of_a_line_is_what_re2_finds(
    pattern: str, lines: list[str | None], is_multiline: bool, begin: int
) -> None:
    """If the last group of a pattern is the rest of the line, the agent finds it without RE2. All
    groups are what RE2 finds with the whole pattern."""
    strings = pa.array([b"\xff" if line is None else line.encode() for line in lines], pa.binary())
    schema = pa.schema([(name, pa.string()) for name in groups_of(pattern)])
    parser = RegexParser(pattern, schema, frozenset(), is_multiline=is_multiline)
    parsed = parser.parse(strings[begin:], NOW_MS)
    whole = anchored(f"(?s){pattern}" if is_multiline else pattern)
    wanted = []
    for row, line in enumerate(lines[begin:]):
        found = pc.extract_regex(pa.array([line], pa.string()), whole)
        if not found.is_valid()[0].as_py():
            continue
        texts: dict[str, list[str]] = {}
        for index, field in enumerate(found.type):
            texts.setdefault(field.name, []).append(found.field(index)[0].as_py())
        if all(len(list(filter(None, each))) < 2 for each in texts.values()):
            wanted.append((row, {name: max(each) for name, each in texts.items()}))
    assert list(zip(parsed.rows.tolist(), parsed.batch.to_pylist(), strict=True)) == wanted


def test_a_line_whose_time_is_none_is_rejected() -> None:
    """A line without a valid time is rejected, because the parsed time is a field of the record."""
    codec = Codec(schema_of("t", ["d"], with_time=True))
    parsed = parse(
        [b"2020-01-02", b"2020-99-02"], r"(?P<d>\S+)", codec.arrow_schema,
        time_fields=["d"], time_format=TimeFormat("%Y-%m-%d"),
    )  # fmt: skip
    assert parsed.event_ms.tolist() == [1577923200000]
    assert parsed.batch.column("timestamp").cast(pa.int64()).to_pylist() == [1577923200000]
    assert [(r.row, r.reason) for r in parsed.rejects] == [(1, "timestamp")]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("(?P<a>", "missing"), ("(.*)", "without a name"), ("a.*", "no named group")],
)
def test_patterns_that_cannot_work_are_refused(pattern: str, words: str) -> None:
    """A pattern that RE2 refuses, that has a group without a name, or that has no group, is a
    configuration error."""
    with pytest.raises(ConfigurationRefused, match=words):
        groups_of(pattern)


def test_a_schema_that_the_groups_do_not_fill_is_refused() -> None:
    """A schema with a required field that no group fills is refused, because every line would be
    rejected."""
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    with pytest.raises(ConfigurationRefused, match="'b'"):
        RegexParser("(?P<a>.*)", schema, frozenset())
    RegexParser("(?P<a>.*)", schema, frozenset({"b"}))
    with pytest.raises(ConfigurationRefused, match="bytes"):
        RegexParser("(?P<a>.*)", pa.schema([("a", pa.binary())]), frozenset())
    with pytest.raises(ConfigurationRefused, match="no group"):
        RegexParser("(?P<a>.*)", pa.schema([("a", pa.string())]), frozenset(), ["z"])
