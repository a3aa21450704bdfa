"""Checks and decompresses one whole batch, before its records are decoded."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.kafka.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    check,
    read_header,
)
from skidway.kafka.compression import DECOMPRESSED_BYTES_MAX, decompress
from skidway.kafka.record_layout import ARROW_BYTES_MAX, RECORD_BYTES_MIN


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


def _payload(raw: Readable, header: BatchHeader, limit_bytes: int) -> bytes | bytearray:
    """Returns the uncompressed records, as bytes or a bytearray. Python reads single bytes faster
    from these types than from a memoryview."""
    packed = memoryview(raw)[HEADER_BYTES:]
    if header.count == 0 and len(packed) == 0:  # compaction may leave only the header
        return b""
    payload = decompress(header.codec, packed, limit_bytes)
    if header.count > len(payload) // RECORD_BYTES_MIN:
        raise CorruptBatch(f"{header.count} records in {len(payload)} bytes")
    return bytes(payload) if isinstance(payload, memoryview) else payload
