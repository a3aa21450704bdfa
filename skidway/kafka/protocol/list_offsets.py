"""ListOffsets (key 2), versions 1-7: finds the first offset at or after a time.

What is new in each version:

    1    one offset per partition, with its timestamp (version 0, which KIP-896 removed, had arrays)
    2    isolation level, throttle time
    4    leader epochs (KIP-320)
    5    may answer OFFSET_NOT_AVAILABLE
    6    flexible (KIP-482)
    7    timestamp -3: the offset of the largest timestamp (KIP-734)

A requested timestamp is in ms, or one of the constants below. If no record is at or after that
time, offset and timestamp are -1. The timestamps -4 and -5 of versions 8 and 9 (local and tiered
offsets) are not supported.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    Int8,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(1, 7)
LATEST = -1
"""Asks for the high watermark. If the isolation level is "read committed", asks for the last stable
offset instead."""
EARLIEST = -2
"""Asks for the log start offset."""
MAX_TIMESTAMP = -3
"""Asks for the offset of the record with the largest timestamp; since version 7."""


@structure
class ListOffsetsPartition:
    """A partition, and a time: the first offset at or after this time is requested."""

    partition_index: Int32
    current_leader_epoch: Annotated[Int32, since(4)] = -1
    timestamp: Int64


@structure
class ListOffsetsTopic:
    """The partitions of one topic."""

    name: str
    partitions: tuple[ListOffsetsPartition, ...]


@structure
class ListOffsetsRequest(Request):
    """Asks for the first offset at or after a time, in each of the partitions."""

    API = ApiKey.LIST_OFFSETS
    VERSIONS = VERSIONS

    replica_id: Int32 = -1
    isolation_level: Annotated[Int8, since(2), REFUSED_IF_ABSENT] = 0
    topics: tuple[ListOffsetsTopic, ...]


@structure
class ListOffsetsPartitionResponse:
    """The offset and timestamp that were found, or -1 and -1."""

    partition_index: Int32
    error_code: Int16 = 0
    timestamp: Int64 = -1
    offset: Int64 = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


@structure
class ListOffsetsTopicResponse:
    """The partitions of one topic."""

    name: str
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@structure
class ListOffsetsResponse(Response):
    """The offsets that were found."""

    API = ApiKey.LIST_OFFSETS
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(2)] = 0
    topics: tuple[ListOffsetsTopicResponse, ...]
