"""SyncGroup (14), versions 0-5. Sends a member its assignment. The broker answers when the
assignment that the group's leader sent is stored.
"""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.broker.groups.member import Syncing
from skidway.broker.groups.outcomes import Synced
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.sync_group import SyncGroupRequest, SyncGroupResponse


def handle(broker: Broker, exchange: Exchange) -> None:
    """Passes the request to the group, which answers when the member's assignment is stored."""
    request = exchange.decode(SyncGroupRequest)

    def reply(synced: Synced) -> None:
        exchange.reply(
            SyncGroupResponse(
                error_code=synced.error,
                protocol_type=synced.protocol_type,
                protocol_name=synced.protocol,
                assignment=synced.assignment,
            )
        )

    if not exchange.may_group(request.group_id):
        reply(Synced(error=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    syncing = Syncing(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        assignments={each.member_id: each.assignment for each in request.assignments},
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
    )
    broker.groups.sync(request.group_id, syncing, reply)


API = Api(ApiKey.SYNC_GROUP, handle)
