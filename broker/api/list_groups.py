"""ListGroups (16), versions 0-4. Lists every group, including groups that have only committed
offsets and no members."""

from __future__ import annotations

from collections.abc import Sequence

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.groups.administration import Listed
from skidway.kafka.acls.acl import CLUSTER_NAME, ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse


def handle(broker: Broker, exchange: Exchange) -> None:
    """Lists the groups whose states the request asks for."""
    request = exchange.decode(ListGroupsRequest)
    wanted = {state.lower() for state in request.states_filter}
    shows_all = exchange.shows(ResourceType.CLUSTER, CLUSTER_NAME)

    def reply(found: Sequence[Listed] | ErrorCode) -> None:
        if isinstance(found, ErrorCode):
            exchange.reply(ListGroupsResponse(error_code=found))
            return
        exchange.reply(
            ListGroupsResponse(
                groups=tuple(
                    ListedGroup(
                        group_id=each.group_id,
                        protocol_type=each.protocol_type,
                        group_state=each.state,
                    )
                    for each in found
                    if (not wanted or each.state.lower() in wanted)
                    and (shows_all or exchange.shows(ResourceType.GROUP, each.group_id))
                )
            )
        )

    broker.group_administration.list(reply)


API = Api(ApiKey.LIST_GROUPS, handle)
