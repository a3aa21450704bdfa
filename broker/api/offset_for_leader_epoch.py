"""OffsetForLeaderEpoch (23), versions 2-4. Answers with the offset at which the records of a leader
epoch end (KIP-320).

The answer is made from the leader epochs in the log. A mirror's log has the leader epochs of the
source, because the copied batches contain them.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from skidway.kafka.types import TopicPartition


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the end offset of the requested leader epoch, or an error, for each partition of
    the request."""
    request = exchange.decode(OffsetForLeaderEpochRequest)
    topics = tuple(
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(
                _end(broker, exchange, topic.topic, each) for each in topic.partitions
            ),
        )
        for topic in request.topics
    )
    exchange.reply(OffsetForLeaderEpochResponse(topics=topics))


def _end(
    broker: Broker, exchange: Exchange, topic: str, asked: OffsetForLeaderPartition
) -> EpochEndOffset:
    if not exchange.may_topic(topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return EpochEndOffset(partition=asked.partition, error_code=code)
    replica = broker.partitions.get(TopicPartition(topic, asked.partition))
    if replica is None:
        code = broker.why_not_served(topic, asked.partition)
        return EpochEndOffset(partition=asked.partition, error_code=code)
    known = asked.current_leader_epoch
    if known not in (-1, replica.leader_epoch):
        newer = known > replica.leader_epoch
        code = ErrorCode.UNKNOWN_LEADER_EPOCH if newer else ErrorCode.FENCED_LEADER_EPOCH
        return EpochEndOffset(partition=asked.partition, error_code=code)
    end = replica.log.epochs.end_of(
        asked.leader_epoch,
        current=replica.leader_epoch,
        log_end_offset=replica.log.written.offset,
    )
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.epoch, end_offset=end.offset)


API = Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, handle)
