"""Handles the requests of administrators: list, describe and delete groups, and delete offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skidway.broker.coordination import stored_groups
from skidway.broker.coordination.session import ZooKeeperSession
from skidway.broker.coordination.stored_groups import GroupGone, GroupInUse, Offsets
from skidway.broker.groups import subscription
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.group import Group, GroupState
from skidway.broker.groups.record import RecordRefused, decode
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition

DEAD = "Dead"
"""The state that Kafka shows for a group that does not exist."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A group, as ListGroups shows it."""

    group_id: str
    protocol_type: str
    state: str


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a group, as DescribeGroups shows it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Described:
    """A group, as DescribeGroups shows it."""

    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


class GroupAdministration:
    """Handles the requests of administrators. Only the loop uses it."""

    def __init__(self, groups: Groups, session: ZooKeeperSession) -> None:
        self._groups = groups
        self._session = session

    def list(self, reply: Callable[[Sequence[Listed] | ErrorCode], None]) -> None:
        """Lists the groups in ZooKeeper, and also those in memory that are not empty. If a group is
        in both, the list shows the state that the group has in memory.
        """

        def done(outcome: dict[str, bytes | None] | SkidwayError) -> None:
            if isinstance(outcome, SkidwayError):
                reply(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                return
            found = {group: _stored(group, content) for group, content in outcome.items()}
            for group, hosted in self._groups.hosted.items():
                if group in found or hosted.group.state is not GroupState.EMPTY:
                    found[group] = _listed(hosted.group)
            reply([found[group] for group in sorted(found)])

        self._session.submit(stored_groups.list_groups, done)

    def describe(self, group_id: str, reply: Callable[[Described | ErrorCode], None]) -> None:
        """Describes one group. An unknown group is described as Dead."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
            elif group.state is GroupState.EMPTY and not group.generation:
                self._groups.jobs.read(group_id, read)
            else:
                reply(_described(group))

        def read(outcome: Offsets | SkidwayError) -> None:
            if isinstance(outcome, SkidwayError):
                reply(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            else:
                reply(Described(GroupState.EMPTY.value if outcome else DEAD))

        self._groups.use(group_id, then)

    def delete(self, group_id: str, reply: Callable[[ErrorCode], None]) -> None:
        """Deletes a group without members, with its offsets."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            hosted = self._groups.hosted[group_id]
            if group.state is not GroupState.EMPTY or group.roster.given:
                reply(ErrorCode.NON_EMPTY_GROUP)
            elif hosted.unstored or self._groups.jobs.is_busy_with(group_id):
                reply(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            else:
                # The group is removed from memory first. So the next request for it reads
                # ZooKeeper, where the group still exists if the deletion fails.
                self._groups.drop(group_id)
                self._session.submit(work, done)

        def work(coordinator: Coordinator) -> None:
            stored_groups.delete_group(coordinator, group_id)

        def done(outcome: SkidwayError | None) -> None:
            reply(_code_of(outcome))

        self._groups.use(group_id, then)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[TopicPartition],
        reply: Callable[[Mapping[TopicPartition, ErrorCode] | ErrorCode], None],
    ) -> None:
        """Deletes committed offsets of a group, except those of topics to which a member of the
        group subscribes."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            subscribed = _subscribed(group)
            if subscribed is None:
                reply(ErrorCode.NON_EMPTY_GROUP)
                return
            codes = {
                each: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
                if each.topic in subscribed
                else ErrorCode.NONE
                for each in partitions
            }
            self._delete_offsets(group_id, codes, reply)

        self._groups.use(group_id, then)

    def _delete_offsets(
        self,
        group_id: str,
        codes: Mapping[TopicPartition, ErrorCode],
        reply: Callable[[Mapping[TopicPartition, ErrorCode] | ErrorCode], None],
    ) -> None:
        going = [each for each, code in codes.items() if code is ErrorCode.NONE]

        def work(coordinator: Coordinator) -> None:
            stored_groups.require_unused(coordinator, group_id)
            stored_groups.delete_offsets(coordinator, group_id, going)

        def done(outcome: SkidwayError | None) -> None:
            self._groups.cache.drop(group_id)
            reply(codes if outcome is None else _code_of(outcome))

        self._session.submit(work, done)


def _code_of(outcome: SkidwayError | None) -> ErrorCode:
    if outcome is None:
        return ErrorCode.NONE
    if isinstance(outcome, GroupInUse):
        return ErrorCode.NON_EMPTY_GROUP
    if isinstance(outcome, GroupGone):
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _listed(group: Group) -> Listed:
    return Listed(group.group_id, group.roster.protocol_type or "", group.state.value)


def _stored(group_id: str, content: bytes | None) -> Listed:
    """Returns the entry of ListGroups for a group that is not in memory. content: the group's
    record in ZooKeeper.
    """
    try:
        record = None if content is None else decode(group_id, content)
    except RecordRefused:
        record = None
    if record is None:
        return Listed(group_id, "", GroupState.EMPTY.value)
    state = GroupState.STABLE if record.members else GroupState.EMPTY
    return Listed(group_id, record.protocol_type, state.value)


def _described(group: Group) -> Described:
    stable = group.state is GroupState.STABLE
    return Described(
        group.state.value,
        group.roster.protocol_type or "",
        (group.protocol or "") if stable else "",
        tuple(
            DescribedMember(
                each.member_id,
                each.instance_id,
                each.client_id,
                each.client_host,
                each.metadata(group.protocol) if stable else b"",
                each.assignment if stable else b"",
            )
            for each in group.roster
        ),
    )


def _subscribed(group: Group) -> frozenset[str] | None:
    """Returns the topics to which the members of a group subscribe. None if this cannot be known,
    because the members are no consumers, or because a member's metadata cannot be decoded.
    """
    found: set[str] = set()
    for member in group.roster:
        if group.roster.protocol_type != subscription.CONSUMER:
            return None
        for protocol in member.protocols:
            named = subscription.topics(protocol.metadata)
            if named is None:
                return None
            found |= named
    return frozenset(found)
