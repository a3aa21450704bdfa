"""A parked fetch is a Fetch request whose answer the broker delays. If there is too little data for
a fetch, the broker parks the fetch until the fetch's partitions together have min_bytes, or until
the fetch expires."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.api.fetch import DelayedFetch, enough
from skidway.broker.partitions.replica import Replica
from skidway.kafka.protocol.fetch_request import Fetch, FetchTarget
from skidway.kafka.protocol.pieces import FileSlice
from skidway.kafka.types import TopicPartition
from support.batches import PARTITION, batch, open_in, put
from support.hosting import World
from support.promises import promise

OTHER = TopicPartition("other", 0)
BATCH_BYTES = len(batch())


class Exchange:
    """A stand-in for a Fetch request that waits for its answer. Counts the answers that it gets."""

    correlation_id, version = 1, 11

    def __init__(self) -> None:
        self.answers = 0
        self.pieces: list[Any] = []
        self.connection = self
        self.closed = False

    def may_topic(self, name: str) -> bool:
        return True

    def send(self, pieces: Any) -> None:
        self.answers += 1
        self.pieces = list(pieces)


class Broker:
    """A stand-in for those parts of the broker that a fetch needs, with two partitions."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.partitions = self.world.hosted
        (directory / "other-0").mkdir()
        log = open_in(directory / "other-0")
        self.other = Replica(OTHER, uuid.uuid4(), log, 0)
        self.partitions.host(self.other)
        self.settings = self
        self.counts = self
        self.fetch_bytes_max = 1 << 20
        self.fetched_bytes = 0
        self.exchange = Exchange()

    def why_not_served(self, topic: str, partition: int) -> int:
        return 6

    def parked(self, min_bytes: int, *partitions: TopicPartition) -> DelayedFetch:
        wanted = [FetchTarget(*each, 0, 1 << 20) for each in partitions]
        request, found = Fetch(wanted, 1000, min_bytes, 1 << 20), {}
        assert not enough(self, self.exchange, request, found)  # type: ignore[arg-type]
        delayed = DelayedFetch(self, self.exchange, request, found)  # type: ignore[arg-type]
        self.world.purgatory.watch(delayed, delayed.partitions, 1.0)
        return delayed

    def grow(self, replica: Replica) -> None:
        """Appends and flushes a batch. Flushing moves the partition's high watermark. Then the
        broker checks whether it can answer its parked (delayed) fetches."""
        put(replica.log, batch())
        self.partitions.touch(replica)
        self.partitions.write()
        if not replica.log.flush_running:
            self.partitions.flush_all(lambda: None)
        self.world.worker.finish()


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_what_comes_to_several_partitions_adds_up(broker: Broker) -> None:
    """A parked fetch (a fetch whose answer the broker delays) is answered once, as soon as its
    partitions have min_bytes together."""
    broker.parked(3 * BATCH_BYTES, PARTITION, OTHER)
    broker.grow(broker.world.replica)
    broker.grow(broker.other)
    assert broker.exchange.answers == 0
    broker.grow(broker.world.replica)
    assert broker.exchange.answers == 1
    broker.grow(broker.other)
    assert broker.exchange.answers == 1


@promise("4 watermark")
def test_what_is_not_flushed_is_not_given(broker: Broker) -> None:
    """A fetch returns only records below the high watermark, even if its waiting time is over and
    the broker must answer at once."""
    delayed = broker.parked(BATCH_BYTES, PARTITION)
    broker.world.produce(b"a")
    delayed.expire()
    assert not any(isinstance(each, FileSlice) for each in broker.exchange.pieces)
    broker.world.worker.finish()
    delayed.expire()
    assert any(isinstance(each, FileSlice) for each in broker.exchange.pieces)


def test_what_was_there_before_counts(broker: Broker) -> None:
    """Records that were in a partition before the broker parked a fetch (delayed its answer) count
    towards the min_bytes of the fetch."""
    broker.grow(broker.world.replica)
    broker.parked(2 * BATCH_BYTES, PARTITION, OTHER)
    broker.grow(broker.other)
    assert broker.exchange.answers == 1


def test_what_was_found_counts_once(broker: Broker) -> None:
    """Records that were in a partition when the broker parked a fetch (delayed its answer) are not
    counted a second time when the partition grows."""
    broker.grow(broker.world.replica)
    broker.parked(4 * BATCH_BYTES, PARTITION)
    broker.grow(broker.world.replica)
    broker.grow(broker.world.replica)
    assert broker.exchange.answers == 0
    broker.grow(broker.world.replica)
    assert broker.exchange.answers == 1


def test_only_the_partition_that_changed_is_looked_at(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When one partition of a parked fetch (a fetch whose answer the broker delays) grows, the
    broker does not look at the fetch's other partitions."""
    broker.grow(broker.other)
    broker.parked(10 * BATCH_BYTES, PARTITION, OTHER)
    with monkeypatch.context() as patched:
        patched.setattr(broker.other, "log", None)
        broker.grow(broker.world.replica)
    assert broker.exchange.answers == 0


def test_a_partition_asked_for_twice_counts_twice(broker: Broker) -> None:
    """If a partition is named twice in a fetch, its bytes count twice towards min_bytes, because
    the answer will contain these bytes twice."""
    broker.parked(2 * BATCH_BYTES, PARTITION, PARTITION)
    broker.grow(broker.world.replica)
    assert broker.exchange.answers == 1


def test_a_partition_that_is_dropped_is_told_at_once(broker: Broker) -> None:
    """When the broker stops serving a partition of a parked fetch (a fetch whose answer the broker
    delays), the broker answers the fetch at once. So the client gets the error without a delay."""
    broker.parked(1 << 20, PARTITION, OTHER)
    broker.partitions.drop(OTHER)
    assert broker.exchange.answers == 1


def test_a_client_that_has_gone_is_forgotten(broker: Broker) -> None:
    """When a client disconnects, its parked fetch (a fetch whose answer the broker delays) is
    forgotten and never answered."""
    broker.parked(1 << 20, PARTITION)
    broker.exchange.closed = True
    broker.grow(broker.world.replica)
    assert broker.exchange.answers == 0
    assert len(broker.world.purgatory) == 0
