"""Decodes the records of one batch, or of several batches at once, into columns.

All fields are found for all records at once. Therefore decoding many batches of one record each
takes little more time than decoding one batch of many records. Usually a record has one header,
named `origin`. If a record has other headers, this module reads the headers of that record one by
one.

The bytes come from outside. Before any memory is allocated for a length, the length is compared
with the number of bytes present. Every record must fill exactly the bytes that its length claims.
Offset deltas must rise. Bytes that break one of these rules raise `CorruptBatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.kafka import origin
from skidway.kafka.batch import BatchHeader, CorruptBatch, Readable
from skidway.kafka.batch_unpacking import UnpackedBatch
from skidway.kafka.record_bounds import record_bounds, varints
from skidway.kafka.record_headers import headers_in
from skidway.kafka.record_layout import (
    ARROW_BYTES_MAX,
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

    payload: bytes | bytearray
    offsets: Int64s
    timestamps: Int64s
    key_at: Int64s
    key_size: Int64s
    value_at: Int64s
    value_size: Int64s
    headers_at: Int64s
    ends: Int64s
    origins: Origins | None
    has_origin: Bools


def parse(batches: Sequence[UnpackedBatch]) -> Parsed:
    """Finds all fields in these batches. Raises CorruptBatch if the records of a batch are damaged,
    and ValueError if the batches have 2 GiB or more together."""
    filled = [batch for batch in batches if batch.count]
    if not filled:
        return _nothing()
    if sum(len(batch.payload) for batch in filled) > ARROW_BYTES_MAX:
        raise ValueError("record batches of 2 GiB or more cannot be decoded together")
    try:
        return _parse_records(filled)
    except IndexError as error:
        raise CorruptBatch("a record's field lies outside of the batch") from error


def _nothing() -> Parsed:
    none = np.zeros(0, np.int64)
    no_rows = np.zeros(0, np.bool_)
    return Parsed(b"", none, none, none, none, none, none, none, none, None, no_rows)


def _parse_records(batches: Sequence[UnpackedBatch]) -> Parsed:
    payload = batches[0].payload
    if len(batches) > 1:
        payload = b"".join([batch.payload for batch in batches])
    data = np.frombuffer(payload, np.uint8)
    ends, at = record_bounds(payload, data, batches)
    time_delta, at = varints(data, at + 1, VARLONG_BYTES_MAX)  # after the attributes
    offset_delta, at = varints(data, at, VARINT_BYTES_MAX)
    key_size, key_at = varints(data, at, VARINT_BYTES_MAX)
    value_size, value_at = varints(data, _behind(key_at, key_size), VARINT_BYTES_MAX)
    header_at = _behind(value_at, value_size)
    if (header_at > ends).any():
        raise CorruptBatch("a record's key or value is longer than the record")
    headers = [batch.header for batch in batches]
    origins, has_origin = _origins(payload, header_at, ends)
    return Parsed(
        payload,
        _offsets(headers, offset_delta),
        _timestamps(headers, time_delta),
        key_at,
        key_size,
        value_at,
        value_size,
        header_at,
        ends,
        origins,
        has_origin,
    )


def _offsets(headers: Sequence[BatchHeader], delta: Int64s) -> Int64s:
    counts = np.array([header.count for header in headers], np.int64)
    ends = np.cumsum(counts)
    begins = ends - counts
    rises = np.diff(delta) > 0
    rises[begins[1:] - 1] = True  # from batch to batch, deltas need not rise
    highest = np.array([header.last_offset_delta for header in headers], np.int64)
    if not rises.all() or (delta[begins] < 0).any() or (delta[ends - 1] > highest).any():
        raise CorruptBatch("offsets of records do not rise inside of the batch's range")
    return np.repeat(np.array([header.base_offset for header in headers], np.int64), counts) + delta


def _timestamps(headers: Sequence[BatchHeader], delta: Int64s) -> Int64s:
    counts = [header.count for header in headers]
    base = np.array([header.base_timestamp for header in headers], np.int64)
    found = np.repeat(base, counts) + delta  # overflow wraps, as in Java
    if any(header.has_log_append_time for header in headers):
        appended = np.repeat([header.has_log_append_time for header in headers], counts)
        highest = np.array([header.max_timestamp for header in headers], np.int64)
        found = np.where(appended, np.repeat(highest, counts), found)
    return found


def _behind(at: Int64s, size: Int64s) -> Int64s:
    """Returns the positions after the fields that begin at `at`. A field of size -1 is null and has
    no bytes."""
    if (size < -1).any():
        raise CorruptBatch("a key or value has a negative length")
    return at + np.maximum(size, 0)


def cut(payload: Readable, at: Int64s, size: Int64s) -> pa.BinaryArray:
    """Copies many slices of one buffer into an array.

    First, this function makes an Arrow array over the buffer, with the bounds of the slices as the
    array's offsets. So the array's even elements are the slices, and its odd elements are the bytes
    between the slices. Then the even elements are copied.
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


def _origins(payload: bytes | bytearray, at: Int64s, ends: Int64s) -> tuple[Origins | None, Bools]:
    """Returns the origins of all records. The headers of record i are between the positions `at[i]`
    and `ends[i]`."""
    count = len(at)
    ours = ends - at == ORIGIN.itemsize
    rows = np.zeros(count, ORIGIN)
    if ours.any():
        # Item i of the window consists of the 37 bytes that begin at byte i of the payload. Items
        # overlap. With this window, one indexing operation copies the headers of all our records.
        window = np.ndarray(len(payload) - ORIGIN.itemsize + 1, ORIGIN, payload, strides=(1,))
        rows[ours] = window[at[ours]]
        ours &= rows["head"] == ORIGIN_HEAD
    others = ~ours
    if others.any():
        rows[others] = 0
        data = np.frombuffer(payload, np.uint8)
        none = (ends - at == 1) & (data[np.minimum(at, len(data) - 1)] == 0)
        for row in np.flatnonzero(others & ~none).tolist():
            ours[row] = _read_headers(payload, int(at[row]), int(ends[row]), rows, row)
    if not ours.any():
        return None, ours
    columns = [rows[name].astype(np.int64) for name in ("agent", "file", "first", "length")]
    ours &= (columns[0] >= 0) & (columns[1] >= 0) & (columns[2] >= 0)
    for column in columns:
        column[~ours] = 0
    return Origins(*columns), ours


def _read_headers(
    payload: bytes | bytearray, at: int, end: int, rows: npt.NDArray[Any], row: int
) -> bool:
    """Reads a record's headers one by one. Stores the last valid origin in `rows[row]`. Returns
    whether there was a valid origin."""
    found = False
    for key, value in headers_in(payload, at, end):
        if key == origin.ORIGIN_HEADER and value is not None:
            unpacked = origin.unpack(value)
            if unpacked is not None:
                rows[row] = (b"", *unpacked)
                found = True
    return found
