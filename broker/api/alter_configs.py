"""AlterConfigs (33), versions 0-2; also has the code that AlterConfigs and IncrementalAlterConfigs
share.

The settings in the request replace all settings of the topic, except the settings that a mirror has
written. The broker checks the given settings like the settings of a new topic, and writes them to
ZooKeeper. The new settings apply as soon as the request is answered. If `validate_only` is set, the
broker only checks the settings.

The settings of a broker come from its configuration file and cannot be altered over the network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from skidway.broker.api.config_access import denied
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Gathering
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.catalog import Topic
from skidway.broker.topics.alteration import ChangeRefused, ConfigRefused, replaced
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_configs import ResourceType

Key = tuple[int, str]
"""The type and the name of a resource."""
Alteration = Callable[[Mapping[str, str]], Mapping[str, str]]
"""A function that gets a topic's present settings, and returns the settings that the topic is to
have. It raises ConfigRefused if a setting is not valid, and ChangeRefused if the change is not
allowed."""
Responses = Sequence[AlterConfigsResourceResponse]
DENIED: Final = "the client may not alter its settings"


def handle(broker: Broker, exchange: Exchange) -> None:
    """Alters the topics that the request names, and answers when there is a result for each
    resource."""
    request = exchange.decode(AlterConfigsRequest)
    wanted: list[tuple[Key, Alteration]] = []
    for each in request.resources:
        given = [(config.name, config.value) for config in each.configs]
        key = each.resource_type, each.resource_name
        wanted.append((key, partial(replaced, wanted=given)))

    def reply(responses: Responses) -> None:
        exchange.reply(AlterConfigsResponse(responses=tuple(responses)))

    alter_all(broker, exchange, wanted, reply, validate_only=request.validate_only)


def alter_all(
    broker: Broker,
    exchange: Exchange,
    wanted: Sequence[tuple[Key, Alteration]],
    reply: Callable[[Responses], None],
    *,
    validate_only: bool,
) -> None:
    """Alters the topics in `wanted`. Then calls `reply` with one result for each resource, in the
    order of `wanted`.
    """

    def answer(responses: Responses) -> None:
        if not validate_only:
            exchange.changed([each.resource_name for each in responses if not each.error_code])
        reply(responses)

    gathering: Gathering[AlterConfigsResourceResponse] = Gathering(len(wanted), answer)
    times = Counter(key for key, _ in wanted)
    for at, (key, change) in enumerate(wanted):
        done = _finisher(gathering, at, key)
        code = denied(exchange, *key)
        topic = _topic(broker, key) if code is None else _failed(key, code, DENIED)
        if times[key] > 1:
            gathering.put(at, _failed(key, ErrorCode.INVALID_REQUEST, "it is named twice"))
        elif isinstance(topic, AlterConfigsResourceResponse):
            gathering.put(at, topic)
        else:
            try:
                change(topic.configs)
            except (ConfigRefused, ChangeRefused) as error:
                done(error)
                continue
            if validate_only:
                done(None)
            else:
                broker.topics.alter(topic, change, done)


def _topic(broker: Broker, key: Key) -> Topic | AlterConfigsResourceResponse:
    kind, name = key
    if kind == ResourceType.TOPIC:
        topic = broker.topics.catalog.topics.get(name)
        if topic is not None:
            return topic
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _failed(key, code, f"there is no topic {name!r}")
    if kind == ResourceType.BROKER:
        words = "the settings of a broker come from its configuration file; change them there"
        return _failed(key, ErrorCode.INVALID_REQUEST, words)
    words = f"resources of type {kind} have no settings here"
    return _failed(key, ErrorCode.INVALID_REQUEST, words)


def _finisher(
    gathering: Gathering[AlterConfigsResourceResponse], at: int, key: Key
) -> Callable[[SkidwayError | None], None]:
    def done(error: SkidwayError | None) -> None:
        if error is None:
            gathering.put(
                at, AlterConfigsResourceResponse(resource_type=key[0], resource_name=key[1])
            )
        else:
            gathering.put(at, _failed(key, code_of(error), str(error)))

    return done


def _failed(key: Key, code: ErrorCode, message: str) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code, error_message=message, resource_type=key[0], resource_name=key[1]
    )


API = Api(ApiKey.ALTER_CONFIGS, handle)
