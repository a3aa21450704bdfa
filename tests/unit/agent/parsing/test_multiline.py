"""A pattern decides which lines are joined to one record. The same range of bytes always gives the
same records."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing import lines
from skidway.agent.parsing.joins import CONTINUATION, END, START, TRACES, Rule
from skidway.agent.parsing.joints import Joins, check_rule
from skidway.agent.parsing.multiline import JoiningFramer
from skidway.errors import ConfigurationRefused
from support.promises import promise

TRACE_FILES = Path(__file__).parents[3] / "data" / "traces"
LARGE = 1 << 20


def records(framer: JoiningFramer, *ranges: bytes) -> list[bytes]:
    data = b"".join(ranges)
    frames = framer.frame(data, np.cumsum([len(each) for each in ranges]))
    return list(lines.cut(data, frames).to_pylist())


def start(lines_max: int = 500, bytes_max: int = LARGE) -> JoiningFramer:
    return JoiningFramer(Rule(START, "^[A-Z]", lines_max), bytes_max)


def test_a_record_begins_at_each_line_that_matches() -> None:
    """With `multiline` of the type `start`, a record begins at each line that matches the pattern.
    The record keeps the line terminators between its lines, but not the terminator of its last
    line."""
    assert records(start(), b"A\n1\n2\r\nB\r\n3\r\nC\n") == [b"A\n1\n2", b"B\r\n3", b"C"]


def test_a_line_that_matches_belongs_to_the_record_before_it() -> None:
    """With `multiline` of the type `continuation`, each line that matches the pattern belongs to
    the record of the line before."""
    framer = JoiningFramer(Rule(CONTINUATION, "^ ", 500), LARGE)
    assert records(framer, b"a\n b\n\n c\nd") == [b"a\n b", b"\n c", b"d"]


def test_a_record_ends_after_each_line_that_matches() -> None:
    """With `multiline` of the type `end`, a record ends after each line that matches the
    pattern."""
    framer = JoiningFramer(Rule(END, ";$", 500), LARGE)
    assert records(framer, b"a\nb;\nc;\nd\n") == [b"a\nb;", b"c;", b"d"]


def test_lines_that_are_not_utf8_are_joined() -> None:
    """The pattern of `multiline` is also applied to lines that are not UTF-8, so these lines are
    joined like other lines."""
    assert records(start(), b"A\xff\n\xfe\nB\n") == [b"A\xff\n\xfe", b"B"]


def test_a_record_has_no_more_lines_and_bytes_than_allowed() -> None:
    """If the next line would give a record too many lines or bytes, the record ends before this
    line. A single line may have more bytes than a record of several lines may have."""
    assert records(start(2), b"A\n1\n2\n3\n4\nB\n") == [b"A\n1", b"2\n3", b"4", b"B"]
    assert records(start(bytes_max=4), b"A\n12\n3456789\n0\n") == [b"A\n12", b"3456789", b"0"]


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"A\n1\nB\n2\n", 4),
        (b"A\n1\nB\n2", 4),
        (b"A\n1\n", 0),
        (b"A", 0),
        (b"A\n1\n2\n", 6),
        (b"A\n1234567", 2),
    ],
)
def test_a_record_is_whole_when_no_line_can_follow(data: bytes, end: int) -> None:
    """A record counts as whole, so that the agent can send it, if another record follows it, or if
    the record can take no further line."""
    assert start(3, 8).whole_records_end(data) == end


def test_a_record_with_its_end_is_whole_at_once() -> None:
    """With `multiline` of the type `end`, a record is whole as soon as the line that matches the
    pattern has been written."""
    framer = JoiningFramer(Rule(END, ";$", 500), LARGE)
    assert framer.whole_records_end(b"a\nb;\n") == 5
    assert framer.whole_records_end(b"a\nb;\nc\n") == 5


def test_pieces_are_counted() -> None:
    """The framer (the code that splits bytes into records) counts a record as a piece if the
    record's own lines show that other lines belong to it. With the type `start`, such a record does
    not begin with a line that matches; with the type `end`, it does not end with one. The missing
    lines are in another record of the same range, because the record would have had too many lines
    or bytes, or they are in another range."""
    ends = lambda data: np.array([len(data)])  # noqa: E731
    assert start(2).frame(b"1\nA\n2\n3\n", ends(b"1\nA\n2\n3\n")).pieces == 2
    framer = JoiningFramer(Rule(END, ";$", 500), LARGE)
    assert framer.frame(b"a\nb;\nc\n", ends(b"a\nb;\nc\n")).pieces == 1


LINES = st.lists(st.sampled_from([b"A", b"B;", b" c", b"", b"d;", b"\xff", b"Aeeee"]), max_size=12)
RULES = st.builds(
    Rule, st.sampled_from([START, CONTINUATION, END]), st.sampled_from(["^[AB]", "^ ", ";$", "^$"]),
    st.integers(1, 4),
)  # fmt: skip


def reference(rule: Rule, bytes_max: int, data: bytes) -> list[bytes]:
    """Returns the records that a simple program finds in one range of bytes. For each line, the
    program decides whether the line begins a record or belongs to the record before it."""
    found: list[bytes] = []
    before_ended = True
    for number, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+$", data)):
        said = bool(re.search(rule.pattern.encode(), line.rstrip(b"\n")))
        begins = {START: said, CONTINUATION: not said, END: before_ended}[rule.kind]
        before_ended = said
        joined = b"" if not number or begins else found[-1] + line
        is_large = len(joined.removesuffix(b"\n")) > bytes_max
        if joined and not is_large and found[-1].count(b"\n") < rule.lines_max:
            found[-1] = joined
        else:
            found.append(line)
    return found


@promise("2 framing")
@given(RULES, LINES, st.integers(2, 12), st.booleans())
def test_records_are_those_of_a_simple_program(
    rule: Rule, parts: list[bytes], bytes_max: int, has_last_end: bool
) -> None:
    """The records are the same as those of a simple program that looks at one line after the other
    and decides whether the line begins a record or belongs to the record before it."""
    data = b"\n".join(parts) + (b"\n" if has_last_end and parts else b"")
    if not data:
        return
    found = records(JoiningFramer(rule, bytes_max), data)
    assert found == [each.removesuffix(b"\n") for each in reference(rule, bytes_max, data)]


@promise("2 framing")
@given(RULES, LINES, LINES, st.integers(2, 12))
def test_records_of_several_lines_never_depend_on_another_range(
    rule: Rule, one: list[bytes], other: list[bytes], bytes_max: int
) -> None:
    """A range of bytes has the same records whether the agent splits it alone or together with
    other ranges. If a range is divided at the end of a record, its parts have the same records as
    the whole range."""
    framer = JoiningFramer(rule, bytes_max)
    ranges = [each for each in (b"\n".join(one), b"\n".join(other)) if each]
    if not ranges:
        return
    assert records(framer, *ranges) == [
        record for each in ranges for record in records(framer, each)
    ]
    for data in ranges:
        for end in framer.frame(data, np.array([len(data)])).end[:-1].tolist():
            assert records(framer, data[:end]) + records(framer, data[end:]) == records(
                framer, data
            )


@promise("2 framing")
@given(RULES, LINES, LINES, st.integers(2, 12))
def test_what_follows_never_changes_a_whole_record(
    rule: Rule, parts: list[bytes], more: list[bytes], bytes_max: int
) -> None:
    """Once a record counts as whole, it stays the same, whatever is written after it."""
    framer = JoiningFramer(rule, bytes_max)
    data, rest = b"\n".join(parts), b"\n".join(more)
    end = framer.whole_records_end(data)
    if end:
        whole = framer.frame(data[:end], np.array([end])).end.tolist()
        grown = framer.frame(data + rest, np.array([len(data + rest)])).end.tolist()
        assert grown[: len(whole)] == whole


def test_a_pattern_that_is_no_expression_is_refused() -> None:
    """A pattern that RE2 cannot compile is refused with a sentence that quotes the pattern."""
    with pytest.raises(ConfigurationRefused, match=r"multiline.pattern '\(\?<'"):
        check_rule(Rule(START, "(?<", 5))


@pytest.mark.parametrize("language", sorted(set(TRACES) - {"indented"}))
def test_the_traces_of_a_language_are_one_record_each(language: str) -> None:
    """The lines of a stack trace and the log line before them are one record. In the sample file,
    `=== ` marks each line that begins a record."""
    sample = (TRACE_FILES / f"{language}.txt").read_bytes()
    expected = [each.removesuffix(b"\n") for each in sample.split(b"=== ") if each]
    assert len(expected) >= 4
    rule = Rule(CONTINUATION, TRACES[language], 500)
    assert records(JoiningFramer(rule, LARGE), sample.replace(b"=== ", b"")) == expected


HEADS = [
    "2026-11-21 08:15",
    "2026-11-21 08:16",
    "2026-11-21 08:1",
    "\tat a.b.C.d(C.java:1)",
    "é" * 9,
]
PATTERNS = [
    r"^\d{4}-",
    r"^\d{4}-.{10}$",
    r"08:15\b",
    r"08:15:",
    r"x\z",
    "1[^5]",
    "é{9}",
    "é{8}.$",
    "",
]


@given(
    st.lists(
        st.tuples(st.sampled_from(HEADS), st.integers(1, 9), st.sampled_from(["", ":0", "é", "x"])),
        max_size=9,
    ),
    st.sampled_from(PATTERNS),
)
def test_a_pattern_is_found_wherever_it_is(runs: list[tuple[str, int, str]], pattern: str) -> None:
    """Neighbouring lines with the same beginning are searched together. What is found in each line
    is the same as if the line were alone."""
    rule = Rule(START, pattern, 500)
    joins = Joins(rule, LARGE)
    texts = [f"{head}{end}".encode() for head, count, end in runs for _ in range(count)]
    together = joins.joints(pa.array(texts, pa.binary()), np.zeros(len(texts), np.bool_)).begins
    alone = [
        bool(joins.joints(pa.array([text], pa.binary()), np.zeros(1, np.bool_)).begins[0])
        for text in texts
    ]
    assert together.tolist() == alone
