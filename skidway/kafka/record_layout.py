"""The layout of a record in a batch, for NumPy and Arrow.

    record = length  attributes  timestamp delta  offset delta
             key length  key  value length  value  header count  headers
    header = key length  key  value length  value

All numbers are zigzag varints, except the attributes, which are one unused byte. A length of -1
means null.

Source: KIP-98 (format of records), Kafka's message format documentation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.dataclass import dataclass
from skidway.kafka import origin

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

ARROW_BYTES_MAX = (1 << 31) - 1  # the offsets of an Arrow array are int32
RECORD_BYTES_MIN = 7  # six varints of one byte each, and the attributes

# The largest size of a record without its value, if the record has no key and only an origin
# header: length 5, attributes 1, timestamp 10, offset 5, key length 1, value length 5, headers 37.
RECORD_OVERHEAD_MAX = 64
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10

# If a record's only header is an origin, its headers begin with these bytes: the number of headers
# (1), the key's length (6), the key, and the value's length (28).
ORIGIN_HEAD = b"\x02\x0c" + origin.ORIGIN_HEADER + b"\x38"
ORIGIN = np.dtype(
    [("head", "S9"), ("agent", ">i8"), ("file", ">i8"), ("first", ">i8"), ("length", ">u4")]
)

assert ORIGIN.itemsize == len(ORIGIN_HEAD) + origin.ORIGIN_BYTES


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of records, as columns; see `skidway.kafka.origin`."""

    agent: Int64s
    file: Int64s
    first: Int64s
    length: Int64s


@dataclass(frozen=True, slots=True)
class OneHeader:
    """A header that each record of a batch has, as its only one: its key, and a value for each
    record."""

    key: bytes
    values: pa.BinaryArray


@dataclass(frozen=True, slots=True)
class Pieces:
    """The values of records, as parts that are joined only when the records are encoded. The value
    of row i is `front`, which all values have in common, followed by element i of each column. The
    columns have no nulls.
    """

    front: bytes
    columns: tuple[pa.BinaryArray, ...]

    def __len__(self) -> int:
        count: int = len(self.columns[0])
        return count

    @property
    def nbytes(self) -> int:
        """The size in bytes of all values and of the columns' Arrow offsets."""
        total: int = sum(column.nbytes for column in self.columns)
        return len(self.front) * len(self) + total

    @property
    def sizes(self) -> Int64s:
        """The size of each value in bytes."""
        sizes = np.full(len(self), len(self.front), np.int64)
        for column in self.columns:
            sizes += sizes_of(column)
        return sizes

    def take(self, rows: slice | Int64s) -> Pieces:
        """Returns the values of the given rows (a slice, or their indices)."""
        if isinstance(rows, slice):
            return Pieces(self.front, tuple(column[rows] for column in self.columns))
        indices = pa.array(rows)
        return Pieces(self.front, tuple(column.take(indices) for column in self.columns))


def sizes_of(column: pa.BinaryArray) -> Int64s:
    """Returns the size in bytes of each element of a column without nulls."""
    bounds = np.frombuffer(column.buffers()[1], np.int32)
    return np.diff(bounds[column.offset : column.offset + len(column) + 1]).astype(np.int64)


def binary_array(bounds: npt.NDArray[np.int32], data: Any, count: int) -> pa.BinaryArray:
    """Returns an array with the int32 offsets `bounds` and the bytes `data`; neither is copied."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), count, buffers)
