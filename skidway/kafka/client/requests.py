"""Builds the requests that most programs send, and reads their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skidway.kafka.batch import OFFSET_MAX
from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.cluster import (
    ConfigEntry,
    ListedOffset,
    NewTopic,
)
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.describe_configs import (
    ConfigSource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    ResourceType,
)
from skidway.kafka.protocol.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from skidway.kafka.protocol.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from skidway.kafka.types import TopicPartition

Results = dict[str, KafkaError | None]


def list_offsets_call(times: Mapping[TopicPartition, int], isolation_level: int) -> MessageCall:
    """Returns a request to one leader. The request asks for each partition's first offset at or
    after the partition's time in `times`. A time is in ms, or LATEST or EARLIEST.
    """
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for tp, time_ms in times.items():
        row = ListOffsetsPartition(partition_index=tp.partition, timestamp=time_ms)
        topics.setdefault(tp.topic, []).append(row)
    request = ListOffsetsRequest(
        isolation_level=isolation_level,
        topics=tuple(ListOffsetsTopic(name=n, partitions=tuple(p)) for n, p in topics.items()),
    )
    return MessageCall(ApiKey.LIST_OFFSETS, lambda _: request, ListOffsetsResponse)


def listed_offsets(
    response: ListOffsetsResponse, times: Mapping[TopicPartition, int]
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    """Returns for each partition the offset that was found, or an error. times: as in the
    request."""
    found: dict[TopicPartition, ListedOffset | KafkaError] = {}
    for topic in response.topics:
        for row in topic.partitions:
            tp = TopicPartition(topic.name, row.partition_index)
            if tp in times:
                found[tp] = _listed(tp, row, times[tp])
    return found


def _listed(
    tp: TopicPartition, row: ListOffsetsPartitionResponse, time_ms: int
) -> ListedOffset | KafkaError:
    if row.error_code:
        return error_for(row.error_code, f"offsets of {tp}")
    least = -1 if time_ms >= 0 else 0  # every log has a beginning and an end
    if not least <= row.offset <= OFFSET_MAX:
        why = f"the leader of {tp} says that it has the offset {row.offset}"
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why)
    return ListedOffset(row.offset, row.timestamp, row.leader_epoch)


def create_topics_call(topics: Sequence[NewTopic], timeout_ms: int) -> MessageCall:
    """Returns a request to the controller to create topics."""
    request = CreateTopicsRequest(
        topics=tuple(
            CreatableTopic(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=tuple(
                    CreatableTopicConfig(name=name, value=value)
                    for name, value in topic.configs.items()
                ),
            )
            for topic in topics
        ),
        timeout_ms=timeout_ms,
    )
    return MessageCall(ApiKey.CREATE_TOPICS, lambda _: request, CreateTopicsResponse)


def created_topics(response: CreateTopicsResponse) -> Results:
    """Returns for each topic an error, or None if the topic was created."""
    return {row.name: error_of(row.error_code, row.error_message) for row in response.topics}


def describe_configs_call(
    kind: ResourceType, names: Iterable[str], keys: tuple[str, ...] | None = None
) -> MessageCall:
    """Returns a request for settings of topics or of a broker. keys: the names of the settings;
    None for all."""
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for name in names
        )
    )
    return MessageCall(ApiKey.DESCRIBE_CONFIGS, lambda _: request, DescribeConfigsResponse)


def described_configs(response: DescribeConfigsResponse) -> dict[str, dict[str, str]]:
    """Returns the settings that have a value. Raises KafkaError if a resource has an error."""
    found, errors = configs_and_errors(response)
    for error in errors.values():
        raise error
    return found


def configs_of_broker(response: DescribeConfigsResponse) -> dict[str, str]:
    """Returns the settings of the one broker that was asked about; none if the client may not see
    them. Raises KafkaError for another error."""
    found, errors = configs_and_errors(response)
    for error in errors.values():
        if error.code is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise error
    return next(iter(found.values()), {})


def configs_and_errors(
    response: DescribeConfigsResponse,
) -> tuple[dict[str, dict[str, str]], dict[str, KafkaError]]:
    """Returns the settings that have a value, and the errors of the other resources."""
    found, errors = {}, {}
    for row in response.results:
        if row.error_code:
            name = row.resource_name
            errors[name] = error_for(row.error_code, row.error_message or name)
        else:
            known = {each.name: each.value for each in row.configs if each.value is not None}
            found[row.resource_name] = known
    return found, errors


def config_entries(response: DescribeConfigsResponse) -> dict[str, list[ConfigEntry]]:
    """Returns every setting with its source. Raises KafkaError if a resource has an error."""
    described_configs(response)
    return {
        row.resource_name: [
            ConfigEntry(each.name, each.value, _source(each.config_source), each.read_only)
            for each in row.configs
        ]
        for row in response.results
    }


def init_producer_id_call() -> MessageCall:
    """Returns a request to any broker for a producer id that was never used."""
    request = InitProducerIdRequest()
    return MessageCall(ApiKey.INIT_PRODUCER_ID, lambda _: request, InitProducerIdResponse)


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def error_of(code: int, message: str | None) -> KafkaError | None:
    """Returns the error that a response states as a code and a message; None if the code is 0."""
    return error_for(code, message) if code else None
