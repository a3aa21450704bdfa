"""Finds the offset for an event time: searches the time index, then batch headers, then the records
of one batch.

The records of a log are not sorted by event time. So the result is the record with the lowest
offset among all records whose event time is the wanted time or later. The search uses indexes and
batch headers to skip segments and batches whose largest timestamp is earlier. The search
decompresses only batches that may contain the result, normally one. The decompressed records of a
batch may have at most `RECORDS_BYTES_MAX` bytes.

In two cases the result is not the offset of the record itself: if the records of a batch cannot be
read, or if the batch has more than `RECORDS_MAX` records. The result is then the first offset of
the batch that may contain the record, or the log start offset if this is higher. The largest event
time of a batch may be later than that of each of its records, if its producer did not set it (see
`validation`). Who looks for the record with the largest event time then also gets the first offset
of such a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.scan import InvalidBatch, Window
from skidway.broker.log.segment import LogPosition, Segment
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch
from skidway.kafka.codecs import codec_of
from skidway.kafka.errors import ProtocolError
from skidway.kafka.protocol.primitives import MessageReader

RECORDS_BYTES_MAX = 64 << 20
RECORDS_MAX = 200_000
"""The broker reads the single records of a batch only if the batch has at most this many records.
Reading so many records takes about 0.2 s.
"""


class TimestampOffset(NamedTuple):
    """A record's event time in ms, and its offset. Both are -1 if a search has found no record."""

    timestamp: int
    offset: int


NOT_FOUND = TimestampOffset(-1, -1)


def at_or_after(log: PartitionLog, timestamp: int, end: LogPosition) -> TimestampOffset:
    """Returns the first record before `end` whose event time is `timestamp` or later; NOT_FOUND if
    there is none. Raises StorageFailed and DamagedLog.
    """
    return _search(log, timestamp, end, is_largest=False)


def _search(
    log: PartitionLog, timestamp: int, end: LogPosition, *, is_largest: bool
) -> TimestampOffset:
    """is_largest: whether `timestamp` is the largest in a header, so that a batch with this header
    is the result although none of its records has so late a time."""
    for segment in log.segments:
        if segment.base_offset >= end.offset:
            break
        if segment.max_timestamp < timestamp:
            continue
        try:
            found = _in_segment(log, segment, timestamp, end, is_largest=is_largest)
        except OSError as error:
            raise StorageFailed("read", segment.path, error) from error
        except InvalidBatch as error:
            raise DamagedLog(segment.path, error.position, error.reason) from error
        if found is not None:
            return found
    return NOT_FOUND


def with_max_timestamp(log: PartitionLog, end: LogPosition) -> TimestampOffset:
    """Returns, of all records before `end`, the first record with the largest event time. Raises
    StorageFailed and DamagedLog.
    """
    largest = max((segment.max_timestamp for segment in log.segments), default=NOT_FOUND.timestamp)
    found = _with(log, largest, end)
    if found == NOT_FOUND:
        # The record with the largest time is at `end` or after it, or was deleted. So the code
        # looks for the largest time among the other records.
        found = _with(log, _largest_shown(log, end), end)
    return found


def _with(log: PartitionLog, timestamp: int, end: LogPosition) -> TimestampOffset:
    return _search(log, timestamp, end, is_largest=True) if timestamp >= 0 else NOT_FOUND


def _largest_shown(log: PartitionLog, end: LogPosition) -> int:
    largest = NOT_FOUND.timestamp
    for segment in log.segments:
        if segment.base_offset >= end.offset:
            break
        if log.log_start_offset <= segment.base_offset < end.segment:
            largest = max(largest, segment.max_timestamp)
            continue
        try:
            for at, header in _headers(segment, 0, end):
                if header.last_offset >= log.log_start_offset:
                    largest = max(largest, _largest_in(segment, at, header, log.log_start_offset))
        except OSError as error:
            raise StorageFailed("read", segment.path, error) from error
        except InvalidBatch as error:
            raise DamagedLog(segment.path, error.position, error.reason) from error
    return largest


def _largest_in(segment: Segment, position: int, header: BatchHeader, log_start_offset: int) -> int:
    if header.base_offset >= log_start_offset:
        return header.max_timestamp
    largest = None
    try:
        for found in _records(segment, position, header):
            if found.offset >= log_start_offset and (largest is None or found.timestamp > largest):
                largest = found.timestamp
    except (CorruptBatch, ProtocolError):
        pass  # what was read counts
    return header.max_timestamp if largest is None else largest


def _in_segment(
    log: PartitionLog, segment: Segment, timestamp: int, end: LogPosition, *, is_largest: bool
) -> TimestampOffset | None:
    position = segment.find(segment.time_index.offset_before(timestamp)) or 0
    for at, header in _headers(segment, position, end):
        if header.max_timestamp < timestamp or header.last_offset < log.log_start_offset:
            continue
        found, stands_for_itself = _in_batch(segment, at, header, timestamp, log.log_start_offset)
        if found is None and (stands_for_itself or is_largest):
            found = _itself(header, log.log_start_offset)
        if found is not None and found != NOT_FOUND:
            return found
    return None


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, log_start_offset: int
) -> tuple[TimestampOffset | None, bool]:
    """Looks in a batch for records whose event time is `timestamp` or later, and returns the first
    one that is not deleted (not below the log start offset); NOT_FOUND if all of them are deleted;
    None if there is none. Also returns whether the batch stands for its records: if they cannot be
    read, or all have the time of the append.
    """
    result = None
    try:
        for found in _records(segment, position, header):
            if found.timestamp >= timestamp:
                if found.offset >= log_start_offset:
                    return found, False
                result = NOT_FOUND
    except (CorruptBatch, ProtocolError):
        return result, True  # a producer has sent this bad batch; consumers cannot read it either
    return result, header.has_log_append_time


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
        return
    if header.count > RECORDS_MAX:
        raise CorruptBatch(f"{header.count} records")
    body = os.pread(
        segment.file.descriptor, header.size_bytes - HEADER_BYTES, position + HEADER_BYTES
    )
    yield from _decoded(body, header)


def _itself(header: BatchHeader, log_start_offset: int) -> TimestampOffset:
    return TimestampOffset(header.max_timestamp, max(header.base_offset, log_start_offset))


def _decoded(body: bytes, header: BatchHeader) -> Iterator[TimestampOffset]:
    reader = MessageReader(memoryview(codec_of(header).decompress(body, RECORDS_BYTES_MAX)))
    for _ in range(header.count):
        length = reader.varint()
        start = reader.at
        reader.int8()
        timestamp = header.base_timestamp + reader.varlong()
        offset = header.base_offset + reader.varint()
        if timestamp > header.max_timestamp or not (
            header.base_offset <= offset <= header.last_offset
        ):
            raise CorruptBatch(f"a record of time {timestamp} and offset {offset}")
        yield TimestampOffset(timestamp, offset)
        rest = length - (reader.at - start)
        if rest < 0:
            raise CorruptBatch(f"a record of {length} bytes")
        reader.take(rest)
