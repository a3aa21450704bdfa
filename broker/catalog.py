"""The cluster's brokers, topics and partitions: an immutable snapshot of what ZooKeeper stores."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address at which a broker listens, or its clients reach it. listener: the name of the
    listener. protocol: its security protocol."""

    listener: str
    protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """The address as clients write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """A live broker and its addresses, one or more."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The leader of a partition. isr: the partition's in-sync replicas. version: the version of the
    node in ZooKeeper that stores this state. With this version, the broker can write the node on
    condition that nobody has changed the node meanwhile.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int = -1


@dataclass(frozen=True, slots=True)
class TopicPartitionInfo:
    """One partition. replicas: broker ids, the preferred leader first. state: None if no broker
    leads the partition yet.
    """

    replicas: tuple[int, ...]
    state: PartitionState | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions and settings."""

    name: str
    topic_id: uuid.UUID
    partitions: Mapping[int, TopicPartitionInfo]
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that the broker needs to answer a Metadata request."""

    cluster_id: str
    brokers: Mapping[int, LiveBroker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    controller_id: int = NO_LEADER
    deleting: Mapping[str, uuid.UUID | None] = field(default_factory=dict)
    """The names of the topics that are being deleted, with their ids (None if unknown). These
    topics are no longer in `topics`."""

    def has_others(self, broker_id: int) -> bool:
        """Returns whether the cluster has brokers other than the broker `broker_id`. A broker that
        is not live counts only if partitions are assigned to it.
        """
        of_partitions = (
            each
            for topic in self.topics.values()
            for info in topic.partitions.values()
            for each in info.replicas
        )
        return any(each != broker_id for each in (*self.brokers, *of_partitions))

    def reached_by(self, listener: str) -> dict[int, Endpoint]:
        """Returns the addresses of all brokers that have this listener, by broker id: those for the
        clients that have connected to a listener of this name."""
        return {
            broker.broker_id: each
            for broker in self.brokers.values()
            for each in broker.endpoints
            if each.listener == listener
        }

    def by_id(self, topic_id: uuid.UUID) -> Topic | None:
        """Returns the topic with this id; None if there is none."""
        return next((each for each in self.topics.values() if each.topic_id == topic_id), None)
