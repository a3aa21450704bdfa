"""IncrementalAlterConfigs (44), versions 0-1: sets or deletes settings of topics, and adds or
removes elements of settings that are lists. Settings that the request does not name stay unchanged.

If a topic does not set a list itself, the broker copies the list that the topic inherits, adds
elements to the copy or removes elements from it, and makes the copy the topic's own setting.
"""

from __future__ import annotations

from functools import partial

from skidway.broker.api.alter_configs import Alteration, Key, Responses, alter_all
from skidway.broker.api.describe import inherited
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.topics.alteration import Change, altered
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Alters the topics that the request names, and answers when there is a result for each
    resource."""
    request = exchange.decode(IncrementalAlterConfigsRequest)
    defaults = inherited(broker.settings)
    wanted: list[tuple[Key, Alteration]] = []
    for each in request.resources:
        changes = [Change(row.name, row.config_operation, row.value) for row in each.configs]
        key = each.resource_type, each.resource_name
        wanted.append((key, partial(altered, changes=changes, inherited=defaults)))

    def reply(responses: Responses) -> None:
        exchange.reply(IncrementalAlterConfigsResponse(responses=tuple(responses)))

    alter_all(broker, exchange, wanted, reply, validate_only=request.validate_only)


API = Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, handle)
