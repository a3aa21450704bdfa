"""Consumers of `skidway.consumer` as members of groups, all in one process. The tests cover many
simultaneous members, streams, rewinding, and restarts of ZooKeeper."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from conformance.consumer.conftest import Topic, a_topic
from skidway.consumer import Consumer, NotOwned, Record, Stream
from skidway.coordination import Coordinator
from skidway.errors import UsageError
from skidway.kafka import group_nodes
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition
from support.brokers import SkidwayBroker
from support.kafka import ApacheKafka
from support.processes import WITHIN_S, eventually, running
from support.zookeeper import ZooKeeper

pytestmark = pytest.mark.java

GROUP = "reports"
MANY = 10


class Reading:
    """A thread that iterates a stream until the stream ends, and keeps the records."""

    def __init__(self, stream: Stream | Consumer) -> None:
        self.found: list[tuple[int, int, str]] = []
        self._thread = threading.Thread(target=self._run, args=(stream,), daemon=True)
        self._thread.start()

    def _run(self, stream: Stream | Consumer) -> None:
        for record in stream:
            self.found.append((record.partition, record.offset, (record.value or b"").decode()))

    def join(self) -> None:
        self._thread.join(300)
        assert not self._thread.is_alive()


class ReadingBatches(Reading):
    """A thread that iterates a stream of Arrow batches and keeps their records."""

    def _run(self, stream: Stream | Consumer) -> None:
        for batch in stream.batches():
            for row in batch.to_pylist():
                self.found.append((row["partition"], row["offset"], row["value"].decode()))


def consumer(topic: Topic, group: str, *topics: str, **settings: object) -> Consumer:
    settings = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 200, **settings}
    return Consumer(topic.bootstrap, group, topics, zookeeper_connect=topic.zookeeper, **settings)  # type: ignore[arg-type]


def all_of(member: Consumer, count: int) -> list[Record]:
    """Iterates until `count` records have come. Returns these records, and what the next poll
    returns."""
    return [*itertools.islice(member, count), *member.poll(500)]


def once(topic: Topic, *found: list[tuple[int, int, str]]) -> bool:
    counts = Counter((p, o) for each in found for p, o, _ in each)
    return counts == dict.fromkeys(topic.records, 1)


def test_many_members_at_once_share_what_there_is(topic: Topic) -> None:
    """If ten members join at the same time and share twelve partitions, each member gets one or two
    partitions, and every record is delivered once."""
    topic.partitions(12)
    members = [consumer(topic, topic.name, topic.name) for _ in range(MANY)]
    readings = [Reading(member) for member in members]
    topic.produce(3_000)
    eventually(lambda: once(topic, *(each.found for each in readings)))
    shares = sorted(len(member.assignment()) for member in members)
    assert shares == [1] * 8 + [2] * 2
    topic.produce(1_000)
    for member in members:
        member.close()
    for reading in readings:
        reading.join()
    with consumer(topic, topic.name, topic.name) as late:
        rest = Reading(late)
        eventually(lambda: once(topic, rest.found, *(each.found for each in readings)))
    rest.join()
    assert once(topic, rest.found, *(each.found for each in readings))


def test_a_group_shares_and_groups_each_get_everything(topic: Topic) -> None:
    """Two members of a group share the records of a topic. A second group also gets every
    record."""
    one = consumer(topic, f"{topic.name}-shared")
    two = consumer(topic, f"{topic.name}-shared")
    other = consumer(topic, f"{topic.name}-other")
    streams = [
        *one.create_message_streams(topic.name, 2),
        *two.create_message_streams([topic.name], 1),
    ]
    [alone] = other.create_message_streams(topic.name)
    shared, all_ = [Reading(stream) for stream in streams], Reading(alone)
    topic.produce(1_000)
    eventually(lambda: once(topic, *(each.found for each in shared)))
    eventually(lambda: once(topic, all_.found))
    shares = sorted(len(stream.assignment()) for stream in streams)
    assert shares == [1, 1, 2]
    for member in (one, two, other):
        member.close()
    for reading in (*shared, all_):
        reading.join()


@pytest.fixture
def second(topic: Topic) -> Iterator[Topic]:
    with a_topic(topic.bootstrap, topic.zookeeper, 2) as made:
        yield made


def test_several_topics_and_arrow_batches(topic: Topic, second: Topic) -> None:
    """One consumer can read two topics. Its Arrow batches contain exactly the records of both
    topics."""
    topic.produce(300)
    second.produce(200)
    tables: list[pa.RecordBatch] = []
    with consumer(topic, topic.name, topic.name, second.name) as member:
        for batch in member.batches():
            tables.append(batch)
            if sum(table.num_rows for table in tables) == 500:
                break
    found = {
        (row["topic"], row["partition"], row["offset"]): row["value"].decode()
        for table in tables
        for row in table.to_pylist()
    }
    expected = {
        (each.name, p, o): value
        for each in (topic, second)
        for (p, o), value in each.records.items()
    }
    assert found == expected


def test_a_group_goes_on_where_it_stopped_and_rewinds(topic: Topic) -> None:
    """A new member of a group continues after the last record that the application has finished
    with. After a rewind, the member gets the records again. If the member leaves just after a
    rewind, the next member gets these records."""
    topic.produce(400)
    middle_ms = int(time.time() * 1000) + 1
    eventually(lambda: time.time() * 1000 > middle_ms + 1)
    topic.produce(100)
    with consumer(topic, topic.name, topic.name) as member:
        first = [next(member) for _ in range(200)]
    with consumer(topic, topic.name, topic.name) as member:
        rest = all_of(member, 300)
        assert len({(r.partition, r.offset) for r in [*first, *rest]}) == 500
        assert len(first) + len(rest) == 500
        member.rewind(middle_ms)
        again = all_of(member, 100)
        assert sorted(int((r.value or b"").split(b"/")[1]) for r in again) == [*range(400, 500)]
        member.rewind()
    with consumer(topic, topic.name, topic.name) as member:
        assert len(all_of(member, 500)) == 500
        tp = TopicPartition(topic.name, 0)
        end = member.position(tp)
        member.seek(tp, end - 3)
        assert [r.offset for r in all_of(member, 3)] == [*range(end - 3, end)]


def test_without_auto_commit_only_commit_commits(topic: Topic) -> None:
    """Without auto-commit, records that the application has not committed are delivered again. With
    auto-commit, a record whose processing raised an exception is delivered again."""
    topic.produce(100)
    settings = {"enable_auto_commit": False}
    with consumer(topic, topic.name, topic.name, **settings) as member:
        assert len(all_of(member, 100)) == 100
    with consumer(topic, topic.name, topic.name, **settings) as member:
        found = [next(member) for _ in range(40)]
        member.commit()
    with contextlib.suppress(ZeroDivisionError), consumer(topic, topic.name, topic.name) as member:
        failed = next(member)
        assert 1 / 0, "the application fails"
    with consumer(topic, topic.name, topic.name, **settings) as member:
        rest = all_of(member, 60)
    assert len(rest) == 60
    assert (failed.partition, failed.offset) in {(r.partition, r.offset) for r in rest}
    assert not {(r.partition, r.offset) for r in found} & {(r.partition, r.offset) for r in rest}


def test_latest_begins_behind_what_is_there(topic: Topic) -> None:
    """If auto_offset_reset is `latest`, a new group gets only the records that are produced after
    the group has started. The group's starting offsets are stored, so a later member also gets the
    records that were produced while the group had no member."""
    topic.produce(100)
    with consumer(topic, topic.name, topic.name, auto_offset_reset="latest") as member:
        assert member.poll(100) == []
        eventually(lambda: member.poll(100) == [] and len(member.assignment()) == 4)
    before = set(topic.records)
    topic.produce(50)
    with consumer(topic, topic.name, topic.name, auto_offset_reset="latest") as member:
        found = {(r.partition, r.offset) for r in all_of(member, 50)}
    assert found == topic.records.keys() - before


def test_a_registration_removed_by_hand_is_made_again(topic: Topic) -> None:
    """If a member's registration is removed, the member stops reading at once. The member ends its
    ZooKeeper session, which also releases its partitions, and then registers again."""
    with consumer(topic, topic.name, topic.name, session_timeout_ms=4_000) as member:
        eventually(lambda: member.poll(100) == [] and len(member.assignment()) == 4)
        with Coordinator(topic.zookeeper) as coordinator:
            [name] = coordinator.children(group_nodes.ids_path(topic.name))
            assert coordinator.delete(f"{group_nodes.ids_path(topic.name)}/{name}")
            eventually(lambda: member.poll(50) == [] and not member.assignment())
            with pytest.raises(NotOwned):
                member.position(TopicPartition(topic.name, 0))
            eventually(lambda: member.poll(50) == [] and len(member.assignment()) == 4)
            assert coordinator.children(group_nodes.ids_path(topic.name)) != [name]


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        yield server


@pytest.mark.slow
def test_zookeeper_restarted(own_zookeeper: ZooKeeper, tmp_path: Path) -> None:
    """If ZooKeeper restarts before the members' sessions expire, members keep their partitions, and
    no record is lost or repeated. The members also find partitions that are added later."""
    broker = SkidwayBroker(tmp_path, own_zookeeper.address)
    with (
        running(broker.program, broker.ready),
        a_topic(broker.address, own_zookeeper.address, 4) as topic,
    ):
        revoked: list[object] = []
        settings = {"session_timeout_ms": 30_000, "on_partitions_revoked": revoked.append}
        members = [consumer(topic, GROUP, topic.name, **settings) for _ in range(2)]
        readings = [Reading(member) for member in members]
        topic.produce(1_000)
        eventually(lambda: once(topic, *(each.found for each in readings)))
        eventually(lambda: [len(each.assignment()) for each in members] == [2, 2])
        before = [each.assignment() for each in members]
        revoked.clear()
        own_zookeeper.restart()
        topic.produce(1_000)
        eventually(lambda: once(topic, *(each.found for each in readings)))
        with Coordinator(topic.zookeeper) as coordinator:

            def committed() -> int:
                nodes = [coordinator.get(group_nodes.offset_path(GROUP, tp)) for tp in topic.tps()]
                return sum(int(node.data) for node in nodes if node is not None)

            eventually(lambda: committed() == len(topic.records))  # by members that are back
        assert [each.assignment() for each in members] == before
        assert revoked == []
        topic.partitions(6)
        topic.produce(100, 5)
        eventually(lambda: once(topic, *(each.found for each in readings)))
        for member in members:
            member.close()
        for reading in readings:
            reading.join()


@pytest.mark.slow
def test_zookeeper_silent_for_longer_than_a_session(
    own_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """While ZooKeeper does not answer, members continue to read only until their ZooKeeper session
    may have expired. After that time they deliver no records and commit nothing. When ZooKeeper
    answers again, every record is delivered, and only delivered records are committed."""
    broker = SkidwayBroker(tmp_path, own_zookeeper.address)
    with (
        running(broker.program, broker.ready),
        a_topic(broker.address, own_zookeeper.address, 4) as topic,
    ):
        members = [consumer(topic, GROUP, topic.name, session_timeout_ms=4_000) for _ in range(2)]
        readings = [Reading(member) for member in members]
        everything = lambda: [row for each in readings for row in each.found]  # noqa: E731
        topic.produce(1_000)
        eventually(lambda: once(topic, *(each.found for each in readings)))
        own_zookeeper.freeze()
        try:
            while any(time.monotonic() < each._registration.until for each in members):
                topic.produce(20)
            before = set(topic.records)
            topic.produce(200)
            with Client(topic.bootstrap) as client:  # what was produced last can be read
                ends = client.list_offsets(dict.fromkeys(topic.tps(), LATEST))
            assert sum(each.offset for each in ends.values()) == len(topic.records)
            assert {row[:2] for row in everything()} <= before
        finally:
            own_zookeeper.thaw()
        eventually(lambda: topic.is_all(everything()))
        topic.produce(100)
        eventually(lambda: topic.is_all(everything()))
        eventually(lambda: sorted(len(member.assignment()) for member in members) == [2, 2])
        for member in members:
            member.close()
        for reading in readings:
            reading.join()
        late = consumer(topic, GROUP, topic.name, consumer_timeout_ms=4_000)
        with late:
            rest = {(r.partition, r.offset) for r in late}
        # A record is committed only after its reader has asked for the next record. So the last
        # record of each reader may be delivered again, but no other record.
        assert rest <= {each.found[-1][:2] for each in readings}


@pytest.mark.slow
def test_leaving_while_zookeeper_is_silent_is_bounded(
    own_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """If a consumer with several streams is closed while ZooKeeper does not answer, `close` returns
    before ZooKeeper answers again. A later member gets the records that were not
    committed, and all records that are produced afterwards, each once."""
    broker = SkidwayBroker(tmp_path, own_zookeeper.address)
    with (
        running(broker.program, broker.ready),
        a_topic(broker.address, own_zookeeper.address, 8) as topic,
    ):
        settings = {"session_timeout_ms": 4_000, "auto_commit_interval_ms": 600_000}
        member = consumer(topic, GROUP, **settings)
        readings = [Reading(each) for each in member.create_message_streams(topic.name, 8)]
        topic.produce(800)
        eventually(lambda: once(topic, *(each.found for each in readings)))
        own_zookeeper.freeze()
        try:
            closing = threading.Thread(target=member.close, daemon=True)
            closing.start()
            closing.join(WITHIN_S)
            assert not closing.is_alive()
        finally:
            own_zookeeper.thaw()
        for reading in readings:
            reading.join()
        topic.produce(80)
        with (
            Coordinator(topic.zookeeper) as coordinator,
            consumer(topic, GROUP, topic.name, enable_auto_commit=False) as late,
        ):
            rest = Reading(late)
            eventually(
                lambda: topic.is_all([row for each in (rest, *readings) for row in each.found]),
            )
            nodes = [coordinator.get(group_nodes.offset_path(GROUP, tp)) for tp in topic.tps()]
            committed = [0 if node is None else int(node.data) for node in nodes]
            left = [(p, o) for p, o in topic.records if o >= committed[p]]
            eventually(lambda: len(rest.found) >= len(left))
        rest.join()
        assert sorted((p, o) for p, o, _ in rest.found) == sorted(left)


@pytest.mark.slow
def test_a_broker_that_is_killed_and_comes_again(own_broker: SkidwayBroker) -> None:
    """When a broker is killed, members keep their partitions. Streams of records and streams of
    Arrow batches continue after the broker's restart, and each record is delivered once."""
    own_broker.start()
    zookeeper = str(own_broker.settings["zookeeper.connect"])
    with a_topic(own_broker.address, zookeeper, 4) as topic:
        members = [consumer(topic, GROUP, topic.name) for _ in range(2)]
        records, batches = Reading(members[0]), ReadingBatches(members[1])
        topic.produce(1_000)
        eventually(lambda: once(topic, records.found, batches.found))
        eventually(lambda: [len(each.assignment()) for each in members] == [2, 2])
        before = [each.assignment() for each in members]
        for count in (500, 300):
            own_broker.crash()
            topic.produce(count)
            eventually(lambda: once(topic, records.found, batches.found))
        assert [each.assignment() for each in members] == before
        for member in members:
            member.close()
        records.join()
        batches.join()


@pytest.fixture
def apache_topic(apache_kafka: ApacheKafka, zookeeper: str) -> Iterator[Topic]:
    with a_topic(apache_kafka.address, zookeeper, 4) as made:
        yield made


def test_apache_kafka_needs_zookeeper_for_the_group_only(apache_topic: Topic) -> None:
    """Members of a group can share a topic of Apache Kafka, and find partitions that are added to
    the topic. The group itself is in ZooKeeper, which the Kafka broker does not use."""
    topic = apache_topic
    members = [consumer(topic, GROUP, topic.name, metadata_max_age_ms=1_000) for _ in range(2)]
    readings = [Reading(member) for member in members]
    topic.produce(1_000)
    eventually(lambda: once(topic, *(each.found for each in readings)))
    eventually(lambda: [len(member.assignment()) for member in members] == [2, 2])
    topic.partitions(5)
    eventually(lambda: sum(len(member.assignment()) for member in members) == 5)
    topic.produce(100, 4)
    eventually(lambda: once(topic, *(each.found for each in readings)))
    for member in members:
        member.close()
    for reading in readings:
        reading.join()


def test_a_fork_does_not_share_a_member(topic: Topic) -> None:
    """A forked child that reads, commits or closes its parent's consumer gets an error at once, and
    the parent reads on."""
    topic.produce(20)
    with consumer(topic, "forked", topic.name) as member:
        found = [next(member)]
        child = os.fork()
        if child == 0:
            refused = 0
            for call in (lambda: next(member), member.poll, member.commit, member.close):
                try:
                    call()
                except UsageError:
                    refused += 1
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
        found += [next(member) for _ in range(19)]
    assert topic.is_all(
        [(each.partition, each.offset, (each.value or b"").decode()) for each in found]
    )
