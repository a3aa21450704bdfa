"""A hole is a run of NUL bytes in place of lines. Each hole is a record of its own, and does not
change the lines around it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing.framing import HOLE_BYTES, LineFramer, nul_bytes
from skidway.agent.parsing.joins import START, Rule
from skidway.agent.parsing.multiline import JoiningFramer
from support.promises import promise

LONG = HOLE_BYTES

PIECES = st.lists(
    st.sampled_from([b"a", b"\n", b"\r\n", b"A", bytes(1), bytes(3), bytes(LONG - 1), bytes(LONG)]),
    max_size=9,
).map(b"".join)


def records(framer: LineFramer | JoiningFramer, *ranges: bytes) -> list[tuple[bytes, bool]]:
    """Returns the bytes of each record, including its line terminator, and whether the record is a
    hole (a run of NUL bytes)."""
    data = b"".join(ranges)
    frames = framer.frame(data, np.cumsum([len(each) for each in ranges]))
    holes = [False] * len(frames) if frames.is_hole is None else frames.is_hole.tolist()
    bounds = zip(frames.first.tolist(), frames.end.tolist(), strict=True)
    return [(data[first:end], hole) for (first, end), hole in zip(bounds, holes, strict=True)]


def reference(data: bytes) -> list[tuple[bytes, bool]]:
    """Returns the lines and the holes (runs of NUL bytes) that a regular expression finds in a
    range of bytes. The boolean is true for a hole."""
    found, at = [], 0
    while at < len(data):
        nuls = nul_bytes(data[at:])
        if nuls:
            end, hole = at + nuls, True
        else:
            stops = [m.start() for m in re.finditer(rb"\0{%d}" % LONG, data[at:])]
            feed = data.find(b"\n", at)
            ends = [len(data), *(at + stop for stop in stops), *([feed + 1] if feed >= 0 else [])]
            end, hole = min(ends), False
        found.append((data[at:end], hole))
        at = end
    return found


@promise("2 nul bytes")
@given(PIECES)
def test_holes_are_those_of_a_simple_program(data: bytes) -> None:
    """A run of NUL bytes is a hole if it is at the beginning of a line, or if it has at least LONG
    bytes. All other NUL bytes stay in their lines."""
    if data:
        assert records(LineFramer(), data) == reference(data)


@promise("2 framing")
@given(PIECES, PIECES, st.booleans())
def test_holes_never_depend_on_another_range(one: bytes, other: bytes, is_joined: bool) -> None:
    """The agent splits a range of bytes into records; each hole (a run of NUL bytes) is also a
    record. The records of a range are the same whether the agent splits only this range or several
    ranges together. If a range is divided at the end of a record, its parts have the same records
    as the whole range."""
    framer = JoiningFramer(Rule(START, "^A", 3), 9) if is_joined else LineFramer()
    ranges = [each for each in (one, other) if each]
    if not ranges:
        return
    assert records(framer, *ranges) == [found for each in ranges for found in records(framer, each)]
    for data in ranges:
        for end in framer.frame(data, np.array([len(data)])).end[:-1].tolist():
            divided = records(framer, data[:end]) + records(framer, data[end:])
            assert divided == records(framer, data)


@promise("2 framing")
@given(PIECES, PIECES, st.booleans(), st.sampled_from(["utf-8", "utf-16le", "utf-16be"]))
def test_what_follows_never_changes_a_hole(
    data: bytes, rest: bytes, is_joined: bool, encoding: str
) -> None:
    """Once a hole (a run of NUL bytes) or another record counts as whole, it stays the same,
    whatever is written after it."""
    if encoding != "utf-8":
        data, rest = (b.decode().encode(encoding) for b in (data, rest))
    framer: LineFramer | JoiningFramer = LineFramer(encoding)
    if is_joined:
        framer = JoiningFramer(Rule(START, "^A", 3), 9, encoding=encoding)
    end = framer.whole_records_end(data)
    if end:
        whole = records(framer, data[:end])
        assert records(framer, data + rest)[: len(whole)] == whole


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16le", "utf-16be"])
def test_a_hole_is_whole_as_soon_as_another_byte_follows(encoding: str) -> None:
    """A hole (a run of NUL bytes) counts as whole as soon as any other byte follows it, even if the
    line after the hole is not complete yet."""
    framer, unit = LineFramer(encoding), len("a".encode(encoding))
    hole = bytes(40)
    assert framer.whole_records_end(hole) == 0
    assert framer.whole_records_end(hole + "ab".encode(encoding)) == 40
    text = "ab".encode(encoding)
    assert framer.whole_records_end(text + bytes(LONG)) == 2 * unit
    assert framer.whole_records_end(text + bytes(LONG - 2)) == 0


@promise("2 nul bytes")
def test_a_hole_joins_no_record() -> None:
    """A hole (a run of NUL bytes in place of lines) is never a part of a record of several
    lines."""
    framer = JoiningFramer(Rule(START, "^A", 9), 1000)
    data = b"A\n1\n" + bytes(5) + b"2\n3\nA\n"
    assert [record for record, _ in records(framer, data)] == [
        b"A\n1\n", bytes(5), b"2\n3\n", b"A\n",
    ]  # fmt: skip
    assert framer.whole_records_end(data[:6]) == 4
