"""DeleteGroups (42), versions 0-2. Deletes groups without members, with their offsets."""

from __future__ import annotations

from functools import partial

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Deletes the groups, and answers when there is a result for each of them."""
    names = tuple(dict.fromkeys(exchange.decode(DeleteGroupsRequest).groups_names))
    codes: dict[str, ErrorCode] = {}

    def reply(name: str, code: ErrorCode) -> None:
        codes[name] = code
        if len(codes) == len(names):
            exchange.reply(
                DeleteGroupsResponse(
                    results=tuple(
                        DeletableGroupResult(group_id=each, error_code=codes[each])
                        for each in names
                    )
                )
            )

    if not names:
        exchange.reply(DeleteGroupsResponse(results=()))
    for name in names:
        broker.group_administration.delete(name, partial(reply, name))


API = Api(ApiKey.DELETE_GROUPS, handle)
