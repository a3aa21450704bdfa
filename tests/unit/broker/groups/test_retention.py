from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from skidway.broker.coordination.consumers import Committed
from skidway.broker.coordination.stored_groups import Looked
from skidway.broker.groups.hosting import GroupCounts
from skidway.broker.groups.member import Member
from skidway.broker.groups.record import GroupRecord
from skidway.broker.groups.retention import Fate, Holds, OffsetRetention, Verdict, decide
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.promises import promise

LOGS, MORE = TopicPartition("logs", 0), TopicPartition("logs", 1)
OLD = {LOGS: Committed(1, time_ms=100)}
EMPTY = GroupRecord(generation=3, empty_since_ms=200)


def fate(
    record: GroupRecord | None, now_ms: int, holds: Holds | None = None, **looked: object
) -> Verdict:
    found = Looked(None, OLD, 0, -1)._replace(**looked)
    return decide(record, found, now_ms, 1000, holds or {})


def test_time_runs_from_the_last_member_and_the_last_commit() -> None:
    """An offset expires when the retention time has passed since the group's last member left, and
    has also passed since the offset was last committed."""
    assert fate(EMPTY, 1199).fate is Fate.KEPT
    assert fate(EMPTY, 1200) == Verdict(Fate.DELETED, expired=(LOGS,))
    young = {**OLD, MORE: Committed(2, time_ms=900)}
    assert fate(EMPTY, 1200, offsets=young) == Verdict(Fate.SHORTENED, expired=(LOGS,))
    assert fate(EMPTY, 1200, offsets={MORE: Committed(2, time_ms=900)}).fate is Fate.KEPT


@promise("4 readers")
def test_what_holds_a_topic_back_is_kept_as_long_as_it_may() -> None:
    """If a topic's setting retention.hold names a group, records that the group has not read are
    not deleted. The group's offsets for this topic expire after retention.hold.max.ms, if this time
    is longer than offsets.retention.minutes. If retention.hold.max.ms sets no limit, they never
    expire."""
    more = {**OLD, TopicPartition("other", 0): Committed(2, time_ms=100)}
    for now_ms in (1200, 5099):
        kept = fate(EMPTY, now_ms, {"logs": 5000}, offsets=more)
        assert kept == Verdict(Fate.SHORTENED, expired=(TopicPartition("other", 0),))
    assert fate(EMPTY, 5100, {"logs": 5000}, offsets=more).fate is Fate.DELETED
    assert fate(EMPTY, 1 << 60, {"logs": math.inf}).fate is Fate.KEPT
    assert fate(EMPTY, 1200, {"logs": 10}).fate is Fate.DELETED, "a shorter hold shortens nothing"


def test_a_group_with_members_is_kept() -> None:
    """Offsets of a group with members do not expire. Members that are registered in ZooKeeper count
    as alive. If none is registered, but the group's stored record has members, the broker loads the
    group, and waits for their heartbeats."""
    assert fate(EMPTY, 9999, native=1).fate is Fate.KEPT
    member = Member(
        member_id="m", instance_id=None, client_id="", client_host="",
        session_timeout_s=1, rebalance_timeout_s=1, protocols=(),
    )  # fmt: skip
    assert fate(replace(EMPTY, members=(member,)), 9999).fate is Fate.WOKEN
    assert fate(replace(EMPTY, omitted=1), 9999).fate is Fate.WOKEN


def test_a_group_that_was_never_seen_empty_is_marked_first() -> None:
    """When the broker finds a group empty for the first time, it stores the present time in the
    group's record, and deletes no offsets yet. The offsets expire when the retention time has
    passed since the stored time. If consumers of the group have since registered in ZooKeeper and
    left again, the broker stores a new time."""
    marked = fate(None, 9999, ids_version=4)
    assert marked.fate is Fate.MARKED
    assert marked.record == GroupRecord(generation=0, empty_since_ms=9999, ids_version=4)
    assert fate(marked.record, 20_000, ids_version=4).fate is Fate.DELETED
    again = fate(marked.record, 20_000, ids_version=5)
    assert again.record == GroupRecord(generation=0, empty_since_ms=20_000, ids_version=5)


class FakeGroups:
    """A stand-in for a coordinator that has no group in memory."""

    def __init__(self) -> None:
        self.counts, self.hosted = GroupCounts(), dict[str, object]()
        self.jobs = self
        self.coordinates = True

    def is_loading(self, _group: str) -> bool:
        return False

    def is_coordinator(self) -> bool:
        return self.coordinates

    def is_busy_with(self, _group: str) -> bool:
        return False


class FakeSession:
    """A stand-in for the ZooKeeper session. It returns the answers of the test in order."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)

    def submit(self, _work: object, done: Callable[[Any], None]) -> None:
        done(self.outcomes.pop(0))


@pytest.mark.parametrize(
    ("trouble", "looked"), [(SkidwayError("refused"), 3), (Unreachable("away"), 1)]
)
def test_one_group_that_fails_does_not_keep_the_others(trouble: SkidwayError, looked: int) -> None:
    """The method `look` searches all groups for expired offsets. If it cannot check one group, it
    continues with the other groups. It ends early only if ZooKeeper cannot be reached, because then
    it could not check the other groups either."""
    groups: Any = FakeGroups()
    kept = Verdict(Fate.KEPT)
    session: Any = FakeSession(["a", "b", "c"], trouble, kept, kept)
    OffsetRetention(groups, session, ManualClock(), 1000, lambda _: {}).look()
    assert len(session.outcomes) == 3 - looked


def test_a_mistake_ends_one_look_and_not_the_next() -> None:
    """An unexpected exception ends the present call of `look` (the search for expired offsets). The
    next call works as usual."""
    groups: Any = FakeGroups()
    session: Any = FakeSession(["a"], ["a"], Verdict(Fate.KEPT))
    mistakes = [ZeroDivisionError()]

    def holds(_group: str) -> dict[str, float]:
        if mistakes:
            raise mistakes.pop()
        return {}

    retention = OffsetRetention(groups, session, ManualClock(), 1000, holds)
    with pytest.raises(ZeroDivisionError):
        retention.look()
    retention.look()
    assert session.outcomes == []


def test_only_the_coordinator_deletes_offsets() -> None:
    """A broker that does not coordinate the groups does not look for expired offsets, because it
    does not know which groups have members."""
    groups: Any = FakeGroups()
    groups.coordinates = False
    session: Any = FakeSession(["a"])
    OffsetRetention(groups, session, ManualClock(), 1000, lambda _: {}).look()
    assert len(session.outcomes) == 1


def test_a_look_ends_when_another_broker_coordinates_the_groups() -> None:
    """A broker that searches the groups for expired offsets stops its search if another broker
    becomes the coordinator. It looks at no further group."""
    groups: Any = FakeGroups()

    class Session(FakeSession):
        def submit(self, work: object, done: Callable[[Any], None]) -> None:
            groups.coordinates = False
            super().submit(work, done)

    session: Any = Session(["a", "b"], Verdict(Fate.KEPT))
    OffsetRetention(groups, session, ManualClock(), 1000, lambda _: {}).look()
    assert len(session.outcomes) == 1
