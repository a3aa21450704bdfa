"""ListGroups (key 16), versions 0-4: the groups that a broker coordinates.

What is new in each version:

    1    throttle time
    2    the broker answers first, then throttles (KIP-219)
    3    flexible (KIP-482)
    4    the state of each group, and a filter by state (KIP-518)

Version 5 (types of groups, KIP-848) is not supported.
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
class ListGroupsRequest(Request):
    """Asks for the groups whose state is in `states_filter`. If this filter is empty, asks for all
    groups."""

    API = ApiKey.LIST_GROUPS
    VERSIONS = VERSIONS

    states_filter: Annotated[tuple[str, ...], since(4), REFUSED_IF_ABSENT] = ()


@structure
class ListedGroup:
    """One group."""

    group_id: str
    protocol_type: str
    group_state: Annotated[str, since(4)] = ""


@structure
class ListGroupsResponse(Response):
    """The groups that the request asked for."""

    API = ApiKey.LIST_GROUPS
    VERSIONS = VERSIONS

    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...] = ()
