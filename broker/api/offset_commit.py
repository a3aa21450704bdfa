"""OffsetCommit (8), versions 2-8. Stores the offsets up to which a group has read. The broker
answers when the offsets are in ZooKeeper.

If some offsets cannot be stored, the answer has an error for their partitions, and the other
offsets are stored. Retention times in requests of old clients (versions 2-4) are ignored: the
setting offsets.retention.minutes applies to all offsets.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.coordination.consumers import Committed
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skidway.kafka.types import TopicPartition


def handle(broker: Broker, exchange: Exchange) -> None:
    """Passes the offsets to the group, which stores them."""
    request = exchange.decode(OffsetCommitRequest)
    if not exchange.may_group(request.group_id):
        exchange.reply(_response(request, {}, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    refused: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, Committed] = {}
    for topic in request.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            error = _refusal(broker, exchange, partition, each)
            if error is not None:
                refused[partition] = error
            else:
                offsets[partition] = Committed(
                    each.committed_offset,
                    each.committed_metadata or "",
                    max(each.committed_leader_epoch, -1),
                    broker.now_ms,
                )

    def reply(code: ErrorCode) -> None:
        exchange.reply(_response(request, refused, code))

    broker.groups.offsets.commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        offsets,
        reply,
    )


def _refusal(
    broker: Broker,
    exchange: Exchange,
    partition: TopicPartition,
    wanted: OffsetCommitRequestPartition,
) -> ErrorCode | None:
    if not exchange.may_topic(partition.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = broker.topics.catalog.topics.get(partition.topic)
    if topic is None or partition.partition not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    metadata = wanted.committed_metadata or ""
    if len(metadata.encode()) > broker.settings.offset_metadata_bytes_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.INVALID_REQUEST if wanted.committed_offset < 0 else None


def _response(
    request: OffsetCommitRequest, refused: dict[TopicPartition, ErrorCode], code: ErrorCode
) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=code
                        or refused.get(TopicPartition(topic.name, each.partition_index), code),
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


API = Api(ApiKey.OFFSET_COMMIT, handle)
