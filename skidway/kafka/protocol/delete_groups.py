"""DeleteGroups (key 42), versions 0-2 (KIP-229): deletes groups without members, and their offsets.

What is new in each version:

    1    the broker answers first, then throttles (KIP-219)
    2    flexible (KIP-482)
"""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import Int16, Int32, Request, Response, structure

VERSIONS = VersionRange(0, 2)


@structure
class DeleteGroupsRequest(Request):
    """The groups to delete."""

    API = ApiKey.DELETE_GROUPS
    VERSIONS = VERSIONS

    groups_names: tuple[str, ...]


@structure
class DeletableGroupResult:
    """The result for one group."""

    group_id: str
    error_code: Int16 = 0


@structure
class DeleteGroupsResponse(Response):
    """The result for each group."""

    API = ApiKey.DELETE_GROUPS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...]
