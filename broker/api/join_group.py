"""JoinGroup (11), versions 2-7. Adds a member to a group. The broker normally answers when the
group's next generation begins.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.groups.member import Joining, Protocol
from skidway.broker.groups.outcomes import Joined
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import read_request_header
from skidway.kafka.protocol.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

KNOWN_ID_SINCE = 4
"""From this version on, a new client without an instance id joins twice (KIP-394): the answer to
the first request contains a member id, and the client joins again with this id.
"""

NULL_PROTOCOL_SINCE = 7


def handle(broker: Broker, exchange: Exchange) -> None:
    """Passes the request to the group, which answers it."""
    request = exchange.decode(JoinGroupRequest)

    def reply(joined: Joined) -> None:
        exchange.reply(_response(joined, exchange.version))

    if not exchange.may_group(request.group_id):
        reply(Joined(error=ErrorCode.GROUP_AUTHORIZATION_FAILED, member_id=request.member_id))
        return
    broker.groups.join(request.group_id, _joining(request, exchange), reply)


def _joining(request: JoinGroupRequest, exchange: Exchange) -> Joining:
    client_id = None if exchange.frame is None else read_request_header(exchange.frame)[0].client_id
    return Joining(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=client_id or "",
        client_host="/" + exchange.connection.peer.rpartition(":")[0],
        session_timeout_s=request.session_timeout_ms / 1000,
        rebalance_timeout_s=max(request.rebalance_timeout_ms, 0) / 1000,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(each.name, each.metadata) for each in request.protocols),
        known_id_needed=exchange.version >= KNOWN_ID_SINCE,
    )


def _response(joined: Joined, version: int) -> JoinGroupResponse:
    protocol = joined.protocol
    if protocol is None and version < NULL_PROTOCOL_SINCE:
        protocol = ""
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata,
            )
            for each in joined.members
        ),
    )


API = Api(ApiKey.JOIN_GROUP, handle)
