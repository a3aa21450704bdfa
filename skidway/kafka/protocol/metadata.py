"""Metadata (key 3), versions 0-12.

What is new in each version:

    1    rack, controller id, is_internal; topics: null = all, empty = none (in 0: empty = all)
    2    cluster id
    3    throttle time
    4    allow_auto_topic_creation: in lower versions any request may create topics
    5    offline replicas
    7    leader epochs (KIP-320)
    8    authorized operations (KIP-430): INT32_MIN if not asked for or not known
    9    flexible (KIP-482)
    10   topic ids in answers; requests have a field for ids, but may use it only in 12 (KIP-516)
    11   without the cluster's authorized operations (KIP-700)
    12   topics can be requested by id; then the name is null

Version 6 differs from 5 only in that the broker answers first and then throttles (KIP-219).
"""

from __future__ import annotations

import uuid
from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    NO_ID,
    REFUSED_IF_ABSENT,
    Int16,
    Int32,
    Request,
    Response,
    at_most,
    nullable,
    since,
    structure,
    until,
)

VERSIONS = VersionRange(0, 12)
OPERATIONS_UNKNOWN = -(1 << 31)
"""The value of authorized operations that were not requested or not computed."""
BROKERS_MAX = 10_000
PARTITIONS_MAX = 200_000
"""What the largest cluster that Kafka supports has. A client refuses an answer with more: it costs
seconds of the loop of a broker that mirrors."""


@structure
class MetadataRequestTopic:
    """A requested topic, given by its name. Since version 12, the topic is given by its id if the
    name is None."""

    topic_id: Annotated[uuid.UUID, since(10), REFUSED_IF_ABSENT] = NO_ID
    name: Annotated[str | None, nullable(10)]


@structure
class MetadataRequest(Request):
    """Asks for brokers and topics. If `topics` is None (in version 0: empty), all topics are
    requested."""

    API = ApiKey.METADATA
    VERSIONS = VERSIONS

    topics: Annotated[tuple[MetadataRequestTopic, ...] | None, nullable(1)]
    allow_auto_topic_creation: Annotated[bool, since(4), REFUSED_IF_ABSENT] = True
    include_cluster_authorized_operations: Annotated[bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False

    def wants_all(self, version: int) -> bool:
        """Returns whether the request asks for every topic, with null or, in version 0, with an
        empty array."""
        return self.topics is None or (version == 0 and not self.topics)


@structure
class MetadataResponseBroker:
    """A live broker and the address that it advertises."""

    node_id: Int32
    host: str
    port: Int32
    rack: Annotated[str | None, since(1)] = None


@structure
class MetadataResponsePartition:
    """A partition with its replicas. `leader_id` is -1 if the partition has no leader."""

    error_code: Int16 = 0
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Annotated[Int32, since(7)] = -1
    replica_nodes: tuple[Int32, ...]
    isr_nodes: tuple[Int32, ...]
    offline_replicas: Annotated[tuple[Int32, ...], since(5)] = ()


@structure
class MetadataResponseTopic:
    """A topic, or the error of a requested topic."""

    error_code: Int16 = 0
    name: Annotated[str | None, nullable(12)]
    topic_id: Annotated[uuid.UUID, since(10)] = NO_ID
    is_internal: Annotated[bool, since(1)] = False
    partitions: Annotated[
        tuple[MetadataResponsePartition, ...], at_most(PARTITIONS_MAX, "partitions")
    ] = ()
    topic_authorized_operations: Annotated[Int32, since(8)] = OPERATIONS_UNKNOWN


@structure
class MetadataResponse(Response):
    """Brokers, controller and topics as this broker knows them."""

    API = ApiKey.METADATA
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(3)] = 0
    brokers: Annotated[tuple[MetadataResponseBroker, ...], at_most(BROKERS_MAX, "brokers")]
    cluster_id: Annotated[str | None, since(2)] = None
    controller_id: Annotated[Int32, since(1)] = -1
    topics: Annotated[tuple[MetadataResponseTopic, ...], at_most(PARTITIONS_MAX, "topics")]
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = OPERATIONS_UNKNOWN
