"""CreateTopics (19), versions 2-7. Creates topics.

In every version, -1 for the number of partitions or the replication factor means the broker's
default (KIP-464; kafkajs sends -1). Before the broker writes anything about a topic, it checks the
topic's name, its numbers of partitions and replicas, its settings and its assignment. If
`validate_only` is set, the broker writes nothing. The broker reports success as soon as the topic's
partitions on this broker can be used. While ZooKeeper cannot be reached, the answer is
REQUEST_TIMED_OUT, after which clients try again. Who may not see the topic's settings is told that
in their place (KIP-525).

More than one replica is not supported.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from skidway.broker.api.describe import TopicDescriber
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Gathering
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.topics import configs
from skidway.broker.topics.assignment import PARTITIONS_MAX, assign
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import CLUSTER_NAME, Operation, ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import (
    BROKER_DEFAULT,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.describe_configs import DescribeConfigsResourceResult
from skidway.kafka.protocol.messages import NO_ID
from skidway.kafka.topic_names import illegal_topic

TOPICS_MAX = 1_000
"""One request may create at most this many topics. The limit exists because the answer has all
settings of each topic, and others wait while the broker makes it.
"""

DENIED: Final = "the client may not create it"

Assignment = Mapping[int, tuple[int, ...]]
Created = Callable[[CreatableTopic, uuid.UUID, Assignment], CreatableTopicResult]


class Refused(Exception):
    """Raised if the broker refuses to create a topic, or refuses to add partitions to a topic."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle(broker: Broker, exchange: Exchange) -> None:
    """Checks all topics, creates those that pass the check, and answers when there is a result for
    each topic."""
    request = exchange.decode(CreateTopicsRequest)

    def reply(results: Sequence[CreatableTopicResult]) -> None:
        if not request.validate_only:
            exchange.changed([each.name for each in results if not each.error_code])
        exchange.reply(CreateTopicsResponse(topics=tuple(results)))

    gathering: Gathering[CreatableTopicResult] = Gathering(len(request.topics), reply)
    describer = TopicDescriber(broker.settings, _shown)
    created = partial(_created, exchange, describer)
    asked = Counter(topic.name for topic in request.topics)
    room, topics_room = PARTITIONS_MAX, TOPICS_MAX
    may_create_all = exchange.access.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    for at, topic in enumerate(request.topics):
        try:
            if asked[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")  # noqa: TRY301
            if not (may_create_all or exchange.may_topic(topic.name)):
                raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, DENIED)  # noqa: TRY301
            check_room(_partitions_of(broker, topic), room if topics_room else 0)
            assignment = check(broker, topic)
            room -= len(assignment)
            topics_room -= 1
        except Refused as refused:
            gathering.put(at, _failed(topic.name, refused.code, str(refused)))
            continue
        if not request.validate_only:
            _create(broker, topic, assignment, created, partial(gathering.put, at))
        elif no_room := broker.topics.no_room():
            gathering.put(at, _failed(topic.name, code_of(no_room), str(no_room)))
        else:
            gathering.put(at, created(topic, NO_ID, assignment))


def check(broker: Broker, topic: CreatableTopic) -> Assignment:
    """Checks a topic that a request wants to create. Returns which broker gets which partition.
    Raises Refused."""
    illegal = illegal_topic(topic.name)
    if illegal is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, illegal)
    catalog = broker.topics.catalog
    if topic.name in catalog.topics or broker.topics.is_creating(topic.name):
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists.")
    wrong = configs.refusal({each.name: each.value for each in topic.configs})
    if wrong is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, wrong)
    if topic.assignments:
        return _assigned(broker, topic)
    count = topic.num_partitions
    if count == BROKER_DEFAULT:
        count = broker.settings.num_partitions
    check_partition_count(count)
    _check_replicas(broker, topic.replication_factor)
    return assign(count, sorted(catalog.brokers), len(catalog.topics))


def _partitions_of(broker: Broker, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    count = topic.num_partitions
    return broker.settings.num_partitions if count == BROKER_DEFAULT else count


def check_room(count: int, room: int) -> None:
    """Raises Refused if `count`, the number of partitions that a request adds to a topic, is
    above `room`, the number of partitions that the request may still create. Ignores a count above
    PARTITIONS_MAX, because `check_partition_count` refuses this count."""
    if room < count <= PARTITIONS_MAX:
        raise Refused(
            ErrorCode.POLICY_VIOLATION,
            f"one request creates at most {TOPICS_MAX} topics and {PARTITIONS_MAX} partitions;"
            " send several",
        )


def check_partition_count(count: int) -> None:
    """Raises Refused if a topic cannot have this many partitions."""
    if not 0 < count <= PARTITIONS_MAX:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"the number of partitions must be from 1 to {PARTITIONS_MAX}, not {count}",
        )


def check_assigned(broker: Broker, broker_ids: tuple[int, ...]) -> None:
    """Raises Refused if a request assigns a partition to more or fewer than one broker, or to a
    broker that is not live."""
    live = broker.topics.catalog.brokers
    if len(broker_ids) != 1 or broker_ids[0] not in live:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"a partition needs exactly one replica, on one of the brokers {sorted(live)}",
        )


def _assigned(broker: Broker, topic: CreatableTopic) -> Assignment:
    if topic.num_partitions != BROKER_DEFAULT or topic.replication_factor != BROKER_DEFAULT:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "both assignments and numbers of partitions or replicas were given",
        )
    found: dict[int, CreatableReplicaAssignment] = {
        each.partition_index: each for each in topic.assignments
    }
    if sorted(found) != list(range(len(topic.assignments))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered 0, 1, 2 ..."
        )
    check_partition_count(len(found))
    for each in found.values():
        check_assigned(broker, each.broker_ids)
    return {number: found[number].broker_ids for number in sorted(found)}


def _check_replicas(broker: Broker, factor: int) -> None:
    wanted = broker.settings.default_replication_factor if factor == BROKER_DEFAULT else factor
    live = len(broker.topics.catalog.brokers)
    if wanted < 1:
        message = f"the replication factor must be 1 or more, not {wanted}"
    elif wanted > live:
        message = f"the replication factor {wanted} is larger than the number of brokers, {live}"
    elif wanted > 1:
        message = f"this version keeps one replica of a partition, not {wanted}"
    else:
        return
    raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _create(
    broker: Broker,
    topic: CreatableTopic,
    assignment: Assignment,
    created: Created,
    finish: Callable[[CreatableTopicResult], None],
) -> None:
    settings = {each.name: each.value or "" for each in topic.configs}

    def done(error: SkidwayError | None) -> None:
        if error is not None:
            finish(_failed(topic.name, code_of(error), str(error)))
        else:
            finish(created(topic, topic_id, assignment))

    topic_id = broker.topics.create(topic.name, assignment, settings, done)


def _created(
    exchange: Exchange,
    describer: TopicDescriber[CreatableTopicConfigs],
    topic: CreatableTopic,
    topic_id: uuid.UUID,
    assignment: Assignment,
) -> CreatableTopicResult:
    if not exchange.shows(ResourceType.TOPIC, topic.name, Operation.DESCRIBE_CONFIGS):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return CreatableTopicResult(
            name=topic.name, topic_id=topic_id, topic_config_error_code=code
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        num_partitions=len(assignment),
        replication_factor=1,
        configs=describer.describe({each.name: each.value or "" for each in topic.configs}),
    )


def _shown(row: DescribeConfigsResourceResult) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(name=row.name, value=row.value, config_source=row.config_source)


def _failed(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


API = Api(ApiKey.CREATE_TOPICS, handle)
