"""Reads the event times of a batch's records. The records are decompressed, and decoded one by one,
so a batch may have at most `RECORDS_MAX` records and `RECORDS_BYTES_MAX` bytes of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skidway.kafka.batch import BatchHeader, CorruptBatch
from skidway.kafka.codecs import codec_of
from skidway.kafka.protocol.primitives import MessageReader

RECORDS_BYTES_MAX = 64 << 20
RECORDS_MAX = 200_000
"""Reading so many records takes about 0.2 s."""


class TimestampOffset(NamedTuple):
    """A record's event time in ms, and its offset. Both are -1 if a search has found no record."""

    timestamp: int
    offset: int


def record_times(body: bytes | memoryview, header: BatchHeader) -> Iterator[TimestampOffset]:
    """Yields the event time and offset of each record. body: everything behind the header. Raises
    CorruptBatch or ProtocolError if the records cannot be read."""
    if header.count > RECORDS_MAX:
        raise CorruptBatch(f"{header.count} records, of which only {RECORDS_MAX} are read")
    reader = MessageReader(memoryview(codec_of(header).decompress(body, RECORDS_BYTES_MAX)))
    for _ in range(header.count):
        length = reader.varint()
        start = reader.at
        reader.int8()
        timestamp = header.base_timestamp + reader.varlong()
        offset = header.base_offset + reader.varint()
        if not header.base_offset <= offset <= header.last_offset:
            raise CorruptBatch(f"a record of offset {offset}")
        yield TimestampOffset(timestamp, offset)
        rest = length - (reader.at - start)
        if rest < 0:
            raise CorruptBatch(f"a record of {length} bytes")
        reader.take(rest)
