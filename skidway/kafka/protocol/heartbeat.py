"""Heartbeat (key 12), versions 0-4: a member reports that it is alive; the answer says whether the
group is rebalancing.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    group instance ids (KIP-345)
    4    flexible (KIP-482)
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    Int16,
    Int32,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(0, 4)


@structure
class HeartbeatRequest(Request):
    """Tells the broker that a member is alive."""

    API = ApiKey.HEARTBEAT
    VERSIONS = VERSIONS

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, since(3), REFUSED_IF_ABSENT] = None


@structure
class HeartbeatResponse(Response):
    """The answer to a heartbeat. Its error REBALANCE_IN_PROGRESS asks the member to join again."""

    API = ApiKey.HEARTBEAT
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
