"""Makes Arrow columns of records: cuts the records' bytes out of the buffer that was read from a
file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.agent.parsing.byte_order import UTF_8 as UTF_8
from skidway.agent.parsing.framing import Frames, Int64s
from skidway.schemas.codec.text import is_ascii


def cut(data: bytes, frames: Frames) -> pa.BinaryArray:
    """Returns the value of every record, that is, its bytes without the terminator."""
    return slices(data, frames.first, frames.content_end)


def slices(data: bytes, first: Int64s, end: Int64s) -> pa.BinaryArray:
    """Returns data[first[i]:end[i]] for every i. The slices must be in rising order and must not
    overlap. The starts and ends of the slices become the offsets of an Arrow array. In this array,
    slices alternate with the bytes between them, so the function returns every second element. This
    is the cheapest way to cut many slices out of one buffer.
    """
    count = len(first)
    if count == 0:
        return pa.array([], pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = first, end
    pieces = _array(bounds, data, 2 * count - 1)
    return pieces.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def text(values: pa.BinaryArray) -> tuple[pa.StringArray, Int64s]:
    """Returns the values as strings, and the rows whose values are not UTF-8. The strings of these
    rows are null.
    """
    if is_ascii(values):
        return values.view(pa.string()), np.empty(0, np.int64)
    try:
        return values.cast(pa.string()), np.empty(0, np.int64)
    except pa.ArrowInvalid:
        pass
    bad = [row for row, value in enumerate(values.to_pylist()) if not _is_utf8(value)]
    keep = np.ones(len(values), np.bool_)
    keep[bad] = False
    rows = pa.array(np.arange(len(values)), mask=~keep)
    return values.take(rows).cast(pa.string()), np.asarray(bad, np.int64)


def repaired(values: pa.BinaryArray, encoding: str = UTF_8) -> tuple[pa.BinaryArray, Int64s]:
    """Returns the values as UTF-8, with U+FFFD in place of bytes that are not in the encoding, and
    the rows in which bytes were replaced. All bytes of an incomplete character together become one
    U+FFFD, as Unicode recommends.
    """
    if encoding != UTF_8:
        return _decoded(values, encoding)
    _, bad = text(values)
    if not len(bad):
        return values, bad
    repaired = values.to_pylist()
    for row in bad.tolist():
        repaired[row] = repaired[row].decode("utf-8", "replace").encode()
    return pa.array(repaired, pa.binary()), bad


def _decoded(values: pa.BinaryArray, encoding: str) -> tuple[pa.BinaryArray, Int64s]:
    texts, bad = [], []
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(value.decode(encoding).encode())
        except ValueError:
            bad.append(row)
            texts.append(value.decode(encoding, "replace").encode("utf-8", "replace"))
    return pa.array(texts, pa.binary()), np.asarray(bad, np.int64)


def sizes(values: pa.BinaryArray) -> Int64s:
    """Returns the number of bytes of each value of an array without nulls."""
    bounds = np.frombuffer(values.buffers()[1], np.int32)
    return np.diff(bounds[values.offset : values.offset + len(values) + 1]).astype(np.int64)


def spans(lines: pa.StringArray) -> tuple[bytes, Int64s, Int64s]:
    """Returns the bytes of all lines, one after the other, with a single line feed after the last
    line. Also returns where each line begins in these bytes, and where it ends.
    """
    if not len(lines):
        return b"\n", np.zeros(0, np.int64), np.zeros(0, np.int64)
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    bounds = offsets[lines.offset : lines.offset + len(lines) + 1].astype(np.int64)
    begin, end = int(bounds[0]), int(bounds[-1])
    buffer = lines.buffers()[2]
    data = b"" if buffer is None else memoryview(buffer)[begin:end].tobytes()
    bounds -= begin
    return data + b"\n", bounds[:-1], bounds[1:]


def _array(bounds: npt.NDArray[np.int32], data: bytes, count: int) -> pa.BinaryArray:
    return pa.BinaryArray.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    )


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
