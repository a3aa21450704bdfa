"""The header of a record batch (message format v2). This module does not look at the records.

    position  size  field
           0     8  base offset              stamped by the broker, outside the CRC
           8     4  length                   bytes after this field
          12     4  partition leader epoch   stamped by the broker, outside the CRC
          16     1  magic                    2
          17     4  CRC-32C                  over everything from position 21 on
          21     2  attributes               0-2 codec, 3 LogAppendTime, 4 transaction, 5 control
          23     4  last offset delta
          27     8  base timestamp           ms
          35     8  max timestamp            ms
          43     8  producer id              -1 = none
          51     2  producer epoch
          53     4  base sequence            of the first record; sequences count records
          57     4  count                    of records
          61        records, compressed as one block

The CRC does not cover base offset and leader epoch. So brokers and mirrors write these two fields
in place without a new CRC, and never decode the records. This module imports neither numpy nor
pyarrow; `skidway.kafka.columns` handles the records.

The bytes that this module reads come from outside: damaged bytes raise `CorruptBatch` and no other
error. Source: KIP-98, and Kafka's message format documentation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

Readable = bytes | bytearray | memoryview

HEADER_BYTES = 61
LENGTH_END = 12  # `length` counts the bytes from here on
CRC_START = 21  # the CRC covers the bytes from here on
MAGIC = 2
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
HEADER = struct.Struct(">qiibIhiqqqhii")
"""The format of the 61 bytes that hold the fields of a `BatchHeader`."""
_BEFORE_CRC = struct.Struct(">qiibI")
_COVERED = struct.Struct(">hiqqqhii")
_BASE_OFFSET = struct.Struct(">q")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT64 = struct.Struct(">q")
_CRC_AT = 17
_MAX_TIMESTAMP_START = 35

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

SEQUENCE_END = 1 << 31  # sequences wrap to 0 after 2^31 - 1
COUNT_MAX = (1 << 31) - 1
OFFSET_MAX = 1 << 53
"""No log ends above this offset, which a log reaches after 285 years with a million records a
second. So whatever a peer says, the offsets after its records, and sums of offsets, fit into the
fields of answers, files and databases, and JSON keeps them exact.
"""

assert HEADER.size == HEADER_BYTES
assert _BEFORE_CRC.size == CRC_START
assert CRC_START + _COVERED.size == HEADER_BYTES


class CorruptBatch(SkidwayError):
    """A record batch whose bytes are inconsistent: the CRC, a length, a count or the framing is
    wrong."""


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records, with the fields in their order on the wire."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # Kafka's name for this field; hides tuple.count

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, including the first 12 bytes, which `length` does not count."""
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the original batch (compaction may have removed the
        record).
        """
        return self.base_offset + self.last_offset_delta

    @property
    def has_log_append_time(self) -> bool:
        """Whether max_timestamp is the append time. If so, every record has this timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch contains transaction markers instead of an application's records."""
        return bool(self.attributes & CONTROL)

    @property
    def is_aborted(self) -> bool:
        """Whether the batch is one of an aborted transaction, from which a fetcher has removed the
        records (see `emptied`)."""
        return self.count == 0 and self.is_transactional and not self.is_control

    @property
    def is_whole(self) -> bool:
        """Whether readers get every record that a producer sent in the batch and did not abort. If
        not, compaction has removed records."""
        return self.is_control or self.is_aborted or self.count > self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; -1 if the batch has no sequence. It may be less than
        `base_sequence`, because sequences wrap to 0 after 2^31 - 1.
        """
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return next_sequence(self.base_sequence, self.last_offset_delta)


def read_header(view: Readable, at: int = 0) -> BatchHeader:
    """Returns the header at a position. Raises CorruptBatch if there is no whole v2 header at
    `at`, or if no log can have the batch's offsets."""
    if at < 0 or len(view) - at < HEADER_BYTES:
        raise CorruptBatch(
            f"a batch header needs {HEADER_BYTES} bytes, {max(len(view) - at, 0)} are left"
        )
    header = unpack_header(view, at)
    if header.magic != MAGIC:
        raise CorruptBatch(f"message format {header.magic} instead of {MAGIC}")
    if header.length < HEADER_BYTES - LENGTH_END:
        raise CorruptBatch(f"a batch cannot have the length {header.length}")
    if header.base_offset < 0 or header.last_offset >= OFFSET_MAX:
        raise CorruptBatch(f"a batch cannot have the offset {header.base_offset}")
    return header


def unpack_header(view: Readable, at: int = 0) -> BatchHeader:
    """Returns the header at a position, without any check, for callers that check every field
    themselves."""
    return BatchHeader._make(HEADER.unpack_from(view, at))


def headers(view: Readable) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of every whole batch. A partial last batch is left out, because a
    response to Fetch may end in the middle of a batch.

    Raises CorruptBatch at a damaged header. The CRC is not checked; see `check`.
    """
    at, end = 0, len(view)
    while end - at >= HEADER_BYTES:
        header = read_header(view, at)
        if header.size_bytes > end - at:
            return
        yield at, header
        at += header.size_bytes


def check(view: Readable, at: int, header: BatchHeader) -> None:
    """Raises CorruptBatch if the batch at a position is not whole, has an impossible count or last
    offset delta, or has a wrong CRC.

    A batch may have fewer records than last offset delta + 1, because of compaction. This function
    allows such a batch. From a producer, a broker accepts only batches with count ==
    last_offset_delta + 1 and at least one record.
    """
    if header.size_bytes > len(view) - at:
        raise CorruptBatch(f"a batch of {header.size_bytes} bytes has only {len(view) - at} left")
    if not 0 <= header.last_offset_delta < COUNT_MAX:
        raise CorruptBatch(f"last offset delta {header.last_offset_delta}")
    if not 0 <= header.count <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.count} records for {header.last_offset_delta + 1} offsets")
    # google_crc32c accepts only bytes; copying 1 MB takes less time than the CRC itself
    covered = bytes(memoryview(view)[at + CRC_START : at + header.size_bytes])
    crc = google_crc32c.value(covered)
    if crc != header.crc:
        raise CorruptBatch(f"CRC-32C is {crc:08x}, the header says {header.crc:08x}")


def stamp(buffer: bytearray | memoryview, at: int, base_offset: int, leader_epoch: int) -> None:
    """Writes base offset and leader epoch into a batch in place. The CRC covers neither value."""
    _BASE_OFFSET.pack_into(buffer, at, base_offset)
    _INT32.pack_into(buffer, at + LENGTH_END, leader_epoch)


def stamp_append_time(
    buffer: bytearray | memoryview, at: int, header: BatchHeader, now_ms: int
) -> BatchHeader:
    """Sets the timestamp of every record to the append time (LogAppendTime), in place. Returns the
    new header."""
    attributes = header.attributes | LOG_APPEND_TIME
    _INT16.pack_into(buffer, at + CRC_START, attributes)
    return stamp_max_timestamp(buffer, at, header._replace(attributes=attributes), now_ms)


def stamp_max_timestamp(
    buffer: bytearray | memoryview, at: int, header: BatchHeader, timestamp: int
) -> BatchHeader:
    """Writes the largest timestamp into a batch, in place. Returns the new header. The CRC covers
    this field, so the CRC is computed again, in one pass over the batch."""
    _INT64.pack_into(buffer, at + _MAX_TIMESTAMP_START, timestamp)
    covered = bytes(memoryview(buffer)[at + CRC_START : at + header.size_bytes])
    crc = int(google_crc32c.value(covered))
    _UINT32.pack_into(buffer, at + _CRC_AT, crc)
    return header._replace(max_timestamp=timestamp, crc=crc)


def emptied(header: BatchHeader) -> bytes:
    """Returns a batch with the same offsets and without records."""
    covered = _COVERED.pack(
        header.attributes & ~CODEC_MASK,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    crc = google_crc32c.value(covered)
    length = HEADER_BYTES - LENGTH_END
    front = _BEFORE_CRC.pack(header.base_offset, length, header.leader_epoch, MAGIC, crc)
    return front + covered


def next_sequence(sequence: int, count: int) -> int:
    """Returns the sequence number that is `count` records after `sequence`. Sequence numbers wrap
    from 2^31-1 to 0, as in Kafka."""
    return (sequence + count) % SEQUENCE_END


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Encoded and compressed records that have no producer id and sequence yet.

    `body` is everything after the header. `codec` is the number of the codec. `count` is the number
    of records, at least one. Timestamps are in ms.
    """

    body: bytes
    codec: int
    count: int
    base_timestamp: int
    max_timestamp: int
    uncompressed_bytes: int

    @property
    def size_bytes(self) -> int:
        """The size of the finished batch in bytes. A topic's max.message.bytes limits this size."""
        return HEADER_BYTES + len(self.body)


def seal(
    encoded: EncodedBatch,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """Puts a header before the encoded records, and returns the complete batch, with base offset 0.
    The same arguments always produce the same bytes.
    """
    return seal_header(encoded, producer_id, producer_epoch, base_sequence) + encoded.body


def seal_header(
    encoded: EncodedBatch,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """Returns the 61 bytes before the body, for callers that send header and body as separate
    pieces."""
    covered = _COVERED.pack(
        encoded.codec,
        encoded.count - 1,
        encoded.base_timestamp,
        encoded.max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        encoded.count,
    )
    crc = google_crc32c.extend(google_crc32c.value(covered), encoded.body)
    length = HEADER_BYTES - LENGTH_END + len(encoded.body)
    return _BEFORE_CRC.pack(0, length, -1, MAGIC, crc) + covered
