"""Decodes the records of batches into columns: of one batch, or of several at once.

First `unpack` checks and decompresses each batch by itself. Then `parse` finds the fields of all
records. One loop over the records follows the chain of lengths, because each record begins where
the previous one ends. Everything else is done for all records at once, except for unusual headers.
So many batches of one record each cost little more than one batch of many records. Usually a record
has one header, named `origin`. If a record has other headers, this module reads the headers of that
record one by one.

The bytes come from outside. Lengths are compared with the bytes present before any memory is
allocated. Every record must fill exactly the bytes that its length claims. Offset deltas must rise.
Bytes that break one of these rules raise `CorruptBatch`.
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
from skidway.kafka.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    check,
    read_header,
)
from skidway.kafka.compression import DECOMPRESSED_BYTES_MAX, decompress
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
class UnpackedBatch:
    """One batch after `unpack`: its header, and its records without compression."""

    header: BatchHeader
    payload: bytes | bytearray

    @property
    def count(self) -> int:
        """How many records the batch gives to its readers: none if it is a control batch."""
        return self.header.count if self.payload else 0


@dataclass(frozen=True, slots=True)
class Parsed:
    """Positions and sizes of all fields in the uncompressed records; size -1 is null. A record's
    headers lie between `headers_at` and `ends`."""

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


def unpack(raw: Readable, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> UnpackedBatch:
    """Checks and decompresses one whole batch, from any producer. Does not look at the records.
    Keeps no reference to `raw`.

    Raises CorruptBatch when the batch is damaged, or larger than `limit_bytes` after decompression.
    """
    header = read_header(raw)
    check(raw, 0, header)
    if header.size_bytes != len(raw):
        raise CorruptBatch(f"{len(raw) - header.size_bytes} bytes behind a batch")
    if header.base_offset < 0 or header.base_offset > (1 << 63) - 1 - header.last_offset_delta:
        raise CorruptBatch(f"base offset {header.base_offset}")
    if header.is_control:
        return UnpackedBatch(header, b"")
    payload = _payload(raw, header, min(limit_bytes, ARROW_BYTES_MAX))
    if header.count == 0 and payload:
        raise CorruptBatch("bytes of records in a batch that says it has none")
    return UnpackedBatch(header, payload)


def parse(batches: Sequence[UnpackedBatch]) -> Parsed:
    """Finds all fields in these batches. Raises CorruptBatch if the records of one of them are
    damaged, and ValueError if the batches have 2 GiB or more together."""
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


def _payload(raw: Readable, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """The uncompressed records, not as a memoryview, because Python reads single bytes faster
    from bytes."""
    packed = memoryview(raw)[HEADER_BYTES:]
    if header.count == 0 and len(packed) == 0:  # compaction may leave only the header
        return b""
    payload = decompress(header.codec, packed, limit_bytes)
    if header.count > len(payload) // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{header.count} records in {len(payload)} bytes")
    return bytes(payload) if isinstance(payload, memoryview) else payload


def _record_ends(payload: bytes | bytearray, batches: Sequence[UnpackedBatch]) -> Int64s:
    """The position after every record. payload: the payloads of the batches, one after the other.
    This function has the one loop over the records."""
    ends: list[int] = []
    found = ends.append
    at = end = 0
    try:
        for batch in batches:
            for _ in range(batch.header.count):
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
            end += len(batch.payload)
            if at != end:
                raise CorruptBatch("the records do not fill the batch")
    except IndexError as error:
        raise CorruptBatch("the records end before their count is reached") from error
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


def _parse_records(batches: Sequence[UnpackedBatch]) -> Parsed:
    payload = batches[0].payload
    if len(batches) > 1:
        payload = b"".join([batch.payload for batch in batches])
    ends = _record_ends(payload, batches)
    data = np.frombuffer(payload, np.uint8)
    at = np.empty_like(ends)
    at[0], at[1:] = 0, ends[:-1]
    length, at = _varints(data, at, VARINT_BYTES_MAX)
    if (at + length != ends).any():
        raise CorruptBatch("a record's length is negative")
    time_delta, at = _varints(data, at + 1, VARLONG_BYTES_MAX)  # after the attributes
    offset_delta, at = _varints(data, at, VARINT_BYTES_MAX)
    key_size, key_at = _varints(data, at, VARINT_BYTES_MAX)
    value_size, value_at = _varints(data, _behind(key_at, key_size), VARINT_BYTES_MAX)
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
    rises[begins[1:] - 1] = True  # each batch has deltas of its own
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
    """The positions of the next fields. A size of -1 is null, and has no bytes."""
    if (size < -1).any():
        raise CorruptBatch("a key or value has a negative length")
    return at + np.maximum(size, 0)


def _varints(data: Bytes, at: Int64s, bytes_max: int) -> tuple[Int64s, Int64s]:
    """Zigzag varints at many positions, and the positions after them.

    Raises IndexError if a varint lies outside of the data, CorruptBatch if a varint is too long.
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
        # Item i of the window is the 37 bytes from byte i of the payload on (items overlap). So
        # one indexing operation copies all these rows.
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
