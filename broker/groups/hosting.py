"""The groups in memory: reads them from ZooKeeper, stores them, sets their timers, and removes them
from memory.

The broker reads a group from ZooKeeper at the first request for the group. When no request has used
a group without members for a while, the broker removes it from memory. While ZooKeeper cannot be
reached, groups in memory continue to work. A request that needs ZooKeeper gets
COORDINATOR_LOAD_IN_PROGRESS or COORDINATOR_NOT_AVAILABLE, after which its client tries again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

from skidway import log
from skidway.broker.catalog import NO_LEADER
from skidway.broker.coordination.ledger import Record
from skidway.broker.coordination.stored_groups import GroupInUse
from skidway.broker.groups.cache import OffsetCache
from skidway.broker.groups.group import Group, GroupState
from skidway.broker.groups.job_queue import JobQueue
from skidway.broker.groups.limits import (
    CLIENT_WORDS_MAX,
    GROUP_ID_BYTES_MAX,
    GROUPS_BYTES_MAX,
    GROUPS_MAX,
    GroupLimits,
)
from skidway.broker.groups.outcomes import Answer, Joined, Synced
from skidway.broker.groups.record import RecordRefused, decode, encode
from skidway.broker.network.timers import Timer, Timers
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.holders import Holders
from skidway.kafka.errors import ErrorCode
from skidway.reached_bounds import ReachedBounds

FORGET_AFTER_S = 60.0
_TRIES_MAX = 100
"""The broker looks at so many groups without members for one that can give way."""
WAITING_MAX = 50_000
"""At most this many requests may wait until their group is read."""
_log = log.get(__name__)

Use = Callable[[Group | ErrorCode], None]


@dataclass(slots=True)
class Hosted:
    """A group in memory, and the facts from which the broker decides when to store it and when to
    remove it from memory.
    """

    group: Group
    used_at: float
    timer: Timer | None = None
    unstored: bool = False
    refused: bool = False
    """Whether the broker has already logged that it refuses joins of this group, because consumers
    are registered for the group in ZooKeeper.
    """
    empty_since_ms: int = 0


@dataclass(slots=True)
class GroupCounts:
    """Counts of the work that the broker has done for groups since its start."""

    joins: int = 0
    rebalances: int = 0
    expired_members: int = 0
    commits_refused: dict[str, int] = field(default_factory=dict)
    offsets_expired: int = 0
    groups_expired: int = 0


class HostedGroups:
    """The groups in memory. Only the loop uses them."""

    def __init__(
        self,
        broker_id: int,
        limits: GroupLimits,
        clock: Clock,
        timers: Timers,
        jobs: JobQueue,
        topic_id: Callable[[str], uuid.UUID | None],
        controller_id: Callable[[], int],
        is_cut_off: Callable[[], bool],
    ) -> None:
        """broker_id: the id of this broker. topic_id: a function that takes a topic's name and
        returns the id of the topic that has this name at the time of the call. controller_id: a
        function that returns the id of the broker that is the cluster's controller at the time of
        the call. is_cut_off: a function that returns whether another broker may be the controller
        without this broker's knowledge.
        """
        self.counts = GroupCounts()
        self.jobs = jobs
        self.cache = OffsetCache(topic_id)
        self.clock = clock
        self.hosted: dict[str, Hosted] = {}
        self._bounds = ReachedBounds(clock.monotonic)
        self._idle: dict[str, None] = {}
        """The groups that nobody is in, the least recently used first."""
        self._in_use: Holders[str] = Holders(GROUPS_BYTES_MAX)
        self._limits = limits
        self._timers = timers
        self._broker_id = broker_id
        self._controller_id = controller_id
        self._is_cut_off = is_cut_off
        self._loading: dict[str, list[Use]] = {}
        self._waiting = 0
        self._stopping = False

    @property
    def members(self) -> int:
        """The number of members of all groups in memory. Any thread may read it."""
        return sum(len(each.group.roster) for each in tuple(self.hosted.values()))

    def coordinator_of(self, _group_id: str) -> int:
        """Returns the id of the broker that coordinates a group. The coordinator is always the
        cluster's controller, so every broker returns the same id. But after a change of the
        controller, brokers may return different ids until each of them has read the change from
        ZooKeeper. If this broker was the controller and cannot know whether it still is, returns
        NO_LEADER.
        """
        found = self._controller_id()
        return NO_LEADER if found == self._broker_id and self._is_cut_off() else found

    def is_coordinator(self) -> bool:
        """Returns whether this broker coordinates the cluster's groups."""
        return self._controller_id() == self._broker_id and not self._is_cut_off()

    def is_loading(self, group_id: str) -> bool:
        """Returns whether the broker is reading the group from ZooKeeper."""
        return group_id in self._loading

    def use(self, group_id: str, then: Use) -> None:
        """Calls `then` with the group or with an error: at once if the group is in memory,
        otherwise when the group has been read. If another broker coordinates the groups, the error
        is NOT_COORDINATOR, and clients look for the coordinator again.
        """
        if not group_id or len(group_id.encode()) > GROUP_ID_BYTES_MAX:
            then(ErrorCode.INVALID_GROUP_ID)
        elif self._stopping:
            then(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif not self.is_coordinator():
            then(ErrorCode.NOT_COORDINATOR)
        elif (hosted := self.hosted.get(group_id)) is not None:
            hosted.used_at = self.clock.monotonic()
            if group_id in self._idle:
                self._idle[group_id] = self._idle.pop(group_id)
            then(hosted.group)
        elif self._waiting >= WAITING_MAX or not self._make_room():
            then(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            waiting = self._loading.setdefault(group_id, [])
            waiting.append(then)
            self._waiting += 1
            if len(waiting) == 1:
                self.jobs.load(group_id, lambda found: self._loaded(group_id, found))

    def forget_idle(self) -> None:
        """Called at intervals. If ZooKeeper has an outdated record of a group without members,
        stores the group. If no request has used a group without members for a while, removes it
        from memory.
        """
        now = self.clock.monotonic()
        if not self.is_coordinator():
            return
        for group_id, hosted in list(self.hosted.items()):
            group = hosted.group
            if group.state is not GroupState.EMPTY or group.roster.given:
                continue
            if hosted.unstored:
                self._store(hosted, None)
            elif now - hosted.used_at >= FORGET_AFTER_S and not self.jobs.is_busy_with(group_id):
                self.drop(group_id)

    def drop(self, group_id: str) -> None:
        """Removes a group from memory. The next request for the group reads it again."""
        hosted = self.hosted.pop(group_id, None)
        self._idle.pop(group_id, None)
        self._in_use.release(group_id)
        self.cache.drop(group_id)
        if hosted is not None and hosted.timer is not None:
            self._timers.cancel(hosted.timer)

    def follow_coordinator(self) -> None:
        """Called when the cluster's controller may have changed. If another broker coordinates the
        groups now, answers the members' waiting requests with NOT_COORDINATOR, so that the members
        ask that broker. Also removes the groups from memory. The other broker reads the stored
        generations from ZooKeeper.
        """
        if not self.is_coordinator():
            self.hand_over()

    def hand_over(self) -> None:
        """Removes all groups from memory, and answers their members' waiting requests with
        NOT_COORDINATOR. If this broker coordinates a group later, it reads the group again."""
        if self.hosted:
            _log.info("groups_handed_over", groups=len(self.hosted))
            self._drop_all(ErrorCode.NOT_COORDINATOR)

    def close(self) -> None:
        """Called when the broker stops. Answers every waiting request with an error."""
        self._stopping = True
        self.jobs.close(SkidwayError("the broker stops"))
        self._drop_all(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _drop_all(self, error: ErrorCode) -> None:
        for hosted in list(self.hosted.values()):
            hosted.group.close(error)
            self._answer(hosted.group)
        for group_id in list(self.hosted):
            self.drop(group_id)

    def _make_room(self) -> bool:
        """Returns whether there is room for one more group in memory, perhaps because another one
        has given way."""
        if len(self.hosted) + len(self._loading) < GROUPS_MAX:
            return True
        for group_id in list(islice(self._idle, _TRIES_MAX)):
            if self.hosted[group_id].unstored or self.jobs.is_busy_with(group_id):
                self._idle[group_id] = self._idle.pop(group_id)
            else:
                self.drop(group_id)
                return True
        first = self._in_use.first()
        if first is not None:
            self._bounds.tell("groups in memory", GROUPS_MAX)
            self._send_away(first)
        return first is not None

    def _send_away(self, group_id: str) -> None:
        """Removes a group from memory although somebody is in it. This is like a restart of the
        broker for the group: members whose group is stored go on, the others join again."""
        group = self.hosted[group_id].group
        group.close(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._answer(group)
        self.drop(group_id)

    def _note_use(self, group: Group) -> None:
        group_id, address = group.group_id, group.roster.address
        self._idle.pop(group_id, None)
        if address is not None:
            self._in_use.hold(group_id, address, group.roster.size_bytes + 1)
        else:
            self._in_use.release(group_id)
            if group.state is GroupState.EMPTY:
                self._idle[group_id] = None
        while (first := self._in_use.gives_way()) is not None:
            self._bounds.tell("bytes of groups in memory", GROUPS_BYTES_MAX)
            self._send_away(first)

    def _loaded(self, group_id: str, found: bytes | SkidwayError | None) -> None:
        waiting = self._loading.pop(group_id)
        self._waiting -= len(waiting)
        outcome: Group | ErrorCode
        if isinstance(found, SkidwayError):
            outcome = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        elif not self.is_coordinator():
            outcome = ErrorCode.NOT_COORDINATOR
        else:
            outcome = self._host(group_id, found)
        for then in waiting:
            if isinstance(outcome, ErrorCode) or self._hosts(outcome):
                then(outcome)
            else:  # an earlier callback has dropped the group, so it must be read again
                self.use(group_id, then)

    def _hosts(self, group: Group) -> bool:
        hosted = self.hosted.get(group.group_id)
        return hosted is not None and hosted.group is group

    def _host(self, group_id: str, content: bytes | None) -> Group | ErrorCode:
        now = self.clock.monotonic()
        group = Group(group_id, self._limits, _new_member_id)
        hosted = Hosted(group, now)
        if content is not None:
            try:
                record = decode(group_id, content)
            except RecordRefused as error:
                _log.error("group_refused", group=group_id, reason=str(error))
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            group.restore(now, record)
            hosted.empty_since_ms = record.empty_since_ms
            # A record that would have been too large was stored without the group's members, and
            # says how many members it lacks (`omitted`). When the group has no members any more,
            # this number is wrong, so the broker must store the group again.
            hosted.unstored = bool(record.omitted)
        self.hosted[group_id] = hosted
        self._note_use(group)
        self._set_timer(hosted)
        return group

    def settle(self, group: Group) -> None:
        """Sends the answers in the group's outputs, stores the group if its outputs ask for this,
        and sets the group's timer."""
        self._answer(group)
        hosted = self.hosted.get(group.group_id)
        if hosted is None:
            return
        if group.state is GroupState.EMPTY:
            self.cache.drop(group.group_id)
        self._set_timer(hosted)
        self._note_use(group)

    def _answer(self, group: Group) -> None:
        outputs, group.outputs = group.outputs, []
        for output in outputs:
            if isinstance(output, Answer):
                cast(Callable[[Joined | Synced], None], output.token)(output.content)
            elif self._may_store() and (hosted := self.hosted.get(group.group_id)) is not None:
                self._store(hosted, output.number)

    def _may_store(self) -> bool:
        """Returns whether this broker may write groups: a former coordinator must not overwrite
        what the present coordinator has stored.
        """
        return not self._stopping and self.is_coordinator()

    def _store(self, hosted: Hosted, number: int | None) -> None:
        group = hosted.group
        if group.state is GroupState.EMPTY:
            hosted.empty_since_ms = self.clock.time_ms()
        else:
            hosted.empty_since_ms = 0
            self.counts.rebalances += group.state is GroupState.COMPLETING
        record = replace(group.record(), empty_since_ms=hosted.empty_since_ms)
        hosted.unstored = True

        def told(error: SkidwayError | None) -> None:
            if self.hosted.get(group.group_id) is not hosted:
                return
            hosted.unstored = error is not None
            if error is not None:
                _log.warning("group_not_stored", group=group.group_id, reason=str(error))
            if number is not None:
                group.stored(self.clock.monotonic(), number, _code_of(error))
                self.settle(group)

        self.jobs.write(group.group_id, Record(encode(record), bool(record.members)), told)

    def _set_timer(self, hosted: Hosted) -> None:
        deadline = hosted.group.deadline()
        timer = hosted.timer
        if timer is not None:
            if deadline is not None and timer.action is not None and timer.at == deadline:
                return
            self._timers.cancel(timer)
            hosted.timer = None
        if deadline is not None:
            hosted.timer = self._timers.call_at(deadline, lambda: self._due(hosted))

    def _due(self, hosted: Hosted) -> None:
        group = hosted.group
        hosted.timer = None
        before = len(group.roster)
        group.tick(self.clock.monotonic())
        self.counts.expired_members += max(0, before - len(group.roster))
        self.settle(group)


def _code_of(error: SkidwayError | None) -> ErrorCode | None:
    if error is None:
        return None
    taken = isinstance(error, GroupInUse)
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL if taken else ErrorCode.COORDINATOR_NOT_AVAILABLE


def _new_member_id(words: str) -> str:
    return f"{words[:CLIENT_WORDS_MAX]}-{uuid.uuid4()}"
