from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.kafka.errors import BrokerUnreachable, ErrorCode
from skidway.producer.directory import Directory
from support.clock import ManualClock

ANSWER_WITHIN_S = 30.0
AGE_MAX_S = 300.0


class Cluster:
    """A fake client. Its brokers have every topic. While `is_away` is set, no broker answers."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.asked = 0
        self.is_away = False
        self.partitions = 1

    def metadata(self, names: Sequence[str]) -> Any:
        self.asked += 1
        if self.is_away:
            self.clock.advance(ANSWER_WITHIN_S)
            raise BrokerUnreachable("nobody answers")
        partitions = [SimpleNamespace(index=each, leader=1) for each in range(self.partitions)]
        topic = SimpleNamespace(error=ErrorCode.NONE, partitions=partitions)
        return SimpleNamespace(topics=dict.fromkeys(names, topic))

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return {name: {"max.message.bytes": "700"} for name in names}

    def pause(self, seconds: float) -> None:
        self.clock.advance(seconds)


def directory(cluster: Cluster) -> Directory:
    client: Any = cluster
    return Directory(client, batch_size=1000, age_max_s=AGE_MAX_S, clock=cluster.clock)


def test_brokers_that_are_away_hold_nobody_back_who_knows_the_topic() -> None:
    """The producer's `Directory` has metadata of topics. If the metadata of a topic is old and no
    broker answers, the directory asks only once, and then uses the old metadata. So threads that
    send to this topic can continue to fill the buffer."""
    clock = ManualClock()
    cluster = Cluster(clock)
    known = directory(cluster)
    assert known.topic("t", 60.0).limit_bytes == 700
    clock.advance(AGE_MAX_S)
    cluster.is_away = True
    began_at = clock.monotonic()
    for _ in range(100):
        assert known.topic("t", 60.0).partitions == 1
    assert (cluster.asked, clock.monotonic() - began_at) == (2, ANSWER_WITHIN_S)
    cluster.is_away, cluster.partitions = False, 5
    clock.advance(AGE_MAX_S)
    assert known.topic("t", 60.0).partitions == 5


def test_who_knows_the_topic_does_not_wait_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread asks the brokers again about a known topic, other threads use the old
    metadata of the topic and do not wait."""
    waits: list[float] = []
    held = SimpleNamespace(acquire=lambda timeout: waits.append(timeout))
    cluster = Cluster(ManualClock())
    known = directory(cluster)
    known.topic("t", 60.0)
    cluster.clock.advance(AGE_MAX_S)
    monkeypatch.setattr(known, "_lock", held)  # another thread has the lock
    assert known.topic("t", 5.0).partitions == 1
    assert waits == [0.0]
    assert cluster.asked == 1


def test_a_partition_that_was_added_is_asked_for() -> None:
    """If a message is for a partition that the producer's metadata does not list, the producer asks
    the brokers at once, even if its metadata of the topic is new."""
    cluster = Cluster(ManualClock())
    known = directory(cluster)
    assert known.topic("t", 60.0).partitions == 1
    cluster.partitions = 2
    cluster.clock.advance(1)
    assert known.topic("t", 60.0, 1).partitions == 2
