"""Commits the offsets of groups to ZooKeeper, and reads offsets from ZooKeeper or from the
cache."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from skidway.broker.coordination.consumers import Committed, TopicOffset
from skidway.broker.coordination.stored_groups import Offsets
from skidway.broker.groups.group import Group, GroupState
from skidway.broker.groups.hosting import HostedGroups
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition

Code = Callable[[ErrorCode], None]


class GroupOffsets:
    """Commits and reads the offsets of groups. Only the loop may use it."""

    def __init__(self, groups: HostedGroups, topic_id: Callable[[str], uuid.UUID | None]) -> None:
        self._groups = groups
        self._topic_id = topic_id

    def commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        offsets: Mapping[TopicPartition, Committed],
        reply: Code,
    ) -> None:
        """Commits offsets. Answers when they are in ZooKeeper.

        Each offset belongs to the topic that has the given name at the time of the call. If the
        topic is deleted and recreated while the offset waits to be written, the offset is dropped.
        """
        of_topics = self._of_topics(offsets)

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            known = bool(group.generation) or group.state is not GroupState.EMPTY
            if generation >= 0 and not known:
                reply(ErrorCode.ILLEGAL_GENERATION)
                return
            now = self._groups.clock.monotonic()
            error = group.commit_refusal(now, member_id, instance_id, generation)
            if error is not None:
                self._count_refused(error)
                reply(error)
                return
            self._store(group_id, of_topics, reply)

        self._groups.use(group_id, then)

    def fetch(self, group_id: str, reply: Callable[[Offsets | ErrorCode], None]) -> None:
        """Answers with all offsets that a group has committed, or with an error."""

        def then(group: Group | ErrorCode) -> None:
            if isinstance(group, ErrorCode):
                reply(group)
                return
            known = self._groups.cache.get(group_id)
            if known is not None:
                reply(known)
                return
            self._groups.jobs.read(group_id, read)

        def read(outcome: Offsets | SkidwayError) -> None:
            if isinstance(outcome, SkidwayError):
                reply(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                return
            hosted = self._groups.hosted.get(group_id)
            if hosted is not None and hosted.group.state is not GroupState.EMPTY:
                self._groups.cache.put(group_id, outcome)
            reply(outcome)

        self._groups.use(group_id, then)

    def _of_topics(
        self, offsets: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, TopicOffset]:
        ids = {name: self._topic_id(name) for name in {each.topic for each in offsets}}
        return {
            partition: TopicOffset(topic_id, committed)
            for partition, committed in offsets.items()
            if (topic_id := ids[partition.topic]) is not None
        }

    def _store(
        self, group_id: str, offsets: Mapping[TopicPartition, TopicOffset], reply: Code
    ) -> None:
        def told(error: SkidwayError | None) -> None:
            if error is None:
                self._groups.cache.update(group_id, offsets)
                reply(ErrorCode.NONE)
            else:
                # ZooKeeper may or may not have the offsets, so the cache may be wrong.
                self._groups.cache.drop(group_id)
                self._count_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                reply(ErrorCode.COORDINATOR_NOT_AVAILABLE)

        if offsets:
            self._groups.jobs.commit(group_id, offsets, told)
        else:
            reply(ErrorCode.NONE)

    def _count_refused(self, error: ErrorCode) -> None:
        refused = self._groups.counts.commits_refused
        refused[error.name] = refused.get(error.name, 0) + 1
