"""Checks and decompresses whole batches, before their records are decoded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skidway.dataclass import dataclass
from skidway.kafka.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    check,
    read_header,
)
from skidway.kafka.codecs import DECOMPRESSED_BYTES_MAX, codec_of
from skidway.kafka.record_layout import ARROW_BYTES_MAX, RECORD_BYTES_MIN, Bools, Int64s


@dataclass(frozen=True, slots=True)
class UnpackedBatch:
    """One batch after `unpack`: its header, and its records without compression."""

    header: BatchHeader
    payload: bytes | bytearray

    @property
    def count(self) -> int:
        """The number of records that readers get from the batch. A control batch counts as 0
        records.
        """
        return self.header.count if self.payload else 0


@dataclass(frozen=True, slots=True)
class UnpackedRun:
    """Several batches after `unpack`. payload: their records, one batch after the other.

    All other fields are columns with one row for each batch. sizes: the number of bytes of the
    batch's records. counts: the number of the batch's records. append_time: whether each of the
    batch's records has the timestamp max_timestamp. The other columns have fields of the batch's
    header, under the names that `BatchHeader` gives them. Every batch of a run has records.
    """

    payload: Readable
    sizes: Int64s
    counts: Int64s
    base_offset: Int64s
    last_offset_delta: Int64s
    base_timestamp: Int64s
    max_timestamp: Int64s
    append_time: Bools


def joined(batches: Sequence[UnpackedBatch]) -> UnpackedRun:
    """Returns one run of those batches that have records. Raises ValueError if the batches have 2
    GiB or more together."""
    filled = [batch for batch in batches if batch.count]
    sizes = [len(batch.payload) for batch in filled]
    if sum(sizes) > ARROW_BYTES_MAX:
        raise ValueError("record batches of 2 GiB or more cannot be decoded together")
    headers = [batch.header for batch in filled]
    one = len(filled) == 1
    return UnpackedRun(
        filled[0].payload if one else b"".join([batch.payload for batch in filled]),
        np.array(sizes, np.int64),
        np.array([header.count for header in headers], np.int64),
        np.array([header.base_offset for header in headers], np.int64),
        np.array([header.last_offset_delta for header in headers], np.int64),
        np.array([header.base_timestamp for header in headers], np.int64),
        np.array([header.max_timestamp for header in headers], np.int64),
        np.array([header.has_log_append_time for header in headers], np.bool_),
    )


def unpack(raw: Readable, limit_bytes: int = DECOMPRESSED_BYTES_MAX) -> UnpackedBatch:
    """Checks one whole batch, from any producer, and returns it decompressed. Does not look at the
    records. Keeps no reference to `raw`.

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


def _payload(raw: Readable, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """Returns the uncompressed records, as bytes or a bytearray. Python reads single bytes faster
    from these types than from a memoryview."""
    packed = memoryview(raw)[HEADER_BYTES:]
    if header.count == 0 and len(packed) == 0:  # compaction may leave only the header
        return b""
    payload = codec_of(header).decompress(packed, limit_bytes)
    if header.count > len(payload) // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{header.count} records in {len(payload)} bytes")
    return bytes(payload) if isinstance(payload, memoryview) else payload
