from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.catalog import (
    Catalog,
    PartitionState,
    Topic,
    TopicPartitionInfo,
)
from skidway.broker.coordination.store import TopicGone
from skidway.broker.log.checkpoints import write_partition_metadata
from skidway.broker.log.config import LogConfig
from skidway.broker.log.flusher import WorkOutcome, timed
from skidway.broker.log.log_manager import LogManager
from skidway.broker.network.timers import Timers
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.purgatory import Purgatory
from skidway.broker.topics.administration import Topics
from skidway.errors import SkidwayError, StateRefused, Unreachable
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.live_brokers import live_broker

OWN = live_broker(1, "127.0.0.1", 9092)
LOGS = TopicPartition("logs", 0)


class AtOnce:
    def submit(self, work: Callable[[], None], done: Callable[[WorkOutcome], None]) -> None:
        done(timed(work))


class FakeSession:
    """A fake ZooKeeper session. The test decides when each submitted request is answered, and how.
    `lead` always succeeds at once."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[Any], None]] = []
        self.led: list[tuple[TopicPartition, PartitionState]] = []

    def submit(self, _work: object, done: Callable[[Any], None]) -> None:
        self.jobs.append(done)

    def lead(self, partition: TopicPartition, wanted: PartitionState) -> PartitionState:
        self.led.append((partition, wanted))
        return wanted


class FakeLoop:
    """A fake event loop, which keeps delayed calls until the test runs them."""

    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []

    def call_later(self, _delay_ms: float, action: Callable[[], None]) -> None:
        self.later.append(action)


class World:
    def __init__(self, directory: Path, catalog: Catalog) -> None:
        clock, timers, worker = ManualClock(), Timers(), AtOnce()
        self.logs = LogManager(clock, worker)
        self.logs.open_directories([directory])
        self.hosted = HostedPartitions(self.logs, Purgatory(timers), worker, timers, clock)
        self.loop = FakeLoop()
        self.topics = Topics(
            OWN,
            LogConfig(),
            self.loop,  # type: ignore[arg-type]
            self.logs,
            self.hosted,
            catalog,
            1000,
        )
        self.session = FakeSession()
        self.topics.use(self.session)  # type: ignore[arg-type]
        self.directory = directory

    def start(self) -> None:
        self.topics.load(self.logs.discover())


def topic(topic_id: uuid.UUID, state: PartitionState | None = None) -> Topic:
    return Topic("logs", topic_id, {0: TopicPartitionInfo((1,), state)})


def catalog(*topics: Topic, **changes: Any) -> Catalog:
    return Catalog("cluster", {}, {each.name: each for each in topics}, 1, **changes)


LED = PartitionState(1, 3, (1,), 7)


def test_this_broker_is_always_alive(tmp_path: Path) -> None:
    """The catalog (what the broker has read from ZooKeeper) always contains this broker itself,
    even if it was read while the broker's registration was gone. Otherwise the broker would answer
    to its clients that other brokers, and not itself, are alive."""
    world = World(tmp_path, catalog())
    world.topics.apply(catalog())
    assert world.topics.catalog.brokers == {1: OWN}


def test_a_new_partition_is_served_once_it_is_led(tmp_path: Path) -> None:
    """For a new partition, the broker first creates the directory, then writes the partition's
    state to ZooKeeper, and then serves clients."""
    world = World(tmp_path, catalog())
    world.start()
    topic_id = uuid.uuid4()
    world.topics.apply(catalog(topic(topic_id)))
    assert (tmp_path / "logs-0" / "00000000000000000000.log").exists()
    assert world.hosted.get(LOGS) is None
    world.session.jobs.pop()({0: PartitionState(1, 0, (1,), 0)})
    replica = world.hosted.get(LOGS)
    assert replica is not None
    assert replica.topic_id == topic_id
    world.topics.apply(catalog(topic(topic_id, PartitionState(1, 0, (1,), 0))))
    assert world.hosted.get(LOGS) is replica


def test_a_partition_whose_directory_is_missing_is_stopped(tmp_path: Path) -> None:
    """If ZooKeeper says that this broker leads a partition, but the partition has no directory, its
    data is lost. So the broker stops the partition, with this reason, and does not create an empty
    log for it."""
    world = World(tmp_path, catalog(topic(uuid.uuid4(), LED)))
    world.start()
    assert "missing" in world.logs.stopped[LOGS]
    assert not (tmp_path / "logs-0").exists()


def made(directory: Path, topic_id: uuid.UUID) -> None:
    (directory / "logs-0").mkdir()
    write_partition_metadata(directory / "logs-0", topic_id)


def test_an_unclean_start_raises_the_epoch(tmp_path: Path) -> None:
    """After an unclean shutdown, records that were not flushed may be lost, and new records may get
    the offsets of the lost records. So each partition gets a higher leader epoch when the broker
    starts again."""
    topic_id = uuid.uuid4()
    made(tmp_path, topic_id)
    world = World(tmp_path, catalog(topic(topic_id, LED)))
    world.start()
    assert world.session.led == [(LOGS, PartitionState(1, 4, (1,), 7))]
    replica = world.hosted.get(LOGS)
    assert replica is not None
    assert replica.leader_epoch == 4


@pytest.mark.parametrize("deleting", [True, False])
def test_a_directory_of_another_topic_goes_aside(tmp_path: Path, deleting: bool) -> None:
    """A partition's directory may be left from an earlier topic of the same name. If the deletion
    of the earlier topic had begun, the directory is removed. Otherwise it is set aside (renamed,
    with its data)."""
    old, new = uuid.uuid4(), uuid.uuid4()
    made(tmp_path, old)
    known = catalog(deleting={"logs": old}) if deleting else catalog(topic(new))
    World(tmp_path, known).start()
    kept = [path.name for path in tmp_path.iterdir() if "-stray" in path.name]
    assert len(kept) == (0 if deleting else 1)


def test_a_topic_made_again_while_a_directory_was_away(tmp_path: Path) -> None:
    """A log directory may be missing while a topic is deleted and created again. If the log
    directory later comes back with a partition of the old topic, the partition's directory is set
    aside (renamed, with its data), and the new topic's partition is served."""
    old, new = uuid.uuid4(), uuid.uuid4()
    for name, topic_id in (("a", old), ("b", new)):
        (tmp_path / name).mkdir()
        made(tmp_path / name, topic_id)
    world = World(tmp_path / "a", catalog(topic(new, LED)))
    world.logs.release()
    world.logs.open_directories([tmp_path / "a", tmp_path / "b"])
    world.start()
    replica = world.hosted.get(LOGS)
    assert replica is not None
    assert replica.log.directory == tmp_path / "b" / "logs-0"
    assert [path.name.endswith("-stray") for path in (tmp_path / "a").glob("logs-0*")] == [True]


def test_a_partition_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """The broker does not start if a partition is in two log directories, because only an operator
    can know which of the two logs is right."""
    topic_id = uuid.uuid4()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made(tmp_path / name, topic_id)
    world = World(tmp_path / "a", catalog(topic(topic_id, LED)))
    world.logs.release()
    world.logs.open_directories([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(StateRefused, match="lies in both"):
        world.start()


def test_a_topic_that_vanishes_is_dropped(tmp_path: Path) -> None:
    """If another broker deletes a topic, it first marks the deletion in ZooKeeper, and this broker
    removes the topic's data. If a topic vanishes from ZooKeeper without this mark, its directories
    are renamed, and its data stays."""
    for deleting, left in ((True, 0), (False, 1)):
        directory = tmp_path / str(deleting)
        directory.mkdir()
        topic_id = uuid.uuid4()
        made(directory, topic_id)
        world = World(directory, catalog(topic(topic_id, LED)))
        world.start()
        assert world.hosted.get(LOGS) is not None
        gone = catalog(deleting={"logs": topic_id}) if deleting else catalog()
        world.topics.apply(gone)
        assert world.hosted.get(LOGS) is None
        assert len([path for path in directory.iterdir() if "-stray" in path.name]) == left
        assert not (directory / "logs-0").exists()


def test_a_topic_made_again_while_its_predecessor_was_being_made(tmp_path: Path) -> None:
    """If a topic is deleted and created again before the broker has become the leader of the first
    topic's partitions, the partitions of the second topic are served."""
    old, new = topic(uuid.uuid4()), topic(uuid.uuid4())
    world = World(tmp_path, catalog())
    world.start()
    told: list[SkidwayError | None] = []
    world.topics.apply(catalog(old))
    led = world.session.jobs.pop()
    world.topics.delete(old, told.append)
    world.session.jobs.pop()(None)
    world.session.jobs.pop()(None)
    assert told == [None]
    world.topics.create("logs", {0: (1,)}, {}, told.append)
    world.session.jobs.pop()(None)
    world.topics.apply(catalog(new))
    led(TopicGone("Topic 'logs' is not there any more."))
    assert not world.logs.stopped
    world.session.jobs.pop()({0: PartitionState(1, 0, (1,), 0)})
    replica = world.hosted.get(LOGS)
    assert replica is not None
    assert replica.topic_id == world.topics.catalog.topics["logs"].topic_id == new.topic_id
    assert (tmp_path / "logs-0").exists()


def test_an_old_picture_does_not_take_a_new_topic_away(tmp_path: Path) -> None:
    """The catalog is what the broker has read from ZooKeeper. If a catalog was read before a topic
    was deleted and created again, it does not replace the new topic by the deleted one."""
    old, new = topic(uuid.uuid4(), LED), topic(uuid.uuid4(), LED)
    made(tmp_path, old.topic_id)
    world = World(tmp_path, catalog(old))
    world.start()
    world.topics.delete(old, lambda _: None)
    world.session.jobs.pop()(None)
    assert world.hosted.get(LOGS) is None
    world.topics.apply(catalog(replace(new, partitions={0: TopicPartitionInfo((1,))})))
    world.session.jobs.pop()({0: LED})
    replica = world.hosted.get(LOGS)
    assert replica is not None
    world.topics.apply(catalog(old))
    assert world.hosted.get(LOGS) is replica
    assert world.topics.catalog.topics["logs"].topic_id == new.topic_id
    assert not [path for path in tmp_path.iterdir() if "-stray" in path.name]


def test_a_deletion_is_finished_when_zookeeper_is_there_again(tmp_path: Path) -> None:
    """If ZooKeeper becomes unreachable during a topic's deletion, the client gets an error at once.
    The deletion is finished later, so that the topic's name is not blocked until a restart."""
    one = topic(uuid.uuid4(), LED)
    made(tmp_path, one.topic_id)
    world = World(tmp_path, catalog(one))
    world.start()
    told: list[SkidwayError | None] = []
    world.topics.delete(one, told.append)
    world.session.jobs.pop()(None)
    away = Unreachable("ZooKeeper is away")
    world.session.jobs.pop()(away)
    assert told == [away]
    [again] = world.loop.later
    again()
    world.session.jobs.pop()(None)
    assert len(world.loop.later) == 1


def test_partitions_are_led_that_an_old_picture_lacks(tmp_path: Path) -> None:
    """The catalog is what the broker has read from ZooKeeper. If this broker adds partitions to a
    topic, it serves them at once. It also serves them after it has applied an older catalog, which
    was read before the partitions were added."""
    one = topic(uuid.uuid4(), LED)
    made(tmp_path, one.topic_id)
    world = World(tmp_path, catalog(one))
    world.start()
    more = {0: TopicPartitionInfo((1,), LED), 1: TopicPartitionInfo((1,))}
    world.topics.apply(catalog(replace(one, partitions=more)))
    led = world.session.jobs.pop()
    world.topics.apply(catalog(one))
    led({1: PartitionState(1, 0, (1,), 0)})
    assert world.hosted.get(TopicPartition("logs", 1)) is not None


def test_a_stopped_partition_goes_with_its_topic(tmp_path: Path) -> None:
    """When another broker deletes a topic, this broker also removes the topic's stopped partitions
    (those that it does not serve), so that a new topic of the same name is served."""
    world = World(tmp_path, catalog(topic(uuid.uuid4(), LED)))
    world.start()
    assert LOGS in world.logs.stopped
    world.topics.apply(catalog())
    assert not world.logs.stopped
    world.topics.apply(catalog(topic(uuid.uuid4())))
    world.session.jobs.pop()({0: LED})
    assert world.hosted.get(LOGS) is not None


def test_a_partition_that_does_not_say_whose_it_is_stops_alone(tmp_path: Path) -> None:
    """If the file partition.metadata of a partition is damaged, the broker does not serve this
    partition, and the reason names the file. The partition's files stay, and the other partitions
    are served."""
    two = Topic("logs", uuid.uuid4(), {n: TopicPartitionInfo((1,), LED) for n in range(2)})
    for number in range(2):
        (tmp_path / f"logs-{number}").mkdir()
        write_partition_metadata(tmp_path / f"logs-{number}", two.topic_id)
    (tmp_path / "logs-1" / "partition.metadata").write_bytes(b"topic_id: \xff\xfe")
    world = World(tmp_path, catalog(two))
    world.start()
    assert world.hosted.get(LOGS) is not None
    assert "partition.metadata" in world.logs.stopped[TopicPartition("logs", 1)]
    assert (tmp_path / "logs-1").exists()


def test_a_directory_that_is_there_already_is_not_removed(tmp_path: Path) -> None:
    """If the directory of a new partition already exists and has unknown data, the broker neither
    serves the partition nor removes the data."""
    world = World(tmp_path, catalog())
    world.start()
    (tmp_path / "logs-0").mkdir()
    (tmp_path / "logs-0" / "00000000000000000000.log").write_bytes(b"precious")
    world.topics.apply(catalog(topic(uuid.uuid4())))
    assert world.hosted.get(LOGS) is None
    assert (tmp_path / "logs-0" / "00000000000000000000.log").read_bytes() == b"precious"


def test_settings_altered_while_partitions_are_added_hold(tmp_path: Path) -> None:
    """If a topic's settings are altered while partitions are added to it, the new settings take
    effect at once. Otherwise retention under the old settings would delete records that have to
    stay."""
    before = topic(uuid.uuid4(), LED)
    made(tmp_path, before.topic_id)
    world = World(tmp_path, catalog(before))
    world.start()
    done: list[SkidwayError | None] = []
    world.topics.alter(before, lambda _: {"retention.ms": "-1"}, done.append)
    world.topics.extend(before, {0: (1,), 1: (1,)}, done.append)
    altered, extended = world.session.jobs
    altered({"retention.ms": "-1"})
    extended(None)
    known = world.topics.catalog.topics["logs"]
    assert known.configs == {"retention.ms": "-1"}
    assert set(known.partitions) == {0, 1}
    log = world.logs.logs[LOGS]
    assert log.config.retention_ms == -1


def test_a_group_holds_the_topics_that_name_it(tmp_path: Path) -> None:
    """If a topic's retention.hold lists a group, the topic's records stay until the group has read
    them (the group "holds" the topic). The group holds a record at most for the time
    retention.hold.max.ms of the topic, or of the broker if the topic does not set it. If this time
    is -1, there is no such limit."""
    named = {
        "logs": {"retention.hold": "a,b"},
        "more": {"retention.hold": "b", "retention.hold.max.ms": "5000"},
        "ever": {"retention.hold": "b", "retention.hold.max.ms": "-1"},
        "none": {},
    }
    topics = [Topic(name, uuid.uuid4(), {}, configs) for name, configs in named.items()]
    world = World(tmp_path, catalog(*topics))
    fortnight = LogConfig().hold_ms_max
    assert world.topics.holds_of("a") == {"logs": fortnight}
    assert world.topics.holds_of("b") == {"logs": fortnight, "more": 5000, "ever": math.inf}
    assert world.topics.holds_of("c") == {}
