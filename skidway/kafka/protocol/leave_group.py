"""LeaveGroup (key 13), versions 0-4: members leave, or are removed.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    several members, by id or instance id (KIP-345)
    4    flexible (KIP-482)

Version 5 (a member's reason to leave, KIP-800) is not supported.
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
    until,
)

VERSIONS = VersionRange(0, 4)


@structure
class MemberIdentity:
    """A member, given by its member id, or by its instance id if the member id is empty."""

    member_id: str
    group_instance_id: str | None = None


@structure
class LeaveGroupRequest(Request):
    """Members that leave. `members` exists since version 3; lower versions have one `member_id`."""

    API = ApiKey.LEAVE_GROUP
    VERSIONS = VERSIONS

    group_id: str
    member_id: Annotated[str, until(2), REFUSED_IF_ABSENT] = ""
    members: Annotated[tuple[MemberIdentity, ...], since(3), REFUSED_IF_ABSENT] = ()

    def identities(self, version: int) -> tuple[MemberIdentity, ...]:
        """Returns the members that leave, from the field that this version has."""
        return self.members if version >= 3 else (MemberIdentity(member_id=self.member_id),)


@structure
class MemberResponse:
    """The result for one member."""

    member_id: str
    group_instance_id: str | None
    error_code: Int16 = 0


@structure
class LeaveGroupResponse(Response):
    """The result for each member. Before version 3, `error_code` is the result for the one member
    that leaves."""

    API = ApiKey.LEAVE_GROUP
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    members: Annotated[tuple[MemberResponse, ...], since(3)] = ()
