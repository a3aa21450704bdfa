"""DeleteRecords (key 21), versions 0-2 (KIP-107): raises the log start offset of partitions.

What is new in each version:

    1    the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
"""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    structure,
)

VERSIONS = VersionRange(0, 2)
HIGH_WATERMARK = -1
"""A requested offset of -1 deletes every record that consumers can see."""


@structure
class DeleteRecordsPartition:
    """A partition, and the offset before which its records are deleted. The offset -1 means the
    high watermark."""

    partition_index: Int32
    offset: Int64


@structure
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str
    partitions: tuple[DeleteRecordsPartition, ...]


@structure
class DeleteRecordsRequest(Request):
    """The partitions whose records are deleted."""

    API = ApiKey.DELETE_RECORDS
    VERSIONS = VERSIONS

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32 = 60000


@structure
class DeleteRecordsPartitionResult:
    """The result for one partition: its new log start offset (the lowest of all replicas), or -1
    and an error."""

    partition_index: Int32
    low_watermark: Int64 = -1
    error_code: Int16 = 0


@structure
class DeleteRecordsTopicResult:
    """The partitions of one topic."""

    name: str
    partitions: tuple[DeleteRecordsPartitionResult, ...]


@structure
class DeleteRecordsResponse(Response):
    """The result for each partition."""

    API = ApiKey.DELETE_RECORDS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...]
