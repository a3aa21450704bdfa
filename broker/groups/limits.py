"""The limits of groups. Some come from settings; the others are fixed."""

from __future__ import annotations

from dataclasses import dataclass

MEMBER_BYTES_MAX = 256 * 1024
"""The most bytes of a member's protocols (names and metadata); also the most bytes of its
assignment.
"""

GROUP_BYTES_MAX = 8 << 20
"""The most bytes of all members of a group together, at the moment when another member joins. With
the assignments from the leader, the members may have twice as many bytes.
"""

GROUPS_MAX = 20_000
"""The most groups in memory. A group without members is soon forgotten, and read again at the next
request for it.
"""

NEW_MEMBER_JOIN_TIMEOUT_S = 300.0
"""The longest time (as in Kafka) that a new member waits for an answer to its join. While it waits,
it cannot send heartbeats.
"""

GROUP_ID_BYTES_MAX = 1000
"""The longest name of a group, which is the name of a node in ZooKeeper."""

NAME_BYTES_MAX = 1000
"""The longest instance id, protocol or protocol type. Each of these names appears in the answers to
all members.
"""

CLIENT_WORDS_MAX = 249
"""A member id begins with at most this many characters of the client id or instance id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Kafka's group.* settings; times in seconds."""

    session_timeout_min_s: float = 6.0
    session_timeout_max_s: float = 1800.0
    initial_rebalance_delay_s: float = 3.0
    members_max: int = (1 << 31) - 1
