"""CreatePartitions (37), versions 0-3. Adds partitions to a topic (KIP-195), but never removes
partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from skidway.broker.api.create_topics import (
    Assignment,
    Refused,
    check_assigned,
    check_partition_count,
    check_room,
)
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Gathering
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.catalog import Topic
from skidway.broker.topics.assignment import PARTITIONS_MAX, assign
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

DENIED: Final = "the client may not alter it"


def handle(broker: Broker, exchange: Exchange) -> None:
    """Checks all topics, adds partitions to those that pass the check, and answers when there is a
    result for each topic."""
    request = exchange.decode(CreatePartitionsRequest)

    def reply(results: Sequence[CreatePartitionsTopicResult]) -> None:
        if not request.validate_only:
            exchange.changed([each.name for each in results if not each.error_code])
        exchange.reply(CreatePartitionsResponse(results=tuple(results)))

    gathering: Gathering[CreatePartitionsTopicResult] = Gathering(len(request.topics), reply)
    times = Counter(each.name for each in request.topics)
    room = PARTITIONS_MAX
    for at, wanted in enumerate(request.topics):
        try:
            if times[wanted.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")  # noqa: TRY301
            if not exchange.may_topic(wanted.name):
                raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, DENIED)  # noqa: TRY301
            topic, assignment = _check(broker, wanted, room)
            room -= len(assignment) - len(topic.partitions)
        except Refused as refused:
            result = CreatePartitionsTopicResult(
                name=wanted.name, error_code=refused.code, error_message=str(refused)
            )
            gathering.put(at, result)
            continue
        if request.validate_only:
            gathering.put(at, CreatePartitionsTopicResult(name=wanted.name))
        else:
            broker.topics.extend(topic, assignment, _finisher(gathering, at, topic.name))


def _check(broker: Broker, wanted: CreatePartitionsTopic, room: int) -> tuple[Topic, Assignment]:
    catalog = broker.topics.catalog
    topic = catalog.topics.get(wanted.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {wanted.name!r}")
    known = len(topic.partitions)
    if wanted.count <= known:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"the topic has {known} partitions already, and {wanted.count} is not more",
        )
    check_partition_count(wanted.count)
    check_room(wanted.count - known, room)
    more = assign(wanted.count - known, sorted(catalog.brokers), len(catalog.topics), known)
    if wanted.assignments is not None:
        if len(wanted.assignments) != len(more):
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{len(more)} new partitions need as many assignments",
            )
        for each in wanted.assignments:
            check_assigned(broker, each.broker_ids)
        more = {known + at: each.broker_ids for at, each in enumerate(wanted.assignments)}
    replicas = {number: info.replicas for number, info in topic.partitions.items()}
    return topic, {**replicas, **more}


def _finisher(
    gathering: Gathering[CreatePartitionsTopicResult], at: int, name: str
) -> Callable[[SkidwayError | None], None]:
    def done(error: SkidwayError | None) -> None:
        code = ErrorCode.NONE if error is None else code_of(error)
        message = None if error is None else str(error)
        result = CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
        gathering.put(at, result)

    return done


API = Api(ApiKey.CREATE_PARTITIONS, handle)
