from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from skidway.consumer import Consumer, NoOffset, NotOwned, nodes
from skidway.consumer.reader import StreamReader
from skidway.consumer.registration import Registration
from skidway.consumer.settings import ConsumerSettings
from skidway.consumer.share import Subscription
from skidway.consumer.stream import Stream
from skidway.errors import Unreachable, UsageError
from skidway.kafka import columns, group_nodes
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.own_process import OwnProcess
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.memory_zookeeper import MemoryCoordinator, MemoryZooKeeper

TP = TopicPartition("t", 0)
SESSION_S = 10.0
MAGIC_AT = 16  # the position of a header's field that the fetcher checks


class World:
    """A test environment with one topic of one partition, and members of the group "g". A test may
    add partitions before it makes members."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.server = MemoryZooKeeper(self.clock, SESSION_S)
        self.cluster = MemoryCluster()
        self.cluster.create("t")
        self.fetchers: list[MemoryFetcher] = []
        self.coordinators: list[MemoryCoordinator] = []
        self.registrations: list[Registration] = []

    def produce(self, *values: bytes, tp: TopicPartition = TP) -> None:
        times = np.full(len(values), self.clock.time_ms())
        self.cluster.log(tp).append(columns.encode(pa.array(values, pa.binary()), times))

    def member(self, **settings: Any) -> Stream:
        coordinator = MemoryCoordinator(self.server)
        registration = Registration(
            coordinator,  # type: ignore[arg-type]
            "g",
            session_timeout_s=SESSION_S,
            clock=self.clock,
        )
        options = ConsumerSettings(**{"auto_offset_reset": "earliest", **settings})
        client: Any = MemoryClient(self.cluster, self.clock)
        fetcher: Any = MemoryFetcher(self.cluster)
        self.fetchers.append(fetcher)
        reader = StreamReader(
            client, registration, options, Subscription(("t",), 0), fetcher=fetcher
        )
        registration.begin({"t": 1}, (reader.bell,))
        self.coordinators.append(coordinator)
        self.registrations.append(registration)
        return Stream(reader, timeout_ms=None)

    def leave(self, stream: Stream, *, done: bool = False) -> None:
        """Closes the stream and all registrations in `registrations`, as a consumer does when it is
        closed. If `done` is True, the records that were returned last count as processed, and are
        committed."""
        stream.close(done=done)
        for registration in self.registrations:
            registration.close()

    def poll(self, stream: Stream, *, times: int = 5, most: int = 100) -> list[bytes | None]:
        """Polls up to `times` times, until there are `most` records. Returns their values. The fake
        clock advances by 0.2 seconds per poll. If `times` has its default value, no member's
        session ends during these polls."""
        found = []
        for _ in range(times):
            found += [record.value for record in stream.poll(0, max_records=most - len(found))]
            if len(found) == most:
                break
            self.clock.advance(0.2)
            for coordinator in self.coordinators:
                coordinator.ping()
        return found

    def committed(self) -> int | None:
        node = self.server.nodes.get(group_nodes.offset_path("g", TP))
        return None if node is None else nodes.read_offset(node.data)


@pytest.fixture
def world() -> Iterator[World]:
    found = World()
    found.produce(b"0", b"1", b"2")
    found.produce(b"3", b"4")
    yield found
    for registration in found.registrations:
        registration.close()


def test_a_record_is_done_when_the_next_one_is_asked_for(world: World) -> None:
    """Records that a stream has returned are committed only when the caller has asked for the next
    records, or if the caller closes the stream and says that it has processed them."""
    stream = world.member()
    assert world.poll(stream, most=3) == [b"0", b"1", b"2"]
    world.leave(stream)
    assert world.committed() == 0
    again = world.member()
    assert world.poll(again, most=3) == [b"0", b"1", b"2"]
    assert world.poll(again, most=1) == [b"3"]
    world.leave(again)
    assert world.committed() == 3
    last = world.member()
    assert world.poll(last, most=1) == [b"3"]
    world.leave(last, done=True)
    assert world.committed() == 4


def test_an_expired_offset_is_reset_as_settings_say(world: World) -> None:
    """If the log no longer has a consumer's committed offset, the consumer's settings decide what
    happens. The offset is reset to the first record in the log or to the log's end, or an error is
    raised."""
    stream = world.member()
    assert world.poll(stream, most=1) == [b"0"]
    world.leave(stream, done=True)
    world.cluster.log(TP).expire(3)
    latest = world.member(auto_offset_reset="latest", enable_auto_commit=False)
    assert world.poll(latest) == []
    assert latest.position(TP) == 5
    world.leave(latest)
    none = world.member(auto_offset_reset="none", enable_auto_commit=False)
    with pytest.raises(NoOffset, match="is not in the log"):
        world.poll(none)
    world.leave(none)
    earliest = world.member()
    assert world.poll(earliest) == [b"3", b"4"]


def test_an_offset_is_reset_when_brokers_answer_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the brokers do not answer while the consumer resets an expired offset, the consumer waits,
    and resets the offset when they answer again."""
    stream = world.member()
    assert world.poll(stream, most=1) == [b"0"]
    world.leave(stream, done=True)
    world.cluster.log(TP).expire(3)
    again = world.member()

    def away(*_: Any) -> None:
        raise Unreachable("no broker answers")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryClient, "list_offsets", away)
        assert world.poll(again) == []
    assert world.poll(again) == [b"3", b"4"]


def test_without_an_offset_none_is_an_error(world: World) -> None:
    """If auto_offset_reset is "none" and there is no committed offset, the consumer raises an error
    that says what to do. As soon as an offset is set, the consumer can continue."""
    stream = world.member(auto_offset_reset="none")
    with pytest.raises(NoOffset, match="has no committed offset; seek, reset"):
        world.poll(stream)
    world.server.make("/consumers/g/offsets/t/0", b"4", None)
    world.clock.advance(2.0)
    assert world.poll(stream) == [b"4"]


def test_listeners_may_commit_before_a_partition_passes_on(world: World) -> None:
    """Without auto commit, a listener may commit an offset when a partition is revoked. The next
    owner of the partition begins at this offset."""
    told: list[tuple[str, Sequence[TopicPartition]]] = []

    def revoked(tps: Sequence[TopicPartition]) -> None:
        told.append(("revoked", tps))
        first.commit()

    first = world.member(
        enable_auto_commit=False,
        on_partitions_assigned=lambda tps: told.append(("assigned", tps)),
        on_partitions_revoked=revoked,
    )
    assert world.poll(first, most=3) == [b"0", b"1", b"2"]
    world.leave(first)
    assert told == [("assigned", [TP]), ("revoked", [TP])]
    assert world.committed() == 3
    assert world.poll(world.member()) == [b"3", b"4"]


def test_nothing_is_handed_out_after_a_lease(world: World) -> None:
    """A member's lease is the time for which the member may rely on its ZooKeeper session. A member
    that has lost its connection to ZooKeeper returns records until its lease ends, and then waits.
    When it is connected again, it continues with the next record."""
    stream = world.member()
    assert world.poll(stream, most=1) == [b"0"]
    world.coordinators[0].break_off()
    world.clock.advance(0.6 * SESSION_S)
    assert [record.value for record in stream.poll(0, max_records=1)] == [b"1"]
    world.clock.advance(0.3 * SESSION_S)
    assert stream.poll(0) == []
    world.coordinators[0].connect_again()
    assert world.poll(stream) == [b"2", b"3", b"4"]


def test_a_session_that_ended_begins_anew_at_the_committed_offset(world: World) -> None:
    """After a member's ZooKeeper session has ended, its commits raise NotOwned, and the records
    that were not committed are returned again."""
    stream = world.member(enable_auto_commit=False)
    assert world.poll(stream, most=2) == [b"0", b"1"]
    stream.commit()
    assert [record.value for record in stream.poll(0, max_records=1)] == [b"2"]
    world.server.end(world.coordinators[0].session)
    with pytest.raises(NotOwned):
        stream.commit()
    assert world.poll(stream) == [b"2", b"3", b"4"]


def test_seek_goes_where_it_says(world: World) -> None:
    """A seek can go forward and back, even within records that are already fetched, but only in
    partitions that the member owns."""
    stream = world.member()
    assert world.poll(stream, most=2) == [b"0", b"1"]
    stream.seek(TP, 4)
    assert world.poll(stream) == [b"4"]
    stream.seek(TP, 1)
    assert world.poll(stream, most=1) == [b"1"]
    with pytest.raises(UsageError):
        stream.seek(TP, -1)
    with pytest.raises(NotOwned):
        stream.seek(TopicPartition("t", 1), 0)
    world.leave(stream)
    assert world.committed() == 1


@pytest.mark.parametrize("at", [MAGIC_AT, -1])
def test_a_damaged_batch_is_not_passed_over(world: World, at: int) -> None:
    """If the next batch is damaged, every poll raises an error. Until a seek, no later record is
    returned or committed. It does not matter whether the header or the records are damaged."""
    world.produce(b"5")
    world.cluster.log(TP).batches[1][at] ^= 1
    stream = world.member()
    assert world.poll(stream, most=3) == [b"0", b"1", b"2"]
    for _ in range(3):
        with pytest.raises(CorruptBatch):
            world.poll(stream)
    stream.seek(TP, 5)
    assert world.poll(stream) == [b"5"]
    stream.seek(TP, 3)
    with pytest.raises(CorruptBatch):
        world.poll(stream)
    stream.commit()
    assert world.committed() == 3
    world.cluster.log(TP).batches[1][at] ^= 1
    assert world.poll(stream) == [b"3", b"4", b"5"]
    world.leave(stream)


def test_a_refused_partition_is_fetched_again_with_each_poll(world: World) -> None:
    """While the brokers refuse to send a partition, every poll raises their error, after a single
    fetch request. When the brokers send the partition again, every record is returned once."""
    stream = world.member()
    assert world.poll(stream, most=3) == [b"0", b"1", b"2"]
    assert world.poll(stream, most=2) == [b"3", b"4"]
    world.cluster.fetch_errors[TP] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.produce(b"5")
    for _ in range(3):
        before = world.fetchers[0].fetch_count
        with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
            stream.poll(0)
        assert world.fetchers[0].fetch_count == before + 1
    del world.cluster.fetch_errors[TP]
    assert world.poll(stream) == [b"5"]
    world.leave(stream, done=True)
    assert world.committed() == 6


def test_a_refused_partition_keeps_back_no_other(world: World) -> None:
    """While the brokers refuse to send one partition, its consumer still gets the records of its
    other partitions."""
    other = TopicPartition("t", 1)
    world.cluster.create("t", 2)
    world.cluster.fetch_errors[TP] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    stream = world.member()
    found, refused = [], 0
    for number in range(6):
        world.produce(b"%d" % number, tp=other)
        for _ in range(2):
            try:
                found += world.poll(stream, times=1)
            except KafkaError:
                refused += 1
    assert found == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert refused > 2
    assert stream.assignment() == [TP, other]


def test_another_thread_closes_it_between_two_records(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another thread closes a stream while an iteration over it waits for the next record, the
    iteration ends."""
    stream = world.member()
    assert world.poll(stream, most=1) == [b"0"]

    def closed_meanwhile(_: StreamReader) -> bool:
        closing = threading.Thread(target=stream.close)
        closing.start()
        closing.join()
        return True

    monkeypatch.setattr(StreamReader, "is_clear", property(closed_meanwhile))
    with pytest.raises(StopIteration):
        next(stream)


def test_a_listener_that_raises_keeps_no_consumer_open(world: World) -> None:
    """If a listener raises an exception while a consumer is closed, all streams and the session
    still end."""

    def refuse(_: Sequence[TopicPartition]) -> None:
        raise RuntimeError("no")

    stream = world.member(on_partitions_revoked=refuse)
    world.poll(stream, most=1)
    consumer: Any = object.__new__(Consumer)
    consumer._streams, consumer._registration = [stream], world.registrations[0]
    consumer._process = OwnProcess("consumer")
    with pytest.raises(RuntimeError):
        consumer.close()
    assert not [path for path in world.server.nodes if "/owners/t/" in path]
