"""Unmodified stock clients subscribe, rebalance, commit, restart and leave as members of consumer
groups."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import aiokafka
import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

with warnings.catch_warnings():  # kafka-python finds its files in a way that Python 3.11 deprecates
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.processes import eventually, running
from support.zookeeper import ZooKeeper

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PARTITIONS = 4
COUNT = 100


@pytest.fixture(autouse=True)
def _forget_what_clients_leave() -> Iterator[None]:
    """Collects garbage after each test, and ignores the warnings about sockets: kafka-python does
    not close its wake-up sockets."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[SkidwayBroker]:
    folder = tmp_path_factory.mktemp("groups")
    made = group_broker(folder, f"{zookeeper_server.address}/{folder.name}")
    with running(made.program, made.ready):
        yield made
        made.program.stop()


def group_broker(folder: Path, zookeeper: str) -> SkidwayBroker:
    made = SkidwayBroker(folder, zookeeper)
    made.settings["group.initial.rebalance.delay.ms"] = 0
    made.settings["group.min.session.timeout.ms"] = 1000
    made.program.command[:] = made.command()
    return made


class Member(Protocol):
    """One consumer of a group. The method `step` polls once, and `owned` returns the consumer's
    partitions."""

    seen: list[tuple[int, int]]

    def step(self) -> None: ...
    def owned(self) -> set[int]: ...
    def commit(self) -> None: ...
    def close(self) -> None: ...


class ConfluentMember:
    def __init__(self, address: str, group: str, topic: str, **more: object) -> None:
        settings = {
            "bootstrap.servers": address, "group.id": group, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300, **more,
        }  # fmt: skip
        self.consumer = Consumer(settings)
        self.consumer.subscribe([topic])
        self.seen: list[tuple[int, int]] = []
        self.errors: list[KafkaError] = []

    def step(self) -> None:
        for message in self.consumer.consume(100, 0.1):
            if message.error() is None:
                self.seen.append((message.partition(), message.offset()))
            else:
                self.errors.append(message.error())

    def owned(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonMember:
    def __init__(self, address: str, group: str, topic: str) -> None:
        self.consumer = kafka.KafkaConsumer(
            topic, bootstrap_servers=address, group_id=group, enable_auto_commit=False,
            auto_offset_reset="earliest", session_timeout_ms=6000, heartbeat_interval_ms=300,
            # The client asks for metadata often, because the leader of a group assigns no
            # partitions while it does not know the topic.
            metadata_max_age_ms=1000,
        )  # fmt: skip
        self.seen: list[tuple[int, int]] = []

    def step(self) -> None:
        # kafka-python 3.0.12 loses an assignment that arrives just after a poll has timed out. So
        # each poll gets enough time for a rebalance.
        for records in self.consumer.poll(3000).values():
            self.seen += [(each.partition, each.offset) for each in records]

    def owned(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close()


class AioMember:
    """A group member that uses aiokafka and runs its own event loop."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.seen: list[tuple[int, int]] = []
        self.consumer: Any = None

        async def start() -> None:
            self.consumer = aiokafka.AIOKafkaConsumer(
                topic, bootstrap_servers=address, group_id=group, enable_auto_commit=False,
                auto_offset_reset="earliest", session_timeout_ms=6000, heartbeat_interval_ms=300,
            )  # fmt: skip
            await self.consumer.start()

        self._run(start())

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def step(self) -> None:
        for records in self._run(self.consumer.getmany(timeout_ms=100)).values():
            self.seen += [(each.partition, each.offset) for each in records]

    def owned(self) -> set[int]:
        return {each.partition for each in self.consumer.assignment()}

    def commit(self) -> None:
        self._run(self.consumer.commit())

    def close(self) -> None:
        self._run(self.consumer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()


CLIENTS: list[type[ConfluentMember | KafkaPythonMember | AioMember]] = [
    ConfluentMember,
    KafkaPythonMember,
    AioMember,
]


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch, _forget_what_clients_leave: None) -> Iterator[None]:
    """After a test, closes the members that the test has left open because it failed."""
    members: list[Member] = []

    def remembered(kind: Any) -> None:
        start, close = kind.__init__, kind.close

        def begin(self: Any, *arguments: Any, **more: Any) -> None:
            start(self, *arguments, **more)
            members.append(self)

        def end(self: Any) -> None:
            members.remove(self)
            close(self)

        monkeypatch.setattr(kind, "__init__", begin)
        monkeypatch.setattr(kind, "close", end)

    for kind in CLIENTS:
        remembered(kind)
    yield
    for member in members[:]:
        member.close()


all_clients = pytest.mark.parametrize(
    "client", CLIENTS, ids=lambda client: client.__name__.removesuffix("Member").lower()
)


def filled(address: str, count: int = COUNT) -> str:
    """Creates a topic, spreads `count` records over its partitions, and returns the topic's
    name."""
    topic = topic_name("grouped")
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(300)
    fill(address, topic, count)
    return topic


def fill(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(300) == 0


def step_until(condition: Callable[[], object], *members: Member) -> None:
    """Calls `step` of each member again and again until the condition is true."""

    def look() -> object:
        for member in members:
            member.step()
        return condition()

    eventually(look, every_s=0.01)


def shared(*members: Member) -> bool:
    """Returns whether every partition has exactly one owner, and every member owns at least one
    partition."""
    owned = [member.owned() for member in members]
    everything = sorted(number for each in owned for number in each)
    return all(owned) and everything == list(range(PARTITIONS))


def committed(address: str, group: str, topic: str) -> dict[int, int]:
    """Returns the offsets that a group has committed for a topic, by partition. Reads these offsets
    with a consumer that does not join the group."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return {each.partition: each.offset for each in consumer.committed(wanted, 20)}
    finally:
        consumer.close()


@all_clients
def test_two_members_share_and_commit(
    broker: SkidwayBroker, client: Callable[[str, str, str], Member]
) -> None:
    """A second member gets its share of the partitions. When this member leaves, the first member
    gets all partitions again. A member that joins after all others have left continues at the
    committed offsets."""
    topic = filled(broker.address)
    group = f"group-{topic}"
    first = client(broker.address, group, topic)
    step_until(lambda: len(first.seen) == COUNT, first)
    assert first.owned() == set(range(PARTITIONS))
    assert len(set(first.seen)) == COUNT
    first.commit()
    second = client(broker.address, group, topic)
    step_until(lambda: shared(first, second), first, second)
    fill(broker.address, topic, COUNT)
    step_until(lambda: len(first.seen) + len(second.seen) == 2 * COUNT, first, second)
    second.commit()
    first.commit()
    second.close()
    step_until(lambda: shared(first), first)
    first.close()
    assert committed(broker.address, group, topic) == dict.fromkeys(range(PARTITIONS), 50)
    fill(broker.address, topic, PARTITIONS)
    third = client(broker.address, group, topic)
    step_until(lambda: len(third.seen) >= PARTITIONS, third)
    assert sorted(third.seen) == [(number, 50) for number in range(PARTITIONS)]
    third.close()


@pytest.mark.parametrize(
    "start_again", [SkidwayBroker.crash, SkidwayBroker.restart], ids=["crash", "restart"]
)
@all_clients
def test_a_broker_that_starts_again_keeps_its_groups(
    tmp_path: Path,
    zookeeper: str,
    client: Callable[[str, str, str], Member],
    start_again: Callable[[SkidwayBroker], None],
) -> None:
    """After kill -9 and a new start, or after a clean restart, the broker still has the offsets
    that a group has committed, and the group's member can commit again."""
    broker = group_broker(tmp_path, zookeeper)
    with running(broker.program, broker.ready):
        topic = filled(broker.address)
        member = client(broker.address, "g", topic)
        step_until(lambda: len(member.seen) == COUNT, member)
        member.commit()
        start_again(broker)
        fill(broker.address, topic, COUNT)
        step_until(lambda: len(set(member.seen)) == 2 * COUNT, member)
        assert committed(broker.address, "g", topic) == dict.fromkeys(range(PARTITIONS), 25)
        member.commit()
        assert committed(broker.address, "g", topic) == dict.fromkeys(range(PARTITIONS), 50)
        member.close()
        broker.program.stop()


def test_a_live_group_survives_a_restart_without_a_rebalance(
    tmp_path: Path, zookeeper: str
) -> None:
    """After a restart of the broker, the members of the group's last stored generation stay in this
    generation and keep all their partitions."""
    broker = group_broker(tmp_path, zookeeper)
    with running(broker.program, broker.ready):
        topic = filled(broker.address)
        patient = {"session.timeout.ms": 60_000}  # longer than any restart takes
        members = [ConfluentMember(broker.address, "g", topic, **patient) for _ in range(2)]
        step_until(lambda: shared(*members), *members)
        before = [member.owned() for member in members]
        broker.restart()
        fill(broker.address, topic, COUNT)
        step_until(lambda: len({each for m in members for each in m.seen}) == 2 * COUNT, *members)
        assert [member.owned() for member in members] == before
        assert broker.metric("skidway_broker_group_joins_total") == 0
        for member in members:
            member.close()
        broker.program.stop()


def test_a_member_that_dies_is_replaced(broker: SkidwayBroker) -> None:
    """If one of two members of a group stops polling, the other member gets all partitions."""
    topic = filled(broker.address)
    # If the test does not poll within max.poll.interval.ms, librdkafka leaves the group, as if the
    # member had died.
    lame = {"max.poll.interval.ms": 6000}
    dying = ConfluentMember(broker.address, f"group-{topic}", topic, **lame)
    step_until(lambda: shared(dying), dying)
    living = ConfluentMember(broker.address, f"group-{topic}", topic)
    step_until(lambda: shared(dying, living), dying, living)
    step_until(lambda: shared(living), living)
    living.close()
    with contextlib.suppress(KafkaException):
        dying.close()


def test_a_static_member_comes_back_without_a_rebalance(broker: SkidwayBroker) -> None:
    """A member with group.instance.id that was stopped and started again gets its old
    partitions."""
    topic = filled(broker.address)
    group = f"group-{topic}"
    more = {"session.timeout.ms": 300_000}
    members = [
        ConfluentMember(broker.address, group, topic, **more, **{"group.instance.id": name})
        for name in ("a", "b")
    ]
    step_until(lambda: shared(*members), *members)
    had, rebalances = members[0].owned(), broker.metric("skidway_broker_group_rebalances_total")
    members[0].close()  # a static member sends no LeaveGroup
    again = ConfluentMember(broker.address, group, topic, **more, **{"group.instance.id": "a"})
    step_until(lambda: again.owned() == had, again, members[1])
    assert broker.metric("skidway_broker_group_rebalances_total") == rebalances
    again.close()
    members[1].close()


def test_the_elder_of_two_with_one_instance_id_is_fenced(broker: SkidwayBroker) -> None:
    """If two members have the same instance id, the older member gets FENCED_INSTANCE_ID, and the
    newer member continues."""
    topic = filled(broker.address)
    group, only = f"group-{topic}", {"group.instance.id": "only"}
    elder = ConfluentMember(broker.address, group, topic, **only)
    step_until(lambda: shared(elder), elder)
    younger = ConfluentMember(broker.address, group, topic, **only)
    step_until(lambda: shared(younger), younger)
    fatal = {KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL}
    step_until(lambda: fatal & {each.code() for each in elder.errors}, elder, younger)
    assert younger.owned() == set(range(PARTITIONS))
    younger.close()
    elder.close()


def test_many_members_arrive_at_once(broker: SkidwayBroker) -> None:
    """When twelve members share four partitions, each partition has one owner, and every record is
    read."""
    topic = filled(broker.address)
    members = [ConfluentMember(broker.address, f"group-{topic}", topic) for _ in range(12)]

    def settled() -> bool:
        owned = sorted(number for member in members for number in member.owned())
        return owned == list(range(PARTITIONS))

    step_until(settled, *members)
    step_until(lambda: len({each for m in members for each in m.seen}) == COUNT, *members)
    for member in members:
        member.close()


def test_metadata_of_a_commit_comes_back(broker: SkidwayBroker) -> None:
    """A consumer that is not a member of its group can commit an offset with metadata and read the
    metadata back. The broker refuses metadata that is too long."""
    topic = filled(broker.address)
    settings = {"bootstrap.servers": broker.address, "group.id": f"Größe: {topic}/x"}
    consumer = Consumer(settings)
    mine = TopicPartition(topic, 1, 17, metadata="bis hier: ✓")
    consumer.commit(offsets=[mine], asynchronous=False)
    [found] = consumer.committed([TopicPartition(topic, 1)], 20)
    assert (found.offset, found.metadata) == (17, "bis hier: ✓")
    long = TopicPartition(topic, 1, 18, metadata="x" * 5000)
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[long], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    [found] = consumer.committed([TopicPartition(topic, 1)], 20)
    assert found.offset == 17
    consumer.close()


def test_groups_are_listed_described_and_deleted(broker: SkidwayBroker) -> None:
    """An admin client can list and describe groups with their states, members and offsets. The
    broker does not delete a group that has members."""
    topic = filled(broker.address)
    group = f"group-{topic}"
    admin = AdminClient({"bootstrap.servers": broker.address})
    member = ConfluentMember(broker.address, group, topic)
    step_until(lambda: len(member.seen) == COUNT, member)
    member.commit()
    listed = {each.group_id: each for each in admin.list_consumer_groups().result(300).valid}
    assert listed[group].state == ConsumerGroupState.STABLE
    described = admin.describe_consumer_groups([group])[group].result(300)
    assert described.partition_assignor == "range"
    [seen] = described.members
    assert {each.partition for each in seen.assignment.topic_partitions} == set(range(PARTITIONS))
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(300)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    member.close()
    eventually(
        lambda: (
            admin.describe_consumer_groups([group])[group].result(300).state
            == ConsumerGroupState.EMPTY
        )
    )
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([moved])[group].result(300)
    assert committed(broker.address, group, topic)[0] == 3
    admin.delete_consumer_groups([group])[group].result(300)
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(300).valid}
    assert set(committed(broker.address, group, topic).values()) == {-1001}
    with pytest.raises(KafkaException) as gone:
        admin.delete_consumer_groups([group])[group].result(300)
    assert gone.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_a_deleted_topic_takes_its_offsets_with_it(broker: SkidwayBroker) -> None:
    """If a topic is deleted and created again, a group that committed offsets for the old topic has
    no offsets for the new topic.
    """
    topic = filled(broker.address)
    group = f"group-{topic}"
    member = ConfluentMember(broker.address, group, topic)
    step_until(lambda: len(member.seen) == COUNT, member)
    member.commit()
    member.close()
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.delete_topics([topic])[topic].result(300)
    admin.create_topics([NewTopic(topic, PARTITIONS)])[topic].result(300)
    assert set(committed(broker.address, group, topic).values()) == {-1001}
