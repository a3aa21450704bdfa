"""What bounds groups: the values of the settings, and what no setting changes."""

from __future__ import annotations

from dataclasses import dataclass

MEMBER_BYTES_MAX = 256 * 1024
"""All protocols of one member, metadata and names together; its assignment likewise."""

GROUP_BYTES_MAX = 8 << 20
"""The same of all members of a group."""

GROUPS_MAX = 20_000
"""Groups in memory; one without members is forgotten soon, and read again when asked for."""

NEW_MEMBER_JOIN_TIMEOUT_S = 300.0
"""A new member that cannot send heartbeats yet waits no longer than this (as in Kafka)."""

GROUP_ID_BYTES_MAX = 1000
"""A group's name is a node's name in ZooKeeper."""

NAME_BYTES_MAX = 1000
"""An instance id, a protocol, a protocol type: they stand in answers to all members."""

CLIENT_WORDS_MAX = 249
"""Characters of a client's own words in the member id that it is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Kafka's group.* settings; times in seconds."""

    session_timeout_min_s: float = 6.0
    session_timeout_max_s: float = 1800.0
    initial_rebalance_delay_s: float = 3.0
    members_max: int = (1 << 31) - 1
