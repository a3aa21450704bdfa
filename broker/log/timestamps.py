"""Finds the offset for an event time: searches the time index, then batch headers, then the records
of one batch.

The records of a log are not sorted by event time. So the result is the record with the lowest
offset among all records whose event time is the wanted time or later. The search uses indexes and
batch headers to skip segments and batches whose largest timestamp is earlier. The search
decompresses only batches that may contain the result, normally one.

In three cases the result is not the offset of the record itself: if the batch's header contradicts
its records, if the records cannot be read, or if there are too many (see `record_times`). The
result is then the first offset of the batch that contains the record, or the log start offset if
this is higher.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.record_times import TimestampOffset, record_times
from skidway.broker.log.scan import InvalidBatch, Window
from skidway.broker.log.segment import LogPosition, Segment
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch
from skidway.kafka.errors import ProtocolError

NOT_FOUND = TimestampOffset(-1, -1)


def at_or_after(log: PartitionLog, timestamp: int, end: LogPosition) -> TimestampOffset:
    """Returns the first record before `end` whose event time is `timestamp` or later; NOT_FOUND if
    there is none. Raises StorageFailed and DamagedLog.
    """
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
    return at_or_after(log, timestamp, end) if timestamp >= 0 else NOT_FOUND


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
    shown = [
        found.timestamp
        for found in _records(segment, position, header)
        if found.offset >= log_start_offset
    ]
    return max(shown, default=header.max_timestamp)


def _in_segment(
    log: PartitionLog, segment: Segment, timestamp: int, end: LogPosition
) -> TimestampOffset | None:
    position = segment.find(segment.time_index.offset_before(timestamp)) or 0
    for at, header in _headers(segment, position, end):
        if header.max_timestamp < timestamp or header.last_offset < log.log_start_offset:
            continue
        found = _in_batch(segment, at, header, timestamp, log.log_start_offset)
        if found is not None:
            return found
    return None


def _in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, log_start_offset: int
) -> TimestampOffset | None:
    """Looks in a batch for records whose event time is `timestamp` or later, and returns the first
    one that is not deleted (not below the log start offset). Returns None if all of them are
    deleted.
    """
    expired = False
    for found in _records(segment, position, header):
        if found.timestamp >= timestamp:
            if found.offset >= log_start_offset:
                return found
            expired = True
    return None if expired else _itself(header, log_start_offset)


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
    body = os.pread(
        segment.file.descriptor, header.size_bytes - HEADER_BYTES, position + HEADER_BYTES
    )
    try:
        for found in record_times(body, header):
            if found.timestamp > header.max_timestamp:
                return  # the header contradicts its records
            yield found
    except (CorruptBatch, ProtocolError):
        return  # a producer has sent this bad batch; consumers cannot read it either


def _itself(header: BatchHeader, log_start_offset: int) -> TimestampOffset:
    return TimestampOffset(header.max_timestamp, max(header.base_offset, log_start_offset))
