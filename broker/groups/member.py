"""One member of a group: what it can do, what it was told, and until when it is believed alive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

Token = object
"""Whoever waits for an answer; the state machine only hands it back."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """A protocol that a member can follow, with what it says under it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JoinGroup request; timeouts in seconds. `known_id_needed`: its version has KIP-394."""

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
        """What it chose to be called, and to call its protocols."""
        return (self.instance_id or "", self.protocol_type, *(each.name for each in self.protocols))

    @property
    def size_bytes(self) -> int:
        """What its protocols weigh, and the client's own words."""
        said = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        return said + len(self.client_id) + len(self.instance_id or "")


@dataclass(frozen=True, slots=True)
class Syncing:
    """A SyncGroup request; the protocol's type and name are None where its version has none."""

    member_id: str
    instance_id: str | None
    generation: int
    assignments: dict[str, bytes]
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(slots=True, kw_only=True)
class Member:
    """A member; `deadline` is when it is taken for dead (monotonic seconds)."""

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
    """Waits for the next generation."""
    sync: Token | None = field(default=None, repr=False)
    """Waits for its assignment."""

    @property
    def is_parked(self) -> bool:
        """Waits for an answer of ours, so its silence proves nothing."""
        return self.sync is not None or (self.join is not None and not self.is_new)

    @property
    def protocol_names(self) -> Iterable[str]:
        """The best liked first."""
        return (each.name for each in self.protocols)

    @property
    def size_bytes(self) -> int:
        """What it weighs in memory and in ZooKeeper."""
        said = sum(len(each.name) + len(each.metadata) for each in self.protocols)
        words = len(self.client_id) + len(self.instance_id or "") + len(self.member_id)
        return said + words + len(self.assignment)

    def metadata(self, protocol: str | None) -> bytes:
        """What it says under a protocol."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def take(self, joining: Joining) -> None:
        """It joins again, perhaps with other protocols and timeouts."""
        self.protocols = joining.protocols
        self.session_timeout_s = joining.session_timeout_s
        self.rebalance_timeout_s = joining.rebalance_timeout_s
        self.client_id, self.client_host = joining.client_id, joining.client_host


def choose_protocol(members: Iterable[Member]) -> str | None:
    """The protocol that all can follow and most like best; ties go to the first in the alphabet."""
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
