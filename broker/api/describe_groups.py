"""DescribeGroups (15), versions 0-5. Describes groups and their members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Asking
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.groups.administration import Described
from skidway.kafka.acls.acl import ResourceType
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Describes the groups, and answers when there is a result for each of them."""
    request = exchange.decode(DescribeGroupsRequest)
    names = tuple(dict.fromkeys(request.groups))

    def ask(at: int, put: Callable[[DescribedGroup], None]) -> None:
        name = names[at]
        if exchange.may_group(name):
            broker.group_administration.describe(name, lambda found: put(group(name, found)))
        else:
            put(_group(name, ErrorCode.GROUP_AUTHORIZATION_FAILED))

    def group(name: str, found: Described | ErrorCode) -> DescribedGroup:
        described = _group(name, found)
        if not request.include_authorized_operations or isinstance(found, ErrorCode):
            return described
        operations = exchange.access.operations(ResourceType.GROUP, name)
        return replace(described, authorized_operations=operations)

    def reply(groups: Sequence[DescribedGroup]) -> None:
        exchange.reply(DescribeGroupsResponse(groups=tuple(groups)))

    Asking(len(names), ask, reply, lambda: not exchange.connection.closed)


def _group(name: str, described: Described | ErrorCode) -> DescribedGroup:
    if isinstance(described, ErrorCode):
        return DescribedGroup(group_id=name, error_code=described)
    return DescribedGroup(
        group_id=name,
        group_state=described.state,
        protocol_type=described.protocol_type,
        protocol_data=described.protocol,
        members=tuple(
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in described.members
        ),
    )


API = Api(ApiKey.DESCRIBE_GROUPS, handle)
