"""DeleteRecords (21), versions 0-2. Raises the log start offset of a partition, and deletes the
segments below it, even if the setting `retention.hold` names a group that has not read them.

The new offset may be any offset up to the high watermark, or -1 for the high watermark itself. If
the new offset is lower than the present log start offset, nothing changes. If no record is left,
the active segment is closed, so that it can be deleted, too.

The broker answers when the new offset is on disk, so consumers can never again read the records
before this offset, not even after a crash. On a full disk, the offset can be written when segments
are deleted: the broker tries again until the request's timeout. If there is no space even then, it
answers KAFKA_STORAGE_ERROR: the records are not readable any more, but after a crash they may be.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from skidway import log
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.log.files import StorageFailed
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

TRY_AGAIN_MS = 200
_log = log.get(__name__)
Raised = Replica | ErrorCode


def handle(broker: Broker, exchange: Exchange) -> None:
    """Raises the log start offsets, and answers when they are durable."""
    request = exchange.decode(DeleteRecordsRequest)
    raised = {
        TopicPartition(topic.name, each.partition_index): _raise(broker, topic.name, each)
        if exchange.may_topic(topic.name)
        else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for topic in request.topics
        for each in topic.partitions
    }
    changed = [tp for tp, each in raised.items() if isinstance(each, Replica)]
    exchange.changed([str(each) for each in changed])
    deadline = broker.loop.now + request.timeout_ms / 1000

    def attempt() -> None:
        broker.logs.delete_below_start(changed, lambda: broker.logs.checkpoint(written))

    def written(failed: frozenset[Path]) -> None:
        gives_up = broker.stopping or exchange.connection.closed or broker.loop.now >= deadline
        if not gives_up and any(_lacks_space(broker, tp, failed) for tp in changed):
            broker.loop.call_later(TRY_AGAIN_MS, attempt)
        else:
            answer(failed)

    def answer(failed: frozenset[Path]) -> None:
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

    if changed:
        attempt()
    else:
        answer(frozenset())


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
        if offset == replica.log.log_end_offset:
            _close_active(broker, replica)
        broker.purgatory.check(replica.partition)
    return replica


def _close_active(broker: Broker, replica: Replica) -> None:
    """Begins a new segment, so that the active one can be deleted when the new one is durable."""
    log = replica.log
    try:
        log.roll(broker.now_ms)
    except StorageFailed as error:
        broker.partitions.storage_failed(error)
        return
    with contextlib.suppress(OSError):  # the next append writes the producers, too
        log.save_producers(log.log_end_offset, broker.now_ms)
    broker.partitions.flush(replica.partition)


def _lacks_space(broker: Broker, partition: TopicPartition, failed: frozenset[Path]) -> bool:
    """Returns whether the new offset is not on disk, and only because the disk is full."""
    home = broker.logs.home_of(partition)
    return home is not None and home.path in failed and home.full is not None


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
