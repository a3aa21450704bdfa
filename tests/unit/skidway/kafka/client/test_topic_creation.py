"""Tests the creation of topics that a program needs, and the waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from skidway.errors import Unreachable
from skidway.kafka.client import (
    Broker,
    Client,
    Cluster,
    NewTopic,
    ensure_topics,
    wait_until_known,
)
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster


class SlowToLearn(MemoryClient):
    """A client whose broker says in its first two Metadata answers that the topics do not exist. It
    records the cluster's answers to requests that create a topic."""

    answers_without: int = 2

    def __init__(self, cluster: MemoryCluster, clock: ManualClock) -> None:
        super().__init__(cluster, clock)
        self.created: list[ErrorCode | None] = []

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, KafkaError | None]:
        found = super().create_topics(topics)
        self.created += [None if each is None else each.code for each in found.values()]
        return found

    def metadata(self, topics: Sequence[str] | None = None) -> Cluster:
        found = super().metadata(topics)
        if self.answers_without == 0:
            return found
        self.answers_without -= 1
        unknown = {
            name: replace(topic, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=())
            for name, topic in found.topics.items()
        }
        return replace(found, topics=unknown)


def test_a_topic_is_there_once_it_was_created() -> None:
    """After `ensure_topics` has created a topic, it waits until the broker that it asks lists the
    topic. While the broker still says that the topic does not exist, `ensure_topics` tries again to
    create it. The cluster then says that the topic exists, which is no error."""
    cluster, clock = MemoryCluster(), ManualClock()
    client = SlowToLearn(cluster, clock)
    found = ensure_topics(cast(Client, client), [NewTopic("a", 3)], clock.advance)
    assert [len(found["a"].partitions), len(cluster.topics["a"].logs)] == [3, 3]
    assert client.created == [None, ErrorCode.TOPIC_ALREADY_EXISTS]


def test_an_existing_topic_stays_as_it_is() -> None:
    """If a topic already exists, `ensure_topics` changes neither its number of partitions nor its
    settings."""
    cluster, clock = MemoryCluster(), ManualClock()
    cluster.create("a", 2, {"retention.ms": "5"})
    client = cast(Client, MemoryClient(cluster, clock))
    found = ensure_topics(client, [NewTopic("a", 3), NewTopic("b", 1)], clock.advance)
    assert {name: len(topic.partitions) for name, topic in found.items()} == {"a": 2, "b": 1}
    assert cluster.topics["a"].configs == {"retention.ms": "5"}


def test_the_wait_for_a_leader_is_bounded() -> None:
    """If a topic has no leader within 30 s, `ensure_topics` raises an error that names the
    topic."""
    cluster, clock = MemoryCluster(), ManualClock()
    cluster.create("a", 0)
    client = cast(Client, MemoryClient(cluster, clock))
    with pytest.raises(Unreachable, match="Topic a has no leader after 30 s"):
        ensure_topics(client, [NewTopic("a", 1)], clock.advance)


class Refusing(MemoryClient):
    """A client whose cluster refuses new topics."""

    code = ErrorCode.POLICY_VIOLATION

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, KafkaError | None]:
        return {each.name: KafkaError(self.code, "no") for each in topics}


def test_a_refusal_of_the_cluster_reaches_the_caller() -> None:
    """If the cluster refuses to create a topic, and the error is not retriable, `ensure_topics`
    raises this error at once."""
    client = cast(Client, Refusing(MemoryCluster(), ManualClock()))
    with pytest.raises(KafkaError, match="no"):
        ensure_topics(client, [NewTopic("a", 1)], ManualClock().advance)


class Brokers(MemoryClient):
    """A client of a cluster with several brokers. Each broker lists a topic only from a time on,
    or never answers (None)."""

    def __init__(self, clock: ManualClock, knows_from: Sequence[float | None]) -> None:
        super().__init__(MemoryCluster(), clock)
        self.cluster.create("a", 3)
        self._begin, self._knows_from = clock.monotonic(), knows_from

    def metadata(
        self, topics: Sequence[str] | None = None, broker: Broker | None = None
    ) -> Cluster:
        brokers = {number: Broker(number, "b", 9092) for number in range(len(self._knows_from))}
        found = replace(super().metadata(topics), brokers=brokers)
        if broker is None:
            return found
        knows_from = self._knows_from[broker.id]
        if knows_from is None:
            raise BrokerUnreachable("no answer")
        knows = self.clock.monotonic() - self._begin >= knows_from
        return found if knows else replace(found, topics={})


@pytest.mark.parametrize(
    ("partitions", "knows_from", "waited_s", "late"),
    [
        (3, [0, 0], 0, []),
        (3, [0, 2.0, 0.5], 2, []),
        (3, [None, 1.0], 1, []),
        (3, [0, 60.0], 10, [1]),
        (4, [0], 10, [0]),
    ],
    ids=["known", "late", "dead", "too late", "too few partitions"],
)
def test_a_new_topic_is_waited_for_at_each_broker(
    partitions: int, knows_from: list[float | None], waited_s: float, late: list[int]
) -> None:
    """A new topic or partition is waited for until every broker that answers lists it, for at most
    10 s. The brokers that do not list it then are returned."""
    clock = ManualClock()
    client, begin = Brokers(clock, knows_from), clock.monotonic()
    found = wait_until_known(cast(Client, client), "a", partitions, clock.advance)
    assert [broker.id for broker in found] == late
    assert waited_s <= clock.monotonic() - begin < waited_s + 0.3
