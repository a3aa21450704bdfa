"""Commits a mirror's progress to the source cluster, as the offsets of a consumer group.

If a topic of the source has the setting `retention.hold: mirror-<cluster.name of the mirror>`, the
source keeps the topic's records until they are mirrored. Any tool that shows consumer groups also
shows how far the mirror has copied. The records up to the committed offsets are on disk in the
mirror. The mirror itself does not use the committed offsets, because it continues at the end of its
own log. So if a source refuses a commit, the mirror only reports and counts the refusal, and
commits again later.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from skidway import log
from skidway.broker.mirror.surroundings import Ask
from skidway.errors import SkidwayError
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.group_offsets import (
    commit_offsets_call,
    coordinator,
    find_coordinator_call,
    refused_offsets,
)
from skidway.kafka.types import TopicPartition

INTERVAL_S: Final = 3.0
REPEATED_AFTER_S: Final = 3600.0
"""The mirror commits unchanged offsets again after this time, because a broker deletes the old
offsets of a group without members.
"""
PARTITIONS_A_REQUEST: Final = 1000
Offsets = Mapping[TopicPartition, int]
_log = log.get(__name__)


class Commit(NamedTuple):
    """Does the source keep these offsets? If there are none: which broker keeps the offsets?"""

    offsets: Offsets


class Progress:
    """Commits the offsets up to which one source is mirrored. Each MirrorSource has its own
    Progress. A Progress asks its next question only after the answer to the last one."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.failed = 0
        self.failure = ""
        """Why the last attempt to commit offsets failed; empty if it succeeded."""
        self._coordinator: Address | None = None
        self._told: dict[TopicPartition, int] = {}
        self._all_told_at = 0.0
        self._asking = False
        self.due = 0.0
        """The time of the next `turn` (monotonic seconds)."""

    def turn(self, now: float, known: Offsets) -> list[Ask[Commit]]:
        """Commits the offsets that have changed. known: the mirrored offset of each partition, by
        the partition's name in the source."""
        if now - self._all_told_at >= REPEATED_AFTER_S:
            self._told, self._all_told_at = {}, now
        self.due = now + INTERVAL_S
        self._told = {tp: at for tp, at in self._told.items() if tp in known}
        changed = ((tp, at) for tp, at in known.items() if self._told.get(tp) != at)
        news = dict(islice(changed, PARTITIONS_A_REQUEST))
        if not news or self._asking:
            return []
        self._asking = True
        if self._coordinator is None:
            return [Ask(find_coordinator_call(self.group), Commit({}))]
        return [Ask(commit_offsets_call(self.group, news), Commit(news), self._coordinator)]

    def answered(self, question: Commit, answer: Answer) -> None:
        """Takes the source's answer to a question."""
        self._asking = False
        try:
            if question.offsets:
                self._kept(question.offsets, refused_offsets(_response(answer)))
            else:
                self._coordinator, self.due = coordinator(_response(answer)), 0.0
        except SkidwayError as error:
            self._fail(error)

    def _kept(self, offsets: Offsets, refused: Mapping[TopicPartition, SkidwayError]) -> None:
        self._told |= {tp: at for tp, at in offsets.items() if tp not in refused}
        if refused:
            self._fail(next(iter(refused.values())))
            return
        self.failure = ""
        if len(offsets) == PARTITIONS_A_REQUEST:
            self.due = 0.0  # so that the next `turn` commits further offsets at once

    def _fail(self, error: SkidwayError) -> None:
        self._coordinator = None
        self.failed += 1
        if self.failure != str(error):
            self.failure = str(error)
            _log.warning("mirror_progress_not_told", group=self.group, reason=self.failure)


def _response(answer: Answer) -> Any:
    if answer.error is not None:
        raise answer.error
    return answer.response
