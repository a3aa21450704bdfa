"""Converts the decimals of a column between Avro's form and Arrow's. Both forms are in two's
complement. An Avro decimal is big-endian, and has either as few bytes as possible or the size of a
fixed. An Arrow decimal is little-endian, and has 16 or 32 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skidway.schemas.codec.cursor import Bytes, Ints, Mask


def read(data: Bytes, ends: Ints, lengths: Ints, arrow: pa.DataType) -> tuple[pa.Array, Mask]:
    """Returns the decimals whose bytes end at `ends` in `data` and have the given lengths. Also
    returns a mask that is true for decimals with too many bytes or digits for the type `arrow`.

    A decimal without bytes is zero.
    """
    width = arrow.bit_width // 8
    back = np.arange(width)
    found: Bytes = data.take(ends[:, None] - 1 - back, mode="clip")
    first = data.take(ends - lengths, mode="clip")
    sign = np.where((first >= 0x80) & (lengths > 0), 0xFF, 0).astype(np.uint8)
    found = np.where(back < lengths[:, None], found, sign[:, None])
    wrong = (lengths > width) | _exceeds(found, 10**arrow.precision)
    return _array(found, arrow), wrong


def encode(array: pa.Array, size: int | None) -> tuple[Bytes, Ints]:
    """Returns the bytes of all decimals, and the length of each decimal. `array` must have no
    nulls. `size` is the size of the fixed type, or None for the type bytes."""
    width = array.type.bit_width // 8
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    matrix = raw[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
    big_endian = matrix[:, ::-1]
    if size is not None:
        return _resized(big_endian, size).ravel(), np.full(len(array), size, np.int64)
    sign = np.where(big_endian[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    says_nothing = (big_endian[:, :-1] == sign) & ((big_endian[:, 1:] ^ sign) < 0x80)
    dropped = np.logical_and.accumulate(says_nothing, axis=1).sum(axis=1)
    return big_endian[np.arange(width) >= dropped[:, None]], width - dropped


def _resized(big_endian: Bytes, size: int) -> Bytes:
    """Returns each decimal in `size` bytes: drops the highest bytes, or adds bytes with the sign.
    No digits are lost, because `decimal_type` has checked that the precision fits the size of the
    fixed type."""
    width = big_endian.shape[1]
    if size <= width:
        return big_endian[:, width - size :]
    sign = np.where(big_endian[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    return np.hstack([np.repeat(sign, size - width, axis=1), big_endian])


def _exceeds(little_endian: Bytes, limit: int) -> Mask:
    """Returns a mask that is true for the numbers that are at most -limit or at least limit."""
    words = np.ascontiguousarray(little_endian).view("<u8")
    high = words[:, -1].view(np.int64)
    return ~_less(words, high, limit) | _less(words, high, 1 - limit)


def _less(words: Any, high: Ints, limit: int) -> Mask:
    """Returns a mask that is true for the numbers below `limit`. A number consists of several words
    of 64 bits; `high` has the highest word of each number. Compares word by word, from the highest
    word on: the first word in which the number differs from `limit` decides."""
    count = words.shape[1]
    parts = [(limit >> (64 * at)) & (2**64 - 1) for at in range(count)]
    less: Mask = np.zeros(len(words), bool)
    for at in range(count - 1):
        part = np.uint64(parts[at])
        less = (words[:, at] < part) | ((words[:, at] == part) & less)
    top = np.uint64(parts[-1]).view(np.int64)
    less &= high == top
    less |= high < top
    return less


def _array(little_endian: Bytes, arrow: pa.DataType) -> pa.Array:
    buffer = pa.py_buffer(np.ascontiguousarray(little_endian))
    return pa.Array.from_buffers(arrow, len(little_endian), [None, buffer])
