"""OffsetFetch (key 9), versions 1-7: reads the stored offsets of a group.

What is new in each version:

    1    offsets from the broker; in version 0, which KIP-896 removed, they came from ZooKeeper
    2    null asks for all topics; an error for the whole request
    3    throttle time
    4    the broker answers first, then throttles (KIP-219)
    5    leader epochs (KIP-320)
    6    flexible (KIP-482)
    7    require_stable: an error instead of an offset that an open transaction may change (KIP-447)

Version 8 (several groups in one request, KIP-709) is not supported.
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
    nullable,
    since,
    structure,
)

VERSIONS = VersionRange(1, 7)
NO_OFFSET = -1


@structure
class OffsetFetchRequestTopic:
    """A topic's partitions."""

    name: str
    partition_indexes: tuple[Int32, ...]


@structure
class OffsetFetchRequest(Request):
    """Asks for stored offsets. If `topics` is None, asks for all offsets of the group."""

    API = ApiKey.OFFSET_FETCH
    VERSIONS = VERSIONS

    group_id: str
    topics: Annotated[tuple[OffsetFetchRequestTopic, ...] | None, nullable(2)]
    require_stable: Annotated[bool, since(7), REFUSED_IF_ABSENT] = False


@structure
class OffsetFetchResponsePartition:
    """The stored offset of a partition. If no offset is stored, `committed_offset` is NO_OFFSET,
    and `error_code` is 0."""

    partition_index: Int32
    committed_offset: Int64 = NO_OFFSET
    committed_leader_epoch: Annotated[Int32, since(5)] = -1
    metadata: str | None = ""
    error_code: Int16 = 0


@structure
class OffsetFetchResponseTopic:
    """A topic's partitions."""

    name: str
    partitions: tuple[OffsetFetchResponsePartition, ...]


@structure
class OffsetFetchResponse(Response):
    """The stored offsets."""

    API = ApiKey.OFFSET_FETCH
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    topics: tuple[OffsetFetchResponseTopic, ...] = ()
    error_code: Annotated[Int16, since(2)] = 0
