"""Metadata (3), versions 0-11. Lists the brokers, the topics, and the leader of each partition.

The answer is made from the catalog (the broker's snapshot of ZooKeeper), so the broker can answer
even while ZooKeeper cannot be reached. After a restart of the broker, all clients send this request
at the same time, so the broker stores encoded answers. A request with the version and body of an
earlier request is answered with the same bytes, as long as the stored answer is still correct.

If a request names an unknown topic, the broker may create it: both the setting
`auto.create.topics.enable` and the request must allow this. Until the topic exists, the answer says
LEADER_NOT_AVAILABLE, and clients ask again. It says the same about a topic that is not created yet
because the client has created many (see `auto_creation`), and POLICY_VIOLATION, after which clients
do not ask again, if the cluster has `max.topics` topics. But if the name is that of a mirror topic
(`<source cluster>.<topic>`), only the mirror creates the topic.

The list of all topics has those that the client may describe. Another topic that the client names
is answered with TOPIC_AUTHORIZATION_FAILED, whether it exists or not, and so is an unknown one that
the client may not create.

Requests for topics by id (version 12) are not supported.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Final

from skidway import log
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.catalog import NO_LEADER, Topic, TopicPartitionInfo
from skidway.broker.topics.administration import TooManyTopics
from skidway.broker.topics.assignment import assign
from skidway.broker.topics.auto_creation import MINUTE_MAX
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import CLUSTER_NAME, Operation, ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.metadata import (
    OPERATIONS_UNKNOWN,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skidway.kafka.topic_names import illegal_topic
from skidway.kafka.types import TopicPartition

TOPIC: Final = ResourceType.TOPIC
INTERNAL = "__"
"""Topics whose names begin like this are not created because a client asks for them."""
_log = log.get(__name__)


def handle(broker: Broker, exchange: Exchange) -> None:
    """If the broker has stored the answer to a request with the same version and body, sends this
    answer. Otherwise makes the answer from the catalog. Its order is that of names and numbers, so
    that brokers give equal answers: a client decodes those only once.
    """
    answers, listener = broker.metadata_answers, exchange.connection.listener
    kept = answers.get(exchange.version, exchange.body, listener, exchange.access)
    if kept is not None:
        exchange.reply_body(kept)
        return
    response = _response(broker, exchange)
    body = exchange.reply(response)
    # An answer about a missing topic is not stored, because each request for the topic may create
    # it; one that only `authorizer.mode: warn` lets pass is not, because each is counted.
    is_kept = not exchange.is_denied and all(each.error_code == 0 for each in response.topics)
    if body is not None and is_kept:
        answers.keep(exchange.version, exchange.body, body, listener, exchange.access)


def _response(broker: Broker, exchange: Exchange) -> MetadataResponse:
    request = exchange.decode(MetadataRequest)
    catalog = broker.topics.catalog
    reached = catalog.reached_by(exchange.connection.listener)
    if request.wants_all(exchange.version):
        topics = [
            _topic(broker, each, reached)
            for _, each in sorted(catalog.topics.items())
            if exchange.shows(TOPIC, each.name)
        ]
    else:
        asked = dict.fromkeys(each.name or "" for each in request.topics or ())
        may_create = request.allow_auto_topic_creation and broker.settings.auto_create_topics
        topics = _named(broker, exchange, asked, may_create, reached)
    if request.include_topic_authorized_operations:
        topics = [
            replace(each, topic_authorized_operations=_operations(exchange, each))
            for each in topics
        ]
    operations = OPERATIONS_UNKNOWN
    if request.include_cluster_authorized_operations:
        operations = exchange.cluster_operations
    brokers = tuple(
        MetadataResponseBroker(node_id=broker_id, host=each.host, port=each.port)
        for broker_id, each in sorted(reached.items())
    )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=catalog.cluster_id,
        controller_id=catalog.controller_id,
        topics=tuple(topics),
        cluster_authorized_operations=operations,
    )


def _operations(exchange: Exchange, topic: MetadataResponseTopic) -> int:
    if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED or topic.name is None:
        return OPERATIONS_UNKNOWN
    return exchange.access.operations(TOPIC, topic.name)


def _named(
    broker: Broker,
    exchange: Exchange,
    asked: Iterable[str],
    may_create: bool,
    reached: Container[int],
) -> list[MetadataResponseTopic]:
    known, address = broker.topics.catalog.topics, exchange.connection.address
    room = left = broker.auto_creation.room(address)
    found = []
    for name in asked:
        if not exchange.may(TOPIC, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            found.append(MetadataResponseTopic(error_code=code, name=name))
            continue
        if name in known:
            found.append(_topic(broker, known[name], reached))
            continue
        code = _why_missing(broker, name, may_create)
        if code is ErrorCode.LEADER_NOT_AVAILABLE and not _may_create(exchange, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if code is ErrorCode.LEADER_NOT_AVAILABLE and not broker.topics.is_creating(name):
            no_room = broker.topics.no_room()
            if isinstance(no_room, TooManyTopics):
                code = code_of(no_room)
                broker.counts.count_uncreated("full")
                broker.loop.bounds.tell("max.topics", broker.settings.topics_max)
            elif no_room or not left:
                broker.counts.count_uncreated("postponed")
                broker.loop.bounds.tell("topics made by requests", MINUTE_MAX, address=address)
            elif broker.topics.session.is_connected:
                _create(broker, name)
                left -= 1
        found.append(MetadataResponseTopic(error_code=code, name=name))
    broker.auto_creation.count(address, room - left)
    return found


def _why_missing(broker: Broker, name: str, may_create: bool) -> ErrorCode:
    if illegal_topic(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    # Kafka's own topics, such as __consumer_offsets: clients look whether they are there. And a
    # mirror copies only into topics that it has created itself.
    is_never_created = name.startswith(INTERNAL) or broker.settings.mirrors_as(name) is not None
    if is_never_created or not may_create:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.LEADER_NOT_AVAILABLE


def _may_create(exchange: Exchange, name: str) -> bool:
    on_cluster = exchange.access.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    return on_cluster or exchange.may_topic(name, Operation.CREATE)


def _create(broker: Broker, name: str) -> None:
    catalog = broker.topics.catalog
    brokers = sorted(catalog.brokers)
    assignment = assign(broker.settings.num_partitions, brokers, len(catalog.topics))

    def created(error: SkidwayError | None) -> None:
        if error is not None:
            _log.warning("topic_not_created", topic=name, reason=str(error))

    broker.topics.create(name, assignment, {}, created)


def _topic(broker: Broker, topic: Topic, reached: Container[int]) -> MetadataResponseTopic:
    partitions = tuple(
        _partition(broker, TopicPartition(topic.name, number), info, reached)
        for number, info in topic.partitions.items()
    )
    return MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition(
    broker: Broker, partition: TopicPartition, info: TopicPartitionInfo, reached: Container[int]
) -> MetadataResponsePartition:
    """reached: the brokers that the client can reach, by the listener that it has asked."""
    state, number = info.state, partition.partition
    stopped = partition in broker.logs.stopped
    offline = info.replicas if stopped else ()
    if state is None or state.leader not in reached:
        return MetadataResponsePartition(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=number,
            leader_id=NO_LEADER,
            leader_epoch=-1 if state is None else state.leader_epoch,
            replica_nodes=info.replicas,
            isr_nodes=() if state is None else state.isr,
            offline_replicas=offline,
        )
    return MetadataResponsePartition(
        partition_index=number,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=info.replicas,
        isr_nodes=state.isr,
        offline_replicas=offline,
    )


API = Api(ApiKey.METADATA, handle)
