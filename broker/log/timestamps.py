"""From an event time to an offset: time index, then batch headers, then the records of one batch.

Event times are in no order, so the answer is the first record, by offset, that is at or after the
time. Segments and batches whose largest timestamp is earlier are passed over by their indexes and
headers; only the batch that holds the answer is decompressed, to at most `RECORDS_BYTES_MAX`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from broker.log.files import DamagedLog, StorageFailed
from broker.log.partition_log import LogPosition, PartitionLog
from broker.log.scan import InvalidBatch, Window
from broker.log.segment import Segment
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch
from skidway.kafka.compression import decompress
from skidway.kafka.errors import ProtocolError
from skidway.kafka.protocol.primitives import Reader

RECORDS_BYTES_MAX = 64 << 20


class TimestampOffset(NamedTuple):
    """A record's event time in ms, and its offset; -1 and -1 = there is none."""

    timestamp: int
    offset: int


NOT_FOUND = TimestampOffset(-1, -1)


def at_or_after(log: PartitionLog, timestamp: int, end: LogPosition) -> TimestampOffset:
    """The first record below `end` at or after an event time. StorageFailed, DamagedLog."""
    for segment in log.segments:
        if segment.base_offset >= end.offset:
            break
        if segment.max_timestamp < timestamp:
            continue
        try:
            found = _in_segment(log, segment, timestamp, end)
        except OSError as error:
            raise StorageFailed("read", segment.path, error) from error
        except InvalidBatch as error:
            raise DamagedLog(segment.path, error.position, error.reason) from error
        if found is not None:
            return found
    return NOT_FOUND


def with_max_timestamp(log: PartitionLog, end: LogPosition) -> TimestampOffset:
    """The first record with the largest event time below `end`. StorageFailed, DamagedLog."""
    largest = max((segment.max_timestamp for segment in log.segments), default=-1)
    while largest >= 0:
        found = at_or_after(log, largest, end)
        if found.offset >= 0:
            return found
        # What has it is not flushed yet: the largest below the end is among the rest.
        largest = _largest_flushed(log, end)
    return NOT_FOUND


def _largest_flushed(log: PartitionLog, end: LogPosition) -> int:
    largest = -1
    for segment in log.segments:
        if segment.base_offset < end.segment:
            largest = max(largest, segment.max_timestamp)
        elif segment.base_offset == end.segment:
            for _, header in _headers(segment, 0, end):
                largest = max(largest, header.max_timestamp)
    return largest


def _in_segment(
    log: PartitionLog, segment: Segment, timestamp: int, end: LogPosition
) -> TimestampOffset | None:
    start_offset = segment.time_index.offset_before(timestamp)
    position = segment.offset_index.position_before(start_offset)
    for at, header in _headers(segment, position, end):
        if header.max_timestamp < timestamp or header.last_offset < log.log_start_offset:
            continue
        for found in _records(segment, at, header):
            if found.timestamp >= timestamp and found.offset >= log.log_start_offset:
                return found
    return None


def _headers(
    segment: Segment, position: int, end: LogPosition
) -> Iterator[tuple[int, BatchHeader]]:
    window = Window(segment.file.descriptor)
    limit = end.position if segment.base_offset == end.segment else segment.size
    while position < limit:
        header = window.header(position)
        yield position, header
        position += header.size_bytes


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[TimestampOffset]:
    if header.has_log_append_time:
        yield TimestampOffset(header.max_timestamp, header.base_offset)
        return
    body = os.pread(
        segment.file.descriptor, header.size_bytes - HEADER_BYTES, position + HEADER_BYTES
    )
    try:
        yield from _decoded(body, header)
    except (CorruptBatch, ProtocolError):
        # What a producer compressed wrongly is its readers' trouble; the batch stands for it.
        yield TimestampOffset(header.max_timestamp, header.base_offset)


def _decoded(body: bytes, header: BatchHeader) -> Iterator[TimestampOffset]:
    reader = Reader(memoryview(decompress(header.codec, body, RECORDS_BYTES_MAX)))
    for _ in range(header.count):
        length = reader.varint()
        start = reader.at
        reader.int8()
        timestamp = header.base_timestamp + reader.varlong()
        offset = header.base_offset + reader.varint()
        yield TimestampOffset(timestamp, offset)
        rest = length - (reader.at - start)
        if rest < 0:
            raise CorruptBatch(f"a record of {length} bytes")
        reader.take(rest)
