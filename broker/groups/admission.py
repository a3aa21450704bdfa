"""Decides whether a member may join a group. The limits must allow it, and the member must have a
protocol type and a protocol in common with the other members. Does no I/O."""

from __future__ import annotations

from skidway.broker.groups.limits import (
    GROUP_BYTES_MAX,
    MEMBER_BYTES_MAX,
    NAME_BYTES_MAX,
    GroupLimits,
)
from skidway.broker.groups.member import Joining
from skidway.broker.groups.roster import Roster
from skidway.kafka.errors import ErrorCode


def refusal(joining: Joining, roster: Roster, limits: GroupLimits) -> ErrorCode | None:
    """Returns the error with which a member's join is refused; None if the member may join."""
    at_least, at_most = limits.session_timeout_min_s, limits.session_timeout_max_s
    if not at_least <= joining.session_timeout_s <= at_most:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    too_long = any(len(name.encode()) > NAME_BYTES_MAX for name in joining.names)
    if too_long or joining.size_bytes > MEMBER_BYTES_MAX:
        return ErrorCode.INVALID_REQUEST
    if not _has_room(joining, roster, limits):
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if not roster.supports(joining):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _has_room(joining: Joining, roster: Roster, limits: GroupLimits) -> bool:
    if joining.member_id in roster.members:
        return True
    if roster.static_id(joining.instance_id) is not None:
        return True
    if len(roster) >= limits.members_max:
        return False
    return roster.size_bytes + joining.size_bytes <= GROUP_BYTES_MAX
