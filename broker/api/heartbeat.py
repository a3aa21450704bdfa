"""Heartbeat (12), versions 0-4. With a heartbeat, a member of a group tells the broker that it is
still running."""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(broker: Broker, exchange: Exchange) -> None:
    """Renews the member's session, and tells the member if a rebalance has begun."""
    request = exchange.decode(HeartbeatRequest)

    def reply(code: ErrorCode) -> None:
        exchange.reply(HeartbeatResponse(error_code=code))

    if not exchange.may_group(request.group_id):
        reply(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    broker.groups.heartbeat(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        reply,
    )


API = Api(ApiKey.HEARTBEAT, handle)
