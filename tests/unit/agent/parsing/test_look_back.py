"""The framer is the code that splits bytes into records. To find the end of the last whole record
in a range of bytes, the framer first looks at the last lines of the range. If a record begins in
these last lines, the framer does not look at the lines before them. It must find the same end as if
it had looked at all lines."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing import multiline, streams
from skidway.agent.parsing.joins import Rule
from skidway.agent.parsing.multiline import JoiningFramer
from skidway.agent.parsing.streams import StreamsFramer

LINES = st.lists(
    st.sampled_from(
        [b"A\n", b"A 1\n", b" b\n", b" long " + b"x" * 30 + b"\n", b"end\n", b"\n", b"\0\0", b" c"]
    ),
    max_size=30,
)
CRI_LINES = st.lists(
    st.builds(
        lambda stream, tag, text: b"2026-11-20T08:15:01Z %s %s %s\n" % (stream, tag, text),
        st.sampled_from([b"stdout", b"stderr"]),
        st.sampled_from([b"F", b"P"]),
        st.sampled_from([b"A", b" b", b"", b"end"]),
    ),
    max_size=20,
)
RULES = [
    Rule("start", "^A", 500),
    Rule("continuation", "^ ", 500),
    Rule("continuation", "^ ", 3),
    Rule("end", "end$", 500),
    Rule("end", "end$", 4),
]


def whole_records_end(framer: JoiningFramer, data: bytes, look_back: int) -> int:
    with mock.patch.object(multiline, "LOOK_BACK_BYTES", look_back):
        return framer.whole_records_end(data)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("bytes_max", [20, 1_000])
@given(lines=LINES, look_back=st.integers(0, 60))
def test_the_last_lines_decide_where_whole_records_end(
    rule: Rule, bytes_max: int, lines: list[bytes], look_back: int
) -> None:
    """However few bytes the framer (the code that splits bytes into records) looks at first, it
    finds the same end of the last whole record."""
    framer, data = JoiningFramer(rule, bytes_max), b"".join(lines)
    assert whole_records_end(framer, data, look_back) == whole_records_end(framer, data, 1 << 30)


@pytest.mark.parametrize("rule", [None, *RULES])
@given(lines=CRI_LINES, apart=st.integers(0, 150), look_back=st.integers(0, 200))
def test_the_last_lines_of_a_container_decide_it_too(
    rule: Rule | None, lines: list[bytes], apart: int, look_back: int
) -> None:
    """In a container's log, the runtime may have divided lines, which the agent joins. There, too,
    the end of the last whole record does not depend on how few bytes the framer (the code that
    splits bytes into records) looks at first."""
    framer, data = StreamsFramer(rule, 200, "cri"), b"".join(lines)
    with mock.patch.object(streams, "APART_BYTES", apart):
        found = []
        for size in (apart + look_back, 1 << 30):
            with mock.patch.object(streams, "LOOK_BACK_BYTES", size):
                found.append(framer.whole_records_end(data))
    assert found[0] == found[1]
