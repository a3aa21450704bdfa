"""DeleteTopics (20), versions 1-6. Deletes topics that are given by name, or, from version 6 on, by
id.

The broker answers when the topic is removed from ZooKeeper and the topic's directories are renamed.
The directories are deleted in the background. If a topic of the same name is created again, it has
another id. Who may describe a topic, but not delete it, is told whether it exists, and
the name that belongs to an id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Gathering
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.catalog import Topic
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import Operation, ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

DENIED: Final = "the client may not delete it"


def handle(broker: Broker, exchange: Exchange) -> None:
    """Deletes the topics that exist, and answers when there is a result for each topic of the
    request."""
    request = exchange.decode(DeleteTopicsRequest)
    states = tuple({(each.name, each.topic_id): each for each in request.states()}.values())

    def reply(results: Sequence[DeletableTopicResult]) -> None:
        exchange.changed([each.name or "" for each in results if not each.error_code])
        exchange.reply(DeleteTopicsResponse(responses=tuple(results)))

    gathering: Gathering[DeletableTopicResult] = Gathering(len(states), reply)
    for at, state in enumerate(states):
        topic = _find(broker, state)
        name = state.name if topic is None else topic.name
        sees = name is None or exchange.access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
        if not (topic is None and sees) and not exchange.may_topic(name or ""):
            known = replace(state, name=name) if sees else state
            gathering.put(at, _failed(known, ErrorCode.TOPIC_AUTHORIZATION_FAILED, DENIED))
        elif topic is None:
            code = _why_missing(state)
            gathering.put(at, _failed(state, code, "there is no such topic"))
        elif not broker.settings.delete_topic:
            code = ErrorCode.TOPIC_DELETION_DISABLED
            gathering.put(at, _failed(state, code, "delete.topic.enable is false"))
        else:
            broker.topics.delete(topic, _finisher(gathering, at, topic))


def _find(broker: Broker, state: DeleteTopicState) -> Topic | None:
    if state.name is None:
        return broker.topics.catalog.by_id(state.topic_id)
    return broker.topics.catalog.topics.get(state.name)


def _why_missing(state: DeleteTopicState) -> ErrorCode:
    if state.name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _failed(state: DeleteTopicState, code: ErrorCode, message: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=state.name, topic_id=state.topic_id, error_code=code, error_message=message
    )


def _finisher(
    gathering: Gathering[DeletableTopicResult], at: int, topic: Topic
) -> Callable[[SkidwayError | None], None]:
    def done(error: SkidwayError | None) -> None:
        result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        if error is not None:
            result = DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=code_of(error),
                error_message=str(error),
            )
        gathering.put(at, result)

    return done


API = Api(ApiKey.DELETE_TOPICS, handle)
