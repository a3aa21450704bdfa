"""Finds where the records of batches begin and end. Also reads varints at many positions at once.

    record = length  attributes  ...  headers

Each record begins where the previous record ends. A record of our agents has one header at its end,
named `origin`. This module first searches the payload for the first bytes of such headers. All
these headers have the same size, so each position found shows where a record ends. The module then
compares these ends with the length fields: each record must end where the next record begins. If a
record has no such header, or the comparison fails, a loop uses the length fields to go from record
to record.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skidway.kafka import origin
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.batch_unpacking import UnpackedRun
from skidway.kafka.record_layout import ORIGIN, ORIGIN_HEAD, VARINT_BYTES_MAX, Bytes, Int64s

_ORIGIN_WORD = int.from_bytes(ORIGIN_HEAD[:8], "little")


def record_bounds(data: Bytes, run: UnpackedRun) -> tuple[Int64s, Int64s]:
    """Returns two arrays with one value for each record of `run` (the decompressed records of
    several batches): the position after the record, and the position after the record's length
    field. `data` is the payload of `run`."""
    ends = _ends_by_origins(data, run)
    if ends is not None:
        try:
            length, at = varints(data, _begins(ends), VARINT_BYTES_MAX)
            if (at + length == ends).all():  # each record ends where the next record begins
                return ends, at
        except (IndexError, CorruptBatch):
            pass  # some bytes only look like an origin header, so use the lengths
    ends = _ends_by_lengths(run)
    length, at = varints(data, _begins(ends), VARINT_BYTES_MAX)
    if (at + length != ends).any():
        raise CorruptBatch("a record's length is negative")
    return ends, at


def _begins(ends: Int64s) -> Int64s:
    begins = np.empty_like(ends)
    begins[0], begins[1:] = 0, ends[:-1]
    return begins


def _ends_by_origins(data: Bytes, run: UnpackedRun) -> Int64s | None:
    """If every record ends with an origin header, as the records of our agents do, returns the
    position after every record. Otherwise returns None. The caller must compare the positions with
    the lengths of the records, because bytes of a value may look like an origin header."""
    payload = run.payload
    if payload[-ORIGIN.itemsize : -origin.ORIGIN_BYTES] != ORIGIN_HEAD:
        return None
    last = len(payload) - ORIGIN.itemsize
    found = np.flatnonzero(data[1 : last + 2] == ORIGIN_HEAD[1])
    words = np.ndarray(last + 1, "<u8", payload, strides=(1,))  # words[i]: the 8 bytes from i on
    ends = found[words[found] == _ORIGIN_WORD] + ORIGIN.itemsize
    counts = np.cumsum(run.counts)
    if len(ends) != counts[-1]:
        return None
    return ends if (ends[counts - 1] == np.cumsum(run.sizes)).all() else None


def _ends_by_lengths(run: UnpackedRun) -> Int64s:
    """Returns the position after every record. This function goes from record to record in a Python
    loop, which is slower than `_ends_by_origins`."""
    ends: list[int] = []
    begin = 0
    try:
        for count, size in zip(run.counts.tolist(), run.sizes.tolist(), strict=True):
            _add_ends(bytes(run.payload[begin : begin + size]), count, begin, ends)
            begin += size
    except IndexError as error:
        raise CorruptBatch("the records end before their count is reached") from error
    return np.array(ends, np.int64)


def _add_ends(payload: bytes, count: int, begin: int, ends: list[int]) -> None:
    """Adds to `ends` the position after each of the `count` records of one batch, whose first
    record is at `begin`."""
    at = 0
    found = ends.append
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
        found(begin + at)
    if at != len(payload):
        raise CorruptBatch("the records do not fill the batch")


def _long_record_end(payload: bytes, at: int) -> int:
    """Returns the position after a record whose length field (a varint) has three bytes or more."""
    size = shift = 0
    while payload[at] > 127:
        size |= (payload[at] & 127) << shift
        at += 1
        shift += 7
        if shift >= 7 * VARINT_BYTES_MAX:
            raise CorruptBatch("a record's length has more than five bytes")
    size |= payload[at] << shift
    return at + 1 + (size >> 1)


def varints(data: Bytes, at: Int64s, bytes_max: int) -> tuple[Int64s, Int64s]:
    """Returns the zigzag varints at the positions `at`, and the positions after them.

    At least one byte must follow the first byte of each varint; otherwise this function raises
    IndexError. In valid records, other bytes follow each varint that callers read with this
    function. Raises CorruptBatch if a varint has more than `bytes_max` bytes.
    """
    pairs = np.ndarray(len(data) - 1, "<u2", data, strides=(1,))  # pairs[i]: bytes i and i + 1
    found = _SHORT_VARINTS[pairs[at]]
    number, after = (found >> 2).astype(np.int64), at + (found & 3)
    rows = np.flatnonzero(found == 0)
    if len(rows):
        number[rows], after[rows] = _long_varints(data, at[rows], bytes_max)
    return number, after


def _long_varints(data: Bytes, at: Int64s, bytes_max: int) -> tuple[Int64s, Int64s]:
    number, at = np.zeros(len(at), np.int64), at.copy()
    rows = np.arange(len(at))
    shift = 0
    while len(rows):
        if shift >= 7 * bytes_max:
            raise CorruptBatch(f"a number of more than {bytes_max} bytes")
        byte = data[at[rows]]
        number[rows] |= (byte & 127).astype(np.int64) << shift
        at[rows] += 1
        rows = rows[byte > 127]
        shift += 7
    return (number.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(number & 1), at


def _short_varints() -> npt.NDArray[np.int32]:
    """Returns a table with an entry for each value of two bytes (as a little-endian number). If the
    two bytes begin with a whole varint, the entry is 4 * (the varint's value) + (its size in
    bytes). Otherwise the entry is 0."""
    pairs = np.arange(1 << 16, dtype=np.int32)
    one, two = pairs & 128 == 0, pairs & 0x8080 == 128
    number = (pairs & 127) | np.where(two, pairs >> 8 << 7, 0)
    number = (number >> 1) ^ -(number & 1)
    return np.where(one | two, 4 * number + np.where(one, 1, 2), 0).astype(np.int32)


_SHORT_VARINTS = _short_varints()
