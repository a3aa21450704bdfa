"""Decodes a batch's records into columns.

One loop over the records follows the chain of lengths, because each record begins where the
previous one ends. Everything else is done for a whole batch at once, except for unusual headers.
Usually a record has one header, named `origin`. If a record has other headers, this module reads
the headers of that record one by one.

The bytes come from outside. Lengths are compared with the bytes present before any memory is
allocated. Every record must fill exactly the bytes that its length claims. Offset deltas must rise.
Bytes that break one of these rules raise `CorruptBatch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.kafka import origin
from skidway.kafka.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    check,
    read_header,
)
from skidway.kafka.compression import decompress
from skidway.kafka.record_headers import headers_in
from skidway.kafka.record_layout import (
    ARROW_BYTES_MAX,
    ORIGIN,
    ORIGIN_HEAD,
    RECORD_BYTES_MIN,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
    Bools,
    Bytes,
    Int64s,
    Origins,
    binary_array,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The positions and sizes of all fields in a batch's uncompressed records. A size of -1 means
    null. A record's headers are between `headers_at` and `ends`."""

    header: BatchHeader
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


def parse(raw: Readable, limit_bytes: int) -> Parsed:
    """Finds all fields in one whole batch. Raises CorruptBatch if the batch is damaged or too
    long."""
    header = read_header(raw)
    check(raw, 0, header)
    if header.size_bytes != len(raw):
        raise CorruptBatch(f"{len(raw) - header.size_bytes} bytes behind a batch")
    if header.base_offset < 0 or header.base_offset > (1 << 63) - 1 - header.last_offset_delta:
        raise CorruptBatch(f"base offset {header.base_offset}")
    if header.is_control:
        return _nothing(header)
    payload = _payload(raw, header, min(limit_bytes, ARROW_BYTES_MAX))
    if header.count == 0:
        if payload:
            raise CorruptBatch("bytes of records in a batch that says it has none")
        return _nothing(header)
    try:
        return _parse_records(header, payload)
    except IndexError as error:
        raise CorruptBatch("a record's field lies outside of the batch") from error


def _nothing(header: BatchHeader) -> Parsed:
    none = np.zeros(0, np.int64)
    no_rows = np.zeros(0, np.bool_)
    return Parsed(header, b"", none, none, none, none, none, none, none, none, None, no_rows)


def _payload(raw: Readable, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """The uncompressed records, as bytes or a bytearray. Python reads single bytes faster from
    these types than from a memoryview."""
    packed = memoryview(raw)[HEADER_BYTES:]
    if header.count == 0 and len(packed) == 0:  # compaction may leave only the header
        return b""
    payload = decompress(header.codec, packed, limit_bytes)
    if header.count > len(payload) // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{header.count} records in {len(payload)} bytes")
    return bytes(payload) if isinstance(payload, memoryview) else payload


def _record_ends(payload: bytes | bytearray, count: int) -> Int64s:
    """The position after every record. This function has the one loop over the records."""
    ends: list[int] = []
    found = ends.append
    at = 0
    try:
        for _ in range(count):
            size = payload[at]
            if size < 128:
                at += 1 + (size >> 1)
            else:
                byte = payload[at + 1]
                if byte < 128:
                    at += 2 + ((size & 126 | byte << 7) >> 1)
                else:
                    at = _long_record_end(payload, at)
            found(at)
    except IndexError as error:
        raise CorruptBatch("the records end before their count is reached") from error
    if at != len(payload):
        raise CorruptBatch("the records do not fill the batch")
    return np.array(ends, np.int64)


def _long_record_end(payload: bytes | bytearray, at: int) -> int:
    """The position after a record whose length field (a varint) has three bytes or more."""
    size = shift = 0
    while payload[at] > 127:
        size |= (payload[at] & 127) << shift
        at += 1
        shift += 7
        if shift >= 7 * VARINT_BYTES_MAX:
            raise CorruptBatch("a record's length has more than five bytes")
    size |= payload[at] << shift
    return at + 1 + (size >> 1)


def _parse_records(header: BatchHeader, payload: bytes | bytearray) -> Parsed:
    ends = _record_ends(payload, header.count)
    data = np.frombuffer(payload, np.uint8)
    at = np.empty_like(ends)
    at[0], at[1:] = 0, ends[:-1]
    length, at = _varints(data, at, VARINT_BYTES_MAX)
    if (at + length != ends).any():
        raise CorruptBatch("a record's length is negative")
    delta, at = _varints(data, at + 1, VARLONG_BYTES_MAX)  # after the attributes
    number, at = _varints(data, at, VARINT_BYTES_MAX)
    if number[0] < 0 or number[-1] > header.last_offset_delta or (np.diff(number) <= 0).any():
        raise CorruptBatch("offsets of records do not rise inside of the batch's range")
    key_size, key_at = _varints(data, at, VARINT_BYTES_MAX)
    value_size, value_at = _varints(data, _behind(key_at, key_size), VARINT_BYTES_MAX)
    header_at = _behind(value_at, value_size)
    if (header_at > ends).any():
        raise CorruptBatch("a record's key or value is longer than the record")
    origins, has_origin = _origins(payload, header_at, ends)
    return Parsed(
        header,
        payload,
        header.base_offset + number,
        _timestamps(header, delta),
        key_at,
        key_size,
        value_at,
        value_size,
        header_at,
        ends,
        origins,
        has_origin,
    )


def _timestamps(header: BatchHeader, delta: Int64s) -> Int64s:
    if header.has_log_append_time:
        return np.full(len(delta), header.max_timestamp, np.int64)
    return np.int64(header.base_timestamp) + delta  # overflow wraps, as in Java


def _behind(at: Int64s, size: Int64s) -> Int64s:
    """The positions of the next fields. A size of -1 is null, and has no bytes."""
    if (size < -1).any():
        raise CorruptBatch("a key or value has a negative length")
    return at + np.maximum(size, 0)


def _varints(data: Bytes, at: Int64s, bytes_max: int) -> tuple[Int64s, Int64s]:
    """Zigzag varints at many positions, and the positions after them.

    Raises IndexError if a varint lies outside of the data, and CorruptBatch if a varint is too
    long.
    """
    byte = data[at]
    number, at = (byte & 127).astype(np.int64), at + 1
    rows = np.flatnonzero(byte > 127)
    shift = 7
    while len(rows):
        if shift >= 7 * bytes_max:
            raise CorruptBatch(f"a number of more than {bytes_max} bytes")
        byte = data[at[rows]]
        number[rows] |= (byte & 127).astype(np.int64) << shift
        at[rows] += 1
        rows = rows[byte > 127]
        shift += 7
    return (number.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(number & 1), at


def cut(payload: Readable, at: Int64s, size: Int64s) -> pa.BinaryArray:
    """Copies many slices of one buffer into an array.

    First an Arrow array is laid over the buffer, with the bounds of the slices as its offsets. So
    its even elements are the slices, and its odd elements are the bytes between the slices. Then
    the even elements are copied.
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
    """The origins of all records. Each record's headers lie between its `at` and its `ends`."""
    count = len(at)
    ours = ends - at == ORIGIN.itemsize
    rows = np.zeros(count, ORIGIN)
    if ours.any():
        # Item i of the window consists of the 37 bytes that begin at byte i of the payload, so
        # items overlap. So one indexing operation copies all these rows.
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
