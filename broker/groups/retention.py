"""Deletes the offsets of groups without members after `offsets.retention.minutes`.

The time counts from the moment at which the group last had members, or from the commit of the
offset, whichever is later. A topic's setting `retention.hold` lists groups. For a limited time, the
broker keeps segments that such a group has not read. The broker keeps the offsets of the group in
this topic at least as long. Consumers that coordinate through ZooKeeper also count as members. If
they have registered or unregistered since the broker last looked at the group, the time begins
anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from skidway import log
from skidway.broker.coordination import stored_groups
from skidway.broker.coordination.session import ZooKeeperSession
from skidway.broker.coordination.stored_groups import GroupInUse, Looked
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.record import GroupRecord, RecordRefused, decode, encode
from skidway.broker.log.retention_clock import RetentionClock
from skidway.clock import Clock
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

Holds = Mapping[str, float]
"""The holds of one group. Each key is a topic whose setting `retention.hold` lists the group, so
that the broker keeps segments that the group has not read. The value is the longest time, in ms,
for which the broker keeps such a segment."""
_log = log.get(__name__)


class Fate(Enum):
    """What is done with a group.

    KEPT: nothing is done.
    MARKED: the group's record in ZooKeeper is changed, so that it says that the group is empty.
    WOKEN: the group is read into memory, so that members that send nothing are removed after their
    timeout.
    SHORTENED: some of the group's offsets are deleted.
    DELETED: the group is deleted with all its offsets.
    """

    KEPT = "kept"
    MARKED = "marked"
    WOKEN = "woken"
    SHORTENED = "shortened"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a group. record: for MARKED, the record that marks the group as empty.
    expired: the offsets to delete.
    """

    fate: Fate
    record: GroupRecord | None = None
    expired: tuple[TopicPartition, ...] = ()


def decide(
    record: GroupRecord | None, looked: Looked, now_ms: int, retention_ms: int, holds: Holds
) -> Verdict:
    """Decides what is to be done with a group that is not in memory."""
    if looked.native:
        return Verdict(Fate.KEPT)
    if record is not None and (record.members or record.omitted):
        return Verdict(Fate.WOKEN)  # only a group in memory removes members that send nothing
    if record is None or not record.empty_since_ms or record.ids_version != looked.ids_version:
        known = record or GroupRecord(generation=0)
        marked = replace(known, empty_since_ms=now_ms, ids_version=looked.ids_version)
        return Verdict(Fate.MARKED, marked)
    if now_ms - record.empty_since_ms < retention_ms:
        return Verdict(Fate.KEPT)
    expired = tuple(
        partition
        for partition, committed in looked.offsets.items()
        if now_ms - committed.time_ms >= max(retention_ms, holds.get(partition.topic, 0))
    )
    if len(expired) == len(looked.offsets):
        return Verdict(Fate.DELETED, expired=expired)
    return Verdict(Fate.SHORTENED if expired else Fate.KEPT, expired=expired)


class OffsetRetention:
    """Looks at the groups one by one and deletes old offsets. Only the loop's thread may use it."""

    def __init__(
        self,
        groups: Groups,
        session: ZooKeeperSession,
        clock: Clock,
        retention_ms: int,
        holds: Callable[[str], Holds],
    ) -> None:
        """holds: a function that takes a group id, and returns for which topics and how long the
        broker keeps records for this group."""
        self._groups = groups
        self._holds = holds
        self._session = session
        self._clock = RetentionClock(clock)
        self._retention_ms = retention_ms
        self._left: list[str] = []
        self._looking = False

    def look(self) -> None:
        """Finds out what is to be done with each group, and does it. Does nothing if the previous
        call is not done yet, if ZooKeeper cannot be reached, or if another broker coordinates the
        groups."""
        if not self._looking and self._groups.is_coordinator():
            self._looking = True
            self._session.submit(_names, self._listed)

    def _listed(self, outcome: list[str] | SkidwayError) -> None:
        self._left = [] if isinstance(outcome, SkidwayError) else outcome
        self._next()

    def _next(self) -> None:
        # `_looking` becomes False before the code below, which may raise an exception. So later
        # calls of `look` do their work in any case.
        groups, self._looking = self._groups, False
        while self._left and groups.is_coordinator():
            group = self._left.pop()
            busy = groups.is_loading(group) or groups.jobs.is_busy_with(group)
            if group not in groups.hosted and not busy:
                work = self._work(group)
                self._looking = True
                self._session.submit(work, self._done(group))
                return

    def _work(self, group: str) -> Callable[[Coordinator], Verdict]:
        now_ms, retention_ms, holds = self._clock.now_ms(), self._retention_ms, self._holds(group)

        def work(coordinator: Coordinator) -> Verdict:
            looked = stored_groups.look(coordinator, group)
            path = group_nodes.record_path(group)
            record = None if looked.record is None else decode(path, looked.record)
            verdict = decide(record, looked, now_ms, retention_ms, holds)
            _carry_out(coordinator, group, looked, verdict)
            return verdict

        return work

    def _done(self, group: str) -> Callable[[Verdict | SkidwayError], None]:
        def done(outcome: Verdict | SkidwayError) -> None:
            try:
                self._note(group, outcome)
            finally:
                self._next()

        return done

    def _note(self, group: str, outcome: Verdict | SkidwayError) -> None:
        counts = self._groups.counts
        if isinstance(outcome, Verdict):
            counts.offsets_expired += len(outcome.expired)
            counts.groups_expired += outcome.fate is Fate.DELETED
            if outcome.expired:
                _log.info("offsets_expired", group=group, offsets=len(outcome.expired))
            if outcome.fate is Fate.WOKEN:
                self._groups.use(group, lambda _group: None)
        elif isinstance(outcome, RecordRefused):
            _log.error("group_refused", group=group, reason=str(outcome))
        elif isinstance(outcome, Unreachable):
            self._left = []  # the next call of `look` tries again
        elif not isinstance(outcome, GroupInUse):
            _log.error("offsets_not_expired", group=group, reason=str(outcome))


def _names(coordinator: Coordinator) -> list[str]:
    return [group_nodes.group_of(name) for name in coordinator.children(group_nodes.CONSUMERS)]


def _carry_out(coordinator: Coordinator, group: str, looked: Looked, verdict: Verdict) -> None:
    """Carries out the decision `verdict`. Deletes nothing that has changed since `looked` was
    read."""
    if verdict.fate is Fate.DELETED:
        stored_groups.expire_group(coordinator, group, looked)
    elif verdict.fate is Fate.SHORTENED:
        going = {each: looked.offsets[each] for each in verdict.expired}
        stored_groups.expire_offsets(coordinator, group, going)
    elif verdict.fate is Fate.MARKED and verdict.record is not None:
        path, content = group_nodes.record_path(group), encode(verdict.record)
        if looked.record is None:
            coordinator.create_if_absent(path, content)
        else:
            coordinator.set_versioned(path, content, looked.record_version)
