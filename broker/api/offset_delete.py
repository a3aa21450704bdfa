"""OffsetDelete (47), version 0. Deletes a group's offsets, but only in topics to which no
member of the group subscribes.
"""

from __future__ import annotations

from collections.abc import Mapping

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from skidway.kafka.types import TopicPartition


def handle(broker: Broker, exchange: Exchange) -> None:
    """Deletes the offsets where this is allowed, and answers when they are deleted."""
    request = exchange.decode(OffsetDeleteRequest)
    wanted = [
        TopicPartition(topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
    ]
    if not exchange.may_group(request.group_id):
        exchange.reply(OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    denied = {
        each: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for each in wanted
        if not exchange.may_topic(each.topic)
    }
    known = [each for each in wanted if each not in denied and _exists(broker, each)]

    def reply(found: Mapping[TopicPartition, ErrorCode] | ErrorCode) -> None:
        if isinstance(found, ErrorCode):
            exchange.reply(OffsetDeleteResponse(error_code=found))
        else:
            exchange.reply(_response(request, {**found, **denied}))

    broker.group_administration.delete_offsets(request.group_id, known, reply)


def _exists(broker: Broker, partition: TopicPartition) -> bool:
    topic = broker.topics.catalog.topics.get(partition.topic)
    return topic is not None and partition.partition in topic.partitions


def _response(
    request: OffsetDeleteRequest, codes: Mapping[TopicPartition, ErrorCode]
) -> OffsetDeleteResponse:
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return OffsetDeleteResponse(
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=each.partition_index,
                        error_code=codes.get(
                            TopicPartition(topic.name, each.partition_index), missing
                        ),
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(ApiKey.OFFSET_DELETE, handle)
