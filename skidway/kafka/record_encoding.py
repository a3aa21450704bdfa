"""Encodes columns as a batch's records, without a Python object per record.

The varints of all records, and the constant bytes next to them (such as the attributes), are
written into a matrix with one row for each record. Each row uses only some of its bytes. The used
bytes are then copied out of the matrix, and Arrow joins them with the record's key, value and
headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.dataclass import dataclass
from skidway.kafka.record_headers import header_head
from skidway.kafka.record_layout import (
    ARROW_BYTES_MAX,
    ORIGIN,
    ORIGIN_HEAD,
    RECORD_OVERHEAD_MAX,
    Bytes,
    Int64s,
    OneHeader,
    Origins,
    Pieces,
    UInt64s,
    binary_array,
    sizes_of,
)

_NO_HEADERS = pa.scalar(b"\x00", pa.binary())
_NO_SEPARATOR = pa.scalar(b"", pa.binary())
_NO_KEY = 1  # the zigzag form of -1
_ATTRIBUTES = 0


def check_columns(
    values: pa.BinaryArray | Pieces,
    timestamps: Int64s,
    headers: Origins | OneHeader | None,
    keys: pa.BinaryArray | None,
) -> None:
    """Raises ValueError for columns that cannot form one batch."""
    count = len(values)
    if count == 0:
        raise ValueError("a batch needs at least one record")
    columns: list[Any] = [timestamps] if keys is None else [timestamps, keys]
    columns += values.columns if isinstance(values, Pieces) else ()
    total = values.nbytes + (0 if keys is None else keys.nbytes) + RECORD_OVERHEAD_MAX * count
    if isinstance(headers, Origins):
        columns += [headers.agent, headers.file, headers.first, headers.length]
        if min(int(column.min()) for column in columns[-4:]) < 0 or headers.length.max() >> 32:
            raise ValueError("an origin does not fit its fields")
    elif headers is not None:
        columns.append(headers.values)
        total += headers.values.nbytes + len(headers.key) * count
    if any(len(column) != count for column in columns):
        raise ValueError("columns of different lengths")
    if total > ARROW_BYTES_MAX:
        raise ValueError(f"{total} bytes do not fit a batch")


def records_of(
    values: pa.BinaryArray | Pieces,
    delta: Int64s,
    headers: Origins | OneHeader | None,
    keys: pa.BinaryArray | None,
) -> memoryview:
    """Returns the records of a new batch, encoded but not compressed."""
    count = len(values)
    if isinstance(values, Pieces):
        value, value_size = values, values.sizes
        value_length = _Varints.of(value_size.view(np.uint64) << np.uint64(1))
    else:
        filled, value_length, value_size = _lengths(values)
        value = Pieces(b"", (filled,))
    time = _Varints.of(((delta << 1) ^ (delta >> 63)).view(np.uint64))
    number = _Varints.of(np.arange(count, dtype=np.uint64) << np.uint64(1))
    body = value_size + time.sizes + number.sizes + value_length.sizes
    behind_key: list[_Varints | int] = [value_length, *value.front]
    if keys is None:
        body += 1
        between = [_NO_KEY, *behind_key]
        rest = []
    else:
        keys, key_length, key_size = _lengths(keys)
        body += key_size + key_length.sizes
        between = [key_length]
        rest = [keys, _rows(behind_key, count)]
    suffix, suffix_size = _suffix(headers, count)
    body += 1 + suffix_size
    length = _Varints.of(body.view(np.uint64) << np.uint64(1))
    front = _rows([length, _ATTRIBUTES, time, number, *between], count)
    joined = pc.binary_join_element_wise(front, *rest, *value.columns, *suffix, _NO_SEPARATOR)
    _, offsets, data = joined.buffers()
    end = int(np.frombuffer(offsets, np.int32)[joined.offset + count])
    return memoryview(data)[:end]


@dataclass(frozen=True, slots=True)
class _Varints:
    """A column of numbers that become varints. sizes: how many bytes the varint of each number has.
    width: the largest of these sizes."""

    numbers: UInt64s
    sizes: Int64s
    width: int

    @classmethod
    def of(cls, numbers: UInt64s) -> _Varints:
        sizes = np.ones(len(numbers), np.int64)
        bits = int(numbers.max()).bit_length()
        for least in range(7, bits, 7):
            sizes += numbers >= np.uint64(1 << least)
        return cls(numbers, sizes, max(-(-bits // 7), 1))

    def write(self, matrix: Bytes) -> None:
        """Writes each number as a varint into its row of the matrix: seven bits per byte, low bits
        first. If another byte follows, the byte's top bit is set."""
        rest = self.numbers
        for k in range(self.width - 1):
            low = (rest & np.uint64(0x7F)).astype(np.uint8)
            rest = rest >> np.uint64(7)
            matrix[:, k] = low | ((rest != 0).view(np.uint8) << np.uint8(7))
        matrix[:, self.width - 1] = rest


def _lengths(column: pa.BinaryArray) -> tuple[pa.BinaryArray, _Varints, Int64s]:
    """Returns three things: the column with b"" in place of nulls, the lengths of its values (-1
    for null) as varints, and the sizes of its values in bytes."""
    missing = None
    if column.null_count:
        missing = np.asarray(column.is_null())
        column = column.fill_null(b"")
    size = sizes_of(column)
    length = size.view(np.uint64) << np.uint64(1)
    if missing is not None:
        length[missing] = 1
    return column, _Varints.of(length), size


def _suffix(headers: Origins | OneHeader | None, count: int) -> tuple[list[Any], Int64s | int]:
    """Returns the columns with the headers of each record, and the sizes of the headers."""
    if headers is None:
        return [_NO_HEADERS], 1
    if isinstance(headers, Origins):
        return [_origin_suffix(headers, count)], ORIGIN.itemsize
    value, value_length, value_size = _lengths(headers.values)
    head = header_head(headers.key)
    length = _rows([value_length], count)
    size = len(head) + value_length.sizes + value_size
    return [pa.scalar(head, pa.binary()), length, value], size


def _origin_suffix(origins: Origins, count: int) -> pa.BinaryArray:
    rows = np.empty(count, ORIGIN)
    rows["head"] = ORIGIN_HEAD
    rows["agent"], rows["file"] = origins.agent, origins.file
    rows["first"], rows["length"] = origins.first, origins.length
    width = ORIGIN.itemsize
    return binary_array(np.arange(0, width * (count + 1), width, dtype=np.int32), rows, count)


def _rows(parts: Sequence[_Varints | int], count: int) -> pa.BinaryArray:
    """Returns, for each of `count` rows, the bytes of its varints, one after the other. If a part
    is an int, it is a byte that all rows have in common."""
    widths = [1 if isinstance(part, int) else part.width for part in parts]
    matrix = np.empty((count, sum(widths)), np.uint8)
    used = np.ones(matrix.shape, np.bool_)
    ends = np.zeros(count + 1, np.int64)
    at = 0
    for part, width in zip(parts, widths, strict=True):
        if isinstance(part, int):
            matrix[:, at] = part
            ends[1:] += 1
        else:
            part.write(matrix[:, at : at + width])
            ends[1:] += part.sizes
            for k in range(1, width):
                used[:, at + k] = part.sizes > k
        at += width
    np.cumsum(ends, out=ends)
    data = matrix if ends[-1] == matrix.size else matrix[used]
    return binary_array(ends.astype(np.int32), data, count)
