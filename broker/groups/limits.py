"""The limits of groups. Some limits come from settings, and the others are fixed."""

from __future__ import annotations

from dataclasses import dataclass

MEMBER_BYTES_MAX = 256 * 1024
"""When a member joins, its protocols (names and metadata), client id and instance id together have
at most this many bytes.
"""

GROUP_BYTES_MAX = 8 << 20
"""When a new member joins, all members of the group together may have at most this many bytes.
Together with the assignments, which the leader sends later, the members may have twice as many
bytes.
"""

GROUPS_MAX = 20_000
"""At most this many groups are in memory. If there are more, one gives way: a group without
members, or the first of the address with the most groups. It is read again at the next request for
it.
"""

GROUPS_BYTES_MAX = 256 << 20
"""The members of all groups in memory have at most this many bytes together; see GROUPS_MAX."""

GIVEN_MAX = 10_000
"""At most this many clients of a group have an id and have not joined with it yet. If there are
more, the first of the address with the most gives way.
"""

GIVEN_S = 10.0
"""A client joins with its id within this many seconds. Clients do so at once."""

NEW_MEMBER_JOIN_TIMEOUT_S = 300.0
"""A new member waits at most this long for the answer to its join, as in Kafka. While the member
waits, it cannot send heartbeats.
"""

GROUP_ID_BYTES_MAX = 1000
"""A group id has at most this many bytes, because it is the name of a node in ZooKeeper."""

NAME_BYTES_MAX = 1000
"""An instance id, a protocol's name or a protocol type has at most this many bytes. These texts are
limited because each of them is in the answers to all members.
"""

CLIENT_WORDS_MAX = 249
"""A member id begins with at most this many characters of the client id or instance id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Kafka's group.* settings. Times are in seconds."""

    session_timeout_min_s: float = 6.0
    session_timeout_max_s: float = 1800.0
    initial_rebalance_delay_s: float = 3.0
    members_max: int = (1 << 31) - 1
