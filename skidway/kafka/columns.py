"""Record batches as columns: Arrow and NumPy in, a batch's records out, and back.

    record = length  attributes  timestamp delta  offset delta
             key length  key  value length  value  header count  headers
    header = key length  key  value length  value

All numbers are zigzag varints but the attributes, one unused byte; length -1 stands for null.

There is no Python object per record. To encode, the varints of all records are written side by side
into a matrix and its used bytes cut out row by row; Arrow joins them with keys, values and headers.
To decode, one loop per record follows the chain of lengths (each record's place depends on the one
before); everything else is done for a whole batch at once. Only records whose headers are neither
none nor exactly one `origin` are read one by one.

What is decoded comes from outside. Lengths are compared with what is there before anything is
allocated; every record must fill exactly the bytes it claims; offset deltas must rise. Whatever
breaks this raises `CorruptBatch`.

Source: KIP-98 (format of records), Kafka's message format documentation.
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
    Codec,
    CorruptBatch,
    EncodedBatch,
    Readable,
    check,
    read_header,
)
from skidway.kafka.compression import DECOMPRESSED_BYTES_MAX, compress, decompress

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

ARROW_BYTES_MAX = (1 << 31) - 1  # NumPy and Arrow bounds are int32
RECORD_BYTES_MIN = 7  # seven varints of one byte: nothing can be shorter
# length 5, attributes 1, timestamp 10, offset 5, key length 1, value length 5, header 37
RECORD_OVERHEAD_MAX = 64
_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10

# header count 1, key length 6, key, value length 28: what stands before every origin of ours
_ORIGIN_HEAD = b"\x02\x0c" + origin.ORIGIN_HEADER + b"\x38"
_ORIGIN = np.dtype(
    [("head", "S9"), ("agent", ">i8"), ("file", ">i8"), ("first", ">i8"), ("length", ">u4")]
)
_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_NO_SEPARATOR = pa.scalar(b"", pa.binary())

assert _ORIGIN.itemsize == len(_ORIGIN_HEAD) + origin.ORIGIN_BYTES


@dataclass(frozen=True, slots=True)
class Origins:
    """Where records came from, as columns; see `skidway.kafka.origin`."""

    agent: Int64s
    file: Int64s
    first: Int64s
    length: Int64s


@dataclass(frozen=True, slots=True)
class DecodedBatch:
    """The records of one batch, in offset order. Timestamps in ms.

    `origins` is None where no record has one; rows without an origin hold zeros there and False in
    `has_origin`. A control batch (transaction markers) has no rows.
    """

    header: BatchHeader
    offsets: Int64s
    timestamps: Int64s
    keys: pa.BinaryArray
    values: pa.BinaryArray
    origins: Origins | None
    has_origin: Bools


def encode(
    values: pa.BinaryArray,
    timestamps: Int64s,
    *,
    origins: Origins | None = None,
    keys: pa.BinaryArray | None = None,
    codec: Codec = Codec.ZSTD,
) -> EncodedBatch:
    """One batch of all rows; values and keys may be null. A pure function: same rows, same bytes.

    Records that the codec cannot make smaller are left uncompressed. ValueError for no rows,
    columns of different lengths, or 2 GiB and more.
    """
    count = len(values)
    _check_columns(values, timestamps, origins, keys)
    base = int(timestamps[0])
    records = _records(values, timestamps - timestamps[0], origins, keys)
    body = compress(codec, records)
    if len(body) >= len(records) and codec is not Codec.NONE:
        codec, body = Codec.NONE, bytes(records)
    return EncodedBatch(body, codec, count, base, int(timestamps.max()), len(records))


def decode(raw: Readable, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> DecodedBatch:
    """All records of one whole batch, of whatever producer. Nothing of `raw` is kept.

    CorruptBatch when the batch is damaged or unpacks to more than `limit_bytes`.
    """
    parsed = _parse(raw, limit_bytes)
    return DecodedBatch(
        parsed.header,
        parsed.offsets,
        parsed.timestamps,
        _cut(parsed.payload, parsed.key_at, parsed.key_size),
        _cut(parsed.payload, parsed.value_at, parsed.value_size),
        parsed.origins,
        parsed.has_origin,
    )


def decode_headers(
    raw: Readable, *, limit_bytes: int = DECOMPRESSED_BYTES_MAX
) -> tuple[Int64s, Int64s, Origins | None, Bools]:
    """Offsets, timestamps, origins, has_origin as `decode` gives them, without keys and values."""
    parsed = _parse(raw, limit_bytes)
    return parsed.offsets, parsed.timestamps, parsed.origins, parsed.has_origin


def cuts(value_sizes: Int64s, limit_bytes: int) -> list[int]:
    """Where to cut rows into batches: end indexes, the last one the number of rows.

    No batch of `encode`d rows between two cuts is above `limit_bytes` (header included, before
    compression), except of a single row that is too large by itself. Add key sizes to value sizes.
    """
    room = limit_bytes - HEADER_BYTES
    ends = np.cumsum(np.maximum(value_sizes, 0) + RECORD_OVERHEAD_MAX)
    found: list[int] = []
    start, used = 0, 0
    while start < len(ends):
        end = max(int(np.searchsorted(ends, used + room, side="right")), start + 1)
        found.append(end)
        start, used = end, int(ends[end - 1])
    return found


# --- encoding ---------------------------------------------------------------------------------


def _check_columns(
    values: pa.BinaryArray,
    timestamps: Int64s,
    origins: Origins | None,
    keys: pa.BinaryArray | None,
) -> None:
    count = len(values)
    if count == 0:
        raise ValueError("a batch needs at least one record")
    columns: list[Any] = [timestamps] if keys is None else [timestamps, keys]
    if origins is not None:
        columns += [origins.agent, origins.file, origins.first, origins.length]
        if min(int(column.min()) for column in columns[-4:]) < 0 or origins.length.max() >> 32:
            raise ValueError("an origin does not fit its fields")
    if any(len(column) != count for column in columns):
        raise ValueError("columns of different lengths")
    total = values.nbytes + (0 if keys is None else keys.nbytes) + RECORD_OVERHEAD_MAX * count
    if total > ARROW_BYTES_MAX:
        raise ValueError(f"{total} bytes do not fit a batch")


def _records(
    values: pa.BinaryArray, delta: Int64s, origins: Origins | None, keys: pa.BinaryArray | None
) -> memoryview:
    """The records section, uncompressed."""
    count = len(values)
    values, value_length, value_size = _lengths(values)
    key_size: Int64s | int = 0
    key_length = np.ones(count, np.uint64)  # -1
    if keys is not None:
        keys, key_length, key_size = _lengths(keys)
    suffix = _NO_HEADERS if origins is None else _origin_suffix(origins, count)
    time = ((delta << 1) ^ (delta >> 63)).view(np.uint64)
    number = np.arange(count, dtype=np.uint64) << np.uint64(1)
    varints = [time, number, key_length, value_length]
    body = value_size + key_size + (2 if origins is None else 1 + _ORIGIN.itemsize)
    for numbers in varints:
        body += _varint_sizes(numbers)
    front = [body.view(np.uint64) << np.uint64(1), None, time, number, key_length]
    if keys is None:
        pieces = [_varint_rows([*front, value_length]), values, suffix]
    else:
        pieces = [_varint_rows(front), keys, _varint_rows([value_length]), values, suffix]
    joined = pc.binary_join_element_wise(*pieces, _NO_SEPARATOR)
    _, offsets, data = joined.buffers()
    end = int(np.frombuffer(offsets, np.int32)[joined.offset + count])
    return memoryview(data)[:end]


def _lengths(column: pa.BinaryArray) -> tuple[pa.BinaryArray, UInt64s, Int64s]:
    """The column without nulls, its zigzag lengths (-1 for null), and its sizes in bytes."""
    missing = None
    if column.null_count:
        missing = np.asarray(column.is_null())
        column = column.fill_null(b"")
    bounds = np.frombuffer(column.buffers()[1], np.int32)
    size = np.diff(bounds[column.offset : column.offset + len(column) + 1]).astype(np.int64)
    length = size.view(np.uint64) << np.uint64(1)
    if missing is not None:
        length[missing] = 1
    return column, length, size


def _origin_suffix(origins: Origins, count: int) -> pa.BinaryArray:
    rows = np.empty(count, _ORIGIN)
    rows["head"] = _ORIGIN_HEAD
    rows["agent"], rows["file"] = origins.agent, origins.file
    rows["first"], rows["length"] = origins.first, origins.length
    width = _ORIGIN.itemsize
    return _binary_array(np.arange(0, width * (count + 1), width, dtype=np.int32), rows, count)


def _varint_sizes(numbers: UInt64s) -> Int64s:
    """Bytes of each number as a varint."""
    sizes = np.ones(len(numbers), np.int64)
    for bits in range(7, int(numbers.max()).bit_length(), 7):
        sizes += numbers >= np.uint64(1 << bits)
    return sizes


def _varint_rows(columns: list[UInt64s | None]) -> pa.BinaryArray:
    """Each row's varints behind each other; None stands for one zero byte."""
    count = next(len(column) for column in columns if column is not None)
    widths = [1 if c is None else max(-(-int(c.max()).bit_length() // 7), 1) for c in columns]
    matrix = np.zeros((count, sum(widths)), np.uint8)
    used = np.zeros((count, sum(widths)), np.bool_)
    at = 0
    for column, width in zip(columns, widths, strict=True):
        if column is None:
            used[:, at] = True
        else:
            _put_varints(matrix[:, at : at + width], used[:, at : at + width], column)
        at += width
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(used.sum(1, dtype=np.int32), out=ends[1:])
    return _binary_array(ends, matrix[used], count)


def _put_varints(matrix: Bytes, used: Bools, numbers: UInt64s) -> None:
    """Seven bits a column, low ones first; the top bit says that more follow."""
    rest, going_on = numbers, np.ones(len(numbers), np.bool_)
    for k in range(matrix.shape[1]):
        used[:, k] = going_on
        low = (rest & np.uint64(0x7F)).astype(np.uint8)
        rest = rest >> np.uint64(7)
        going_on = rest != 0
        matrix[:, k] = low | (going_on.view(np.uint8) << np.uint8(7))


def _binary_array(bounds: npt.NDArray[np.int32], data: Any, count: int) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), count, buffers)


# --- decoding ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Where everything lies in a batch's unpacked records; sizes are -1 for null."""

    header: BatchHeader
    payload: Readable
    offsets: Int64s
    timestamps: Int64s
    key_at: Int64s
    key_size: Int64s
    value_at: Int64s
    value_size: Int64s
    origins: Origins | None
    has_origin: Bools


def _parse(raw: Readable, limit_bytes: int) -> _Parsed:
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


def _nothing(header: BatchHeader) -> _Parsed:
    none = np.zeros(0, np.int64)
    return _Parsed(header, b"", none, none, none, none, none, none, None, np.zeros(0, np.bool_))


def _payload(raw: Readable, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """The records, unpacked, in a form whose single bytes Python reads fastest."""
    packed = memoryview(raw)[HEADER_BYTES:]
    if header.count == 0 and len(packed) == 0:  # compaction keeps the header alone
        return b""
    payload = decompress(header.codec, packed, limit_bytes)
    if header.count > len(payload) // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{header.count} records in {len(payload)} bytes")
    return bytes(payload) if isinstance(payload, memoryview) else payload


def _record_ends(payload: bytes | bytearray, count: int) -> Int64s:
    """Position behind every record: the one loop per record."""
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
    """Position behind a record whose length has three bytes or more."""
    size = shift = 0
    while payload[at] > 127:
        size |= (payload[at] & 127) << shift
        at += 1
        shift += 7
        if shift >= 7 * _VARINT_BYTES_MAX:
            raise CorruptBatch("a record's length has more than five bytes")
    size |= payload[at] << shift
    return at + 1 + (size >> 1)


def _parse_records(header: BatchHeader, payload: bytes | bytearray) -> _Parsed:
    ends = _record_ends(payload, header.count)
    data = np.frombuffer(payload, np.uint8)
    at = np.empty_like(ends)
    at[0], at[1:] = 0, ends[:-1]
    length, at = _varints(data, at, _VARINT_BYTES_MAX)
    if (at + length != ends).any():
        raise CorruptBatch("a record's length is negative")
    delta, at = _varints(data, at + 1, _VARLONG_BYTES_MAX)  # behind the attributes
    number, at = _varints(data, at, _VARINT_BYTES_MAX)
    if number[0] < 0 or number[-1] > header.last_offset_delta or (np.diff(number) <= 0).any():
        raise CorruptBatch("offsets of records do not rise inside of the batch's range")
    key_size, key_at = _varints(data, at, _VARINT_BYTES_MAX)
    value_size, value_at = _varints(data, _behind(key_at, key_size), _VARINT_BYTES_MAX)
    header_at = _behind(value_at, value_size)
    if (header_at > ends).any():
        raise CorruptBatch("a record's key or value is longer than the record")
    origins, has_origin = _origins(payload, header_at, ends)
    return _Parsed(
        header,
        payload,
        header.base_offset + number,
        _timestamps(header, delta),
        key_at,
        key_size,
        value_at,
        value_size,
        origins,
        has_origin,
    )


def _timestamps(header: BatchHeader, delta: Int64s) -> Int64s:
    if header.has_log_append_time:
        return np.full(len(delta), header.max_timestamp, np.int64)
    return np.int64(header.base_timestamp) + delta  # wraps as Java's longs do


def _behind(at: Int64s, size: Int64s) -> Int64s:
    """Where the next field begins; size -1 is null and has no bytes."""
    if (size < -1).any():
        raise CorruptBatch("a key or value has a negative length")
    return at + np.maximum(size, 0)


def _varints(data: Bytes, at: Int64s, bytes_max: int) -> tuple[Int64s, Int64s]:
    """Zigzag varints at many positions, and the positions behind them.

    IndexError where one lies outside of the data, CorruptBatch where one is too long.
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


def _cut(payload: Readable, at: Int64s, size: Int64s) -> pa.BinaryArray:
    """Many slices of one buffer, copied out: bounds of slices and of what lies between them are
    interleaved as an array's offsets, and every other element is taken."""
    count = len(at)
    if count == 0 or size.max() < 0:
        return pa.nulls(count, pa.binary())
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = at, at + np.maximum(size, 0)
    pieces = _binary_array(bounds, payload, 2 * count - 1)
    values = pieces.take(pa.array(np.arange(0, 2 * count, 2)))
    if size.min() < 0:
        values = pc.if_else(pa.array(size >= 0), values, pa.scalar(None, pa.binary()))
    return values


# --- headers of records -----------------------------------------------------------------------


def _origins(payload: bytes | bytearray, at: Int64s, ends: Int64s) -> tuple[Origins | None, Bools]:
    """Origins of all records, whose headers lie from `at` to `ends`."""
    count = len(at)
    ours = ends - at == _ORIGIN.itemsize
    rows = np.zeros(count, _ORIGIN)
    if ours.any():
        # one item of 37 bytes at every byte of the payload, so that taking rows is one copy each
        window = np.ndarray(len(payload) - _ORIGIN.itemsize + 1, _ORIGIN, payload, strides=(1,))
        rows[ours] = window[at[ours]]
        ours &= rows["head"] == _ORIGIN_HEAD
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
    """Reads any headers one by one; puts the last valid origin among them into its row."""
    found = False
    count, at = _varint(payload, at, end)
    if count < 0:
        raise CorruptBatch("a record has a negative number of headers")
    for _ in range(count):
        key_size, at = _varint(payload, at, end)
        if not 0 <= key_size <= end - at:
            raise CorruptBatch("a header's key is longer than its record")
        key = payload[at : at + key_size]
        size, at = _varint(payload, at + key_size, end)
        if not -1 <= size <= end - at:
            raise CorruptBatch("a header's value is longer than its record")
        value_at, at = at, at + max(size, 0)
        if key == origin.ORIGIN_HEADER and size >= 0:
            value = origin.unpack(payload[value_at:at])
            if value is not None:
                rows[row] = (b"", *value)
                found = True
    if at != end:
        raise CorruptBatch("a record's headers do not fill it")
    return found


def _varint(payload: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """One zigzag varint, and the position behind it."""
    number = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if at >= end:
            raise CorruptBatch("a record ends inside of its headers")
        byte = payload[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
    raise CorruptBatch("a number of more than five bytes among a record's headers")
