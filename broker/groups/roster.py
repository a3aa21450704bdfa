"""Who is in a group: its members, their instance ids, the leader, and the clients that got a member
id from the broker but have not joined with it yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from skidway.broker.groups.limits import GIVEN_MAX, GIVEN_S
from skidway.broker.groups.member import Joining, Member
from skidway.holders import Holders
from skidway.kafka.errors import ErrorCode


class Roster:
    """The members of one group, in the order in which they joined."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.leader: str | None = None
        self.protocol_type: str | None = None
        self.given: dict[str, float] = {}
        """The member ids that were given to clients that have not joined yet, the oldest first.
        Each value is the time (monotonic s) by which the client must join with its id.
        """
        self._given_to: Holders[str] = Holders(GIVEN_MAX)
        self.unheard: set[str] = set()
        """The ids of the members that `restore` has added and that have not sent a request since
        then."""
        self._static: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self.members.values()))

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all members together."""
        return sum(each.size_bytes for each in self.members.values())

    @property
    def rebalance_timeout_s(self) -> float:
        """The longest rebalance timeout of a member."""
        return max((each.rebalance_timeout_s for each in self.members.values()), default=0.0)

    @property
    def have_all_joined(self) -> bool:
        """Whether all members, and all clients that got a member id from the broker, have joined
        the next generation.
        """
        return not self.given and all(each.join is not None for each in self.members.values())

    @property
    def address(self) -> str | None:
        """Whose the group is, if too many are in memory: the host of its first member, or of the
        first client that has an id; None if there is nobody."""
        first = next(iter(self.members.values()), None)
        return self._given_to.first_address() if first is None else first.client_host

    def give(self, now: float, member_id: str, address: str) -> None:
        """Notes that a client at an address has this id, and will join with it."""
        self.given[member_id] = now + GIVEN_S
        self._given_to.hold(member_id, address, 1)
        while (first := self._given_to.gives_way()) is not None:
            self.take_back(first)

    def take_back(self, member_id: str) -> bool:
        """Forgets an id that was given to a client. Returns whether it was."""
        self._given_to.release(member_id)
        return self.given.pop(member_id, None) is not None

    def static_id(self, instance_id: str | None) -> str | None:
        """Returns the id of the member with an instance id; None if there is no such member."""
        return None if instance_id is None else self._static.get(instance_id)

    def supports(self, joining: Joining) -> bool:
        """Returns whether the joining member has the group's protocol type, and at least one
        protocol that all members support."""
        names = {each.name for each in joining.protocols}
        if not self.members:
            return bool(joining.protocol_type) and bool(names)
        if joining.protocol_type != self.protocol_type:
            return False
        for each in self.members.values():
            names.intersection_update(each.protocol_names)
        return bool(names)

    def refusal(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        """Returns the error for a request with these ids if no member has these ids. Otherwise
        returns None, and removes the member from `unheard` (members that have sent nothing since
        the broker read them from ZooKeeper).
        """
        if instance_id is not None:
            current = self._static.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                # After a restart of the broker, a static member's stored id may be older than the
                # id in the request. So the request is refused as fenced only if the member with the
                # stored id has sent a request since the restart.
                unsure = current in self.unheard
                return ErrorCode.UNKNOWN_MEMBER_ID if unsure else ErrorCode.FENCED_INSTANCE_ID
        elif member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.unheard.discard(member_id)
        return None

    def add(self, member: Member, protocol_type: str) -> None:
        """Adds a member. The first member becomes the leader and sets the group's protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        self.take_back(member.member_id)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member: Member) -> None:
        """Removes a member. If it was the leader, another member becomes the leader."""
        del self.members[member.member_id]
        self.unheard.discard(member.member_id)
        if self.static_id(member.instance_id) == member.member_id:
            del self._static[member.instance_id or ""]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def rename(self, member: Member, member_id: str) -> None:
        """Gives a new id to a static member that has started again. The order of the members stays
        the same.
        """
        old = member.member_id
        self.unheard.discard(old)
        member.member_id = member_id
        self.members = {
            (member_id if name == old else name): each for name, each in self.members.items()
        }
        self._static[member.instance_id or ""] = member_id
        if self.leader == old:
            self.leader = member_id

    def elect_joined(self) -> bool:
        """Makes sure that the leader is a member that has joined the next generation. Returns False
        if no member has joined that generation.
        """
        leader = None if self.leader is None else self.members.get(self.leader)
        if leader is not None and leader.join is not None:
            return True
        joined = next((each for each in self.members.values() if each.join is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def restore(self, members: Iterable[Member], leader: str | None, protocol_type: str) -> None:
        """Adds the members of a group that was read from ZooKeeper. leader: the leader's member id.
        protocol_type: the protocol type of all members."""
        for each in members:
            self.add(each, protocol_type)
            self.unheard.add(each.member_id)
        if leader in self.members:
            self.leader = leader
