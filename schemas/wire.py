"""Confluent's wire format of a value: byte 0, schema id (4 bytes, big-endian), Avro datum.

    0        1                    5
    +--------+--------------------+---------------
    | 0x00   | schema id          | Avro datum ...
    +--------+--------------------+---------------

The functions work on whole Arrow arrays. A value without this prefix gets the id -1, and is no
error. Skidway never writes Confluent's newer form (byte 1 and a GUID). A value in this form counts
as a value without the prefix.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MAGIC: Final = 0
PREFIX_BYTES: Final = 5
SCHEMA_ID_MAX: Final = 2**31 - 1

_EMPTY = pa.scalar(b"", pa.binary())


def prefix(schema_id: int) -> bytes:
    """Returns the 5 bytes that stand before every datum of the schema with this id."""
    if not 0 <= schema_id <= SCHEMA_ID_MAX:
        raise ValueError(f"{schema_id} is no schema id")
    return struct.pack(">bI", MAGIC, schema_id)


def add_prefix(schema_id: int, datums: pa.BinaryArray) -> pa.BinaryArray:
    """Returns every datum with the prefix of this schema id before it. A null stays null."""
    return pc.binary_join_element_wise(pa.scalar(prefix(schema_id), pa.binary()), datums, _EMPTY)


def split(values: pa.BinaryArray) -> tuple[np.ndarray[Any, np.dtype[np.int32]], pa.BinaryArray]:
    """Returns the schema id of each value, and its datum. The id is -1 for a null, for a value that
    is too short, and for a value without the prefix.

    The second array contains a value with id -1 unchanged, so that none of its bytes are lost.
    """
    count = len(values)
    if count == 0:
        return np.empty(0, np.int32), values
    offsets, data = _offsets_and_data(values)
    starts = offsets[:-1]
    framed = (offsets[1:] - starts) >= PREFIX_BYTES
    if values.null_count:
        framed &= np.asarray(values.is_valid())
    rows = np.flatnonzero(framed)
    heads = data[starts[rows, None] + np.arange(PREFIX_BYTES)]
    wanted = (heads[:, 0] == MAGIC) & (heads[:, 1] < 128)
    ids = np.full(count, -1, np.int32)
    ids[rows[wanted]] = np.ascontiguousarray(heads[wanted, 1:]).view(">u4")[:, 0]
    return ids, _cut_front(values, offsets, np.where(ids >= 0, PREFIX_BYTES, 0))


def _offsets_and_data(values: pa.BinaryArray) -> tuple[Any, Any]:
    _, offset_buffer, data_buffer = values.buffers()
    end = values.offset + len(values) + 1
    offsets = np.frombuffer(offset_buffer, np.int32)[values.offset : end].astype(np.int64)
    return offsets, np.frombuffer(data_buffer or b"", np.uint8)


def _cut_front(values: pa.BinaryArray, offsets: Any, cut: Any) -> pa.BinaryArray:
    """Returns each value `i` of `values` without its first `cut[i]` bytes. In the array `pieces`,
    two kinds of elements alternate: the rest of a value, and the bytes that are cut from the next
    value. So the result consists of every second element."""
    if not cut.any():
        return values
    bounds = np.empty(2 * len(values), np.int32)
    bounds[0::2], bounds[1::2] = offsets[:-1] + cut, offsets[1:]
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), values.buffers()[2]]
    )
    rows = pa.array(np.arange(0, len(bounds), 2))
    if values.null_count:
        rows = pc.if_else(values.is_valid(), rows, None)
    return pieces.take(rows)
