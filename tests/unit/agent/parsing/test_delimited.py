"""If a regular expression consists only of groups with literal text between them, and each group
can end in one place only, the agent does not need RE2, its library for regular expressions. It
searches the line for the literal texts. The result must be the same as with RE2."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing.delimited import compiled
from skidway.agent.parsing.regex import anchored, groups_of
from support.promises import promise


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<a>\S+)",
        r"^(?P<a>\S+) (?P<b>.*)$",
        r"(?P<a>\d+)-(?P<b>\d+) (?P<c>.+)",
        r"\[(?P<a>[^\]]+)\] (?P<b>[^:]+): (?P<c>.*)",
        r"(?P<a>\S+) - \"(?P<b>[^\"]+)\" end",
        r"(?P<a>[^ ]+): (?P<b>\S+): (?P<c>.*)",
        r"(?P<a>\d+)0-(?P<b>[^x]+)yyxx(?P<c>\d+)",
    ],
)
def test_patterns_with_one_way_to_match_are_simple(pattern: str) -> None:
    """If each group of a pattern can end in one place only, the agent matches the pattern without
    RE2."""
    assert compiled(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?P<a>\S+)(?P<b>.*)",
        r"(?P<a>\S+):(?P<b>.*)",
        r"(?P<a>.*) (?P<b>\S+)",
        r"(?P<a>\S+) +(?P<b>\S+)",
        r"(?P<a>\d+)0(?P<b>\d+)",
        r"(?P<a>[^:]+) (?P<b>.*)",
        r"(?P<a>[^:]+)-(?P<b>[^ ]+):",
        r"(?P<a>[^\s]+) (?P<b>.*)",
        r"(?P<a>\S+)?",
        r"(?P<a>\S+) (?:x|y)",
        r"(?P<a>\S+) x*",
        r"(?P<a>[A-Z]+) (?P<b>.*)",
        r"(?i)(?P<a>\S+)",
    ],
)
def test_patterns_with_several_ways_are_left_to_re2(pattern: str) -> None:
    """The agent matches a pattern with RE2, and not with its own faster search, if a group could
    end in several places or is of a kind that the search does not know, or if the pattern contains
    anything but groups and literal text."""
    assert compiled(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"(?P<a>\S+) (?P<b>.*)", "1\t2 3"),
        (r"(?P<a>\S+) (?P<b>.*)", " x"),
        (r"(?P<a>\S+) (?P<b>.+)", "a "),
        (r"(?P<a>\S+) (?P<b>.*)", "a b\nc"),
        (r"(?P<a>\d+) (?P<b>.*)", "1a b"),
        (r"(?P<a>\d+)-(?P<b>\d+)", "1-2\u0663"),
        (r"(?P<a>[^:]+): (?P<b>.*)", "a:b: c"),
        (r"(?P<a>[^:]+): (?P<b>[^x]+)", "a: bx"),
        (r"\[(?P<a>\S+)", "a"),
        (r"(?P<a>\S+) end", "a end of it"),
        (r"(?P<a>[^ ]+): (?P<b>.*)", ": b"),
        (r"(?P<a>[^ ]+): (?P<b>.*)", "a b: c"),
        (r"(?P<a>[^ ]+): (?P<b>.*)", "a:"),
        (r"(?P<a>\S+): (?P<b>.*)", "a\tb: c"),
        (r"(?P<a>\S+) (?P<b>\S+)", "a b c"),
        (r"(?P<a>\d+)0-(?P<b>.*)", "0-"),
        (r"(?P<a>\S+) x (?P<b>\S+) (?P<c>.*)", "a x b"),
    ],
)
def test_what_re2_does_not_match_does_not_match(pattern: str, line: str) -> None:
    """Some patterns are so simple that the agent matches them without RE2. A line that almost
    matches such a pattern counts as no match, as with RE2."""
    lines = pa.array([line])
    simple = compiled(pattern)
    assert simple is not None
    assert simple.find(lines).matched.tolist() == [False]
    assert pc.extract_regex(lines, anchored(pattern)).to_pylist() == [None]


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"(?P<a>[^ ]+): (?P<b>.*)", "a:b: c: d"),
        (r"(?P<a>\S+) x (?P<b>\S+) (?P<c>.*)", "a x b c d"),
        (r"(?P<a>\S+) (?P<b>[^:]+):(?P<c>\S+) (?P<d>\S+)", "a b c:d e"),
        (r"(?P<a>\d+)0-(?P<b>[^x]+)-x(?P<c>\d+)", "100-a--x3"),
    ],
)
def test_groups_end_where_re2_ends_them(pattern: str, line: str) -> None:
    """Some patterns are so simple that the agent matches them without RE2. If a line matches such a
    pattern, its groups have the same texts as with RE2."""
    lines = pa.array([line])
    simple = compiled(pattern)
    assert simple is not None
    found = simple.find(lines)
    (expected,) = pc.extract_regex(lines, anchored(pattern)).to_pylist()
    assert found.matched.tolist() == [True]
    assert {name: column[0].as_py() for name, column in found.columns.items()} == expected


def test_a_class_that_continues_behind_its_bracket_is_left_to_re2() -> None:
    """In `[^\\]+`, the backslash makes the bracket a part of the class. So a later bracket ends the
    class, and the pattern has other groups than it seems to have. The agent leaves such a pattern
    to RE2."""
    pattern = r"(?P<a>[^\]+)\\ (?P<b>[^]]+)"
    assert groups_of(pattern) == ["a"]
    assert compiled(pattern) is None
    assert compiled(r"(?P<a>[^\\]+)\\(?P<b>[^\]]+)\](?P<c>.*)") is not None


PARTS = st.sampled_from(
    [
        (r"\S+", " "), (r"\S+", "\t"), (r"\S+", " x"), (r"\d+", " "), (r"\d+", "-"), (r"\d+", "x"),
        ("[^:]+", ": "), (r"[^\]]+", r"\] "), (r"[^\"]+", r"\" "), ("[^x]+", "x"), ("[^ ]+", " "),
        ("[^-]+", "-"), (r"\S+", ""), ("[^:]+", " "), ("[^ ]+", ": "), (r"\S+", "-: "),
        (r"\d+", "1-"), ("[^x]+", "--xx"), ("[^x]+", "-x: x"), (r"\S+", " - "),
    ]
)  # fmt: skip
TAILS = st.sampled_from(
    [r"(?P<z>.*)", r"(?P<z>.+)", r"(?P<z>\S+)", r"(?P<z>\d+)", "", r"(?P<z>[^x]+)"]
)
TOKENS = ["12", "a", "ü", "😀", " ", "\t", "\n", "\r", ": ", "] ", '" ', "x", "-", "1", "[", ":"]
LINES = st.lists(
    st.one_of(st.none(), st.builds("".join, st.lists(st.sampled_from(TOKENS), max_size=9))),
    max_size=8,
)


@promise("2 framing")
@given(
    st.sampled_from(["", "", "^", r"\[", "x"]),
    st.lists(PARTS, max_size=3),
    TAILS,
    st.sampled_from(["", "$"]),
    LINES,
    st.booleans(),
    st.integers(0, 3),
)
def test_a_simple_pattern_finds_what_re2_finds(
    before: str,
    parts: list[tuple[str, str]],
    tail: str,
    after: str,
    lines: list[str | None],
    dot_all: bool,
    skipped: int,
) -> None:
    """Some patterns are so simple that the agent matches them without RE2. For every such pattern
    and every line, the result is the same as with RE2."""
    groups = "".join(f"(?P<g{at}>{kind}){text}" for at, (kind, text) in enumerate(parts))
    pattern = f"{before}{groups}{tail}{after}"
    simple = compiled(pattern, dot_all=dot_all)
    if simple is None or "P<" not in pattern:
        return
    array = pa.array(lines, pa.string())[skipped:]
    if not len(array):
        return
    expected = pc.extract_regex(array, anchored(f"(?s){pattern}" if dot_all else pattern))
    found = simple.find(array)
    assert found.matched.tolist() == np.asarray(expected.is_valid()).tolist()
    for name, column in found.columns.items():
        got = [text for text, good in zip(column.to_pylist(), found.matched, strict=True) if good]
        assert got == expected.drop_null().field(name).to_pylist()
