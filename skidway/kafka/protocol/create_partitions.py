"""CreatePartitions (key 37), versions 0-3 (KIP-195): adds partitions to topics.

What is new in each version:

    1    the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
    3    may answer THROTTLING_QUOTA_EXCEEDED
"""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int16,
    Int32,
    Request,
    Response,
    structure,
)

VERSIONS = VersionRange(0, 3)


@structure
class CreatePartitionsAssignment:
    """The brokers of one new partition."""

    broker_ids: tuple[Int32, ...]


@structure
class CreatePartitionsTopic:
    """A topic and its new number of partitions. `assignments` has the brokers of each new
    partition. If `assignments` is None, the broker that answers chooses these brokers."""

    name: str
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None = None


@structure
class CreatePartitionsRequest(Request):
    """Topics that get more partitions."""

    API = ApiKey.CREATE_PARTITIONS
    VERSIONS = VERSIONS

    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: bool = False


@structure
class CreatePartitionsTopicResult:
    """The result for one topic."""

    name: str
    error_code: Int16 = 0
    error_message: ErrorText = None


@structure
class CreatePartitionsResponse(Response):
    """The result for each topic."""

    API = ApiKey.CREATE_PARTITIONS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...]
