"""Builds the requests of administrators (delete topics, add partitions, change settings, list log
directories), and reads the responses to these requests.

Importing the classes of these messages takes longer than getting the answer to most requests. So
the client imports this module only when it sends such a request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.cluster import ConfigChanges, LogDir
from skidway.kafka.client.requests import Results, error_of
from skidway.kafka.errors import ErrorCode, error_for
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from skidway.kafka.protocol.describe_configs import ResourceType
from skidway.kafka.protocol.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    ConfigOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from skidway.kafka.types import TopicPartition


def delete_topics_call(names: Sequence[str], timeout_ms: int) -> MessageCall:
    """Returns a request to the controller to delete topics."""
    return MessageCall(
        ApiKey.DELETE_TOPICS,
        lambda version: DeleteTopicsRequest.by_name(names, version, timeout_ms),
        DeleteTopicsResponse,
    )


def deleted_topics(response: DeleteTopicsResponse) -> Results:
    """Returns for each topic an error, or None if the topic was deleted."""
    rows = response.responses
    return {row.name: error_of(row.error_code, row.error_message) for row in rows if row.name}


def create_partitions_call(
    counts: Mapping[str, int], timeout_ms: int, *, validate_only: bool = False
) -> MessageCall:
    """Returns a request to the controller to add partitions to topics."""
    request = CreatePartitionsRequest(
        topics=tuple(CreatePartitionsTopic(name=n, count=count) for n, count in counts.items()),
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    return MessageCall(ApiKey.CREATE_PARTITIONS, lambda _: request, CreatePartitionsResponse)


def created_partitions(response: CreatePartitionsResponse) -> Results:
    """Returns for each topic an error, or None if the topic has its new partitions."""
    return {row.name: error_of(row.error_code, row.error_message) for row in response.results}


def alter_configs_call(topic: str, changes: ConfigChanges, *, validate_only: bool) -> MessageCall:
    """Returns a request to change a topic's settings."""
    operations = (
        (ConfigOperation.SET, changes.set.items()),
        (ConfigOperation.DELETE, ((name, None) for name in changes.delete)),
        (ConfigOperation.APPEND, changes.append.items()),
        (ConfigOperation.SUBTRACT, changes.subtract.items()),
    )
    configs = tuple(
        AlterableConfig(name=name, config_operation=operation, value=value)
        for operation, pairs in operations
        for name, value in pairs
    )
    resource = AlterConfigsResource(
        resource_type=ResourceType.TOPIC, resource_name=topic, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    return MessageCall(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, lambda _: request, IncrementalAlterConfigsResponse
    )


def altered_configs(response: IncrementalAlterConfigsResponse) -> Results:
    """Returns for each topic an error, or None if the topic has its new settings."""
    rows = response.responses
    return {row.resource_name: error_of(row.error_code, row.error_message) for row in rows}


def describe_log_dirs_call() -> MessageCall:
    """Returns a request to a broker for its log directories and their contents."""
    request = DescribeLogDirsRequest()
    return MessageCall(ApiKey.DESCRIBE_LOG_DIRS, lambda _: request, DescribeLogDirsResponse)


def described_log_dirs(response: DescribeLogDirsResponse) -> list[LogDir]:
    """Returns the log directories in the response. Raises KafkaError if the broker refuses to list
    them."""
    if response.error_code:
        raise error_for(response.error_code, "log directories")
    return [
        LogDir(
            row.log_dir,
            error_for(row.error_code).code if row.error_code else ErrorCode.NONE,
            row.total_bytes,
            row.usable_bytes,
            {
                TopicPartition(topic.name, each.partition_index): each.partition_size
                for topic in row.topics
                for each in topic.partitions
            },
        )
        for row in response.results
    ]
