"""The real consumer runs under random schedules with a ZooKeeper and a cluster that are simulated
in memory.

The code of streams, readers, membership, lease, registration and transactions is the real code.
Members join, leave cleanly, are killed, are stopped for longer than their ZooKeeper session, or
lose their connection to ZooKeeper. Sessions expire, and their members do not notice this.
ZooKeeper's answers are lost, and members repeat requests in another session. Brokers refuse to send
a partition for some time. Partitions are added, and records are produced. All of this also happens
while a member waits for an answer from ZooKeeper.

Whatever happens, a member delivers records of a partition only while the partition's owner node in
ZooKeeper contains the member's name. While the node contains no name or another name, the member
knows that it must not deliver records of the partition. A member commits an offset only after the
application has finished with all records before that offset. After the faults have ended, every
partition gets one owner, and every record is delivered. Without faults, each record is delivered
once.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from skidway.consumer import Record, nodes
from skidway.consumer.reader import StreamReader
from skidway.consumer.registration import Registration
from skidway.consumer.registry import GroupRegistry
from skidway.consumer.settings import ConsumerSettings
from skidway.consumer.share import Subscription
from skidway.consumer.stream import Stream
from skidway.kafka import columns, group_nodes
from skidway.kafka.codecs import NONE
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.memory_zookeeper import Fate, MemoryCoordinator, MemoryZooKeeper
from support.randomness import Seeds

SEEDS = 100
STEPS = 250
MEMBERS_MAX = 5
PARTITIONS_MAX = 7
SESSION_S = 10.0
GROUP = "reports"
TOPICS = ("clicks", "views")
REFUSAL = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Member:
    """One consumer process with one stream."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coordinator = MemoryCoordinator(world.zookeeper, world.fate, world.meanwhile)
        settings = ConsumerSettings(
            auto_offset_reset="earliest",
            auto_commit_interval_ms=world.random.choice([50, 1_000, 20_000]),
            metadata_max_age_ms=30_000,
        )
        self.registration = Registration(
            self.coordinator, GROUP, session_timeout_s=SESSION_S, clock=world.clock
        )
        self.topics = TOPICS if world.random.random() < 0.8 else TOPICS[:1]
        self.reader = StreamReader(
            MemoryClient(world.cluster, world.clock),
            self.registration,
            settings,
            Subscription(self.topics, 0),
            fetcher=MemoryFetcher(world.cluster, batches_max=2),
            random=world.random.random,
        )
        self.registration.begin(dict.fromkeys(self.topics, 1), (self.reader.bell,))
        self.stream = Stream(self.reader, timeout_ms=None)
        self.in_hand: list[tuple[TopicPartition, int]] = []
        self.is_busy = False
        self.stopped_until = 0.0

    def poll(self) -> None:
        """Polls the stream. With each poll, the application says that it has finished with the
        records of the previous poll. Asserts that the member owns the partitions of the records
        that it gets."""
        if self.is_busy or self.world.clock.monotonic() < self.stopped_until:
            return
        self.is_busy = True
        self.world.done.update(self.in_hand)
        self.in_hand = []
        for record in self.take(self.world.random.choice([1, 2, 10])):
            tp = TopicPartition(record.topic, record.partition)
            assert self.world.owner_of(tp) == self.name, f"{tp} handed out by {self.name}"
            assert record.value == b"%s-%d/%d" % (tp.topic.encode(), tp.partition, record.offset)
            self.in_hand.append((tp, record.offset))
            self.world.deliveries[tp, record.offset] = (
                self.world.deliveries.get((tp, record.offset), 0) + 1
            )
        self.is_busy = False

    def take(self, most: int) -> list[Record]:
        """Polls once, and returns at most `most` records. Returns no records if the poll raises the
        error with which the brokers refuse to send a partition."""
        try:
            return self.stream.poll(0, max_records=most)
        except KafkaError as error:
            if error.code is not REFUSAL:
                raise
            return []

    @property
    def name(self) -> str | None:
        name = self.registration.name
        return None if name is None else nodes.reader_name(name, 0)

    def may_hand_out(self) -> list[TopicPartition]:
        """Returns the partitions whose records the member would deliver now."""
        if self.world.clock.monotonic() >= self.registration.until:
            return []
        return [tp for tp, reading in self.reader.readings.items() if reading.is_live]

    def kill(self) -> None:
        self.reader.bell.close()

    def leave(self) -> None:
        self.world.done.update(self.in_hand)
        self.stream.close(done=True)
        self.registration.close()


class World:
    """A consumer group, its cluster and its ZooKeeper. A seed decides what happens."""

    def __init__(self, seed: int, *, faults: bool) -> None:
        self.random = random.Random(seed)
        self.faults = faults
        self.clock = ManualClock()
        self.zookeeper = MemoryZooKeeper(self.clock, SESSION_S)
        self.cluster = MemoryCluster()
        for topic in TOPICS:
            self.cluster.create(topic, self.random.randint(1, 3))
            self.note_topic(topic)
        self.members: list[Member] = []
        self.depth = 0
        self.done: set[tuple[TopicPartition, int]] = set()
        self.deliveries: dict[tuple[TopicPartition, int], int] = {}

    def note_topic(self, topic: str) -> None:
        """Writes the topic's number of partitions into its node in ZooKeeper, as Skidway's brokers
        do."""
        path, count = f"{nodes.BROKER_TOPICS}/{topic}", len(self.cluster.topics[topic].logs)
        if path in self.zookeeper.nodes:
            self.zookeeper.write(path, b"%d" % count)
        else:
            self.zookeeper.make(path, b"%d" % count, None)

    def partitions(self) -> list[TopicPartition]:
        topics = self.cluster.topics.values()
        return [TopicPartition(t.name, p) for t in topics for p in range(len(t.logs))]

    def owner_of(self, tp: TopicPartition) -> str | None:
        node = self.zookeeper.nodes.get(nodes.owner_path(GROUP, tp))
        return None if node is None else node.data.decode()

    # The events of a run.

    def step(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (30, self.poll), (10, self.wait), (8, self.produce), (2, self.come), (2, self.leave),
            (1, self.grow),
        ]  # fmt: skip
        if self.faults:
            actions += [
                (1, self.kill), (1, self.stop), (2, self.cut_off), (3, self.restore),
                (1, self.expire_one), (1, self.unregister_one), (1, self.refuse),
                (2, self.send_again),
            ]  # fmt: skip
        [(_, action)] = self.random.choices(actions, [weight for weight, _ in actions])
        action()
        self.check()

    def meanwhile(self) -> None:
        """Sometimes lets other members act while one member waits for an answer from ZooKeeper."""
        if self.depth < 2 and self.random.random() < 0.1:
            self.depth += 1
            self.random.choice([self.poll, self.wait, self.poll, self.produce])()
            self.check()
            self.depth -= 1

    def fate(self) -> Fate:
        if not self.faults or self.random.random() > 0.05:
            return Fate.ANSWERED
        return self.random.choice([Fate.ANSWER_LOST, Fate.LOST, Fate.ASKED_AGAIN])

    def poll(self) -> None:
        if self.members:
            self.random.choice(self.members).poll()

    def wait(self) -> None:
        longest = 4.0 if self.faults else 0.3
        self.advance(self.random.choice([0.01, 0.1, 0.3, longest]))

    def advance(self, seconds: float) -> None:
        """Lets time pass. Meanwhile kazoo's threads ping ZooKeeper if they run and have a
        connection."""
        self.clock.advance(seconds)
        for member in self.members:
            if self.clock.monotonic() >= member.stopped_until:
                member.coordinator.ping()
        self.zookeeper.expire()

    def produce(self) -> None:
        tp = self.random.choice(self.partitions())
        log = self.cluster.log(tp)
        values = [
            b"%s-%d/%d" % (tp.topic.encode(), tp.partition, log.end + index)
            for index in range(self.random.randint(1, 4))
        ]
        times = np.full(len(values), self.clock.time_ms())
        log.append(columns.encode(pa.array(values, pa.binary()), times, codec=NONE))

    def come(self) -> None:
        if len(self.members) < MEMBERS_MAX:
            self.members.append(Member(self))

    def any_idle(self) -> Member | None:
        idle = [member for member in self.members if not member.is_busy]
        return self.random.choice(idle) if idle else None

    def leave(self) -> None:
        member = self.any_idle()
        if member is not None and self.clock.monotonic() >= member.stopped_until:
            self.members.remove(member)
            member.leave()

    def kill(self) -> None:
        member = self.any_idle()
        if member is not None:
            self.members.remove(member)
            member.kill()

    def stop(self) -> None:
        """Suspends a member and its kazoo threads, as SIGSTOP or a busy application does."""
        member = self.any_idle()
        if member is not None:
            member.stopped_until = self.clock.monotonic() + self.random.choice([1.0, 8.0, 15.0])

    def cut_off(self) -> None:
        member = self.any_idle()
        if member is not None:
            member.coordinator.break_off()

    def restore(self) -> None:
        for member in self.members:
            member.coordinator.connect_again()

    def expire_one(self) -> None:
        """Ends a member's ZooKeeper session a little before the session's timeout. An operator may
        do this, and so may a ZooKeeper ensemble after a failover."""
        late = [
            session
            for session, heard_at in self.zookeeper.heard_at.items()
            if self.clock.monotonic() - heard_at > 0.9 * SESSION_S
        ]
        if late:
            self.zookeeper.end(self.random.choice(late))

    def unregister_one(self) -> None:
        """Removes the node of a member's registration from ZooKeeper, as an operator may do by
        hand. The member's ZooKeeper session stays alive."""
        member = self.any_idle()
        if member is not None and member.registration.name is not None:
            path = f"{group_nodes.ids_path(GROUP)}/{member.registration.name}"
            if path in self.zookeeper.nodes:
                self.zookeeper.remove(path)

    def refuse(self) -> None:
        """Lets the brokers refuse to send one partition until `send_again` is called."""
        self.cluster.fetch_errors[self.random.choice(self.partitions())] = REFUSAL

    def send_again(self) -> None:
        self.cluster.fetch_errors.clear()

    def grow(self) -> None:
        topic = self.random.choice(TOPICS)
        if len(self.cluster.topics[topic].logs) < PARTITIONS_MAX:
            logs = [*self.cluster.topics[topic].logs]
            self.cluster.create(topic, len(logs) + 1)
            self.cluster.topics[topic].logs[: len(logs)] = logs
            self.note_topic(topic)

    # The checks after each step and at the end.

    def check(self) -> None:
        for member in self.members:
            for tp in member.may_hand_out():
                assert self.owner_of(tp) == member.name, f"{member.name} believes to own {tp}"
        for tp in self.partitions():
            committed = self.committed(tp)
            missing = [o for o in range(committed) if (tp, o) not in self.done]
            assert not missing, f"{tp} committed at {committed}, nobody was done with {missing}"

    def committed(self, tp: TopicPartition) -> int:
        node = self.zookeeper.nodes.get(group_nodes.offset_path(GROUP, tp))
        offset = None if node is None else nodes.read_offset(node.data)
        return 0 if offset is None else offset

    def settle(self) -> None:
        """Ends all faults, and lets the members poll for so long that every partition should get an
        owner and every record should be delivered. The first test then checks both."""
        self.faults = False
        self.depth = 2
        self.send_again()
        if not any(member.topics == TOPICS for member in self.members):
            self.members.append(self.whole_member())
        for _ in range(400):
            self.restore()
            for member in list(self.members):
                member.stopped_until = 0.0
                member.poll()
            self.advance(0.2)
            self.check()
        for member in self.members:
            member.poll()

    def whole_member(self) -> Member:
        while True:
            member = Member(self)
            if member.topics == TOPICS:
                return member
            member.kill()


def run(seed: int, *, faults: bool) -> World:
    world = World(seed, faults=faults)
    bits = world.random.getrandbits
    with patch.object(uuid, "uuid4", lambda: uuid.UUID(int=bits(128))):
        return history(world)


def history(world: World) -> World:
    for _ in range(STEPS):
        world.step()
    world.settle()
    return world


def everything(world: World) -> list[tuple[TopicPartition, int]]:
    return [(tp, o) for tp in world.partitions() for o in range(world.cluster.log(tp).end)]


def test_no_partition_has_two_readers_and_no_record_is_skipped(seeds: Seeds) -> None:
    """Whatever faults of members, sessions and answers occur, every record is delivered at least
    once, and no partition has two readers at the same time."""
    repeats = fenced = 0
    for seed in seeds(range(SEEDS)):
        try:
            world = run(seed, faults=True)
            names = [member.name for member in world.members]
            for tp in world.partitions():
                assert world.owner_of(tp) in names, f"{tp} has no living owner"
                assert world.committed(tp) <= world.cluster.log(tp).end
            missing = [each for each in everything(world) if each not in world.deliveries]
            assert not missing, f"never delivered: {len(missing)}, first {missing[0]}"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        repeats += sum(count - 1 for count in world.deliveries.values())
        fenced += world.zookeeper.refused_writes
    assert repeats > 0, "the schedules reach a repeat"
    assert fenced > 0, "the schedules reach a refused write"


def test_without_faults_every_record_comes_once(seeds: Seeds) -> None:
    """Without faults every record is delivered exactly once, even if members join and leave cleanly
    and partitions are added."""
    for seed in seeds(range(SEEDS)):
        try:
            world = run(seed, faults=False)
            counts: dict[Any, int] = dict.fromkeys(everything(world), 1)
            wrong = [each for each, n in counts.items() if world.deliveries.get(each) != n]
            assert not wrong, f"not delivered once: {len(wrong)}, first {wrong[0]}"
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def sees(mutation: AbstractContextManager[Any]) -> bool:
    """Returns whether the model's checks fail with at least one of the seeds if `mutation` changes
    the code."""
    with mutation:
        for seed in range(SEEDS):
            try:
                world = run(seed, faults=True)
                assert all(each in world.deliveries for each in everything(world))
            except AssertionError:
                return True
    return False


def test_the_model_sees_members_that_believe_too_long() -> None:
    """A member's lease is the time until which it may deliver records without asking ZooKeeper. The
    model notices if leases never end: a member that was suspended for longer than its session would
    then deliver records of a partition that another member owns."""
    until = property(lambda self: float("inf") if self.name else float("-inf"))
    assert sees(patch.object(Registration, "until", until))


def test_the_model_sees_claims_that_are_forgotten() -> None:
    """If a member asks ZooKeeper to create its owner node for a partition and gets no answer, the
    node may exist, so the member must remove the node. If the member does not remove the node, the
    model notices that no member reads the partition."""
    assert sees(patch.object(GroupRegistry, "disclaim", lambda *_: None))


def test_the_model_sees_partitions_that_nobody_fetches_again() -> None:
    """If the brokers refuse to send a partition, its reader must fetch the partition again later.
    If the reader does not do this, the model notices that records are not delivered."""
    assert sees(patch.object(StreamReader, "_fetch_again", lambda _: None))
