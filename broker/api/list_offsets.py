"""ListOffsets (2), versions 1-7. Finds the offset for a time, or the offset at which a log begins
or ends.

    -1 latest          the high watermark, which never decreases; it is also the last stable offset
    -2 earliest        the log start offset
    -3 max timestamp   the first record that has the largest timestamp (KIP-734)
    a time             the first record at or after that time; if there is none, offset and time -1
    any other below 0  the error UNSUPPORTED_VERSION; versions before 7 answer -3 in the same way

A partition that a request names twice is answered with INVALID_REQUEST, as in Kafka.

To find a time, the broker normally decompresses one batch, of limited size, and reads the
timestamps of its records. The broker reads the records of a batch for no other purpose.
"""

from __future__ import annotations

from collections import Counter

from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.timestamps import TimestampOffset, at_or_after, with_max_timestamp
from skidway.broker.partitions.replica import Replica
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skidway.kafka.types import TopicPartition

_KNOWN = frozenset({LATEST, EARLIEST, MAX_TIMESTAMP})
_MAX_TIMESTAMP_SINCE = 7


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with an offset, or an error, for each partition of the request."""
    request = exchange.decode(ListOffsetsRequest)
    times = Counter(
        (topic.name, each.partition_index) for topic in request.topics for each in topic.partitions
    )
    known = _KNOWN if exchange.version >= _MAX_TIMESTAMP_SINCE else _KNOWN - {MAX_TIMESTAMP}

    def answer(topic: str, each: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if not exchange.may_topic(topic):
            return _failed(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if times[topic, each.partition_index] > 1:
            return _failed(each, ErrorCode.INVALID_REQUEST)
        if each.timestamp < 0 and each.timestamp not in known:
            return _failed(each, ErrorCode.UNSUPPORTED_VERSION)
        return _partition(broker, topic, each)

    topics = tuple(
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=tuple(answer(topic.name, each) for each in topic.partitions),
        )
        for topic in request.topics
    )
    exchange.reply(ListOffsetsResponse(topics=topics))


def _partition(
    broker: Broker, topic: str, asked: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    partition = TopicPartition(topic, index)
    replica = broker.partitions.get(partition)
    if replica is None:
        return _failed(asked, broker.why_not_served(topic, index))
    known = asked.current_leader_epoch
    if known not in (-1, replica.leader_epoch):
        newer = known > replica.leader_epoch
        code = ErrorCode.UNKNOWN_LEADER_EPOCH if newer else ErrorCode.FENCED_LEADER_EPOCH
        return _failed(asked, code)
    try:
        found = _look_up(replica, asked.timestamp)
    except (StorageFailed, DamagedLog) as error:
        if isinstance(error, DamagedLog):
            broker.partitions.damaged(partition, error)
        else:
            broker.partitions.storage_failed(error)
        return _failed(asked, code_of(error))
    return ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=replica.leader_epoch,
    )


def _failed(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _look_up(replica: Replica, timestamp: int) -> TimestampOffset:
    if timestamp == LATEST:
        return TimestampOffset(-1, replica.offset)
    if timestamp == EARLIEST:
        return TimestampOffset(-1, replica.log.log_start_offset)
    if timestamp == MAX_TIMESTAMP:
        return with_max_timestamp(replica.log, replica.high_watermark)
    return at_or_after(replica.log, timestamp, replica.high_watermark)


API = Api(ApiKey.LIST_OFFSETS, handle)
