"""OffsetFetch (9), versions 1-7. Answers with the offsets that a group has committed.

For a partition without a committed offset, the answer is the offset -1, without an error. Every
offset is stable, because there are no transactions.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.coordination.stored_groups import Offsets
from skidway.kafka.acls.acl import ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from skidway.kafka.types import TopicPartition

GROUP_ERROR_SINCE = 2


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers as soon as the group's offsets have been read."""
    request = exchange.decode(OffsetFetchRequest)

    if not exchange.may_group(request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        exchange.reply(_failure(request, exchange.version, code))
        return

    def reply(found: Offsets | ErrorCode) -> None:
        if isinstance(found, ErrorCode):
            exchange.reply(_failure(request, exchange.version, found))
        else:
            wanted = _all(exchange, found) if request.topics is None else request.topics
            exchange.reply(
                OffsetFetchResponse(topics=tuple(_topic(exchange, each, found) for each in wanted))
            )

    broker.groups.offsets.fetch(request.group_id, reply)


def _all(exchange: Exchange, found: Offsets) -> tuple[OffsetFetchRequestTopic, ...]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(found):
        if exchange.shows(ResourceType.TOPIC, topic):
            by_topic.setdefault(topic, []).append(number)
    return tuple(
        OffsetFetchRequestTopic(name=topic, partition_indexes=tuple(numbers))
        for topic, numbers in by_topic.items()
    )


def _topic(
    exchange: Exchange, wanted: OffsetFetchRequestTopic, found: Offsets
) -> OffsetFetchResponseTopic:
    if not exchange.may_topic(wanted.name):
        return _refused(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return OffsetFetchResponseTopic(
        name=wanted.name,
        partitions=tuple(_partition(wanted.name, each, found) for each in wanted.partition_indexes),
    )


def _partition(topic: str, number: int, found: Offsets) -> OffsetFetchResponsePartition:
    committed = found.get(TopicPartition(topic, number))
    if committed is None:
        return OffsetFetchResponsePartition(partition_index=number)
    return OffsetFetchResponsePartition(
        partition_index=number,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _failure(request: OffsetFetchRequest, version: int, code: ErrorCode) -> OffsetFetchResponse:
    if version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=tuple(_refused(topic, code) for topic in request.topics or ())
    )


def _refused(wanted: OffsetFetchRequestTopic, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=wanted.name,
        partitions=tuple(
            OffsetFetchResponsePartition(partition_index=each, error_code=code)
            for each in wanted.partition_indexes
        ),
    )


API = Api(ApiKey.OFFSET_FETCH, handle)
