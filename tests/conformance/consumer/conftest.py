"""A broker, its ZooKeeper, and a topic with the records that were produced to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from skidway.kafka.client import Client, NewTopic
from skidway.kafka.types import TopicPartition
from skidway.producer import Producer
from support.brokers import SkidwayBroker, own_broker, skidway_broker
from support.kafka import topic_name
from support.processes import eventually

__all__ = ["own_broker", "skidway_broker"]


@dataclass
class Topic:
    """A topic, and all records that were produced to the topic and acknowledged by the broker."""

    bootstrap: str
    zookeeper: str
    name: str
    client: Client
    producer: Producer
    records: dict[tuple[int, int], str] = field(default_factory=dict)

    def produce(self, count: int, partition: int | None = None) -> None:
        start = len(self.records)
        values = [f"{self.name}/{start + index}" for index in range(count)]
        for value in values:
            future = self.producer.send(self.name, value.encode(), partition=partition)
            future.add_done_callback(lambda done, value=value: self._acknowledged(done, value))
        self.producer.flush()

    def _acknowledged(self, future: object, value: str) -> None:
        where = future.result()  # type: ignore[attr-defined]
        self.records[where.partition, where.offset] = value

    def partitions(self, count: int) -> None:
        made = lambda: self.client.create_partitions({self.name: count})  # noqa: E731
        eventually(lambda: made()[self.name] is None and len(self.tps()) == count)

    def tps(self) -> list[TopicPartition]:
        found = self.client.metadata([self.name]).topics[self.name].partitions
        return [TopicPartition(self.name, each.index) for each in found]

    def is_all(self, delivered: list[tuple[int, int, str]]) -> bool:
        """Returns whether `delivered` contains every acknowledged record. Asserts that each
        acknowledged record in `delivered` has the value that was produced."""
        for partition, offset, value in delivered:
            known = self.records.get((partition, offset))
            assert known in (None, value)
        return {(p, o) for p, o, _ in delivered} >= self.records.keys()


@contextlib.contextmanager
def a_topic(bootstrap: str, zookeeper: str, partitions: int) -> Iterator[Topic]:
    """Creates a topic with this number of partitions, and yields it."""
    name = topic_name("group")
    with Client(bootstrap) as client, Producer(bootstrap, batch_size=2_000) as producer:
        assert client.create_topics([NewTopic(name, partitions, 1)]) == {name: None}
        eventually(lambda: len(client.metadata([name]).topics[name].partitions) == partitions)
        yield Topic(bootstrap, zookeeper, name, client, producer)


@pytest.fixture
def topic(skidway_broker: SkidwayBroker) -> Iterator[Topic]:
    """A topic with four partitions on our broker."""
    zookeeper = str(skidway_broker.settings["zookeeper.connect"])
    with a_topic(skidway_broker.address, zookeeper, 4) as made:
        yield made
