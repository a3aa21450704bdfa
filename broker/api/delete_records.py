"""DeleteRecords (21), versions 0-2. Raises the log start offset of a partition.

The new offset may be any offset up to the high watermark, or -1 for the high watermark itself. If
the new offset is lower than the present log start offset, nothing changes. The broker answers when
the new offset is on disk, so consumers can never again read the records before this offset, not
even after a crash. The next check of retention deletes the segments before the new offset, even if
the setting `retention.hold` names a group that has not read these segments.
"""

from __future__ import annotations

from pathlib import Path

from skidway import log
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.partitions.replica import Replica
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.delete_records import (
    HIGH_WATERMARK,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from skidway.kafka.types import TopicPartition

_log = log.get(__name__)
Raised = Replica | ErrorCode


def handle(broker: Broker, exchange: Exchange) -> None:
    """Raises the log start offsets, and answers when they are durable."""
    request = exchange.decode(DeleteRecordsRequest)
    raised = {
        TopicPartition(topic.name, each.partition_index): _raise(broker, topic.name, each)
        for topic in request.topics
        for each in topic.partitions
    }

    def written(failed: frozenset[Path]) -> None:
        topics = tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    _result(broker, tp, raised[tp], failed)
                    for each in topic.partitions
                    for tp in [TopicPartition(topic.name, each.partition_index)]
                ),
            )
            for topic in request.topics
        )
        exchange.reply(DeleteRecordsResponse(topics=topics))

    if any(isinstance(each, Replica) for each in raised.values()):
        broker.logs.checkpoint(written)
    else:
        written(frozenset())


def _raise(broker: Broker, topic: str, asked: DeleteRecordsPartition) -> Raised:
    replica = broker.partitions.get(TopicPartition(topic, asked.partition_index))
    if replica is None:
        return broker.why_not_served(topic, asked.partition_index)
    offset = replica.offset if asked.offset == HIGH_WATERMARK else asked.offset
    if not 0 <= offset <= replica.offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if offset > replica.log.log_start_offset:
        _log.info("records_deleted", partition=str(replica.partition), log_start_offset=offset)
        replica.log.start_at(offset)
        broker.purgatory.check(replica.partition)
    return replica


def _result(
    broker: Broker, partition: TopicPartition, raised: Raised, failed: frozenset[Path]
) -> DeleteRecordsPartitionResult:
    if isinstance(raised, ErrorCode):
        return DeleteRecordsPartitionResult(partition_index=partition.partition, error_code=raised)
    home = broker.logs.home_of(partition)
    if home is None or not raised.served or home.path in failed:
        return DeleteRecordsPartitionResult(
            partition_index=partition.partition, error_code=ErrorCode.KAFKA_STORAGE_ERROR
        )
    return DeleteRecordsPartitionResult(
        partition_index=partition.partition, low_watermark=raised.log.log_start_offset
    )


API = Api(ApiKey.DELETE_RECORDS, handle)
