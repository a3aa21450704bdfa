"""Commits offsets of a group without members, for a reader that assigns partitions to itself.

Brokers store these offsets like the offsets of any group. So people can see how far the reader has
read, and brokers can keep records until the reader has read them (setting `retention.hold`). A
commit takes two requests: the first finds the group's coordinator, and the second sends the offsets
to this coordinator.
"""

from __future__ import annotations

from collections.abc import Mapping

from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.cluster import Address
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.host_names import is_address
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from skidway.kafka.types import TopicPartition


def find_coordinator_call(group: str) -> MessageCall:
    """Returns a request to any broker for the coordinator of a group."""
    request = FindCoordinatorRequest(key=group)
    return MessageCall(ApiKey.FIND_COORDINATOR, lambda _: request, FindCoordinatorResponse)


def coordinator(response: FindCoordinatorResponse) -> Address:
    """Returns the coordinator's address. Raises KafkaError if there is no coordinator now."""
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    if not is_address(response.host, response.port):
        why = f"nobody can connect to {response.host!r}, port {response.port}"
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why)
    return Address(response.host, response.port)


def commit_offsets_call(group: str, offsets: Mapping[TopicPartition, int]) -> MessageCall:
    """Returns a request to the group's coordinator to store the next offset of each partition."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp, offset in offsets.items():
        row = OffsetCommitRequestPartition(partition_index=tp.partition, committed_offset=offset)
        topics.setdefault(tp.topic, []).append(row)
    request = OffsetCommitRequest(
        group_id=group,
        topics=tuple(
            OffsetCommitRequestTopic(name=name, partitions=tuple(rows))
            for name, rows in topics.items()
        ),
    )
    return MessageCall(ApiKey.OFFSET_COMMIT, lambda _: request, OffsetCommitResponse)


def refused_offsets(response: OffsetCommitResponse) -> dict[TopicPartition, KafkaError]:
    """Returns the partitions whose offsets were not stored, with the errors."""
    return {
        TopicPartition(topic.name, row.partition_index): error_for(row.error_code)
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    }
