"""The limits of groups: those that settings give, and fixed ones."""

from __future__ import annotations

from dataclasses import dataclass

MEMBER_BYTES_MAX = 256 * 1024
"""The most bytes of a member's protocols (names and metadata), and also of its assignment."""

GROUP_BYTES_MAX = 8 << 20
"""The same limit for all members of a group together."""

GROUPS_MAX = 20_000
"""Groups in memory; one without members is forgotten soon, and read again when asked for."""

NEW_MEMBER_JOIN_TIMEOUT_S = 300.0
"""The longest wait of a new member, which cannot send heartbeats yet (as in Kafka)."""

GROUP_ID_BYTES_MAX = 1000
"""A group's name is the name of a node in ZooKeeper."""

NAME_BYTES_MAX = 1000
"""The longest instance id, protocol or protocol type: these appear in answers to all members."""

CLIENT_WORDS_MAX = 249
"""Characters of a client id or instance id at the front of the member id made from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Kafka's group.* settings; times in seconds."""

    session_timeout_min_s: float = 6.0
    session_timeout_max_s: float = 1800.0
    initial_rebalance_delay_s: float = 3.0
    members_max: int = (1 << 31) - 1
