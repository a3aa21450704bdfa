"""The state machine of one group, as Kafka's clients expect it (KIP-62, 134, 345, 394). It does no
I/O and reads no clock.

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
               ^    (joins wait)       (syncs wait)         |
               +--- a member comes, goes, or changes -------+

Methods get the time (monotonic seconds) as `now`, and append the answers to JoinGroup and SyncGroup
requests to `outputs`. The caller must call `tick` at the time that `deadline()` returns. The output
`Store` asks the caller to store the group, and no member gets its assignment before the group is
stored. So a generation never has two assignments, even after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from itertools import islice

from skidway.broker.groups import admission
from skidway.broker.groups.join_window import JoinWindow
from skidway.broker.groups.limits import GROUP_BYTES_MAX, NEW_MEMBER_JOIN_TIMEOUT_S, GroupLimits
from skidway.broker.groups.member import Joining, Member, Syncing, Token, choose_protocol
from skidway.broker.groups.outcomes import Answer, Joined, Output, Store, Synced, ToldMember
from skidway.broker.groups.record import GroupRecord
from skidway.broker.groups.roster import Roster
from skidway.kafka.errors import ErrorCode

_GENERATION_MAX = (1 << 31) - 1


class GroupState(Enum):
    """The states of a group, with Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


# This class has many methods, because Kafka's state machine has many events, and all events change
# the same state.
class Group:
    """One group. Only the loop's thread uses it. new_id: a function that returns an unused member
    id, which begins with the given name.
    """

    def __init__(self, group_id: str, limits: GroupLimits, new_id: Callable[[str], str]) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol: str | None = None
        self.roster = Roster()
        self.outputs: list[Output] = []
        self._limits = limits
        self._new_id = new_id
        self._window = JoinWindow(limits.initial_rebalance_delay_s)  # open in PreparingRebalance
        self._unsynced: set[str] = set()
        self._sync_by = 0.0
        self._stores = 0
        # the number of the `Store` that the caller has not carried out yet; None if there is none
        self._storing: int | None = None
        self._is_assigned = False  # whether this generation's assignment is stored
        self._held: dict[int, tuple[Token, Joined]] = {}

    # These methods handle the requests of members.

    def join(self, now: float, joining: Joining, token: Token) -> None:
        """A member asks to be in the next generation. When the answer is known, it is added to
        `outputs`. The answer contains `token`, which identifies the request for the caller."""
        error = admission.refusal(joining, self.roster, self._limits)
        if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            self.roster.take_back(joining.member_id)
        if error is not None:
            self._answer(token, Joined(error=error, member_id=joining.member_id))
        elif not joining.member_id:
            self._join_new(now, joining, token)
        else:
            self._join_known(now, joining, token)
        self._complete_if_joined(now)

    def sync(self, now: float, syncing: Syncing, token: Token) -> None:
        """A member asks for its assignment. When the answer is known, it is added to `outputs`. The
        answer contains `token`, which identifies the request for the caller. The leader's request
        contains the assignments of all members."""
        member_id = syncing.member_id
        error = self._refusal(member_id, syncing.instance_id, syncing.generation)
        if error is None and syncing.protocol_type not in (None, self.roster.protocol_type):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error is None and syncing.protocol not in (None, self.protocol):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error is None and self.state is GroupState.PREPARING:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not None:
            self._answer(token, Synced(error=error))
            return
        member = self.roster.members[member_id]
        self._unsynced.discard(member_id)
        self._renew(now, member)
        if self.state is GroupState.STABLE:
            self._answer(token, self._synced(member))
            return
        self._fail_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.sync = token
        if member_id == self.roster.leader and self._storing is None:
            self._take_assignments(now, syncing.assignments)

    def heartbeat(
        self, now: float, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Handles a member's heartbeat. Returns the error code, which tells the member whether it
        must join again."""
        error = self._refusal(member_id, instance_id, generation)
        if error is not None:
            return error
        self._renew(now, self.roster.members[member_id])
        preparing = self.state is GroupState.PREPARING
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE

    def leave(self, now: float, member_id: str, instance_id: str | None) -> ErrorCode:
        """Removes a member that leaves, or that an administrator removes by its instance id."""
        if instance_id is None and self.roster.take_back(member_id):
            self._complete_if_joined(now)
            return ErrorCode.NONE
        known = self.roster.static_id(instance_id)
        if not member_id and known is not None:
            member_id = known
        error = self.roster.refusal(member_id, instance_id)
        if error is not None:
            return error
        self._remove(now, self.roster.members[member_id])
        self._complete_if_joined(now)
        return ErrorCode.NONE

    def commit_refusal(
        self, now: float, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode | None:
        """Returns the error with which a commit of offsets is refused; None if the offsets may be
        stored.
        """
        if generation < 0 and self.state is GroupState.EMPTY:
            return None  # the consumer has joined no group, and only commits offsets
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self._refusal(member_id, instance_id, generation)
        if error is not None:
            return error
        self._renew(now, self.roster.members[member_id])
        # Until the assignment is stored, the generation is not durable: after a crash, another
        # generation may get the same number, and a commit from this generation would count as a
        # commit from the other generation.
        return None if self._is_assigned else ErrorCode.REBALANCE_IN_PROGRESS

    # These methods handle deadlines, and store and restore the group.

    def deadline(self) -> float | None:
        """Returns the earliest time at which `tick` has something to do."""
        found = list(islice(self.roster.given.values(), 1))  # they have equal lives
        found += [each.deadline for each in self.roster if not each.is_parked]
        if self.state is GroupState.PREPARING:
            found.append(self._window.until)
        if self._unsynced:
            found.append(self._sync_by)
        return min(found, default=None)

    def tick(self, now: float) -> None:
        """Removes members whose deadline has passed, and ends the join or sync phase if its time is
        over."""
        for member_id in [each for each, until in self.roster.given.items() if until <= now]:
            self.roster.take_back(member_id)
        for member in self.roster:
            if not member.is_parked and member.deadline <= now:
                self._remove(now, member)
        self._complete_if_joined(now)
        over = self.state is GroupState.PREPARING and self._window.until <= now
        if over and not self._window.is_prolonged(now):
            self._complete(now)
        if self._unsynced and self._sync_by <= now:
            for member_id in self._unsynced & set(self.roster.members):
                self._remove(now, self.roster.members[member_id])
            self._unsynced.clear()
            self._complete_if_joined(now)

    def stored(self, now: float, number: int, error: ErrorCode | None) -> None:
        """Called when the caller has handled the output `Store` with this number. error: why the
        group could not be stored; None if the group is durable.

        The error INCONSISTENT_GROUP_PROTOCOL means that the group has consumers that coordinate
        through ZooKeeper.
        """
        held = self._held.pop(number, None)
        if held is not None:
            token, answer = held
            failed = Joined(error=error or ErrorCode.NONE)
            self._answer(token, answer if error is None else failed)
        if number != self._storing:
            return
        self._storing = None
        if error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            self._disband(error)
            return
        if error is not None:
            self._prepare(now, error)
            self._complete_if_joined(now)
            return
        self.state, self._is_assigned = GroupState.STABLE, True
        for member in self.roster:
            if member.sync is not None:
                token, member.sync = member.sync, None
                self._renew(now, member)
                self._answer(token, self._synced(member))

    def record(self) -> GroupRecord:
        """Returns the group as it is now, as a record that can be stored."""
        return GroupRecord(
            generation=self.generation,
            protocol_type=self.roster.protocol_type or "",
            protocol=self.protocol,
            leader=self.roster.leader,
            members=tuple(replace(each, join=None, sync=None) for each in self.roster),
        )

    def restore(self, now: float, record: GroupRecord) -> None:
        """Restores a stored group. Each member must send a heartbeat within its session timeout,
        which begins now."""
        self.generation = record.generation
        self.protocol = record.protocol
        self.roster.protocol_type = record.protocol_type or None
        if record.members:
            self.state, self._is_assigned = GroupState.STABLE, True
            self.roster.restore(record.members, record.leader, record.protocol_type)
            for member in self.roster:
                self._renew(now, member)

    def close(self, error: ErrorCode) -> None:
        """Answers the waiting requests of all members with an error."""
        for token, _ in self._held.values():
            self._answer(token, Joined(error=error))
        self._held.clear()
        for member in self.roster:
            self._fail_join(member, error)
            self._fail_sync(member, error)

    # These methods handle joins.

    def _join_new(self, now: float, joining: Joining, token: Token) -> None:
        member_id = self._new_id(joining.instance_id or joining.client_id)
        known = self.roster.static_id(joining.instance_id)
        if known is not None:
            self._replace(now, self.roster.members[known], member_id, joining, token)
        elif joining.known_id_needed and joining.instance_id is None:
            self.roster.give(now, member_id, joining.client_host)
            error = ErrorCode.MEMBER_ID_REQUIRED
            self._answer(token, Joined(error=error, member_id=member_id))
        else:
            self._add(now, member_id, joining, token)

    def _join_known(self, now: float, joining: Joining, token: Token) -> None:
        member_id = joining.member_id
        if member_id in self.roster.given and joining.instance_id is None:
            self._add(now, member_id, joining, token)
            return
        error = self.roster.refusal(member_id, joining.instance_id)
        if error is not None:
            self._answer(token, Joined(error=error, member_id=member_id))
            return
        member = self.roster.members[member_id]
        same = member.protocols == joining.protocols
        leads = member_id == self.roster.leader
        if self.state is GroupState.COMPLETING and same:
            self._renew(now, member)  # the first answer was lost, so the member asks again
            self._answer(token, self._joined(member))
        elif self.state is GroupState.STABLE and same and not leads:
            self._renew(now, member)
            self._answer(token, replace(self._joined(member), members=()))
        else:
            self._rejoin(now, member, joining, token)

    def _add(self, now: float, member_id: str, joining: Joining, token: Token) -> None:
        member = Member(
            member_id=member_id,
            instance_id=joining.instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            session_timeout_s=joining.session_timeout_s,
            rebalance_timeout_s=joining.rebalance_timeout_s,
            protocols=joining.protocols,
            is_new=True,
            deadline=now + NEW_MEMBER_JOIN_TIMEOUT_S,
            join=token,
        )
        self.roster.add(member, joining.protocol_type)
        self._window.arrived()
        self._prepare(now, ErrorCode.REBALANCE_IN_PROGRESS)

    def _rejoin(self, now: float, member: Member, joining: Joining, token: Token) -> None:
        self._fail_join(member, ErrorCode.REBALANCE_IN_PROGRESS)
        member.take(joining)
        self._renew(now, member)
        member.join = token
        self._prepare(now, ErrorCode.REBALANCE_IN_PROGRESS)

    def _replace(
        self, now: float, member: Member, member_id: str, joining: Joining, token: Token
    ) -> None:
        """Called when a static member has started again. Gives the member its new member id. If
        another client still uses the old member id, its requests are refused as fenced.
        """
        self._fail_join(member, ErrorCode.FENCED_INSTANCE_ID)
        self._fail_sync(member, ErrorCode.FENCED_INSTANCE_ID)
        led_by, waited_for = self.roster.leader, member.member_id in self._unsynced
        self.roster.rename(member, member_id)
        if waited_for:
            self._unsynced = self._unsynced & set(self.roster.members) | {member_id}
        member.take(joining)
        self._renew(now, member)
        if self.state is GroupState.STABLE and choose_protocol(self.roster) == self.protocol:
            # The member keeps its assignment. If the member was the group's leader, it stays the
            # leader, but the answer does not say so: a client that knows that it is the leader
            # would make new assignments.
            answer = replace(self._joined(member), members=(), leader=led_by or "")
            self._held[self._store()] = (token, answer)
            return
        member.join = token
        self._prepare(now, ErrorCode.REBALANCE_IN_PROGRESS)

    # These methods carry out a rebalance.

    def _prepare(self, now: float, error: ErrorCode) -> None:
        if self.state is GroupState.PREPARING:
            return
        was_empty, self.state = self.state is GroupState.EMPTY, GroupState.PREPARING
        self._storing = None
        self._unsynced.clear()
        for member in self.roster:
            self._fail_sync(member, error)
        self._window.open(now, self.roster.rebalance_timeout_s, was_empty=was_empty)

    def _complete_if_joined(self, now: float) -> None:
        preparing = self.state is GroupState.PREPARING and not self._window.is_delaying
        if preparing and self.roster.have_all_joined:
            self._complete(now)

    def _complete(self, now: float) -> None:
        """Begins the next generation. The members of this generation are those that have joined
        again, and also all static members, even those that have not joined again. If there are
        members, but none of them has joined again, waits for one more rebalance timeout instead.
        """
        for member in self.roster:
            if member.join is None and member.instance_id is None:
                self.roster.remove(member)
        if len(self.roster) and not self.roster.elect_joined():
            self._window.open(now, self.roster.rebalance_timeout_s, was_empty=False)
            return
        self.generation = 1 if self.generation == _GENERATION_MAX else self.generation + 1
        self._is_assigned = False
        self.protocol = choose_protocol(self.roster)
        if not len(self.roster):
            self.state = GroupState.EMPTY
            self._store()
            return
        self.state = GroupState.COMPLETING
        self._sync_by = now + self.roster.rebalance_timeout_s
        for member in self.roster:
            member.assignment = b""
        for member in self.roster:
            if member.join is not None:
                token, member.join = member.join, None
                member.is_new = False
                self._unsynced.add(member.member_id)
                self._renew(now, member)
                self._answer(token, self._joined(member))

    def _take_assignments(self, now: float, assignments: dict[str, bytes]) -> None:
        for member in self.roster:
            member.assignment = assignments.get(member.member_id, b"")
        if self.roster.size_bytes > 2 * GROUP_BYTES_MAX:
            self._prepare(now, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._storing = self._store()

    def _remove(self, now: float, member: Member) -> None:
        self._fail_join(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self._fail_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.roster.remove(member)
        self._unsynced.discard(member.member_id)
        self._prepare(now, ErrorCode.REBALANCE_IN_PROGRESS)

    def _disband(self, error: ErrorCode) -> None:
        """Removes all members. Called if the group also has consumers that coordinate through
        ZooKeeper.
        """
        for member in self.roster:
            self._fail_join(member, error)
            self._fail_sync(member, error)
            self.roster.remove(member)
        self._unsynced.clear()
        self.state = GroupState.EMPTY
        self._store()

    # The methods above call the following methods.

    def _refusal(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode | None:
        error = self.roster.refusal(member_id, instance_id)
        if error is None and generation != self.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def _renew(self, now: float, member: Member) -> None:
        if not member.is_new:
            member.deadline = now + member.session_timeout_s

    def _joined(self, member: Member) -> Joined:
        leads = member.member_id == self.roster.leader
        return Joined(
            generation=self.generation,
            protocol_type=self.roster.protocol_type,
            protocol=self.protocol,
            leader=self.roster.leader or "",
            member_id=member.member_id,
            members=self._told() if leads else (),
        )

    def _told(self) -> tuple[ToldMember, ...]:
        return tuple(
            ToldMember(each.member_id, each.instance_id, each.metadata(self.protocol))
            for each in self.roster
        )

    def _synced(self, member: Member) -> Synced:
        return Synced(
            protocol_type=self.roster.protocol_type,
            protocol=self.protocol,
            assignment=member.assignment,
        )

    def _store(self) -> int:
        self._stores += 1
        self.outputs.append(Store(self._stores))
        return self._stores

    def _answer(self, token: Token, content: Joined | Synced) -> None:
        self.outputs.append(Answer(token, content))

    def _fail_join(self, member: Member, error: ErrorCode) -> None:
        if member.join is not None:
            token, member.join = member.join, None
            self._answer(token, Joined(error=error, member_id=member.member_id))

    def _fail_sync(self, member: Member, error: ErrorCode) -> None:
        if member.sync is not None:
            token, member.sync = member.sync, None
            self._answer(token, Synced(error=error))
