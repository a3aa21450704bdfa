"""OffsetDelete (key 47), version 0: deletes single offsets of a group (KIP-496). This version is
not flexible (KIP-482)."""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import Int16, Int32, Request, Response, structure

VERSIONS = VersionRange(0, 0)


@structure
class OffsetDeleteRequestPartition:
    """A partition whose offset is to be deleted."""

    partition_index: Int32


@structure
class OffsetDeleteRequestTopic:
    """A topic's partitions."""

    name: str
    partitions: tuple[OffsetDeleteRequestPartition, ...]


@structure
class OffsetDeleteRequest(Request):
    """Offsets to delete."""

    API = ApiKey.OFFSET_DELETE
    VERSIONS = VERSIONS

    group_id: str
    topics: tuple[OffsetDeleteRequestTopic, ...]


@structure
class OffsetDeleteResponsePartition:
    """The result for one offset."""

    partition_index: Int32
    error_code: Int16 = 0


@structure
class OffsetDeleteResponseTopic:
    """A topic's partitions."""

    name: str
    partitions: tuple[OffsetDeleteResponsePartition, ...]


@structure
class OffsetDeleteResponse(Response):
    """The result for each offset. If error_code is not 0, nothing was deleted."""

    API = ApiKey.OFFSET_DELETE
    VERSIONS = VERSIONS

    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetDeleteResponseTopic, ...] = ()
