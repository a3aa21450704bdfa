import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing import lines
from skidway.agent.parsing.framing import LineFramer
from support.promises import promise


def values(*ranges: bytes) -> list[bytes]:
    data = b"".join(ranges)
    frames = LineFramer().frame(data, np.cumsum([len(each) for each in ranges]))
    return lines.cut(data, frames).to_pylist()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\r\nb\n", [b"a", b"b"]),
        (b"\n\r\n\n", [b"", b"", b""]),
        (b"a\rb\n", [b"a\rb"]),
        (b"a\r\r\n", [b"a\r"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\nb\r", [b"a", b"b\r"]),
        (b"\r", [b"\r"]),
        (b"x", [b"x"]),
    ],
)
def test_lf_and_crlf_end_a_line_and_are_no_part_of_it(data: bytes, expected: list[bytes]) -> None:
    """Both LF and CRLF end a line and are not part of the line. A blank line is a record, and the
    last line of a range (the bytes of a file that the agent reads at once) may have no line
    terminator."""
    assert values(data) == expected


@promise("2 framing")
def test_no_record_crosses_the_end_of_a_range() -> None:
    """A range is the bytes of a file that the agent reads at once. If the last line of a range has
    no line terminator, this line is one record, and the first bytes of the next range are another
    record."""
    assert values(b"a\nb", b"c\r\n", b"\n") == [b"a", b"b", b"c", b""]


pieces = st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", b"bc"]), min_size=1, max_size=12)


@given(st.lists(pieces.map(b"".join), min_size=1, max_size=5))
def test_ranges_are_framed_together_as_each_by_itself(ranges: list[bytes]) -> None:
    """A range of bytes is split into the same records whether the agent splits it alone or together
    with other ranges. Each byte of the range is in a record."""
    assert values(*ranges) == [value for each in ranges for value in values(each)]
    data = b"".join(ranges)
    frames = LineFramer().frame(data, np.cumsum([len(each) for each in ranges]))
    assert frames.first.tolist() == [0, *frames.end.tolist()[:-1]]
    assert frames.end[-1] == len(data)
    assert frames.length.sum() == len(data)


def test_only_whole_lines_are_read() -> None:
    """`whole_records_end` returns the position after the last line terminator. The bytes after this
    position are a line without a terminator. The agent leaves these bytes for its next reading of
    the file."""
    assert LineFramer().whole_records_end(b"a\nbc") == 2
    assert LineFramer().whole_records_end(b"abc") == 0


@pytest.mark.parametrize(
    ("encoding", "data", "end"),
    [
        ("utf-8", b"ab", 2),
        ("utf-8", b"ab\r", 2),
        ("utf-8", "ab\u00e9".encode(), 4),
        ("utf-8", "ab\u00e9".encode()[:3], 2),
        ("utf-8", "a\u2588".encode()[:2], 1),
        ("utf-8", "a\u2588".encode()[:3], 1),
        ("utf-8", "a\U0001f600".encode()[:4], 1),
        ("utf-8", "a\U0001f600".encode(), 5),
        ("utf-8", "a\u2588".encode()[:3] + b"\r", 1),
        ("utf-8", "\u2588".encode()[:2], 2),
        ("utf-8", b"a" + b"\x80" * 6, 7),
        ("utf-8", b"\r", 1),
        ("windows-1252", b"ab\xe9", 3),
        ("utf-16le", "ab".encode("utf-16-le"), 4),
        ("utf-16le", "ab".encode("utf-16-le") + b"c", 4),
        ("utf-16le", "a\r".encode("utf-16-le"), 2),
        ("utf-16le", "a\U0001f600".encode("utf-16-le")[:4], 2),
        ("utf-16be", "a\U0001f600".encode("utf-16-be")[:4], 2),
        ("utf-16be", "a\U0001f600".encode("utf-16-be"), 6),
        ("utf-16be", b"\0", 0),
    ],
)
def test_a_line_is_divided_between_characters(encoding: str, data: bytes, end: int) -> None:
    """A line that never ends is divided neither inside a character nor between CR and LF. If this
    leaves nothing, it is divided after the last whole code unit. Bytes that are no character of the
    encoding do not matter."""
    assert LineFramer(encoding).part_end(data) == end
