"""One member of a group: its protocols, its assignment, and the time until which it counts as
alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Token = object
"""Identifies a request that waits for an answer. The state machine returns the token together with
the answer, and uses it for nothing else."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol that a member supports, and the member's metadata for this protocol."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """What a JoinGroup request contains, with timeouts in seconds. `known_id_needed`: whether a new
    member without an instance id must join twice (KIP-394): the answer to its first join is its id,
    with which it joins again.
    """

    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_s: float
    rebalance_timeout_s: float
    protocol_type: str
    protocols: tuple[Protocol, ...]
    known_id_needed: bool = False

    @property
    def names(self) -> Iterable[str]:
        """The names that the client chose: its instance id, protocol type and protocols."""
        return (self.instance_id or "", self.protocol_type, *(each.name for each in self.protocols))

    @property
    def size_bytes(self) -> int:
        """The number of bytes of the protocols (with their metadata), the client id and the
        instance id together."""
        said = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        return said + len(self.client_id) + len(self.instance_id or "")


@dataclass(frozen=True, slots=True)
class Syncing:
    """What a SyncGroup request contains. `protocol_type` and `protocol` are None if the request's
    version does not have these fields.
    """

    member_id: str
    instance_id: str | None
    generation: int
    assignments: dict[str, bytes]
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(slots=True, kw_only=True)
class Member:
    """A member. If it sends no request until `deadline` (monotonic seconds), it counts as dead."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_s: float
    rebalance_timeout_s: float
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    deadline: float = 0.0
    join: Token | None = field(default=None, repr=False)
    """The member's JoinGroup request that waits for the next generation; None if none waits."""
    sync: Token | None = field(default=None, repr=False)
    """The member's SyncGroup request that waits for the assignment; None if none waits."""

    @property
    def is_parked(self) -> bool:
        """Whether the member waits for an answer from the broker. A waiting member sends nothing,
        so its silence does not mean that it is dead. But a new member does not count as waiting: if
        its first join is not answered before `deadline`, the group removes the member.
        """
        return self.sync is not None or (self.join is not None and not self.is_new)

    @property
    def protocol_names(self) -> Iterable[str]:
        """The names of the member's protocols, the preferred one first."""
        return (each.name for each in self.protocols)

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes that the member needs in memory and in ZooKeeper."""
        said = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        words = len(self.client_id) + len(self.instance_id or "") + len(self.member_id)
        return said + words + len(self.assignment)

    def metadata(self, protocol: str | None) -> bytes:
        """Returns the member's metadata for a protocol; empty if it does not support the
        protocol.
        """
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def take(self, joining: Joining) -> None:
        """Replaces the member's protocols, timeouts, client id and client host by those of its
        newest JoinGroup request.
        """
        self.protocols = joining.protocols
        self.session_timeout_s = joining.session_timeout_s
        self.rebalance_timeout_s = joining.rebalance_timeout_s
        self.client_id, self.client_host = joining.client_id, joining.client_host


def choose_protocol(members: Iterable[Member]) -> str | None:
    """Returns the protocol with the most votes. Each member votes for the protocol that it prefers
    among those that all members support. If several protocols have the most votes, the
    alphabetically first of them is returned.
    """
    everybody = list(members)
    if not everybody:
        return None
    common = set.intersection(*(set(each.protocol_names) for each in everybody))
    votes: dict[str, int] = {}
    for each in everybody:
        liked = next((name for name in each.protocol_names if name in common), None)
        if liked is not None:
            votes[liked] = votes.get(liked, 0) + 1
    return min(votes, key=lambda name: (-votes[name], name), default=None)
