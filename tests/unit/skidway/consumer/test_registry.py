from __future__ import annotations

from collections.abc import Callable

import pytest

from skidway.consumer import nodes
from skidway.consumer.guard import Guard
from skidway.consumer.registry import Fenced, GroupCoordinated, GroupRegistry
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.memory_zookeeper import Fate, MemoryCoordinator, MemoryZooKeeper

TP = TopicPartition("t", 0)
OWNER = nodes.owner_path("g", TP)
OFFSET = group_nodes.offset_path("g", TP)


def unseen(_: object) -> None:
    """A callback for ZooKeeper's watches that does nothing."""


class Member:
    """A registered consumer. For the consumer's next requests, the test decides whether each
    request reaches ZooKeeper, and whether its answer is lost."""

    def __init__(self, server: MemoryZooKeeper, name: str) -> None:
        self.fates: list[Fate] = []
        self.coordinator = MemoryCoordinator(server, self.next_fate)
        self.registry = GroupRegistry(self.coordinator, "g", server.clock)  # type: ignore[arg-type]
        self.guard = Guard(name, {"t": 1}, 0)
        self.registry.register(self.guard)

    def next_fate(self) -> Fate:
        return self.fates.pop(0) if self.fates else Fate.ANSWERED

    def claim(self) -> bool:
        return self.registry.claim(self.guard, f"{self.guard.name}-0", TP, unseen)

    def unanswered(self, fate: Fate, do: Callable[[], object]) -> None:
        self.fates = [fate]
        with pytest.raises(Unreachable):
            do()
        self.coordinator.connect_again()


@pytest.fixture
def server() -> MemoryZooKeeper:
    return MemoryZooKeeper(ManualClock(), 10.0)


@pytest.fixture
def two(server: MemoryZooKeeper) -> tuple[Member, Member]:
    return Member(server, "a"), Member(server, "b")


def test_one_owner_at_a_time(server: MemoryZooKeeper, two: tuple[Member, Member]) -> None:
    """If a partition has an owner, another member's claim of the partition is refused until the
    owner has released the partition. The next owner finds the offset that the former owner
    committed."""
    a, b = two
    assert a.claim()
    assert not b.claim()
    a.registry.commit(a.guard, {TP: 3})
    a.registry.release(a.guard, TP, 5)
    assert OWNER not in server.nodes
    assert b.claim()
    assert b.registry.offset(TP) == 5
    assert server.nodes[OFFSET].data == b"5"


def test_a_claim_whose_answer_was_lost_is_ours(two: tuple[Member, Member]) -> None:
    """If the answer to a member's claim is lost, the member repeats the claim, and finds that the
    first claim was successful."""
    a, _ = two
    a.claim()
    a.registry.release(a.guard, TP, None)
    a.unanswered(Fate.ANSWER_LOST, a.claim)
    assert a.claim()


def test_a_release_whose_answer_was_lost_is_not_done_again(
    server: MemoryZooKeeper, two: tuple[Member, Member]
) -> None:
    """If the answer to a member's release of a partition is lost, the member may repeat the
    release. However often it repeats the release, the partition's next owner keeps its own owner
    node and offset."""
    a, b = two
    assert a.claim()
    a.registry.commit(a.guard, {TP: 3})
    a.unanswered(Fate.ANSWER_LOST, lambda: a.registry.release(a.guard, TP, 5))
    assert b.claim()
    b.registry.commit(b.guard, {TP: 9})
    a.registry.release(a.guard, TP, 5)
    assert server.nodes[OWNER].data == b"b-0"
    assert server.nodes[OFFSET].data == b"9"


def test_a_release_that_was_lost_is_done_later(
    server: MemoryZooKeeper, two: tuple[Member, Member]
) -> None:
    """If a member's release of a partition never reached ZooKeeper, the member can repeat the
    release, even after another write."""
    a, b = two
    assert a.claim()
    a.unanswered(Fate.LOST, lambda: a.registry.release(a.guard, TP, 5))
    a.registry.commit(a.guard, {TP: 4})
    a.registry.release(a.guard, TP, 5)
    assert OWNER not in server.nodes
    assert server.nodes[OFFSET].data == b"5"
    assert b.claim()


def test_nothing_is_written_without_a_registration(
    server: MemoryZooKeeper, two: tuple[Member, Member]
) -> None:
    """After a member's session has ended, all writes with its old registration are refused
    (Fenced), even in the member's next session."""
    a, b = two
    assert a.claim()
    a.registry.commit(a.guard, {TP: 1})
    server.end(a.coordinator.session)
    assert b.claim()
    for write in (
        a.claim,
        lambda: a.registry.commit(a.guard, {TP: 7}),
        lambda: a.registry.release(a.guard, TP, 7),
    ):
        with pytest.raises(Fenced):
            write()
    assert server.nodes[OWNER].data == b"b-0"
    assert server.nodes[OFFSET].data == b"1"


def test_a_partition_that_is_not_ours_is_not_committed(two: tuple[Member, Member]) -> None:
    """If somebody removes the owner node of a partition by hand, the former owner's commits are
    refused (Fenced)."""
    a, _ = two
    assert a.claim()
    a.coordinator.delete(OWNER)
    with pytest.raises(Fenced):
        a.registry.commit(a.guard, {TP: 7})


def test_disclaims_only_what_is_its_own(
    server: MemoryZooKeeper, two: tuple[Member, Member]
) -> None:
    """A member removes an owner node that its own unanswered claim created, but never an owner node
    of another member."""
    a, b = two
    a.claim()
    b.registry.disclaim(b.guard, "b-0", TP)
    assert OWNER in server.nodes
    a.registry.disclaim(a.guard, "a-0", TP)
    assert OWNER not in server.nodes


def test_offsets_that_others_wrote_are_understood(
    server: MemoryZooKeeper, two: tuple[Member, Member]
) -> None:
    """Offset nodes in which another program wrote metadata beside the offset can be read. A commit
    succeeds even if another program created or deleted the offset node meanwhile."""
    a, b = two
    assert a.registry.offset(TP) is None
    assert a.registry.began_with("t", 4) == 4
    assert b.registry.began_with("t", 6) == 4
    assert a.claim()
    b.coordinator.create_if_absent(OFFSET, b'17 {"metadata":"m"}')
    assert b.registry.offset(TP) == 17
    a.registry.commit(a.guard, {TP: 18})
    assert server.nodes[OFFSET].data == b"18"
    b.coordinator.delete(OFFSET)
    a.registry.commit(a.guard, {TP: 19})
    assert server.nodes[OFFSET].data == b"19"


def test_readers_are_those_registered(two: tuple[Member, Member]) -> None:
    """The readers of a group are the streams of its registered members. When a member is no longer
    registered, its streams are not readers any more."""
    a, b = two
    assert set(a.registry.readers()) == {"a-0", "b-0"}
    b.registry.unregister("b")
    assert set(a.registry.readers()) == {"a-0"}
    assert not a.registry.is_registered("b")


def test_a_group_of_a_broker_is_not_joined(server: MemoryZooKeeper) -> None:
    """A consumer that coordinates through ZooKeeper cannot join a group whose members coordinate
    through a broker, because these members do not use owner nodes."""
    first = MemoryCoordinator(server)
    first.create_if_absent(group_nodes.record_path("g"), b'{"members":[{"id":"x"}]}')
    with pytest.raises(SkidwayError, match="coordinate through a broker"):
        Member(server, "a")


@pytest.mark.parametrize("has_record", [False, True])
def test_a_broker_that_stores_members_meanwhile_is_before_us(
    server: MemoryZooKeeper, has_record: bool
) -> None:
    """A consumer checks whether a broker has stored members of the group, and then registers. If a
    broker stores members in between, the registration fails with the error that the group
    coordinates through a broker."""
    record, ids = group_nodes.record_path("g"), group_nodes.ids_path("g")
    member, broker = MemoryCoordinator(server), MemoryCoordinator(server)
    broker.create_if_absent(ids)
    if has_record:
        broker.create_if_absent(record, b"{}")
    requests_before = 1 if has_record else 2
    seen: list[int] = []

    def between() -> None:
        seen.append(1)
        if len(seen) == requests_before + 1:
            broker.create_if_absent(record, b"{}")
            broker.set_versioned(record, b'{"members":[],"omitted":7}', 0)

    member.hook = between
    with pytest.raises(GroupCoordinated, match="coordinate through a broker"):
        GroupRegistry(member, "g", server.clock).register(Guard("late", {"t": 1}, 0))  # type: ignore[arg-type]
    assert len(seen) > requests_before + 1
    assert server.children(ids) == []


def test_a_registration_is_seen_by_a_broker_that_stores_members(server: MemoryZooKeeper) -> None:
    """A registration changes the version of its parent node in ZooKeeper. So a broker that stores
    members of the group notices the registration, because the broker checks this version in its
    transaction."""
    Member(server, "a").registry.unregister("a")
    before = server.nodes[group_nodes.ids_path("g")].version
    Member(server, "b")
    assert server.nodes[group_nodes.ids_path("g")].version > before
