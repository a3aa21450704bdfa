"""DeleteGroups (42), versions 0-2. Deletes groups without members, with their offsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Asking
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

    def ask(at: int, put: Callable[[ErrorCode], None]) -> None:
        if exchange.may_group(names[at]):
            broker.group_administration.delete(names[at], put)
        else:
            put(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def reply(codes: Sequence[ErrorCode]) -> None:
        exchange.changed([name for name, code in zip(names, codes, strict=True) if not code])
        results = tuple(
            DeletableGroupResult(group_id=name, error_code=code)
            for name, code in zip(names, codes, strict=True)
        )
        exchange.reply(DeleteGroupsResponse(results=results))

    # All groups are deleted, even if the client leaves before it has the answer.
    Asking(len(names), ask, reply, lambda: True)


API = Api(ApiKey.DELETE_GROUPS, handle)
