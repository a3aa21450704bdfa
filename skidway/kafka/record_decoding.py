"""Decodes the records of one batch, or of several batches at once, into columns.

NumPy finds each field in all records at once. Therefore many batches with one record each need
little more time than one batch with many records. Usually a record has one header, named `origin`.
If a record has other headers, this module reads the headers of that record one by one.

The bytes come from other programs, so they are checked. Before any memory is allocated for a
length, the length is compared with the number of bytes present. Every record must fill exactly the
bytes that its length claims. Offset deltas must rise. Bytes that break one of these rules raise
`CorruptBatch`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.dataclass import dataclass
from skidway.kafka import origin
from skidway.kafka.batch import CorruptBatch, Readable
from skidway.kafka.batch_unpacking import UnpackedRun
from skidway.kafka.record_bounds import record_bounds, varints
from skidway.kafka.record_headers import headers_in
from skidway.kafka.record_layout import (
    ORIGIN,
    ORIGIN_HEAD,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    Bools,
    Int64s,
    Origins,
    binary_array,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The positions and sizes of all fields in the uncompressed records. A size of -1 means null. A
    record's headers are between `headers_at` and `ends`."""

    payload: Readable
    offsets: Int64s
    timestamps: Int64s
    key_at: Int64s
    key_size: Int64s
    value_at: Int64s
    value_size: Int64s
    headers_at: Int64s
    ends: Int64s


def parse(run: UnpackedRun) -> Parsed:
    """Finds the positions and sizes of all fields in the records of the batches in `run`. Raises
    CorruptBatch if the records of a batch are damaged, but does not look into headers."""
    if not len(run.counts):
        return _nothing()
    try:
        return _parse_records(run)
    except IndexError as error:
        raise CorruptBatch("a record's field lies outside of the batch") from error


def origins_of(parsed: Parsed) -> tuple[Origins | None, Bools]:
    """Returns the origins of all records (None if no record has one), and for each record whether
    it has an origin. Raises CorruptBatch if headers are damaged."""
    if not len(parsed.ends):
        return None, np.zeros(0, np.bool_)
    return _origins(parsed.payload, parsed.headers_at, parsed.ends)


def _nothing() -> Parsed:
    none = np.zeros(0, np.int64)
    return Parsed(b"", none, none, none, none, none, none, none, none)


def _parse_records(run: UnpackedRun) -> Parsed:
    payload = run.payload
    data = np.frombuffer(payload, np.uint8)
    ends, at = record_bounds(data, run)
    time_delta, at = varints(data, at + 1, VARLONG_BYTES_MAX)  # + 1 skips the attributes
    offset_delta, at = varints(data, at, VARINT_BYTES_MAX)
    key_size, key_at = varints(data, at, VARINT_BYTES_MAX)
    value_size, value_at = varints(data, _behind(key_at, key_size), VARINT_BYTES_MAX)
    header_at = _behind(value_at, value_size)
    if (header_at > ends).any():
        raise CorruptBatch("a record's key or value is longer than the record")
    return Parsed(
        payload,
        _offsets(run, offset_delta),
        _timestamps(run, time_delta),
        key_at,
        key_size,
        value_at,
        value_size,
        header_at,
        ends,
    )


def _offsets(run: UnpackedRun, delta: Int64s) -> Int64s:
    ends = np.cumsum(run.counts)
    begins = ends - run.counts
    rises = delta[1:] > delta[:-1]
    # Offset deltas must rise within each batch, but not from one batch to the next.
    rises[begins[1:] - 1] = True
    highest = run.last_offset_delta
    if not rises.all() or (delta[begins] < 0).any() or (delta[ends - 1] > highest).any():
        raise CorruptBatch("offsets of records do not rise inside of the batch's range")
    return np.repeat(run.base_offset, run.counts) + delta


def _timestamps(run: UnpackedRun, delta: Int64s) -> Int64s:
    found = np.repeat(run.base_timestamp, run.counts) + delta  # overflow wraps, as in Java
    if run.append_time.any():
        appended = np.repeat(run.append_time, run.counts)
        found = np.where(appended, np.repeat(run.max_timestamp, run.counts), found)
    return found


def _behind(at: Int64s, size: Int64s) -> Int64s:
    """Returns the positions after the fields that begin at `at`. A field of size -1 is null and has
    no bytes."""
    if (size < -1).any():
        raise CorruptBatch("a key or value has a negative length")
    return at + np.maximum(size, 0)


def cut(payload: Readable, at: Int64s, size: Int64s) -> pa.BinaryArray:
    """Copies many slices of one buffer into an array.

    First, this function makes an Arrow array over the buffer, with the begins and ends of the
    slices as the array's offsets. Elements 0, 2, 4, ... of this array are the slices; the elements
    between them are the bytes between the slices. Then the function copies the slices.
    """
    count = len(at)
    if count == 0 or size.max() < 0:
        return pa.nulls(count, pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = at, at + np.maximum(size, 0)
    pieces = binary_array(bounds, payload, 2 * count - 1)
    values = pieces.take(pa.array(np.arange(0, 2 * count, 2)))
    if size.min() < 0:
        values = pc.if_else(pa.array(size >= 0), values, pa.scalar(None, pa.binary()))
    return values


def _origins(payload: Readable, at: Int64s, ends: Int64s) -> tuple[Origins | None, Bools]:
    """See `origins_of`. The headers of record i are between `at[i]` and `ends[i]`."""
    count = len(at)
    ours = ends - at == ORIGIN.itemsize
    if ours.all():
        columns, ours = _origins_at(payload, at)
    else:
        rows = np.flatnonzero(ours)
        columns = np.zeros((4, count), np.int64)
        columns[:, rows], ours[rows] = _origins_at(payload, at[rows])
    others = ~ours
    if others.any():
        columns[:, others] = 0
        data = np.frombuffer(payload, np.uint8)
        none = (ends - at == 1) & (data[np.minimum(at, len(data) - 1)] == 0)
        for row in np.flatnonzero(others & ~none).tolist():
            found = _read_headers(payload, int(at[row]), int(ends[row]))
            if found is not None:
                columns[:, row], ours[row] = found, True
        if not ours.any():
            return None, ours
    negative = (columns[:3] < 0).any(axis=0)
    if negative.any():
        ours &= ~negative
        columns[:, negative] = 0
    return Origins(*columns), ours


def _origins_at(payload: Readable, at: Int64s) -> tuple[Int64s, Bools]:
    """Reads the 37 bytes at each position `at` as a record's only header. Returns the four columns
    of `Origins`, and for each position whether the bytes there are an origin header."""
    if not len(at):
        return np.zeros((4, 0), np.int64), np.zeros(0, np.bool_)
    size = len(payload)
    # Views of the payload as numbers, one for every byte position: words[i] consists of the 8 bytes
    # from byte i on, and halves[i] of the 4 bytes from byte i on.
    words = np.ndarray(size - 7, "<u8", payload, strides=(1,))
    halves = np.ndarray(size - 3, ">u4", payload, strides=(1,))
    ours = words[at] == _HEAD_WORD
    ours &= words[at + 1] == _HEAD_WORD_FROM_1
    columns = np.empty((4, len(at)), np.int64)
    for row, place in enumerate((9, 17, 25)):
        columns[row] = words[at + place].byteswap().view(np.int64)
    columns[3] = halves[at + 33]
    return columns, ours


def _read_headers(payload: Readable, at: int, end: int) -> origin.Origin | None:
    found = None
    for key, value in headers_in(payload, at, end):
        if key == origin.ORIGIN_HEADER and value is not None:
            found = origin.unpack(value) or found
    return found


_HEAD_WORD = int.from_bytes(ORIGIN_HEAD[:8], "little")
_HEAD_WORD_FROM_1 = int.from_bytes(ORIGIN_HEAD[1:9], "little")
