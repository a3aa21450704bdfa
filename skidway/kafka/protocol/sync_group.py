"""SyncGroup (key 14), versions 0-5: a group's leader sends the assignments of all members, and
every member receives its own.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    group instance ids (KIP-345)
    4    flexible (KIP-482)
    5    protocol type and name; the broker compares them with the group's (KIP-559)
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

VERSIONS = VersionRange(0, 5)


@structure
class SyncGroupRequestAssignment:
    """One member's assignment."""

    member_id: str
    assignment: bytes


@structure
class SyncGroupRequest(Request):
    """Asks for the member's assignment. If the member is the group's leader, its request contains
    the assignments of all members."""

    API = ApiKey.SYNC_GROUP
    VERSIONS = VERSIONS

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, since(3), REFUSED_IF_ABSENT] = None
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@structure
class SyncGroupResponse(Response):
    """The member's assignment."""

    API = ApiKey.SYNC_GROUP
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5)] = None
    protocol_name: Annotated[str | None, since(5)] = None
    assignment: bytes = b""
