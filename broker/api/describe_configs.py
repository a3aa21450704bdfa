"""DescribeConfigs (32), versions 1-4. Answers with all settings of a topic or of this broker,
including defaults.

A broker describes only its own settings, because clients send a request about a broker to that
broker. A broker's settings are read-only, because they come from its configuration file. If a
request names a resource twice, the answer contains it once.

If the broker name in a request is empty, the request asks for the defaults of all brokers in the
cluster. Skidway has no defaults of this kind, so the answer has no settings.

The key `skidway.status` is no setting: it has what the broker says about itself, how it was
started and what does not answer it, as JSON. Counters ask for it, and tell the audit.

Broker loggers are not supported. No value is hidden, because no setting is a secret yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from skidway.audit.topic.program_status import CONFIG as STATUS
from skidway.broker.api.config_access import denied
from skidway.broker.api.describe import TopicDescriber, describe_broker
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ResourceType,
)
from skidway.kafka.source import CLUSTER_NAME


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the settings, or an error, for each topic or broker that the request names."""
    request = exchange.decode(DescribeConfigsRequest)
    # Each resource is answered once, even if the request repeats it. Otherwise a small request
    # could cause a huge answer: each repetition takes a few bytes in the request, and twenty
    # thousand bytes in the answer.
    resources = {(each.resource_type, each.resource_name): each for each in request.resources}
    describer = TopicDescriber(broker.settings, partial(_without, _left_out(request)))
    results = tuple(
        _denied(exchange, each) or _describe(broker, request, describer, each)
        for each in resources.values()
    )
    exchange.reply(DescribeConfigsResponse(results=results))


def _denied(exchange: Exchange, resource: DescribeConfigsResource) -> DescribeConfigsResult | None:
    wanted = resource.resource_type, {*(resource.configuration_keys or ())}
    if wanted == (ResourceType.BROKER, {CLUSTER_NAME}):
        return None  # each message of the audit has the name, so whoever gets in may know it
    code = denied(exchange, resource.resource_type, resource.resource_name)
    return None if code is None else _failed(resource, code, "the client may not see its settings")


def _describe(
    broker: Broker,
    request: DescribeConfigsRequest,
    describer: TopicDescriber[DescribeConfigsResourceResult],
    resource: DescribeConfigsResource,
) -> DescribeConfigsResult:
    if resource.resource_type == ResourceType.TOPIC:
        topic = broker.topics.catalog.topics.get(resource.resource_name)
        if topic is None:
            message = f"there is no topic {resource.resource_name!r}"
            return _failed(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
        return _found(resource, describer.describe(topic.configs))
    if resource.resource_type == ResourceType.BROKER:
        own = str(broker.settings.broker_id)
        if not resource.resource_name:
            return _found(resource, ())
        if resource.resource_name != own:
            message = f"this is broker {own}, not {resource.resource_name!r}"
            return _failed(resource, ErrorCode.INVALID_REQUEST, message)
        rows = [*describe_broker(broker.settings), *_status(broker, resource)]
        return _found(resource, [_without(_left_out(request), each) for each in rows])
    message = f"resources of type {resource.resource_type} have no settings here"
    return _failed(resource, ErrorCode.INVALID_REQUEST, message)


def _status(
    broker: Broker, resource: DescribeConfigsResource
) -> Iterator[DescribeConfigsResourceResult]:
    """Yields what the broker says about itself, if the request asks for it by its name. It is no
    setting, so an answer with all settings leaves it out."""
    if STATUS in (resource.configuration_keys or ()):
        yield DescribeConfigsResourceResult(
            name=STATUS,
            value=json.dumps(broker.own_status()),
            read_only=True,
            config_source=ConfigSource.DYNAMIC_BROKER_CONFIG,
            config_type=ConfigType.STRING,
        )


def _found(
    resource: DescribeConfigsResource,
    configs: Iterable[DescribeConfigsResourceResult],
) -> DescribeConfigsResult:
    wanted = frozenset(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(each for each in configs if not wanted or each.name in wanted),
    )


def _left_out(request: DescribeConfigsRequest) -> dict[str, Any]:
    left_out: dict[str, Any] = {}
    if not request.include_synonyms:
        left_out["synonyms"] = ()
    if not request.include_documentation:
        left_out["documentation"] = None
    return left_out


def _without(
    left_out: Mapping[str, Any], row: DescribeConfigsResourceResult
) -> DescribeConfigsResourceResult:
    return replace(row, **left_out)


def _failed(
    resource: DescribeConfigsResource, code: ErrorCode, message: str
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


API = Api(ApiKey.DESCRIBE_CONFIGS, handle)
