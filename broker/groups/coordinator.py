"""Handles the requests of members: join, sync, heartbeat, leave.

The cluster's controller coordinates all groups. A broker that is not the controller answers
requests for groups with NOT_COORDINATOR. Two changes would be necessary to spread the groups over
several brokers: `coordinator_of` would have to choose a broker for each group, and `is_coordinator`
of `HostedGroups` would have to answer for a single group.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from skidway import log
from skidway.broker.groups.group import Group
from skidway.broker.groups.hosting import HostedGroups
from skidway.broker.groups.job_queue import JobQueue
from skidway.broker.groups.limits import GroupLimits
from skidway.broker.groups.member import Joining, Syncing
from skidway.broker.groups.offsets import GroupOffsets
from skidway.broker.groups.outcomes import Joined, Synced
from skidway.broker.network.timers import Timers
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode

_log = log.get(__name__)

LOOKING_MAX = 50_000
"""At most this many joins may wait at a time. A join waits until the broker knows whether consumers
have registered in ZooKeeper for the group.
"""

Code = Callable[[ErrorCode], None]


class Groups(HostedGroups):
    """Handles the requests of the groups' members. Only the loop's thread may use this object. Its
    attribute `offsets` commits and reads the groups' offsets."""

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
        """The parameters are those of `HostedGroups`."""
        super().__init__(
            broker_id, limits, clock, timers, jobs, topic_id, controller_id, is_cut_off
        )
        self.offsets = GroupOffsets(self, topic_id)
        self._looking = 0

    def join(self, group_id: str, joining: Joining, reply: Callable[[Joined], None]) -> None:
        """Answers a JoinGroup request when the group's next generation begins. If the join is
        refused, answers at once with an error. If a member of the present generation joins again
        and nothing has changed, answers at once with the present generation.

        While the group has consumers that coordinate through ZooKeeper, the error is
        INCONSISTENT_GROUP_PROTOCOL. If a consumer registers in ZooKeeper after the broker has
        looked for registered consumers, ZooKeeper refuses to store the next generation.
        """
        self.counts.joins += 1

        def refuse(error: ErrorCode) -> None:
            reply(Joined(error=error, member_id=joining.member_id))

        def enter(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                refuse(group)
                return
            self.hosted[group_id].refused = False
            group.join(self.clock.monotonic(), joining, reply)
            self.settle(group)

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                refuse(group)
            elif len(group.roster):
                enter(group)
            else:
                self._if_free(group_id, lambda: self.use(group_id, enter), refuse)

        self.use(group_id, then)

    def sync(self, group_id: str, syncing: Syncing, reply: Callable[[Synced], None]) -> None:
        """Answers a SyncGroup request with the member's assignment, when the group is stored. If
        the request is refused, answers with an error at once. While the request waits, the answer
        may also become an error, for example if another rebalance begins."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(Synced(error=group))
                return
            group.sync(self.clock.monotonic(), syncing, reply)
            self.settle(group)

        self.use(group_id, then)

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, reply: Code
    ) -> None:
        """Answers a heartbeat with an error code, which tells the member whether it must join
        again."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            # A heartbeat only postpones deadlines. So the group's timer is not changed; when it
            # fires, the deadlines are checked again.
            reply(group.heartbeat(self.clock.monotonic(), member_id, instance_id, generation))

        self.use(group_id, then)

    def leave(
        self,
        group_id: str,
        members: Iterable[tuple[str, str | None]],
        reply: Callable[[list[ErrorCode] | ErrorCode], None],
    ) -> None:
        """Removes members. Answers with one error code for each of them; a member is given as
        (member id, instance id)."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            now = self.clock.monotonic()
            codes = [group.leave(now, member_id, instance) for member_id, instance in members]
            self.settle(group)
            reply(codes)

        self.use(group_id, then)

    def _if_free(self, group_id: str, then: Callable[[], None], refuse: Code) -> None:
        """Calls `then` if no consumer has registered in ZooKeeper for the group. Calls `refuse`
        with an error if a consumer has registered, or if the broker cannot find out.
        """

        def counted(found: int | SkidwayError) -> None:
            self._looking -= 1
            if isinstance(found, SkidwayError):
                refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            elif found:
                self._say_refused(group_id, found)
                refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            else:
                then()

        if self._looking >= LOOKING_MAX:
            refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            self._looking += 1
            self.jobs.count_native(group_id, counted)

    def _say_refused(self, group_id: str, consumers: int) -> None:
        """Logs the first refused join of a group. Logs no further refusals while joins of this
        group continue to be refused."""
        hosted = self.hosted.get(group_id)
        if hosted is not None and not hosted.refused:
            hosted.refused = True
            _log.warning("group_has_zookeeper_consumers", group=group_id, consumers=consumers)
