"""CreateTopics (key 19), versions 2-7.

What is new in each version:

    2    throttle time (KIP-896 removed versions 0 and 1)
    4    -1 as the number of partitions or as the replication factor stands for the broker's default
         (KIP-464); kafkajs sends -1 in every version, so a broker should accept -1 in every version
    5    flexible (KIP-482); the answer shows partitions, replication factor and configs (KIP-525)
    6    may answer THROTTLING_QUOTA_EXCEEDED
    7    topic id in the answer (KIP-516)

If an answer has no configs, ``configs`` is an empty tuple and not None, because Java's admin client
fails on null.
"""

from __future__ import annotations

import uuid
from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    NO_ID,
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    since,
    structure,
    tagged,
)

VERSIONS = VersionRange(2, 7)
BROKER_DEFAULT = -1


@structure
class CreatableReplicaAssignment:
    """The brokers of one partition, the preferred leader first."""

    partition_index: Int32
    broker_ids: tuple[Int32, ...]


@structure
class CreatableTopicConfig:
    """A setting of the topic."""

    name: str
    value: str | None


@structure
class CreatableTopic:
    """A topic to be created."""

    name: str
    num_partitions: Int32 = BROKER_DEFAULT
    replication_factor: Int16 = BROKER_DEFAULT
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@structure
class CreateTopicsRequest(Request):
    """Topics to be created, or, with `validate_only`, only to be checked."""

    API = ApiKey.CREATE_TOPICS
    VERSIONS = VERSIONS

    topics: tuple[CreatableTopic, ...]
    timeout_ms: Int32 = 60000
    validate_only: bool = False


@structure
class CreatableTopicConfigs:
    """A setting of the created topic."""

    name: str
    value: str | None
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


@structure
class CreatableTopicResult:
    """The result for one topic."""

    name: str
    topic_id: Annotated[uuid.UUID, since(7)] = NO_ID
    error_code: Int16 = 0
    error_message: ErrorText = None
    topic_config_error_code: Annotated[Int16, since(5), tagged(0)] = 0
    num_partitions: Annotated[Int32, since(5)] = -1
    replication_factor: Annotated[Int16, since(5)] = -1
    configs: Annotated[tuple[CreatableTopicConfigs, ...] | None, since(5)] = ()


@structure
class CreateTopicsResponse(Response):
    """The result for each topic."""

    API = ApiKey.CREATE_TOPICS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    topics: tuple[CreatableTopicResult, ...]
