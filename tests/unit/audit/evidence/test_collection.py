"""Tests how the collector reads the audit topics. The tests use a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.collector import collector
from skidway.audit.evidence import collection as collection_module
from skidway.audit.evidence.blocked import RETRY_S
from skidway.audit.evidence.collection import (
    GONE_AFTER_S,
    REFRESH_S,
    REFUSED_AFTER_S,
    Collection,
)
from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.evidence.refused import Reason
from skidway.audit.settings import AuditSettings
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Delta, Heartbeat, Sender, Tier
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Fetched
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.errors import ErrorCode, OffsetOutOfRange
from skidway.kafka.types import TopicPartition
from skidway.service import Shutdown
from support.audit_senders import LOGS
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.promises import promise
from support.undecodable import filled

OWN, MIRRORED = TopicPartition(TOPIC, 0), TopicPartition(f"dc1.{TOPIC}", 0)
MAGIC_AT = 16  # the position of a header's field that the fetcher checks


def _publish(cluster: MemoryCluster, tp: TopicPartition, *numbers: int) -> None:
    sender = Sender(Tier.BROKER, "dc1", "a", "h", 1)
    values = [
        messages.encode(
            Delta(sender, n, 5, counts=(Count(LOGS, 7, 0, 100, 1, 2, 3, previous=n - 1),))
        )
        for n in numbers
    ]
    times = np.zeros(len(values), np.int64)
    cluster.log(tp).append(columns.encode(pa.array(values, pa.binary()), times))


def _collection(cluster: MemoryCluster, ledger: Ledger, clock: ManualClock) -> Collection:
    return Collection(MemoryClient(cluster, clock), MemoryFetcher(cluster), ledger, clock)


def _counted(ledger: Ledger) -> int:
    tallies = ledger.evidence().topic(LOGS).tallies.get((0, 100), {})
    return sum(x.sums.count for by_sender in tallies.values() for x in by_sender.values())


def test_own_and_mirrored_topics_are_read_and_nothing_counts_twice() -> None:
    """The collector reads the audit topic of its own cluster and mirrored audit topics. A message
    that is in several of these topics is counted once."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    cluster.create("other")
    _publish(cluster, OWN, 1, 2)
    collection = _collection(cluster, ledger, clock)
    assert collection.turn(0) == 1
    cluster.create(MIRRORED.topic)
    _publish(cluster, MIRRORED, 1, 2, 3)
    clock.advance(10)
    assert collection.turn(0) == 1
    assert _counted(ledger) == 3
    assert collection.partitions == 2


def test_catching_up_takes_all_that_is_there_now() -> None:
    """`catch_up` reads all messages that have arrived since its last call, and returns at once if
    there are none."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    collection = _collection(cluster, ledger, clock)
    collection.catch_up()
    for name in (TOPIC, MIRRORED.topic):
        cluster.create(name)
    for numbers in ((1, 2), (3,)):
        _publish(cluster, OWN, *numbers)
        _publish(cluster, MIRRORED, *numbers)
        collection.catch_up()
        assert _counted(ledger) == numbers[-1]


def test_a_restarted_collector_reads_on_where_the_store_ends() -> None:
    """A restarted collector continues to read from the position in its store. After it has read
    further messages, the store has the position after them, with the id of the topic."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    _publish(cluster, OWN, 1)
    _collection(cluster, ledger, clock).turn(0)
    _publish(cluster, OWN, 2)
    assert _collection(cluster, ledger, clock).turn(0) == 1
    assert _counted(ledger) == 2
    topic_id = cluster.topics[TOPIC].topic_id.hex
    assert ledger.positions() == {OWN: Position(2, topic_id)}


def test_an_audit_topic_made_again_is_read_from_its_beginning() -> None:
    """If the audit topic was deleted and created again, the collector reads it from offset 0. The
    messages that it read before stay in its store."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    _publish(cluster, OWN, 1, 2)
    collection = _collection(cluster, ledger, clock)
    collection.turn(0)
    cluster.create(TOPIC)
    _publish(cluster, OWN, 3)
    restarted = _collection(cluster, ledger, clock)
    restarted.turn(0)
    restarted.turn(0)
    assert _counted(ledger) == 3


@promise("6 audit topic made again")
@pytest.mark.parametrize("restarted", [True, False])
def test_an_audit_topic_made_again_and_longer_than_before_loses_no_head(restarted: bool) -> None:
    """If the audit topic was deleted and created again, the collector reads the new topic from its
    start. This is true even if the new topic already has offsets beyond the collector's position in
    the old one, because the collector compares the topic ids."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    _publish(cluster, OWN, 1, 2)
    collection = _collection(cluster, ledger, clock)
    collection.turn(0)
    cluster.create(TOPIC)
    _publish(cluster, OWN, 3)
    _publish(cluster, OWN, 4)
    _publish(cluster, OWN, 5)
    clock.advance(10)
    if restarted:
        collection = _collection(cluster, ledger, clock)
    collection.turn(0)
    assert _counted(ledger) == 5
    assert ledger.positions()[OWN].topic_id == cluster.topics[TOPIC].topic_id.hex


class Ending:
    """Stands for the object that tells the collector to end. `requested` is true when `is_over`
    returns true. `wait` does not wait: it calls `meanwhile`."""

    def __init__(self, is_over: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
        self._is_over, self._meanwhile = is_over, meanwhile
        self.waits_s: list[float] = []

    @property
    def requested(self) -> bool:
        return self._is_over()

    def wait(self, timeout_s: float) -> None:
        self.waits_s.append(timeout_s)
        self._meanwhile()

    def fileno(self) -> int:
        return -1


def test_an_audit_topic_that_vanishes_while_it_is_out_of_range_is_no_accident(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the audit topic is deleted at the moment when the collector asks for an offset that the
    topic does not have, the collector does not end with an error. It waits and tries again."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    polled = 0

    def out_of_range_once(fetcher: MemoryFetcher, timeout_ms: int, *wake: int) -> list[Fetched]:
        nonlocal polled
        polled += 1
        if polled == 1:
            del cluster.topics[TOPIC]
            raise OffsetOutOfRange(OWN, 7, 0, 1)
        return poll(fetcher, timeout_ms, *wake)

    def made_again() -> None:
        cluster.create(TOPIC)
        _publish(cluster, OWN, 1)

    def client(*_: object, **__: object) -> AbstractContextManager[MemoryClient]:
        return nullcontext(MemoryClient(cluster, clock))

    poll = MemoryFetcher.poll
    monkeypatch.setattr(MemoryFetcher, "poll", out_of_range_once)
    monkeypatch.setattr(KafkaConnection, "client", client)
    monkeypatch.setattr(collector, "Fetcher", lambda _: MemoryFetcher(cluster))
    settings = AuditSettings(bootstrap_servers="a:1", store_dir=tmp_path)
    loop = collector._Loop(settings, collector._Expected(settings, clock), ledger, clock)
    ending = Ending(lambda: polled > 1, made_again)
    loop.until(cast(Shutdown, ending))
    assert ending.waits_s == [collector.RETRY_S]
    assert _counted(ledger) == 1


def test_a_slow_ledger_gets_many_records_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """If each transaction of the ledger (the collector's store) takes long, the collector passes
    many records to the ledger at once. Until the next transaction, arriving records are collected
    in memory. The next transaction begins at the latest when the collector next asks the cluster
    for new topics."""
    cluster, clock, ledger, taken = MemoryCluster(), ManualClock(), Ledger(), list[int]()
    cluster.create(TOPIC)
    take = ledger.take_records

    def slowly(records: Iterable[Any], *others: Any) -> int:
        found = list(records)
        taken.append(len(found))
        clock.advance(1.0)
        return take(found, *others)

    monkeypatch.setattr(ledger, "take_records", slowly)
    collection = _collection(cluster, ledger, clock)
    for number in range(1, 9):
        _publish(cluster, OWN, number)
        collection.turn(0)
        clock.advance(1.0)
    assert (taken, _counted(ledger)) == ([1, 3], 4)
    collection.take()
    assert _counted(ledger) == 8
    collection.take()
    assert sum(taken) == 8


def _say(cluster: MemoryCluster, agent: str, time_ms: int = 5) -> None:
    value = messages.encode(Heartbeat(Sender(Tier.AGENT, "dc1", agent, "app1", 1), 0, time_ms))
    cluster.log(OWN).append(columns.encode(pa.array([value], pa.binary()), np.zeros(1, np.int64)))


@promise("6 audit topic made again")
def test_offsets_of_an_audit_topic_made_again_are_no_offsets_of_the_old_one() -> None:
    """If the audit topic was deleted and created again, the collector reads no record of the new
    topic before it knows the topic's new id. Otherwise the offsets of the new topic would count as
    offsets of the old topic. The new offsets are lower, so an agent would seem to have begun too
    early, and perhaps before another agent that in fact began first."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    collection = _collection(cluster, ledger, clock)
    for time_ms, agent in enumerate("778"):
        _say(cluster, agent, time_ms)
        collection.turn(0)
    old = cluster.topics[TOPIC].topic_id.hex
    cluster.create(TOPIC)
    _say(cluster, "8", 9)
    for _ in range(3):
        collection.turn(0)
    collection.take()
    found = ledger.evidence().offsets
    offsets = {agent: {log.topic_id: x for log, x in logs.items()} for agent, logs in found.items()}
    new = cluster.topics[TOPIC].topic_id.hex
    assert offsets == {7: {old: (0, 1)}, 8: {old: (2, 2), new: (0, 0)}}


@promise("6 audit topic made again")
@pytest.mark.parametrize("restarted", [True, False])
def test_an_answer_without_a_topic_id_does_not_hide_a_new_topic(
    monkeypatch: pytest.MonkeyPatch, restarted: bool
) -> None:
    """A broker may answer without the id of the audit topic. The collector then keeps the id that
    it knows. If the topic is deleted and created again, the collector reads all records of the new
    topic."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    cluster.create(TOPIC)
    _publish(cluster, OWN, 1, 2)
    collection = _collection(cluster, ledger, clock)
    collection.turn(0)
    with monkeypatch.context() as patch:
        patch.setattr(collection_module, "_id", lambda _: "")
        if restarted:
            collection = _collection(cluster, ledger, clock)
        clock.advance(10)
        _publish(cluster, OWN, 3)
        collection.turn(0)
        collection.take()
    cluster.create(TOPIC)
    for number in (4, 5, 6, 7):
        _publish(cluster, OWN, number)
    clock.advance(10)
    collection.turn(0)
    collection.take()
    assert _counted(ledger) == 7


def _damage(cluster: MemoryCluster, tp: TopicPartition, index: int, at: int = -1) -> None:
    """Changes the byte at position `at` (by default the last byte) of the partition's batch number
    `index`. A second call with the same arguments restores the byte."""
    cluster.log(tp).batches[index][at] ^= 1


class Site:
    """A cluster with two audit topics. The mirrored topic has three batches of one message each.
    The second batch is damaged."""

    def __init__(self) -> None:
        self.cluster, self.clock, self.ledger = MemoryCluster(), ManualClock(), Ledger()
        for name in (TOPIC, MIRRORED.topic):
            self.cluster.create(name)
        for number in (1, 2, 3):
            _publish(self.cluster, MIRRORED, number)
        _damage(self.cluster, MIRRORED, 1)
        self.collection = _collection(self.cluster, self.ledger, self.clock)

    def turn(self, after_s: float = 0.0) -> None:
        """Lets `after_s` seconds pass, and then lets the collector read and store all messages that
        it can read."""
        self.clock.advance(after_s)
        for _ in range(3):
            self.collection.turn(0)
            self.clock.advance(1.0)
        self.collection.take()

    def position(self, tp: TopicPartition) -> int:
        return self.ledger.positions()[tp].next_offset


@pytest.fixture
def site() -> Site:
    return Site()


@promise("6 damaged audit topic")
def test_a_damaged_batch_stops_only_its_partition(site: Site) -> None:
    """If a batch of an audit topic is damaged, the collector stores the messages before this batch,
    and none of the messages after it. It continues to read the other audit topics. It has not
    caught up, and says which partition it cannot read, and from which offset on."""
    _publish(site.cluster, OWN, 11)
    site.turn()
    _publish(site.cluster, OWN, 12)
    site.turn()
    assert (site.position(MIRRORED), site.position(OWN), _counted(site.ledger)) == (1, 2, 3)
    assert not site.collection.has_caught_up
    (said,) = site.collection.blocked.values()
    assert "dc1._skidway_audit-0 cannot be read at offset 1" in str(said)


@promise("6 damaged audit topic")
def test_a_batch_that_its_writer_has_garbled_stops_nobody(site: Site) -> None:
    """If the CRC of a batch is right, but its records cannot be decoded, they are what somebody has
    written: the collector reads on, also in a topic that is new, and names them as no message."""
    site.turn()
    batches = site.cluster.log(MIRRORED).batches
    batches[1] = filled(bytes(batches[1]))
    site.turn(RETRY_S)
    assert (site.position(MIRRORED), site.collection.has_caught_up) == (3, True)
    assert not site.collection.blocked
    assert not site.ledger.rebuilding
    [found] = site.ledger.refused()
    assert (found.reason, found.topic, found.partition) == (Reason.NO_MESSAGE, *MIRRORED)
    assert (found.count, found.first, found.last) == (1, 1, 1)


@promise("6 damaged audit topic")
@pytest.mark.parametrize("ends", ["repaired", "expired", "made again"])
def test_a_damaged_batch_is_tried_again(site: Site, ends: str) -> None:
    """The collector tries again and again to read a damaged batch. If the batch is intact later,
    for example because another broker leads the partition, the collector continues to read, and
    counts every message once. It also continues if the batch has expired, or if the topic was
    deleted and created again."""
    site.turn()
    site.turn(RETRY_S)
    assert (site.position(MIRRORED), len(site.collection.blocked)) == (1, 1)
    if ends == "repaired":
        _damage(site.cluster, MIRRORED, 1)
    elif ends == "expired":
        site.cluster.log(MIRRORED).expire(2)
    else:
        site.cluster.create(MIRRORED.topic)
        _publish(site.cluster, MIRRORED, 2, 3)
    for _ in range(3):
        site.turn(RETRY_S)
    assert _counted(site.ledger) == (2 if ends == "expired" else 3)
    assert (site.collection.blocked, site.collection.has_caught_up) == ({}, True)


@promise("6 damaged audit topic")
def test_a_damaged_batch_at_the_end_of_its_partition_is_not_overlooked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the last batch of an audit topic is damaged, the collector has fetched the partition to
    its end. Nevertheless, the collector does not count as caught up, because it could not read this
    batch."""
    cluster, clock, ledger = MemoryCluster(), ManualClock(), Ledger()
    take = ledger.take_records

    def slowly(*values: Any) -> int:
        clock.advance(1.0)
        return take(*values)

    monkeypatch.setattr(ledger, "take_records", slowly)
    cluster.create(TOPIC)
    _publish(cluster, OWN, 1)
    collection = _collection(cluster, ledger, clock)
    collection.turn(0)
    assert collection.has_caught_up
    cluster.create(MIRRORED.topic)
    _publish(cluster, MIRRORED, 1)
    _damage(cluster, MIRRORED, 0)
    clock.advance(REFRESH_S)
    collection.turn(0)
    assert (list(collection.blocked), collection.has_caught_up) == ([MIRRORED], False)


@promise("6 damaged audit topic")
def test_a_batch_with_a_damaged_header_is_tried_again(site: Site) -> None:
    """If the header of a batch is so damaged that the client cannot find the batch's end, the
    collector stops reading the partition, as for any damaged batch. It continues to read when the
    batch is intact."""
    _damage(site.cluster, MIRRORED, 1)
    _damage(site.cluster, MIRRORED, 1, MAGIC_AT)
    site.turn()
    site.turn(RETRY_S)
    assert (site.position(MIRRORED), list(site.collection.blocked)) == (1, [MIRRORED])
    _damage(site.cluster, MIRRORED, 1, MAGIC_AT)
    for _ in range(2):
        site.turn(RETRY_S)
    assert (_counted(site.ledger), site.collection.blocked) == (3, {})


@promise("6 damaged audit topic")
def test_several_damaged_batches_are_found_one_after_the_other(site: Site) -> None:
    """If both audit topics have a damaged batch, the collector stores the messages before each of
    these two batches. If one of the batches is repaired, the collector reads on in this partition,
    up to its next damaged batch."""
    for number in (11, 12):
        _publish(site.cluster, OWN, number)
    _damage(site.cluster, OWN, 1)
    _damage(site.cluster, MIRRORED, 2)
    site.turn()
    assert (site.position(MIRRORED), site.position(OWN)) == (1, 1)
    _damage(site.cluster, MIRRORED, 1)
    for _ in range(2):
        site.turn(RETRY_S)
    assert (site.position(MIRRORED), site.position(OWN), _counted(site.ledger)) == (2, 1, 3)
    assert set(site.collection.blocked) == {OWN, MIRRORED}


@promise("6 damaged audit topic")
def test_a_partition_that_the_brokers_refuse_stops_no_other(site: Site) -> None:
    """If the brokers refuse to send a partition of an audit topic, the collector reads the other
    partitions, and reports the refused one. From time to time it tries to read this partition
    again. As soon as the brokers send the partition, the collector no longer reports it, even if
    the partition has no new message."""
    _damage(site.cluster, MIRRORED, 1)
    site.turn()
    assert site.collection.has_caught_up
    site.cluster.fetch_errors[MIRRORED] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    site.turn()
    _publish(site.cluster, OWN, 11)
    site.turn()
    assert (site.position(OWN), list(site.collection.blocked)) == (1, [MIRRORED])
    assert not site.collection.has_caught_up
    site.turn(RETRY_S)
    assert list(site.collection.blocked) == [MIRRORED]
    site.cluster.fetch_errors.clear()
    site.turn(RETRY_S)
    assert (site.collection.blocked, site.collection.has_caught_up) == ({}, True)


@promise("6 damaged audit topic")
def test_a_command_that_cannot_read_everything_ends_with_an_error(site: Site) -> None:
    """A command that judges from the messages in the audit topics gives no verdict, but ends with
    an error, if it cannot read all of these messages."""
    with pytest.raises(CorruptBatch, match="cannot be read at offset 1"):
        site.collection.catch_up()


@promise("6 damaged audit topic")
@pytest.mark.parametrize("base_offset", [2, 77])
def test_a_damaged_header_moves_no_position(site: Site, base_offset: int) -> None:
    """If the base offset in a damaged batch is wrong, too, the collector's position stays at the
    offset at which the batch should begin. When the batch is intact again, no message is
    missing."""
    whole = bytes(site.cluster.log(MIRRORED).batches[1])
    site.cluster.log(MIRRORED).batches[1][:8] = base_offset.to_bytes(8)
    site.turn()
    assert (site.position(MIRRORED), _counted(site.ledger)) == (1, 1)
    site.turn(RETRY_S)
    assert site.position(MIRRORED) == 1
    site.cluster.log(MIRRORED).batches[1][:] = whole
    _damage(site.cluster, MIRRORED, 1)
    for _ in range(2):
        site.turn(RETRY_S)
    assert (_counted(site.ledger), site.collection.blocked) == (3, {})


@promise("6 damaged audit topic")
def test_any_number_of_damaged_topics_stops_no_other(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If many audit topics have damaged batches, one call of `take` notices all these batches, and
    stores all messages that can be read. So the collector continues to read a topic without damage,
    even if each transaction takes as long as the time after which the collector tries a damaged
    batch again."""
    take = site.ledger.take_records

    def slowly(*values: Any) -> int:
        site.clock.advance(RETRY_S)
        return take(*values)

    monkeypatch.setattr(site.ledger, "take_records", slowly)
    for number in range(5):
        tp = TopicPartition(f"site{number}.{TOPIC}", 0)
        site.cluster.create(tp.topic)
        _publish(site.cluster, tp, 1)
        _damage(site.cluster, tp, 0)
    for number in (21, 22, 23):
        _publish(site.cluster, OWN, number)
        site.turn()
    assert (site.position(OWN), _counted(site.ledger), len(site.collection.blocked)) == (3, 4, 6)


@promise("6 damaged audit topic")
def test_a_log_that_became_shorter_is_no_longer_blocked(site: Site) -> None:
    """If the log of a blocked partition now ends before the damaged batch, the collector has read
    the whole partition, and the partition is not blocked any more. A partition is blocked while the
    collector cannot read it."""
    site.turn()
    log = site.cluster.log(MIRRORED)
    log.batches, log.end = log.batches[:1], 1
    for _ in range(2):
        site.turn(RETRY_S)
    assert (site.collection.blocked, site.collection.has_caught_up) == ({}, True)


@promise("6 damaged audit topic")
def test_a_partition_that_the_brokers_cannot_send_now_is_named(site: Site) -> None:
    """The brokers may answer that they cannot send a partition now, for example because its log is
    damaged. If they give this answer for longer than REFUSED_AFTER_S, the collector reports the
    partition, and does not count as caught up. This is so although it has read the partition up to
    the last end offset that it knows."""
    _damage(site.cluster, MIRRORED, 1)
    site.turn()
    assert site.collection.has_caught_up
    refusals = cast(MemoryFetcher, site.collection._fetcher).refusals
    refusals[MIRRORED] = site.clock.monotonic(), "the broker answered KAFKA_STORAGE_ERROR"
    site.turn()
    assert site.collection.has_caught_up
    site.turn(REFUSED_AFTER_S)
    (said,) = site.collection.blocked.values()
    assert str(said).endswith("cannot be read: the broker answered KAFKA_STORAGE_ERROR")
    assert not site.collection.has_caught_up
    del refusals[MIRRORED]
    site.turn()
    assert (site.collection.blocked, site.collection.has_caught_up) == ({}, True)


def test_a_topic_that_was_deleted_is_no_longer_blocked(site: Site) -> None:
    """If an audit topic with a damaged batch is deleted, the collector forgets the topic's
    partition, and no longer reports it as unreadable."""
    _publish(site.cluster, OWN, 11)
    site.turn()
    assert list(site.collection.blocked) == [MIRRORED]
    del site.cluster.topics[MIRRORED.topic]
    for _ in range(3):
        site.turn(GONE_AFTER_S)
    assert (site.collection.blocked, site.collection.partitions) == ({}, 1)


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("error", [None, ErrorCode.LEADER_NOT_AVAILABLE])
def test_a_restarted_collector_waits_for_a_topic_that_is_not_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, error: ErrorCode | None, is_gone: bool
) -> None:
    """A cluster may leave out an audit topic for a moment, or name it without its partitions. If a
    restarted collector has read this topic before, it counts as caught up only when it can read the
    topic again, or when the cluster has left out the topic for a minute (GONE_AFTER_S)."""
    _damage(site.cluster, MIRRORED, 1)
    _publish(site.cluster, OWN, 11)
    site.turn()
    metadata = MemoryClient.metadata

    def without_topic(client: MemoryClient, *names: Any) -> Any:
        found = metadata(client, *names)
        topics = {**found.topics}
        missing = topics.pop(MIRRORED.topic)
        if error is not None:
            topics[MIRRORED.topic] = replace(missing, error=error, partitions=())
        return replace(found, topics=topics)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryClient, "metadata", without_topic)
        site.collection = _collection(site.cluster, site.ledger, site.clock)
        site.turn()
        assert not site.collection.has_caught_up
        if is_gone:
            for _ in range(2):
                site.turn(GONE_AFTER_S)
            assert site.collection.has_caught_up is (error is None)
    for _ in range(2):
        site.turn(REFRESH_S)
    assert site.collection.has_caught_up
    assert _counted(site.ledger) == 4


def test_a_command_ends_although_another_topic_is_busy(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command reads all audit topics to their ends. If the brokers send no message of one of
    these topics for too long, the command ends with an error, even if messages of another topic
    arrive all the time."""
    _damage(site.cluster, MIRRORED, 1)
    poll = MemoryFetcher.poll

    def busy(fetcher: MemoryFetcher, timeout_ms: int, *wake: int) -> list[Fetched]:
        site.clock.advance(0.5)
        _publish(site.cluster, OWN, len(site.cluster.log(OWN).batches) + 11)
        silent = fetcher.positions.pop(MIRRORED)
        found = poll(fetcher, timeout_ms, *wake)
        fetcher.positions[MIRRORED] = silent
        return found

    monkeypatch.setattr(MemoryFetcher, "poll", busy)
    with pytest.raises(Unreachable):
        site.collection.catch_up()
