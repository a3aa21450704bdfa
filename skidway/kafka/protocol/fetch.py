"""Fetch (key 1), versions 4-12: record batches from partitions.

What is new in each version:

    4    isolation level, last stable offset, aborted transactions; record batch v2 (KIP-98)
    5    log start offsets (KIP-107)
    7    fetch sessions (KIP-227); a broker without sessions always answers session 0
    9    the leader epoch that the consumer knows (KIP-320)
    10   zstd is allowed from here on (KIP-110)
    11   rack and preferred read replica (KIP-392)
    12   flexible; last fetched epoch, diverging epoch, current leader

Version 13, in which topics are given only by id, is not supported. The order of partitions in a
request matters to the broker (KIP-74). The hot path ignores the tagged fields of version 12
(cluster id, diverging epoch, current leader, snapshot id), because only followers of a replicated
log need them. The dataclasses do have these fields.

The dataclasses here are the general form of the messages. The hot path, which makes no object per
field, is in ``fetch_request`` and ``fetch_response``.
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
    tagged,
)

VERSIONS = VersionRange(4, 12)
FLEXIBLE_SINCE = 12
TOPIC_BYTES_MIN = 6
COMPACT_TOPIC_BYTES_MIN = 3
"""The fewest bytes that a topic can have in a message: `COMPACT_TOPIC_BYTES_MIN` in flexible
versions, `TOPIC_BYTES_MIN` in lower versions. A topic of this size has an empty name and no
partitions."""

CONSUMER = -1
"""Replica id of a client that is not a follower."""
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
"""Isolation levels, also of ListOffsets."""
NO_SESSION = 0
SESSIONLESS = -1
"""Session epoch of a fetch without a session."""


@structure
class FetchPartition:
    """One partition, and the offset to read from."""

    partition: Int32
    current_leader_epoch: Annotated[Int32, since(9)] = -1
    fetch_offset: Int64
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    partition_max_bytes: Int32


@structure
class FetchTopic:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[FetchPartition, ...]


@structure
class ForgottenTopic:
    """Partitions that the broker removes from the fetch session."""

    topic: str
    partitions: tuple[Int32, ...]


@structure
class FetchRequest(Request):
    """Asks for records. The broker waits until it has min_bytes of records, but at most
    max_wait_ms."""

    API = ApiKey.FETCH
    VERSIONS = VERSIONS

    cluster_id: Annotated[str | None, since(12), tagged(0)] = None
    replica_id: Int32 = CONSUMER
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32
    isolation_level: Int8 = 0
    session_id: Annotated[Int32, since(7)] = NO_SESSION
    session_epoch: Annotated[Int32, since(7)] = SESSIONLESS
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: Annotated[tuple[ForgottenTopic, ...], since(7), REFUSED_IF_ABSENT] = ()
    rack_id: Annotated[str, since(11)] = ""


@structure
class EpochEndOffset:
    """The epoch and offset at which a follower's log diverges from the leader's."""

    epoch: Int32 = -1
    end_offset: Int64 = -1


@structure
class LeaderIdAndEpoch:
    """The present leader."""

    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


@structure
class SnapshotId:
    """The snapshot that a follower must fetch in place of records."""

    end_offset: Int64 = -1
    epoch: Int32 = -1


@structure
class AbortedTransaction:
    """An aborted transaction. A consumer skips the records of `producer_id` from `first_offset` up
    to the marker that aborts the transaction."""

    producer_id: Int64
    first_offset: Int64


@structure
class PartitionData:
    """The answer for one partition, with its records; the last batch may be cut short."""

    partition_index: Int32
    error_code: Int16 = 0
    high_watermark: Int64
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5)] = -1
    diverging_epoch: Annotated[EpochEndOffset | None, since(12), tagged(0)] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, since(12), tagged(1)] = None
    snapshot_id: Annotated[SnapshotId | None, since(12), tagged(2)] = None
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: bytes | None = b""


@structure
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str
    partitions: tuple[PartitionData, ...]


@structure
class FetchResponse(Response):
    """The records that were found."""

    API = ApiKey.FETCH
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7)] = 0
    session_id: Annotated[Int32, since(7)] = NO_SESSION
    responses: tuple[FetchableTopicResponse, ...]
