"""DescribeCluster (key 60), versions 0-1 (KIP-700): cluster id, controller, live brokers.

What is new in each version:

    1    asks for brokers or for controllers (KIP-919)

Every version is flexible (KIP-482). Version 2 is not supported, because it asks for fenced brokers,
which exist only with KRaft.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    at_most,
    since,
    structure,
)
from skidway.kafka.protocol.metadata import BROKERS_MAX, OPERATIONS_UNKNOWN

VERSIONS = VersionRange(0, 1)
BROKERS = 1
"""The value of the field `endpoint_type` that stands for brokers; 2 stands for KRaft's
controllers."""


@structure
class DescribeClusterRequest(Request):
    """Asks for a description of the cluster."""

    API = ApiKey.DESCRIBE_CLUSTER
    VERSIONS = VERSIONS

    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, since(1)] = BROKERS


@structure
class DescribeClusterBroker:
    """A live broker and the address that it advertises."""

    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None


@structure
class DescribeClusterResponse(Response):
    """The cluster as this broker knows it. `controller_id` is -1 if there is no controller."""

    API = ApiKey.DESCRIBE_CLUSTER
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: ErrorText = None
    endpoint_type: Annotated[Int8, since(1)] = BROKERS
    cluster_id: str
    controller_id: Int32 = -1
    brokers: Annotated[tuple[DescribeClusterBroker, ...], at_most(BROKERS_MAX, "brokers")]
    cluster_authorized_operations: Int32 = OPERATIONS_UNKNOWN
