"""OffsetCommit (key 8), versions 2-8: stores offsets of a group.

What is new in each version:

    2    retention time (KIP-896 removed versions 0 and 1)
    3    throttle time
    4    the broker answers first, then throttles (KIP-219)
    5    without the retention time: the broker's setting applies to the whole group (KIP-211)
    6    leader epochs (KIP-320)
    7    group instance ids (KIP-345)
    8    flexible (KIP-482)

Version 9 (member epochs, KIP-848) is not supported.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
    until,
)

VERSIONS = VersionRange(2, 8)


@structure
class OffsetCommitRequestPartition:
    """The next offset to read in a partition, with the client's own metadata."""

    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Annotated[Int32, since(6)] = -1
    committed_metadata: str | None = None


@structure
class OffsetCommitRequestTopic:
    """A topic's partitions."""

    name: str
    partitions: tuple[OffsetCommitRequestPartition, ...]


@structure
class OffsetCommitRequest(Request):
    """Offsets to store. A consumer that is no member of the group sends generation -1 and an empty
    member id."""

    API = ApiKey.OFFSET_COMMIT
    VERSIONS = VERSIONS

    group_id: str
    generation_id_or_member_epoch: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(7), REFUSED_IF_ABSENT] = None
    retention_time_ms: Annotated[Int64, until(4)] = -1
    topics: tuple[OffsetCommitRequestTopic, ...]


@structure
class OffsetCommitResponsePartition:
    """The result for one partition's offset."""

    partition_index: Int32
    error_code: Int16 = 0


@structure
class OffsetCommitResponseTopic:
    """A topic's partitions."""

    name: str
    partitions: tuple[OffsetCommitResponsePartition, ...]


@structure
class OffsetCommitResponse(Response):
    """The result for each offset."""

    API = ApiKey.OFFSET_COMMIT
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: tuple[OffsetCommitResponseTopic, ...]
