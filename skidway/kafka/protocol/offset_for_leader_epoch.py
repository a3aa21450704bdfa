"""OffsetForLeaderEpoch (key 23), versions 2-4: where the records of a leader epoch end (KIP-101).

What is new in each version:

    2    the leader epoch that the client knows (KIP-320); KIP-896 removed versions 0 and 1
    3    replica id
    4    flexible (KIP-482)

A consumer asks about the epoch of the last record that it has read. If that epoch ends before the
consumer's position, the broker no longer has all records that the consumer has read: the log was
cut, and perhaps other records were written.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int16,
    Int32,
    Int64,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(2, 4)
UNDEFINED = -1
"""The value of an unknown epoch or offset in an answer."""


@structure
class OffsetForLeaderPartition:
    """A partition and the requested epoch. `current_leader_epoch` is the latest leader epoch that
    the client knows."""

    partition: Int32
    current_leader_epoch: Int32 = -1
    leader_epoch: Int32


@structure
class OffsetForLeaderTopic:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[OffsetForLeaderPartition, ...]


@structure
class OffsetForLeaderEpochRequest(Request):
    """Asks where epochs end. `replica_id` is -1 for a consumer, and -2 if it is not given."""

    API = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS = VERSIONS

    replica_id: Annotated[Int32, since(3)] = -2
    topics: tuple[OffsetForLeaderTopic, ...]


@structure
class EpochEndOffset:
    """Where an epoch ends.

    `leader_epoch` is the requested epoch. If the leader does not have the requested epoch,
    `leader_epoch` is the leader's largest epoch below the requested epoch. `end_offset` is the
    offset after the last record of `leader_epoch`.
    """

    error_code: Int16 = 0
    partition: Int32
    leader_epoch: Int32 = UNDEFINED
    end_offset: Int64 = UNDEFINED


@structure
class OffsetForLeaderTopicResult:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[EpochEndOffset, ...]


@structure
class OffsetForLeaderEpochResponse(Response):
    """The offsets at which the epochs end."""

    API = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    topics: tuple[OffsetForLeaderTopicResult, ...]
