"""LeaveGroup (13), versions 0-4. Removes members from a group. The members are given by id, or,
from version 3 on, by instance id.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

SEVERAL_SINCE = 3


def handle(broker: Broker, exchange: Exchange) -> None:
    """Removes the members from the group."""
    request = exchange.decode(LeaveGroupRequest)
    leaving = request.identities(exchange.version)

    def reply(codes: list[ErrorCode] | ErrorCode) -> None:
        if isinstance(codes, ErrorCode):
            exchange.reply(LeaveGroupResponse(error_code=codes))
        elif exchange.version < SEVERAL_SINCE:
            exchange.reply(LeaveGroupResponse(error_code=codes[0]))
        else:
            exchange.reply(
                LeaveGroupResponse(
                    members=tuple(
                        MemberResponse(
                            member_id=each.member_id,
                            group_instance_id=each.group_instance_id,
                            error_code=code,
                        )
                        for each, code in zip(leaving, codes, strict=True)
                    )
                )
            )

    if not exchange.may_group(request.group_id):
        reply(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    members = [(each.member_id, each.group_instance_id) for each in leaving]
    broker.groups.leave(request.group_id, members, reply)


API = Api(ApiKey.LEAVE_GROUP, handle)
