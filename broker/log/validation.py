"""Checks a batch from a producer before it may be appended.

The rules are Kafka's (LogValidator). A request has one batch per partition. The batch has base
offset 0, magic 2, a correct CRC, as many records as offsets, and at most `max.message.bytes` bytes.
It is no control batch, belongs to no transaction, and does not have the timestamp type
LogAppendTime. It uses zstd only if the version of the request supports zstd.

The checks do not look at the records in the batch. Older versions of Sarama do not set the largest
event time (https://github.com/IBM/sarama/pull/3108), so that it is before that of the first record.
Kafka reads it from the records. This broker writes the present time in its place, so that whoever
looks for event times looks into the batch.
"""

from __future__ import annotations

from typing import Final

import google_crc32c

from skidway.broker.log.config import LogConfig
from skidway.kafka.batch import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    CorruptBatch,
    read_header,
    stamp_max_timestamp,
    unpack_header,
)
from skidway.kafka.codecs import BY_NUMBER

NO_TIMESTAMP: Final = -1
_MAGIC_POSITION = 16


class BatchRefused(Exception):
    """Raised if a producer's batch must not be appended. The exception's message says why."""


class BatchCorrupt(BatchRefused):
    """Raised if the bytes of a batch contradict each other, for example if the CRC is wrong."""


class BatchTooLarge(BatchRefused):
    """Raised if a batch has more bytes than the topic allows."""


class BatchInvalid(BatchRefused):
    """Raised if the bytes are not exactly one batch, or if the batch contains something that a
    producer must not send."""


class UnsupportedFormat(BatchRefused):
    """Raised if the message format of a batch is older than v2."""


class UnsupportedCompression(BatchRefused):
    """Raised if the version of the request does not support the batch's codec."""


class ReadOnlyTopic(BatchRefused):
    """Raised if the topic is a mirror, which gets records only from a topic of another cluster."""


class TimestampRefused(BatchRefused):
    """Raised if the event times of a batch differ from the clock by more than the topic's settings
    allow, or if a producer has set the timestamp type LogAppendTime."""


def validate(
    batch: memoryview, config: LogConfig, now_ms: int, produce_version: int
) -> BatchHeader:
    """Returns the header of a batch that may be appended to a log with these settings. Writes a
    largest event time into the batch if its header lacks it. Raises BatchRefused."""
    header = _checked(batch, config.max_message_bytes, produce_version)
    if header.max_timestamp < header.base_timestamp and not config.append_time:
        header = stamp_max_timestamp(batch, 0, header, max(header.base_timestamp, now_ms))
    if config.bounds_timestamps:
        _check_timestamps(header, config, now_ms)
    return header


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """Raises TimestampRefused if an event time is too far before or after the present time.

    Only the times in the header are checked: the largest time, and the time of the first record. A
    record without a time (-1) always passes the check, as in Kafka.
    """
    largest, first = header.max_timestamp, header.base_timestamp
    before_max, after_max = config.timestamp_before_max_ms, config.timestamp_after_max_ms
    if largest != NO_TIMESTAMP and largest - now_ms > after_max:
        raise TimestampRefused(
            f"the event time {largest} is more than {after_max} ms ahead of now, {now_ms}"
        )
    earliest = min(largest, first)
    if earliest != NO_TIMESTAMP and now_ms - earliest > before_max:
        raise TimestampRefused(
            f"the event time {earliest} is more than {before_max} ms behind now, {now_ms}"
        )


def _checked(batch: memoryview, message_bytes_max: int, produce_version: int) -> BatchHeader:
    """Checks everything but event times. Raises BatchRefused if `batch` is not exactly one batch
    that may be appended."""
    header = unpack_header(batch) if len(batch) >= HEADER_BYTES else _header(batch)
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        delta,
        _,
        _,
        producer_id,
        epoch,
        sequence,
        count,
    ) = header
    # This one condition checks all rules except the rule for the CRC. It is rarely true. If it is
    # true, the batch breaks a rule, and `_refusal` finds out which one.
    if (
        magic != MAGIC
        or length + LENGTH_END != len(batch)
        or len(batch) > message_bytes_max
        or base_offset
        or count < 1
        or count != delta + 1
        or (codec := BY_NUMBER.get(attributes)) is None
        or produce_version < codec.since_produce
        or (producer_id >= 0 and (epoch < 0 or sequence < 0))
    ):
        raise _refusal(batch, _header(batch), message_bytes_max, produce_version)
    # google_crc32c accepts only bytes. So the bytes are copied; this takes less time than computing
    # the checksum.
    if google_crc32c.value(bytes(batch[CRC_START:])) != crc:
        raise BatchCorrupt(f"the CRC-32C is not the header's {crc:08x}")
    return header


def _header(batch: memoryview) -> BatchHeader:
    if len(batch) > _MAGIC_POSITION and batch[_MAGIC_POSITION] in (0, 1):
        raise UnsupportedFormat(f"message format {batch[_MAGIC_POSITION]} instead of {MAGIC}")
    if len(batch) < HEADER_BYTES:
        raise BatchInvalid(f"{len(batch)} bytes of records are not exactly one batch")
    try:
        return read_header(batch)
    except CorruptBatch as error:
        raise BatchCorrupt(str(error)) from error


def _refusal(
    batch: memoryview, header: BatchHeader, message_bytes_max: int, produce_version: int
) -> BatchRefused:
    if header.size_bytes != len(batch):
        return BatchInvalid(
            f"{len(batch)} bytes of records are not exactly one batch of {header.size_bytes} bytes"
        )
    if len(batch) > message_bytes_max:
        return BatchTooLarge(
            f"a batch of {len(batch)} bytes is larger than the topic's max.message.bytes "
            f"{message_bytes_max}"
        )
    if header.base_offset or header.count < 1 or header.count != header.last_offset_delta + 1:
        return BatchInvalid(
            f"base offset {header.base_offset}, {header.count} records, last offset delta "
            f"{header.last_offset_delta}"
        )
    if header.producer_id >= 0 and (header.producer_epoch < 0 or header.base_sequence < 0):
        return BatchInvalid(
            f"producer {header.producer_id} with epoch {header.producer_epoch} and sequence "
            f"{header.base_sequence}"
        )
    return _refused_attributes(header.attributes, produce_version)


def _refused_attributes(attributes: int, produce_version: int) -> BatchRefused:
    codec = BY_NUMBER.get(attributes & CODEC_MASK)
    if codec is None:
        return BatchInvalid(f"unknown compression codec {attributes & CODEC_MASK}")
    if produce_version < codec.since_produce:
        return UnsupportedCompression(
            f"{codec.name} needs Produce version {codec.since_produce} or newer"
        )
    if attributes & CONTROL:
        return BatchInvalid("control batches are not for producers")
    if attributes & TRANSACTIONAL:
        return BatchInvalid("transactions are not offered by this broker")
    if attributes & LOG_APPEND_TIME:
        return TimestampRefused("a producer must not set the timestamp type LogAppendTime")
    return BatchInvalid(f"unknown attributes {attributes:#06x}")
