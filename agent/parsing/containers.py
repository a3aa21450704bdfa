r"""Unwraps a container's lines. The container's runtime wraps each line that the container writes
in a line of the runtime's format.

    cri      2026-11-20T08:15:01.669794202Z stdout F text        containerd, CRI-O (Kubernetes)
    docker   {"log":"text\n","stream":"stdout","time":"..."}     Docker's driver json-file

A runtime divides a long line into parts: in a cri log, P instead of F says that the line's next
part follows; in a docker log, a text of at least DOCKER_PART_BYTES that does not end with \n is
such a part. (Docker also writes a shorter text without \n, if the container ends there: that text
is a line.) If the texts of several lines belong together, the framer (`streams`) makes one record
of these lines, and `ContainerParser` joins the record's texts.

Source: the Kubernetes CRI logging format (kubelet's log directory), Docker's documentation of
json-file.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from skidway.agent.parsing import delimited
from skidway.agent.parsing.framing import Booleans, Int64s, LineFramer
from skidway.agent.parsing.json_lines import DEPTH_MAX
from skidway.agent.parsing.lines import sizes, slices, spans
from skidway.agent.parsing.parser import NO_MATCH, NO_TIME, Parsed, Parser, Reject, in_places
from skidway.agent.parsing.runtimes import CRI
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

STREAM: Final = "container_stream"
TIME: Final = "container_time"
FIELDS: Final = (STREAM, TIME)
"""The schema's fields for the stream and the time that the runtime wrote into the line."""

DOCKER_PART_BYTES: Final = 16_384
"""Docker divides a line after this many bytes. In its log, they may have become more bytes."""

_CRI_LINE: Final = (
    r"(?s)\A(?P<time>[0-9T:.Z+-]+) (?P<stream>stdout|stderr) (?P<tag>[PF])\S*(?: (?P<text>.*))?\z"
)
_PLAIN_CRI_LINE: Final = delimited.compiled(
    r"(?P<time>\S+) (?P<stream>\S+) (?P<tag>\S+) (?P<text>.*)", dot_all=True
)
_STREAMS: Final = pa.array([b"stdout", b"stderr"])
_IS_OF_TIME: Final = np.isin(np.arange(256), list(b"0123456789T:.Z+-"))
_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?')
"""Matches a JSON string. A string without a closing quotation mark matches up to the line's end, so
that no later search reads these bytes again."""
_RFC3339: Final = TimeFormat("rfc3339")


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Unwrapped lines: arrays with one entry for each line. texts: what the container wrote,
    without a line end. streams, times: the stream and the time that the runtime added to the text.
    is_part: whether the next part of the text is in another line. is_good: whether the line is in
    the runtime's format; if it is not, the line's entries in the other arrays mean nothing.
    """

    texts: pa.BinaryArray
    streams: pa.BinaryArray
    times: pa.BinaryArray
    is_part: Booleans
    is_good: Booleans


def unwrap(kind: str, lines: pa.BinaryArray) -> Unwrapped:
    """Extracts the container's text, the stream and the time from each line. kind: CRI or
    DOCKER."""
    return _unwrap_cri(lines) if kind == CRI else _unwrap_docker(lines)


def follows(lines: Unwrapped) -> Booleans:
    """Returns, for each line, whether its text is the next part of the text in the line before
    it."""
    found = np.zeros(len(lines.is_good), np.bool_)
    found[1:] = lines.is_part[:-1] & lines.is_good[:-1] & lines.is_good[1:] & ~_differs(lines)[1:]
    return found


def stream_numbers(lines: Unwrapped) -> Int64s:
    """Returns 0 for each line of stdout, and 1 for each other line."""
    return np.asarray(pc.not_equal(lines.streams, b"stdout")).astype(np.int64)


def whole_texts(lines: Unwrapped) -> pa.BinaryArray:
    """Returns the texts that the container wrote, each with all its parts."""
    return _concatenated(lines.texts, np.flatnonzero(~follows(lines)))


class ContainerParser:
    """Lets another parser parse the containers' texts. If the schema has fields for the stream and
    the time, adds these to the other parser's rows.

    The other parser's schema does not have FIELDS (the fields for the stream and the time). If the
    other parser finds no event time in a text, the record gets the time that the runtime wrote. A
    line whose time is no time is not of the runtime.
    """

    def __init__(self, kind: str, inner: Parser, schema: pa.Schema) -> None:
        self._kind, self._inner = kind, inner
        self._fields = [field for field in schema if field.name in FIELDS]
        for field in self._fields:
            fits = types.is_string if field.name == STREAM else types.is_timestamp
            if not fits(field.type):
                raise ConfigurationRefused(
                    f"container: the schema's field {field.name!r} takes the container's "
                    f"{field.name}; it cannot be a {field.type}"
                )

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the texts of records, each of which has one or several lines of the runtime."""
        values, first = _lines_of(lines)
        found = unwrap(self._kind, values)
        texts = _joined(found, first, len(values))
        good = np.logical_and.reduceat(found.is_good, first) if len(first) else np.ones(0, np.bool_)
        written_ms, is_time = _RFC3339.parse(found.times.take(first).cast(pa.string()), now_ms)
        good &= is_time
        rows = np.flatnonzero(good)
        rejects = [Reject(row, NO_MATCH, self._detail) for row in np.flatnonzero(~good).tolist()]
        if len(rows) < len(lines):
            texts = texts.take(pa.array(rows))
        parsed = in_places(self._inner.parse(texts, now_ms), rows)
        written_ms = written_ms[parsed.rows]
        batch = parsed.batch
        for field in self._fields:
            if field.name == STREAM:
                column = found.streams.take(first[parsed.rows]).cast(pa.string())
            else:
                moments = pa.array(written_ms, pa.timestamp("ms", "UTC"))
                column = moments.cast(field.type, safe=False)
            batch = batch.append_column(field.name, column)
        event_ms = np.where(parsed.event_ms == NO_TIME, written_ms, parsed.event_ms)
        rejects += parsed.rejects
        return replace(parsed, batch=batch, event_ms=event_ms, rejects=rejects)

    @property
    def _detail(self) -> str:
        return f"the line is no line of a {self._kind} container log"


def without_fields(schema: pa.Schema) -> pa.Schema:
    """Returns the schema without FIELDS."""
    return pa.schema([field for field in schema if field.name not in FIELDS])


def _lines_of(records: pa.BinaryArray) -> tuple[pa.BinaryArray, Int64s]:
    """Returns the lines of records, and for each record the index of its first line."""
    if not any(byte in spans(records)[0][:-1] for byte in (b"\n", b"\r", b"\0")):
        return records, np.arange(len(records))  # each record is one line
    lengths = sizes(records)
    data = b"\n".join([*records.to_pylist(), b""]) if len(records) else b""
    ends = np.cumsum(lengths + 1)
    if not len(ends):
        return records, ends
    frames = LineFramer().frame(data, ends)
    begins = np.append(0, ends[:-1])
    return slices(data, frames.first, frames.content_end), np.searchsorted(frames.first, begins)


def _joined(lines: Unwrapped, first: Int64s, count: int) -> pa.BinaryArray:
    """Returns, for each record, the texts of its lines, joined. There is a line end between two
    texts, but not between two parts of the same text.
    """
    if len(first) == count:
        return lines.texts
    inside = np.ones(count, np.bool_)
    inside[np.append(first[1:], count) - 1] = False  # a record's last line: nothing follows it
    ends = pa.array(np.where(inside & ~lines.is_part, "\n", "")).cast(pa.binary())
    return _concatenated(pc.binary_join_element_wise(lines.texts, ends, b""), first)


def _concatenated(texts: pa.BinaryArray, first: Int64s) -> pa.BinaryArray:
    """Joins neighbouring texts. first: for each joined text, the index of the first of its parts in
    `texts`. The bytes of the parts already follow one another in memory. So the function copies no
    bytes, and only makes a new array of offsets.
    """
    bounds = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :]
    bounds = np.ascontiguousarray(bounds[np.append(first, len(texts))])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(first), [None, pa.py_buffer(bounds), texts.buffers()[2]]
    )


def _differs(lines: Unwrapped) -> Booleans:
    differs = np.zeros(len(lines.streams), np.bool_)
    streams = np.asarray(pc.equal(lines.streams, b"stdout"))
    differs[1:] = streams[1:] != streams[:-1]
    return differs


def _unwrap_cri(lines: pa.BinaryArray) -> Unwrapped:
    plain = _unwrap_plain_cri(lines) if len(lines) else None
    if plain is not None:
        return plain
    found = pc.extract_regex(lines, _CRI_LINE)
    times, streams, tags, texts = (
        pc.fill_null(found.field(name), b"") for name in ("time", "stream", "tag", "text")
    )
    is_part = np.asarray(pc.equal(tags, b"P"))
    return Unwrapped(texts, streams, times, is_part, np.asarray(found.is_valid()))


def _unwrap_plain_cri(lines: pa.BinaryArray) -> Unwrapped | None:
    """Unwraps lines of a cri log like `_unwrap_cri`, but without RE2, and several times faster.
    Returns None if a line is not plain, that is, if it is in another format, or lacks the blank
    after its tag.
    """
    assert _PLAIN_CRI_LINE is not None  # the pattern is simple (see `delimited`)
    found = _PLAIN_CRI_LINE.find(lines.view(pa.string()))
    times, streams, tags, texts = (
        found.columns[name].view(pa.binary()) for name in ("time", "stream", "tag", "text")
    )
    is_part, is_whole = pc.starts_with(tags, b"P"), pc.starts_with(tags, b"F")
    is_plain = (
        found.matched.all()
        and pc.all(pc.is_in(streams, _STREAMS)).as_py()
        and pc.all(pc.or_(is_part, is_whole)).as_py()
        and _IS_OF_TIME[np.frombuffer(times.buffers()[2], np.uint8)].all()
    )
    if not is_plain:
        return None
    return Unwrapped(texts, streams, times, np.asarray(is_part), found.matched)


def _unwrap_docker(lines: pa.BinaryArray) -> Unwrapped:
    texts, streams, times, parts, goods = [], [], [], [], []
    for line in lines.to_pylist():
        text, stream, time, is_good = _of_json(line)
        ended = text.removesuffix(b"\n")
        is_part = is_good and len(ended) == len(text) >= DOCKER_PART_BYTES
        parts.append(is_part)
        texts.append(ended if is_part else ended.removesuffix(b"\r"))
        streams.append(stream)
        times.append(time)
        goods.append(is_good)
    columns = [pa.array(values, pa.binary()) for values in (texts, streams, times)]
    return Unwrapped(
        columns[0], columns[1], columns[2], np.array(parts, np.bool_), np.array(goods, np.bool_)
    )


def _is_shallow(line: bytes) -> bool:
    """Whether the line has at most DEPTH_MAX opening brackets outside of strings. Then its JSON is
    nested so little that the decoder can read it at any depth of the caller's stack."""
    brackets = line.count(b"[") + line.count(b"{")
    if brackets > DEPTH_MAX:
        line = _STRING.sub(b"", line)
        brackets = line.count(b"[") + line.count(b"{")
    return brackets <= DEPTH_MAX


def _of_json(line: bytes) -> tuple[bytes, bytes, bytes, bool]:
    """Returns the text with its line end, the stream and the time of a docker line, and whether the
    line is in Docker's format.
    """
    try:
        if not _is_shallow(line):
            return b"", b"", b"", False
        # The line is decoded here, because `json.loads` takes bytes with a NUL near the beginning
        # for UTF-16. In UTF-16, `json.loads` could find other quotation marks than `_is_shallow`,
        # which reads the bytes as UTF-8.
        wrapped: Any = json.loads(line.decode("utf-8-sig", "surrogatepass"))
        text, stream, time = (wrapped[name] for name in ("log", "stream", "time"))
        return text.encode(), stream.encode(), time.encode(), stream in ("stdout", "stderr")
    except (ValueError, KeyError, TypeError, AttributeError):
        return b"", b"", b"", False
