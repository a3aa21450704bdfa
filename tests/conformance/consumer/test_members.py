"""Every member of the consumer group is a separate process. Every record is delivered, even if
members are killed or stopped, or if many members are started at once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import pytest

from conformance.consumer.conftest import Topic
from skidway.consumer import nodes
from skidway.coordination import Coordinator
from skidway.kafka import group_nodes
from support.consumer_member import command, delivered, handed_out, turns
from support.processes import Program, eventually
from support.relay import Relay

pytestmark = [pytest.mark.java, pytest.mark.slow]

SESSION_MS = 4_000
MANY = 12
KILLED = 4
CLAIMS_MAX = (MANY + KILLED) * MANY
"""The maximum number of times that members become owners of partitions in the last test of this
file. Each join or leave of a member moves each partition at most once. If all members reacted to
every change, they would become owners far more often."""


class Start(Protocol):
    """Starts a member with the given name. `zookeeper` is the address that the member uses for
    ZooKeeper, for example the address of a relay. If `zookeeper` is empty, the member uses
    ZooKeeper's own address."""

    def __call__(self, name: str, zookeeper: str = "") -> Program: ...


@pytest.fixture
def group(topic: Topic) -> str:
    return f"group-of-{topic.name}"


@pytest.fixture
def start(topic: Topic, group: str, tmp_path: Path) -> Iterator[Start]:
    """Yields a function that starts members of the group, each as a process. After the test, kills
    the processes."""
    programs: list[Program] = []

    def started(name: str, zookeeper: str = "") -> Program:
        program = Program(
            command(
                bootstrap_servers=topic.bootstrap,
                zookeeper_connect=zookeeper or topic.zookeeper,
                group_id=group,
                topics=[topic.name],
                auto_offset_reset="earliest",
                auto_commit_interval_ms=200,
                session_timeout_ms=SESSION_MS,
            ),
            tmp_path / name,
        )
        programs.append(program.start())
        return program

    yield started
    for program in programs:
        program.signal(signal.SIGCONT)
        program.kill()


def owners(topic: Topic, group: str) -> Counter[str]:
    """Returns how many partitions of the topic each member of the group owns. The keys are the
    names that ZooKeeper has for the owners."""
    with Coordinator(topic.zookeeper) as coordinator:
        found = [coordinator.get(nodes.owner_path(group, tp)) for tp in topic.tps()]
    return Counter(each.data.decode() for each in found if each is not None)


def committed(topic: Topic, group: str) -> dict[int, int]:
    with Coordinator(topic.zookeeper) as coordinator:
        paths = {tp.partition: group_nodes.offset_path(group, tp) for tp in topic.tps()}
        found = {partition: coordinator.get(path) for partition, path in paths.items()}
    return {p: int(each.data) for p, each in found.items() if each is not None}


def ends(topic: Topic) -> dict[int, int]:
    found: dict[int, int] = {}
    for partition, offset in topic.records:
        found[partition] = max(found.get(partition, 0), offset + 1)
    return found


def test_a_member_killed_with_sigkill_loses_nothing(topic: Topic, group: str, start: Start) -> None:
    """If one of two members is killed, the other member gets the records that the killed member had
    not committed. No record is skipped."""
    topic.produce(2_000)
    first, second = start("first"), start("second")
    eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
    topic.produce(2_000)
    first.kill()
    topic.produce(2_000)
    eventually(lambda: list(owners(topic, group).values()) == [4])
    topic.produce(1_000)
    eventually(lambda: topic.is_all(delivered(first.output()) + delivered(second.output())))
    assert second.stop() == 0
    assert committed(topic, group) == ends(topic)


def test_a_member_that_leaves_in_order_repeats_nothing(
    topic: Topic, group: str, start: Start
) -> None:
    """If a member joins and another member stops normally while records are produced, every record
    is delivered once."""
    first = start("first")
    topic.produce(1_000)
    eventually(lambda: topic.is_all(delivered(first.output())))
    second = start("second")
    eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
    topic.produce(1_000)
    assert first.stop() == 0
    topic.produce(1_000)
    both = lambda: delivered(first.output()) + delivered(second.output())  # noqa: E731
    eventually(lambda: topic.is_all(both()))
    assert Counter((p, o) for p, o, _ in both()) == dict.fromkeys(topic.records, 1)


def test_a_member_stopped_beyond_its_session_cannot_commit(
    topic: Topic, group: str, start: Start
) -> None:
    """If the process of one of two members is stopped for longer than its ZooKeeper session lasts,
    the other member gets the stopped member's partitions. When the stopped process continues, it
    registers again and changes no committed offsets."""
    first, second = start("first"), start("second")
    topic.produce(2_000)
    eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
    first.signal(signal.SIGSTOP)
    topic.produce(2_000)
    eventually(lambda: list(owners(topic, group).values()) == [4])
    both = lambda: delivered(first.output()) + delivered(second.output())  # noqa: E731
    eventually(lambda: topic.is_all(both()))
    eventually(lambda: committed(topic, group) == ends(topic))
    before = len(delivered(first.output()))
    first.signal(signal.SIGCONT)
    eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
    assert committed(topic, group) == ends(topic)
    # After SIGCONT the first member prints only records that it had polled before it was stopped.
    assert len(delivered(first.output())) - before <= 20
    topic.produce(1_000)
    eventually(lambda: topic.is_all(both()))
    assert second.stop() == first.stop() == 0
    assert committed(topic, group) == ends(topic)
    assert first.output().count('"consumer_registration_lost"') == 1


def test_partitions_that_are_added_are_read_from_their_beginning(
    topic: Topic, group: str, start: Start
) -> None:
    """Members share new partitions, and skip no record that was produced before they noticed the
    partitions."""
    first, second = start("first"), start("second")
    topic.produce(500)
    eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
    topic.partitions(7)
    topic.produce(300, 6)
    eventually(lambda: sorted(owners(topic, group).values()) == [3, 4])
    both = lambda: delivered(first.output()) + delivered(second.output())  # noqa: E731
    eventually(lambda: topic.is_all(both()))
    assert Counter((p, o) for p, o, _ in both()) == dict.fromkeys(topic.records, 1)


def test_an_owner_cut_off_from_zookeeper_ends_before_its_heir_begins(
    topic: Topic, group: str, start: Start
) -> None:
    """If a member loses its connection to ZooKeeper while it reads, its session expires. As soon as
    another member owns the partitions, the member without a connection delivers no more of their
    records, and its commits have no effect.
    """
    host, _, rest = topic.zookeeper.partition("/")
    with Relay(int(host.rpartition(":")[2])) as relay:
        first, second = start("first", f"{relay.address}/{rest}"), start("second")
        eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
        topic.produce(400)
        relay.fall_silent()
        eventually(lambda: bool(topic.produce(40)) or list(owners(topic, group).values()) == [4])
        topic.produce(400)
        both = lambda: delivered(first.output()) + delivered(second.output())  # noqa: E731
        eventually(lambda: topic.is_all(both()))
        eventually(lambda: committed(topic, group) == ends(topic))
        old, new = handed_out(first.output()), handed_out(second.output())
        passed_on = [p for p in old if p in new]
        assert len(passed_on) == 2
        for partition in passed_on:
            assert max(old[partition]) < min(new[partition])
        assert first.running
        relay.go_on()
        eventually(lambda: sorted(owners(topic, group).values()) == [2, 2])
        assert committed(topic, group) == ends(topic)
        topic.produce(400)
        eventually(lambda: topic.is_all(both()))
        assert first.stop() == second.stop() == 0
    assert committed(topic, group) == ends(topic)


def test_twelve_that_arrive_at_once_share_without_a_herd(
    topic: Topic, group: str, start: Start
) -> None:
    """Twelve programs start together, and four are killed together. Each partition has one reader
    at a time, every record is delivered, and partitions change owners at most CLAIMS_MAX times."""
    topic.partitions(MANY)
    topic.produce(2_000)
    members = [start(f"member-{number}") for number in range(MANY)]
    eventually(lambda: sorted(owners(topic, group).values()) == [1] * MANY)
    topic.produce(2_000)
    everything = lambda: [row for each in members for row in delivered(each.output())]  # noqa: E731
    eventually(lambda: topic.is_all(everything()))
    for dead in members[:KILLED]:
        dead.kill()
    topic.produce(1_000)
    eventually(lambda: len(owners(topic, group)) == MANY - KILLED)
    eventually(lambda: sum(owners(topic, group).values()) == MANY)
    eventually(lambda: topic.is_all(everything()))
    for each in members[KILLED:]:
        each.signal(signal.SIGTERM)
    for each in members[KILLED:]:
        assert each.wait(300) == 0
    assert committed(topic, group) == ends(topic)
    reading = [turns(each.output()) for each in members]
    for partition in range(MANY):
        read = sorted(turn for each in reading for turn in each.get(partition, ()))
        assert read
        assert all(before[1] < after[0] for before, after in pairwise(read)), read
    claims = sum(each.output().count('"consumer_claimed"') for each in members)
    assert claims <= CLAIMS_MAX, claims
