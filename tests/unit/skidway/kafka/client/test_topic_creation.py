"""Unit tests for the creation of the topics that a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from skidway.errors import Unreachable
from skidway.kafka.client import Client, Cluster, NewTopic, ensure_topics
from skidway.kafka.errors import ErrorCode, KafkaError
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster


class SlowToLearn(MemoryClient):
    """A client whose broker does not know a new topic in its first answers."""

    answers_without: int = 2

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
    """A program gets a new topic only after the broker that it asks knows the topic. The program
    creates the topic once, even if the first answers do not contain it."""
    cluster, clock = MemoryCluster(), ManualClock()
    client = SlowToLearn(cluster, clock)
    found = ensure_topics(cast(Client, client), [NewTopic("a", 3)], clock.advance)
    assert [len(found["a"].partitions), len(cluster.topics["a"].logs)] == [3, 3]


def test_an_existing_topic_stays_as_it_is() -> None:
    """If a topic exists, its number of partitions and its settings stay the same."""
    cluster, clock = MemoryCluster(), ManualClock()
    cluster.create("a", 2, {"retention.ms": "5"})
    client = cast(Client, MemoryClient(cluster, clock))
    found = ensure_topics(client, [NewTopic("a", 3), NewTopic("b", 1)], clock.advance)
    assert {name: len(topic.partitions) for name, topic in found.items()} == {"a": 2, "b": 1}
    assert cluster.topics["a"].configs == {"retention.ms": "5"}


def test_the_wait_for_a_leader_is_bounded() -> None:
    """If a topic gets no leader within the time limit, the program gets an error of one sentence
    that names the topic."""
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
    """If the cluster refuses a new topic permanently, the program gets the error at once."""
    client = cast(Client, Refusing(MemoryCluster(), ManualClock()))
    with pytest.raises(KafkaError, match="no"):
        ensure_topics(client, [NewTopic("a", 1)], ManualClock().advance)
