"""JoinGroup (key 11), versions 2-7: a member joins the next generation of a group.

What is new in each version:

    2    throttle time (KIP-896 removed versions 0 and 1)
    3    the broker answers first, then throttles (KIP-219)
    4    a request without member id is answered with MEMBER_ID_REQUIRED and an id (KIP-394)
    5    group instance ids: static members (KIP-345)
    6    flexible (KIP-482)
    7    protocol type in the answer; the protocol's name may be null (KIP-559)

Versions 8 and 9 are not supported. They add a member's reason to join (8, KIP-800), and the
leader's permission to skip the assignment (9, KIP-814).
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
    nullable,
    since,
    structure,
)

VERSIONS = VersionRange(2, 7)


@structure
class JoinGroupRequestProtocol:
    """A protocol that the member supports. The preferred protocol comes first."""

    name: str
    metadata: bytes


@structure
class JoinGroupRequest(Request):
    """With this request a member asks to be in the group's next generation. Times are in ms. A new
    member has an empty member id."""

    API = ApiKey.JOIN_GROUP
    VERSIONS = VERSIONS

    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = -1
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5), REFUSED_IF_ABSENT] = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]


@structure
class JoinGroupResponseMember:
    """A member. Only the response to the leader lists the members."""

    member_id: str
    group_instance_id: Annotated[str | None, since(5)] = None
    metadata: bytes


@structure
class JoinGroupResponse(Response):
    """The generation, its protocol and its leader. `members` is filled only in the response to the
    leader."""

    API = ApiKey.JOIN_GROUP
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7)] = None
    protocol_name: Annotated[str | None, nullable(7)] = ""
    leader: str = ""
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
