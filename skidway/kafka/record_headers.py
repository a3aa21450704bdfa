"""Reads the headers of records, one by one.

    headers = count  (key length  key  value length  value) ...

All numbers are zigzag varints. A value of length -1 is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from skidway.kafka.batch import CorruptBatch, Readable
from skidway.kafka.record_layout import VARINT_BYTES_MAX, Int64s

KEY_BYTES_MAX = 63
"""`header_head` takes keys of at most this many bytes, whose length is a varint of one byte."""

COLUMN = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""The type of a column of headers: for each record the headers in their order."""


class Header(NamedTuple):
    """One header of a record."""

    key: bytes
    value: bytes | None


def header_head(key: bytes) -> bytes:
    """Returns the bytes of a record's headers that come before the length of the value, if the
    record has only one header, with this key of at most KEY_BYTES_MAX bytes."""
    assert len(key) <= KEY_BYTES_MAX
    return bytes((2, len(key) << 1)) + key


def headers_in(payload: Readable, at: int, end: int) -> Iterator[Header]:
    """Yields the headers of one record. Raises CorruptBatch if the headers do not fill
    payload[at:end] exactly."""
    count, at = _varint(payload, at, end)
    if count < 0:
        raise CorruptBatch("a record has a negative number of headers")
    for _ in range(count):
        key_size, at = _varint(payload, at, end)
        if not 0 <= key_size <= end - at:
            raise CorruptBatch("a header's key is longer than its record")
        key = bytes(payload[at : at + key_size])
        size, at = _varint(payload, at + key_size, end)
        if not -1 <= size <= end - at:
            raise CorruptBatch("a header's value is longer than its record")
        yield Header(key, bytes(payload[at : at + size]) if size >= 0 else None)
        at += max(size, 0)
    if at != end:
        raise CorruptBatch("a record's headers do not fill it")


def headers_column(payload: Readable, at: Int64s, ends: Int64s) -> pa.Array:
    """Returns the headers of many records as a column of the type `COLUMN`. A record without
    headers is null, as in Spark's own Kafka source. Bytes of a key that are not UTF-8 are replaced
    by U+FFFD.
    """
    rows = [
        [{"key": key.decode("utf-8", "replace"), "value": value} for key, value in each] or None
        for each in (
            headers_in(payload, int(first), int(end)) for first, end in np.stack([at, ends], 1)
        )
    ]
    return pa.array(rows, COLUMN)


def header_values(payload: Readable, at: Int64s, ends: Int64s, key: bytes) -> list[bytes | None]:
    """Returns, for many records, the value of the first header with this key; None for a record
    without such a header. Raises CorruptBatch if a record's headers are damaged."""
    head = header_head(key)
    view = bytes(payload)
    return [
        _value_of(view, first, end, head, key)
        for first, end in zip(at.tolist(), ends.tolist(), strict=True)
    ]


def _value_of(payload: bytes, at: int, end: int, head: bytes, key: bytes) -> bytes | None:
    if end - at == 1 and payload[at] == 0:
        return None
    if payload.startswith(head, at):
        begin = at + len(head) + 1
        if 0 <= end - begin < 64 and payload[begin - 1] == (end - begin) << 1:
            return payload[begin:end]  # the only header, and its length is a varint of one byte
        size, begin = _varint(payload, begin - 1, end)
        if size == end - begin:
            return payload[begin:end]
    found = [value for name, value in headers_in(payload, at, end) if name == key]
    return found[0] if found else None


def _varint(payload: Readable, at: int, end: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * VARINT_BYTES_MAX, 7):
        if at >= end:
            raise CorruptBatch("a record ends inside of its headers")
        byte = payload[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
    raise CorruptBatch("a number of more than five bytes among a record's headers")
