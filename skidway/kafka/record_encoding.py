"""Encodes columns as a batch's records, without a Python object per record.

The varints of all records are written into a matrix with one row for each record. The used bytes of
each row are then cut out. Arrow joins these bytes with the record's key, value and headers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.kafka.record_layout import (
    ARROW_BYTES_MAX,
    ORIGIN,
    ORIGIN_HEAD,
    RECORD_OVERHEAD_MAX,
    Bools,
    Bytes,
    Int64s,
    Origins,
    UInt64s,
    binary_array,
)

_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_NO_SEPARATOR = pa.scalar(b"", pa.binary())


def check_columns(
    values: pa.BinaryArray,
    timestamps: Int64s,
    origins: Origins | None,
    keys: pa.BinaryArray | None,
) -> None:
    """Raises ValueError for columns that cannot form one batch."""
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


def records_of(
    values: pa.BinaryArray, delta: Int64s, origins: Origins | None, keys: pa.BinaryArray | None
) -> memoryview:
    """Returns the records of a batch, uncompressed."""
    count = len(values)
    values, value_length, value_size = _lengths(values)
    key_size: Int64s | int = 0
    key_length = np.ones(count, np.uint64)  # the zigzag form of -1, which means no key
    if keys is not None:
        keys, key_length, key_size = _lengths(keys)
    suffix = _NO_HEADERS if origins is None else _origin_suffix(origins, count)
    time = ((delta << 1) ^ (delta >> 63)).view(np.uint64)
    number = np.arange(count, dtype=np.uint64) << np.uint64(1)
    varints = [time, number, key_length, value_length]
    body = value_size + key_size + (2 if origins is None else 1 + ORIGIN.itemsize)
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
    """Returns the column with b"" in place of nulls, the zigzag lengths of its values (-1 for
    null), and the values' sizes in bytes."""
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
    rows = np.empty(count, ORIGIN)
    rows["head"] = ORIGIN_HEAD
    rows["agent"], rows["file"] = origins.agent, origins.file
    rows["first"], rows["length"] = origins.first, origins.length
    width = ORIGIN.itemsize
    return binary_array(np.arange(0, width * (count + 1), width, dtype=np.int32), rows, count)


def _varint_sizes(numbers: UInt64s) -> Int64s:
    """Returns the number of bytes of each number as a varint."""
    sizes = np.ones(len(numbers), np.int64)
    for bits in range(7, int(numbers.max()).bit_length(), 7):
        sizes += numbers >= np.uint64(1 << bits)
    return sizes


def _varint_rows(columns: list[UInt64s | None]) -> pa.BinaryArray:
    """Returns each row's varints, one after the other. None stands for a column whose varint is 0
    (one byte) in every row."""
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
    return binary_array(ends, matrix[used], count)


def _put_varints(matrix: Bytes, used: Bools, numbers: UInt64s) -> None:
    """Writes each number into its row, seven bits per byte, low bits first. A byte's top bit says
    that another byte follows."""
    rest, going_on = numbers, np.ones(len(numbers), np.bool_)
    for k in range(matrix.shape[1]):
        used[:, k] = going_on
        low = (rest & np.uint64(0x7F)).astype(np.uint8)
        rest = rest >> np.uint64(7)
        going_on = rest != 0
        matrix[:, k] = low | (going_on.view(np.uint8) << np.uint8(7))
