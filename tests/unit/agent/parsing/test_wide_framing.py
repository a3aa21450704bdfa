"""The agent finds the same lines in UTF-16 bytes as a simple program that decodes them with
Python's codecs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing import lines
from skidway.agent.parsing.framing import HOLE_BYTES, LineFramer
from skidway.agent.parsing.joins import START, Rule
from skidway.agent.parsing.multiline import JoiningFramer
from support.promises import promise

ENCODINGS = st.sampled_from(["utf-16le", "utf-16be"])
TEXTS = st.lists(
    st.sampled_from(["\n", "\r\n", "\r", "a", "A", "\u0a00", "\u000b\u0a0a", "\u0d0a", "\u0100",
                     "\u4e00", "\U0001f40a", "\ufeff"]),
    max_size=14,
).map("".join)  # fmt: skip


def values(framer: LineFramer | JoiningFramer, *ranges: bytes) -> list[bytes]:
    data = b"".join(ranges)
    frames = framer.frame(data, np.cumsum([len(each) for each in ranges]))
    assert frames.first.tolist() == [0, *frames.end.tolist()[:-1]]
    assert frames.end.tolist()[-1] == len(data)
    return lines.cut(data, frames).to_pylist()


def expected(text: str) -> list[str]:
    """Returns the lines of a text, each without its line terminator."""
    *terminated, last = text.split("\n")
    return [each.removesuffix("\r") for each in terminated] + ([last] if last else [])


@promise("2 framing")
@given(ENCODINGS, TEXTS)
def test_the_lines_are_those_of_the_decoded_text(encoding: str, text: str) -> None:
    """The agent finds the same lines in UTF-16 bytes as in the text to which Python's codec decodes
    these bytes."""
    data = text.encode(encoding)
    if data:
        found = [each.decode(encoding) for each in values(LineFramer(encoding), data)]
        assert found == expected(text)


@promise("2 framing")
@given(ENCODINGS, st.lists(TEXTS.filter(bool), min_size=1, max_size=4), st.booleans())
def test_ranges_are_framed_together_as_each_by_itself(
    encoding: str, texts: list[str], is_odd: bool
) -> None:
    """A range of bytes has the same records whether the agent splits it alone or together with
    other ranges, even if a range before this range ends with half a code unit."""
    ranges = [text.encode(encoding) + b"\x01" * is_odd for text in texts]
    framer = LineFramer(encoding)
    assert values(framer, *ranges) == [value for each in ranges for value in values(framer, each)]


@promise("2 framing")
@given(ENCODINGS, TEXTS, st.lists(st.integers(0, 60), max_size=5), st.booleans())
def test_however_the_bytes_arrive_the_lines_are_the_same(
    encoding: str, text: str, cuts: list[int], is_joined: bool
) -> None:
    """The bytes of a file may arrive piece by piece, and a piece may end inside a line feed or a
    character. The records are the same as if all bytes had arrived at once."""
    framer: LineFramer | JoiningFramer = LineFramer(encoding)
    if is_joined:
        framer = JoiningFramer(Rule(START, "^A", 3), 40, encoding=encoding)
    data, found, begin = (text + "\nA").encode(encoding), [], 0
    for seen in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        end = framer.whole_records_end(data[begin:seen])
        if end:
            found += values(framer, data[begin : begin + end])
            begin += end
    if begin < len(data):
        found += values(framer, data[begin:])
    assert found == values(framer, data)


@given(ENCODINGS, TEXTS)
def test_a_long_line_ends_where_its_line_feed_is(encoding: str, text: str) -> None:
    """If the agent reads a later part of a long line, the line ends at the first line feed. If the
    last byte of one character and the first byte of the next look like a line feed, they do not end
    the line."""
    data = text.encode(encoding)
    at = text.find("\n")
    end = None if at < 0 else len(text[: at + 1].encode(encoding))
    assert LineFramer(encoding).end_inside(data) == end


@given(ENCODINGS, st.lists(st.sampled_from(["ab", "\u0100", "\n", "NULS"])), st.integers(1, 3))
def test_a_long_line_ends_where_framing_ends_it(
    encoding: str, parts: list[str], extra: int
) -> None:
    """If the agent reads a long line in several parts, it finds the same end of the line as if it
    had read the line at once. The end is a line feed, or the beginning of a long run of NUL
    units."""
    runs = {"NULS": bytes(HOLE_BYTES - 4 + 2 * extra)}
    data = b"".join(runs.get(each, each.encode(encoding)) for each in ["x", *parts])
    framer = LineFramer(encoding)
    first = int(framer.frame(data, np.array([len(data)])).end[0])
    at = len("x".encode(encoding))
    ended = framer.end_inside(data[at:])
    assert first == (len(data) if ended is None else at + ended)


@pytest.mark.parametrize("encoding", ["utf-16le", "utf-16be"])
def test_half_a_code_unit_belongs_to_the_last_record(encoding: str) -> None:
    """If a range ends with half a code unit (one byte of two), this byte is part of the last
    record."""
    data = "a\nb".encode(encoding) + b"x"
    assert values(LineFramer(encoding), data) == ["a".encode(encoding), data[4:]]
    assert LineFramer(encoding).whole_records_end(data) == 4


def test_a_pattern_sees_the_text_and_no_byte_order_mark() -> None:
    """The pattern of `multiline` is applied to the decoded line, without a byte order mark."""
    framer = JoiningFramer(Rule(START, "^A", 9), 400, encoding="utf-16le")
    data = "A\nb\n\ufeffA\nc\n".encode("utf-16le")
    assert [each.decode("utf-16le") for each in values(framer, data)] == ["A\nb", "\ufeffA\nc"]
