"""A container's runtime wraps each line that the container wrote, and may divide a line into parts.
The agent unwraps the lines and joins their parts."""

from __future__ import annotations

import json
import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.agent.parsing import containers, lines
from skidway.agent.parsing.containers import ContainerParser, without_fields
from skidway.agent.parsing.derived import schema as schema_of
from skidway.agent.parsing.joins import CONTINUATION, END, START, Rule
from skidway.agent.parsing.parser import NO_MATCH, Parsed
from skidway.agent.parsing.raw import RawParser
from skidway.agent.parsing.regex import RegexParser
from skidway.agent.parsing.runtimes import CRI, DOCKER
from skidway.agent.parsing.streams import APART_BYTES, StreamsFramer
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec
from support.promises import promise

NOW_MS = 1_763_629_000_000
TIME, TIME_MS = b"2025-11-20T08:15:01.669794202Z", 1_763_626_501_669
SCHEMA = Codec(schema_of("logs", ["line"], is_container=True)).arrow_schema


def cri(text: bytes, tag: bytes = b"F", stream: bytes = b"stdout") -> bytes:
    return b" ".join([TIME, stream, tag, text]) + b"\n"


LONG = "x" * containers.DOCKER_PART_BYTES
"""A text after which Docker divides a line."""


def docker(text: str, stream: str = "stdout") -> bytes:
    wrapped = {"log": text, "stream": stream, "time": TIME.decode()}
    return json.dumps(wrapped).encode() + b"\n"


def parsed(kind: str, data: bytes, rule: Rule | None = None) -> Parsed:
    frames = StreamsFramer(rule, 1 << 20, kind).frame(data, np.array([len(data)]))
    data = data if frames.woven is None else frames.woven
    parser = ContainerParser(kind, RawParser(without_fields(SCHEMA), frozenset()), SCHEMA)
    return parser.parse(lines.cut(data, frames), NOW_MS)


def texts(kind: str, data: bytes, rule: Rule | None = None) -> list[str]:
    return list(parsed(kind, data, rule).batch.column("line").to_pylist())


def test_a_line_has_stream_and_time_of_its_runtime() -> None:
    """A record contains the line that the container wrote, its stream (stdout or stderr) and the
    time that the runtime wrote. This time is also the record's event time."""
    for kind, data in ((CRI, cri(b"a b", stream=b"stderr")), (DOCKER, docker("a b\n", "stderr"))):
        found = parsed(kind, data)
        assert found.event_ms.tolist() == [TIME_MS]
        (row,) = found.batch.to_pylist()
        assert (row["line"], row["container_stream"]) == ("a b", "stderr")
        assert row["container_time"].timestamp() * 1000 == pytest.approx(TIME_MS, abs=0.5)


def test_parts_of_a_line_are_joined() -> None:
    """If the runtime divided a line into parts, the parts become one record again."""
    data = cri(b"on", b"P") + cri(b"e l", b"P") + cri(b"ine") + cri(b"") + cri(b"x", b"F:a")
    assert texts(CRI, data) == ["one line", "", "x"]
    data = docker(LONG) + docker("e\n") + docker("\n") + docker("x\r\n")
    assert texts(DOCKER, data) == [f"{LONG}e", "", "x"]


def test_a_short_text_of_docker_is_a_line() -> None:
    """Docker ends a text before its line end only after DOCKER_PART_BYTES bytes, or because the
    container ends. So a shorter text is a line, and what the container writes when it starts again
    is another line."""
    data = docker("bye") + docker("start\n") + docker("é" * 8191) + docker("x\n")
    assert texts(DOCKER, data) == ["bye", "start", "é" * 8191, "x"]
    framer = StreamsFramer(None, 1 << 20, DOCKER)
    assert framer.whole_records_end(docker("bye")) == len(docker("bye"))


def test_each_stream_has_its_own_lines() -> None:
    """Lines of another stream between two parts of a line do not divide this line. Each byte still
    belongs to one record, and records are in the order of their first lines."""
    data = (
        cri(b"on", b"P") + cri(b"oth", b"P", b"stderr") + cri(b"e") + cri(b"er", stream=b"stderr")
    )
    assert texts(CRI, data + cri(b"next")) == ["one", "other", "next"]
    framer = StreamsFramer(None, 1 << 20, CRI)
    frames = framer.frame(data, np.array([len(data)]))
    assert frames.pieces == 0
    assert frames.first.tolist() == [0, *frames.end.tolist()[:-1]]
    assert frames.borders.tolist() == [len(data)]
    assert framer.whole_records_end(data[:-1]) == 0
    assert framer.whole_records_end(data) == len(data)


def test_both_pieces_of_a_line_are_counted() -> None:
    """If a line of the runtime is damaged, the parts before and behind it are not joined. Both
    count as pieces."""
    data = cri(b"on", b"P") + b"damaged\n" + cri(b"e")
    assert texts(CRI, data) == ["on", "e"]
    assert StreamsFramer(None, 1 << 20, CRI).frame(data, np.array([len(data)])).pieces == 2


def test_a_stream_is_not_waited_for_without_end() -> None:
    """If a line has no next part, and only the other stream goes on, the line's record ends after
    APART_BYTES."""
    framer = StreamsFramer(None, 1 << 20, CRI)
    other = cri(b"x" * 1000, stream=b"stderr")
    data = cri(b"on", b"P") + other * 30
    assert framer.whole_records_end(data) == 0
    data += other * (APART_BYTES // len(other) - 29)
    assert framer.whole_records_end(data) == len(data)
    data += cri(b"e")
    assert texts(CRI, data)[0] == "on"
    assert framer.frame(data, np.array([len(data)])).pieces == 2


def test_a_trace_in_a_container_is_one_record() -> None:
    """The pattern of `multiline` is applied to the text that the container wrote. All lines of a
    record are of the same stream, whatever the other stream writes in between."""
    data = (
        cri(b"A", b"P") + cri(b"1") + cri(b" at b") + cri(b" at c", b"P") + cri(b"d")
        + cri(b"err", stream=b"stderr") + cri(b" at f") + cri(b" at e", stream=b"stderr")
        + cri(b"B")
    )  # fmt: skip
    assert texts(CRI, data, Rule(START, "^[A-Z]", 500)) == [
        "A1\n at b\n at cd\n at f",
        "err\n at e",
        "B",
    ]


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (CRI, b"no line of a runtime\n"),
        (CRI, TIME + b" stdout X text\n"),
        (DOCKER, b'{"log":"a\\n","stream":"stdout"}\n'),
        (DOCKER, b'{"log":1,"stream":"stdout","time":"x"}\n'),
        (DOCKER, b'{"log":"\\ud800\\n","stream":"stdout","time":"x"}\n'),
        (DOCKER, b"\xff\n"),
        (DOCKER, b"[]\n"),
    ],
)
def test_a_line_that_is_not_of_the_runtime_is_rejected_alone(kind: str, bad: bytes) -> None:
    """A line that does not have the runtime's format is rejected alone, and is never joined to the
    lines beside it, not even by a pattern that joins all lines."""
    good = cri(b"a", b"P", b"stderr") if kind == CRI else docker(LONG, "stderr")
    last = cri(b"b", stream=b"stderr") if kind == CRI else docker("b\n", "stderr")
    found = parsed(kind, good + bad + last, Rule(CONTINUATION, "", 500))
    assert found.rows.tolist() == [0, 2]
    assert found.batch.column("line").to_pylist() == ["a" if kind == CRI else LONG, "b"]
    ((row, reason),) = [(each.row, each.reason) for each in found.rejects]
    assert (row, reason) == (1, NO_MATCH)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        (CRI, b"9999 stdout F a\n"),
        (CRI, b"2025-99-20T08:15:01Z stdout F a\n"),
        (DOCKER, b'{"log":"a\\n","stream":"stdout","time":"yesterday"}\n'),
    ],
)
def test_a_line_whose_time_is_no_time_is_rejected(kind: str, bad: bytes) -> None:
    """If the runtime's time is no time, the line is not of the runtime: it does not get the time at
    which the agent reads it."""
    found = parsed(kind, bad + (cri(b"b") if kind == CRI else docker("b\n")))
    assert found.rows.tolist() == [1]
    assert [(each.row, each.reason) for each in found.rejects] == [(0, NO_MATCH)]


def test_lines_that_are_all_rejected_make_no_rows() -> None:
    """If the parser rejects all lines, there are no rows, and no error."""
    data = cri(b"\xff")
    framed = lines.cut(data, StreamsFramer(None, 99, CRI).frame(data, np.array([len(data)])))
    inner = RegexParser(
        "(?P<line>x)", without_fields(SCHEMA), frozenset(), ["line"], TimeFormat("rfc3339")
    )
    found = ContainerParser(CRI, inner, SCHEMA).parse(framed, NOW_MS)
    assert (len(found.rows), found.batch.num_rows, len(found.rejects)) == (0, 0, 1)
    found = ContainerParser(CRI, inner, SCHEMA).parse(framed.slice(0, 0), NOW_MS)
    assert (len(found.rows), len(found.rejects)) == (0, 0)


def test_the_last_part_is_awaited() -> None:
    """A divided line is read only when its last part has been written."""
    framer = StreamsFramer(None, 1 << 20, CRI)
    whole = cri(b"a")
    assert framer.whole_records_end(whole + cri(b"b", b"P")) == len(whole)
    data = whole + cri(b"b", b"P") + cri(b"c")
    assert framer.whole_records_end(data) == len(data)


def test_a_schema_that_cannot_take_the_fields_is_refused() -> None:
    """A schema is refused if one of its fields has the name of a runtime's field, such as
    `container_time`, but another type."""
    schema = pa.schema([("line", pa.string()), ("container_time", pa.string())])
    with pytest.raises(ConfigurationRefused, match="container_time"):
        ContainerParser(CRI, RawParser(without_fields(schema), frozenset()), schema)


PARTS = st.lists(
    st.tuples(st.sampled_from([b"A", b" b", b""]), st.booleans(), st.booleans()), max_size=10
)


def reference(parts: list[tuple[bytes, bool, bool]], is_multiline: bool) -> list[str]:
    """Returns the records that a simple program makes by joining the parts of lines, one after
    another, with a buffer for each stream. A part consists of its text, a flag that says whether
    another part of the same line follows, and a flag that says whether the part is on stderr. The
    first part of a line decides whether a record begins there."""
    found: list[list[bytes]] = []
    buffers: dict[bool, list[bytes]] = {}
    is_open = dict.fromkeys((False, True), False)
    for text, is_part, is_error in parts:
        if is_open[is_error]:
            buffers[is_error].append(text)
        elif is_multiline and is_error in buffers and not text.startswith(b"A"):
            buffers[is_error] += [b"\n", text]
        else:
            buffers[is_error] = [text]
            found.append(buffers[is_error])
        is_open[is_error] = is_part
    return [b"".join(each).decode() for each in found]


def wrapped(kind: str, parts: list[tuple[bytes, bool, bool]]) -> bytes:
    return b"".join(
        cri(text, b"P" if is_part else b"F", b"stderr" if is_error else b"stdout")
        if kind == CRI
        else docker(text.decode() + (LONG if is_part else "\n"), "stderr" if is_error else "stdout")
        for text, is_part, is_error in parts
    )


@promise("2 framing")
@given(PARTS, st.booleans(), st.sampled_from([CRI, DOCKER]))
def test_texts_are_those_of_a_simple_program(
    parts: list[tuple[bytes, bool, bool]], is_multiline: bool, kind: str
) -> None:
    """The agent makes the same records from a container's log as a simple program that joins the
    parts of lines, one after another."""
    data = wrapped(kind, parts)
    if data:
        rule = Rule(START, "^A", 500) if is_multiline else None
        found = [each.replace(LONG, "") for each in texts(kind, data, rule)]
        assert found == reference(parts, is_multiline)


RULES = st.sampled_from(
    [
        None, Rule(START, "^A", 3), Rule(END, "b$", 3), Rule(CONTINUATION, "A b", 3),
        Rule(CONTINUATION, "^ ", 2), Rule(END, "", 2),
    ]
)  # fmt: skip


def ends(data: bytes, framer: StreamsFramer) -> list[int]:
    return list(framer.frame(data, np.array([len(data)])).end.tolist()) if data else []


def borders(data: bytes, framer: StreamsFramer) -> list[int]:
    return list(framer.frame(data, np.array([len(data)])).borders.tolist())


@promise("2 framing")
@given(PARTS, PARTS, RULES, st.sampled_from([CRI, DOCKER]), st.sampled_from([1 << 20, 150]))
@example([(b"A", True, False)], [(b"b", False, False)] * 2, Rule(END, "b$", 3), CRI, 1 << 20)
def test_records_never_depend_on_another_range(
    one: list[tuple[bytes, bool, bool]], other: list[tuple[bytes, bool, bool]],
    rule: Rule | None, kind: str, bytes_max: int,
) -> None:  # fmt: skip
    """The lines of a file are joined in the same way whatever other file is read at the same time.
    If a range of bytes is divided at a border, its parts give the same records as the
    whole range."""
    framer = StreamsFramer(rule, bytes_max, kind)
    ranges = [each for each in (wrapped(kind, one), wrapped(kind, other)) if each]
    if not ranges:
        return
    together = framer.frame(b"".join(ranges), np.cumsum([len(each) for each in ranges])).end
    apart = ends(ranges[0], framer)
    if len(ranges) == 2:
        apart += [len(ranges[0]) + end for end in ends(ranges[1], framer)]
    assert together.tolist() == apart
    for data in ranges:
        for end in borders(data, framer):
            after = [end + each for each in ends(data[end:], framer)]
            assert ends(data[:end], framer) + after == ends(data, framer)


@promise("2 framing")
@given(
    PARTS, PARTS,
    st.sampled_from([None, Rule(START, "^A", 3), Rule(END, "b$", 3), Rule(CONTINUATION, "A b", 3)]),
    st.sampled_from([CRI, DOCKER]), st.integers(0, 90),
)  # fmt: skip
@example(
    [(b"", False, False), (b"A", True, False)], [(b" b", False, False)],
    Rule(CONTINUATION, "A b", 3), CRI, 0,
)  # fmt: skip
def test_what_follows_never_changes_a_whole_record(
    parts: list[tuple[bytes, bool, bool]], more: list[tuple[bytes, bool, bool]],
    rule: Rule | None, kind: str, cut_off: int,
) -> None:  # fmt: skip
    """Once a record counts as whole, it stays the same, whatever bytes are added to the file later.
    This is so even if the file ended in the middle of a line when the agent read the record."""
    framer = StreamsFramer(rule, 1 << 20, kind)
    everything = wrapped(kind, parts) + wrapped(kind, more)
    data = everything[: max(len(wrapped(kind, parts)) - cut_off, 0)]
    end = framer.whole_records_end(data)
    if end:
        whole = framer.frame(data[:end], np.array([end])).end.tolist()
        grown = framer.frame(everything, np.array([len(everything)])).end.tolist()
        assert grown[: len(whole)] == whole


def test_the_depth_of_a_line_is_found_in_one_pass() -> None:
    """The time to find how deeply a line's JSON is nested is proportional to the line's length,
    whatever bytes the line has. A string that does not end is read once, however many quotation
    marks it has. Brackets in strings do not count."""
    begin = time.process_time()
    assert not containers._is_shallow(b"{" * 201 + b'"' + b'\\"' * 300_000)
    assert time.process_time() - begin < 5
    assert containers._is_shallow(b'{"log": "' + b'[\\"{' * 300 + b'"}')
    assert not containers._is_shallow(b'{"log": "\\"", "x": ' + b"[" * 201)


def test_a_docker_line_with_nul_bytes_ends_nothing_however_deep_it_is() -> None:
    """Docker writes its lines in UTF-8. A line of JSON in UTF-16 is rejected alone, like any other
    line that Docker did not write. The check of the nesting depth may take bytes of such a line for
    quotation marks, and so miss the line's brackets. Even then, only this line is rejected."""
    quote_in_a_letter = "\u2261".encode("utf-16-le")
    deep = b'[\0"\0' + quote_in_a_letter + b'"\0,\0' + b"[\0" * 100_000
    found = parsed(DOCKER, docker("a\n") + deep + b"\n" + docker("b\n"))
    assert found.batch.column("line").to_pylist() == ["a", "b"]
    assert [(each.row, each.reason) for each in found.rejects] == [(1, NO_MATCH)]
