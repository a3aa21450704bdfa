"""DescribeGroups (key 15), versions 0-5: state, protocol and members of groups.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    authorized operations (KIP-430)
    4    group instance ids (KIP-345)
    5    flexible (KIP-482)

Version 6 (error messages, KIP-1043) is not supported.
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    Int16,
    Int32,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(0, 5)
OPERATIONS_NOT_ASKED = -(1 << 31)


@structure
class DescribeGroupsRequest(Request):
    """Asks for groups by name."""

    API = ApiKey.DESCRIBE_GROUPS
    VERSIONS = VERSIONS

    groups: tuple[str, ...]
    include_authorized_operations: Annotated[bool, since(3)] = False


@structure
class DescribedGroupMember:
    """One member, with its subscription and its assignment."""

    member_id: str
    group_instance_id: Annotated[str | None, since(4)] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@structure
class DescribedGroup:
    """One group. `protocol_data` is the name of the protocol (for example, the way to assign
    partitions) on which the group's members have agreed."""

    error_code: Int16 = 0
    group_id: str
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: Annotated[Int32, since(3)] = OPERATIONS_NOT_ASKED


@structure
class DescribeGroupsResponse(Response):
    """The groups."""

    API = ApiKey.DESCRIBE_GROUPS
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    groups: tuple[DescribedGroup, ...]
