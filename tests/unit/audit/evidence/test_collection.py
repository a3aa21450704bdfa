"""Tests how the collector reads the audit topics. The tests use a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.collector import collector
from skidway.audit.evidence.collection import Collection
from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.settings import AuditSettings
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Delta, Sender, Tier
from skidway.kafka import columns
from skidway.kafka.client import Fetched
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.types import TopicPartition
from skidway.service import Shutdown
from support.audit_senders import LOGS
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.promises import promise

OWN, MIRRORED = TopicPartition(TOPIC, 0), TopicPartition(f"dc1.{TOPIC}", 0)


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
    assert collection.turn(0) == 2
    cluster.create(MIRRORED.topic)
    _publish(cluster, MIRRORED, 1, 2, 3)
    clock.advance(10)
    assert collection.turn(0) == 3
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
    """A restarted collector continues to read from the position in its store. It stores messages
    and the position after them in one transaction."""
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
    monkeypatch.setattr(collector, "Client", client)
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
    in memory. This transaction begins at the latest when the collector next asks the cluster for
    new topics."""
    cluster, clock, ledger, taken = MemoryCluster(), ManualClock(), Ledger(), list[int]()
    cluster.create(TOPIC)
    take = ledger.take

    def slowly(values: Iterable[bytes], *others: Any) -> None:
        found = list(values)
        taken.append(len(found))
        clock.advance(1.0)
        take(found, *others)

    monkeypatch.setattr(ledger, "take", slowly)
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
