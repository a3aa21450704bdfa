"""The broker's ledger stores consumer groups in a real ZooKeeper, and deletes and expires them.

This ledger is the broker's class for stored groups, not the collector's ledger. It writes and reads
the ZooKeeper nodes of groups. The nodes contain committed offsets and, for each group of stock
clients, one record with the group's generation and members. "Our own consumers" are the consumers
of the package skidway.consumer, which use these nodes directly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Barrier, Event
from typing import Any

import pytest

from skidway.broker.coordination import documents, store, stored_groups
from skidway.broker.coordination.consumers import Committed
from skidway.broker.coordination.ledger import Job, Ledger, Record
from skidway.broker.coordination.stored_groups import GroupGone, GroupInUse
from skidway.broker.groups.coordinator import Groups
from skidway.broker.groups.job_queue import JobQueue
from skidway.broker.groups.limits import GroupLimits
from skidway.broker.groups.member import Member
from skidway.broker.groups.record import GroupRecord, encode
from skidway.broker.groups.retention import OffsetRetention
from skidway.broker.network.timers import Timers
from skidway.clock import SystemClock
from skidway.consumer.guard import Guard
from skidway.consumer.registry import GroupCoordinated, GroupRegistry
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock

LOGS, MORE = TopicPartition("logs", 0), TopicPartition("more", 1)
ROUNDS = 200
REQUESTS_OF_A_DELETION = 9
"""The deletion of a group makes at most this many requests to ZooKeeper. In the first round of
`test_a_deletion_takes_no_registration_with_it`, a consumer begins to register just before the first
of these requests; in the second round, just before the second request; and so on.
"""
WEEK_S = 7 * 86_400


@pytest.fixture
def coordinator(zookeeper: str) -> Iterator[Coordinator]:
    with Coordinator(zookeeper) as made:
        yield made


def offsets(coordinator: Coordinator, group: str) -> dict[TopicPartition, int]:
    found = stored_groups.look(coordinator, group).offsets
    return {partition: committed.offset for partition, committed in found.items()}


def test_offsets_of_many_groups(coordinator: Coordinator) -> None:
    """A broker that has just started, and does not know which ZooKeeper nodes exist, can write
    committed offsets to new and to existing nodes in one call."""
    partitions = [TopicPartition(topic, number) for topic in ("a", "b") for number in range(3)]
    first = {(f"g{number}", each): Committed(1) for number in range(120) for each in partitions}
    book = Ledger()
    assert book.carry_out(coordinator, Job(commits=first)).transactions == 2
    second = {(f"g{number}", LOGS): Committed(2, "words", 7) for number in range(110, 130)}
    for each in (book, Ledger()):
        each.carry_out(coordinator, Job(commits=second))
    # If another process has deleted a group, the next commit creates the group's nodes again.
    stored_groups.delete_group(coordinator, "g0")
    report = book.carry_out(
        coordinator,
        Job(commits={("g0", MORE): Committed(3)}, loads=["g1"], reads=["g0", "g115"]),
    )
    assert report.loads == {"g1": None}
    assert {each: found.offset for each, found in report.reads["g0"].items()} == {MORE: 3}
    assert len(report.reads["g115"]) == 7
    assert report.reads["g115"][LOGS].metadata == "words"
    assert report.reads["g115"][LOGS].leader_epoch == 7
    assert report.reads["g115"][LOGS].time_ms > 0


def test_offsets_that_our_own_consumers_and_old_ones_wrote(coordinator: Coordinator) -> None:
    """When the broker reads the committed offsets of a group, it accepts ZooKeeper nodes that
    contain only a number, and ignores nodes whose name or content it cannot parse."""
    coordinator.create_if_absent("/consumers/g/offsets/logs/0", b"17")
    coordinator.create_if_absent("/consumers/g/offsets/logs/1", b"what?")
    coordinator.create_if_absent("/consumers/g/offsets/logs/not-a-partition", b"3")
    assert offsets(coordinator, "g") == {LOGS: 17}


def test_records_are_written_whatever_is_there(coordinator: Coordinator) -> None:
    """A broker can write the record of a group (its generation and members) even if another broker
    has meanwhile written this record, or somebody has deleted its ZooKeeper node."""
    book = Ledger()
    for content in (b"1", b"2"):
        assert book.carry_out(
            coordinator, Job(records={"g": Record(content, has_members=True)})
        ).records == {"g": None}
    Ledger().carry_out(coordinator, Job(records={"g": Record(b"3", has_members=False)}))
    book.carry_out(coordinator, Job(records={"g": Record(b"4", has_members=True)}))
    assert book.carry_out(coordinator, Job(loads=["g"])).loads == {"g": b"4"}
    coordinator.delete(group_nodes.record_path("g"))
    book.carry_out(coordinator, Job(records={"g": Record(b"5", has_members=True)}))
    assert stored_groups.list_groups(coordinator) == {"g": b"5"}


def test_who_registered_in_zookeeper_keeps_the_group(coordinator: Coordinator) -> None:
    """A group is not deleted while a consumer of `skidway.consumer` is a member of it."""
    Ledger().carry_out(coordinator, Job(commits={("g", LOGS): Committed(1)}))
    coordinator.create_if_absent("/consumers/g/ids/somebody", b"", ephemeral=True)
    with pytest.raises(GroupInUse):
        stored_groups.delete_group(coordinator, "g")
    with pytest.raises(GroupInUse):
        stored_groups.require_unused(coordinator, "g")
    assert offsets(coordinator, "g") == {LOGS: 1}
    coordinator.delete("/consumers/g/ids/somebody")
    stored_groups.delete_group(coordinator, "g")
    with pytest.raises(GroupGone):
        stored_groups.delete_group(coordinator, "g")


def test_of_two_kinds_of_members_at_once_one_is_refused(
    zookeeper: str, coordinator: Coordinator
) -> None:
    """If stock clients and a consumer of `skidway.consumer` enter a group at the same time, one
    side is refused. Either the broker cannot store the generation of the stock clients
    (GroupInUse), or the consumer cannot register (GroupCoordinated)."""
    book = Ledger()
    outcomes: Counter[str] = Counter()
    with Coordinator(zookeeper) as other, ThreadPoolExecutor(1) as thread:
        for number in range(ROUNDS):
            group = f"race-{number}"
            if number % 2:
                book.carry_out(coordinator, Job(records={group: Record(b"{}", False)}))
            registry = GroupRegistry(other, group, SystemClock())
            # In the first round the consumer registers before the broker stores the stock clients.
            # In the second round the broker stores them first. So each side succeeds at least once.
            head_start = {0: "ours", 1: "stock"}.get(number)
            start = Barrier(1 if head_start else 2)

            def register(
                registry: GroupRegistry = registry, start: Barrier = start
            ) -> GroupCoordinated | None:
                start.wait()
                try:
                    registry.register(Guard("ours", {"logs": 1}, 0))
                except GroupCoordinated as error:
                    return error
                return None

            def store(group: str = group, start: Barrier = start) -> Exception | None:
                record = Record(b'{"members":[{}]}', has_members=True)
                start.wait()
                return book.carry_out(coordinator, Job(records={group: record})).records[group]

            if head_start == "stock":
                stored, refused = store(), thread.submit(register).result()
            else:
                ours = thread.submit(register)
                if head_start == "ours":
                    wait([ours])
                stored, refused = store(), ours.result()
            assert isinstance(stored, GroupInUse) == (refused is None), (stored, refused)
            assert bool(stored_groups.look(coordinator, group).native) == (refused is None)
            outcomes["stored" if stored is None else "registered"] += 1
    assert len(outcomes) == 2, outcomes


def test_a_deletion_takes_no_registration_with_it(
    zookeeper: str, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer of `skidway.consumer` may register at any moment while its group is deleted. Then
    either the deletion fails and the group keeps its offsets, or the consumer finds an empty group.
    In both cases the consumer stays registered."""
    left, start = 0, Event()

    def counted(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*what: Any) -> Any:
            nonlocal left
            left -= 1
            if not left:
                start.set()
            return ask(*what)

        return asked

    for name in ("one_answer", "each_answer"):
        monkeypatch.setattr(stored_groups, name, counted(getattr(stored_groups, name)))
    outcomes: Counter[str] = Counter()
    commits = {TopicPartition("logs", number): Committed(7) for number in range(20)}
    with Coordinator(zookeeper) as other, ThreadPoolExecutor(1) as thread:
        for number in range(ROUNDS):
            group = f"race-{number}"
            registry = GroupRegistry(other, group, SystemClock())
            Ledger().carry_out(
                coordinator, Job(commits={(group, each): at for each, at in commits.items()})
            )

            def register(registry: GroupRegistry = registry) -> None:
                start.wait()
                registry.register(Guard("ours", {"logs": 1}, 0))

            start.clear()
            ours = thread.submit(register)
            left = 1 + number % REQUESTS_OF_A_DELETION
            try:
                stored_groups.delete_group(coordinator, group)
                outcome = "deleted"
            except GroupInUse:
                outcome = "kept"
            start.set()
            ours.result()
            looked = stored_groups.look(coordinator, group)
            assert looked.native == 1
            assert len(looked.offsets) == (0 if outcome == "deleted" else len(commits))
            outcomes[outcome] += 1
    assert len(outcomes) == 2, outcomes


def test_a_group_of_many_nodes_is_deleted(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a group has too many nodes for one ZooKeeper transaction, the broker deletes the group in
    several transactions."""
    monkeypatch.setattr(stored_groups, "DELETED_BYTES_AT_ONCE", 300)
    commits = {("g", TopicPartition(topic, n)): Committed(1) for topic in "ab" for n in range(20)}
    Ledger().carry_out(coordinator, Job(commits=commits))
    stored_groups.delete_group(coordinator, "g")
    assert stored_groups.list_groups(coordinator) == {}


def test_a_topic_is_forgotten_by_every_group(coordinator: Coordinator) -> None:
    """When a topic is deleted, every group loses its offsets for that topic, and keeps its offsets
    for other topics."""
    commits = {(group, each): Committed(1) for group in "abc" for each in (LOGS, MORE)}
    Ledger().carry_out(coordinator, Job(commits=commits))
    coordinator.create_if_absent(documents.deletion_path("logs"))
    for _ in range(2):
        store.remove_topic(coordinator, "logs")
    assert [offsets(coordinator, group) for group in "abc"] == [{MORE: 1}] * 3


class AtOnce:
    """A fake ZooKeeper session that runs each job immediately."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def submit(self, work: Callable[[Coordinator], Any], done: Callable[[Any], None]) -> None:
        try:
            outcome = work(self._coordinator)
        except SkidwayError as error:
            outcome = error
        done(outcome)


def test_groups_without_members_expire(coordinator: Coordinator) -> None:
    """A group without members expires a week after its last commit, or after its last member has
    left or timed out, whichever is later. If the stored record of a group names members, the broker
    loads the group. The members must then send heartbeats, or they time out. A group does not
    expire while a consumer of `skidway.consumer` is registered in it."""
    session: Any = AtOnce(coordinator)
    found = coordinator.client.exists("/")
    clock = ManualClock(time_ms=max(found.mtime, found.ctime) + 60_000)
    Ledger().carry_out(
        coordinator, Job(commits={(group, LOGS): Committed(1) for group in ("old", "used")})
    )
    clock.set_time_ms(stored_groups.look(coordinator, "old").offsets[LOGS].time_ms)
    coordinator.create_if_absent("/consumers/used/ids/somebody", b"", ephemeral=True)
    member = Member(
        member_id="m", instance_id=None, client_id="", client_host="",
        session_timeout_s=10, rebalance_timeout_s=10, protocols=(),
    )  # fmt: skip
    record = encode(GroupRecord(generation=4, protocol_type="consumer", members=(member,)))
    Ledger().carry_out(coordinator, Job(records={"left": Record(record, has_members=True)}))
    jobs = JobQueue(
        session.submit, lambda _delay, action: action(), clock.monotonic, lambda _: None
    )
    timers = Timers()
    groups = Groups(
        1, GroupLimits(), clock, timers, jobs, lambda _topic: None, lambda: 1, lambda: False
    )
    retention = OffsetRetention(groups, session, clock, WEEK_S * 1000, lambda _: {})
    retention.look()
    assert set(groups.hosted) == {"left"}
    clock.advance(11)
    timers.run_due(clock.monotonic())  # the member of `left` sends no heartbeat, so it times out
    clock.advance(61)
    groups.forget_idle()
    assert not groups.hosted
    clock.advance(WEEK_S - 100)
    retention.look()
    assert set(stored_groups.list_groups(coordinator)) == {"old", "used", "left"}
    clock.advance(101)
    retention.look()
    assert set(stored_groups.list_groups(coordinator)) == {"used"}
    assert (groups.counts.groups_expired, groups.counts.offsets_expired) == (2, 1)
    assert offsets(coordinator, "used") == {LOGS: 1}


def test_what_is_committed_while_a_group_expires_stays(coordinator: Coordinator) -> None:
    """The broker deletes a committed offset of an expired group only if nobody has committed a
    newer offset since the broker read the old one. While a member is registered, or owns a
    partition, the broker does not delete the group.
    """
    more = TopicPartition("logs", 1)
    both = {("late", LOGS): Committed(1), ("late", more): Committed(1)}
    Ledger().carry_out(coordinator, Job(commits=both))
    looked = stored_groups.look(coordinator, "late")
    Ledger().carry_out(coordinator, Job(commits={("late", more): Committed(2)}))
    assert stored_groups.expire_offsets(coordinator, "late", {more: looked.offsets[more]}) == 0
    assert stored_groups.expire_group(coordinator, "late", looked) == 1
    assert offsets(coordinator, "late") == {more: 2}
    looked = stored_groups.look(coordinator, "late")
    coordinator.create_if_absent("/consumers/late/ids/somebody", b"", ephemeral=True)
    coordinator.create_if_absent("/consumers/late/owners/logs/0", b"somebody", ephemeral=True)
    assert stored_groups.expire_group(coordinator, "late", looked) == 1
    assert coordinator.get("/consumers/late/owners/logs/0") is not None
    coordinator.delete("/consumers/late/owners/logs/0")
    looked = stored_groups.look(coordinator, "late")
    stored_groups.expire_group(coordinator, "late", looked)
    assert "late" not in stored_groups.list_groups(coordinator)


def test_a_group_of_our_own_consumers_expires(coordinator: Coordinator) -> None:
    """A group of consumers of `skidway.consumer` expires, and its ZooKeeper nodes are deleted, if
    no member registers again in time."""
    for group in ("ours", "back"):
        registry = GroupRegistry(coordinator, group, SystemClock())
        guard = Guard(registry.new_name(), {"logs": 1}, 0)
        registry.register(guard)
        assert registry.began_with("logs", 3) == 3
        assert registry.claim(guard, "reader", LOGS, lambda _event: None)
        registry.commit(guard, {LOGS: 7})
        registry.release(guard, LOGS, None)
        registry.unregister(guard.name)
    looked = {group: stored_groups.look(coordinator, group) for group in ("ours", "back")}
    again = GroupRegistry(coordinator, "back", SystemClock())
    again.register(Guard(again.new_name(), {"logs": 1}, 0))
    for group, seen in looked.items():
        assert stored_groups.expire_group(coordinator, group, seen) == 1
    assert set(stored_groups.list_groups(coordinator)) == {"back"}
    assert again.began_with("logs", 9) == 3
