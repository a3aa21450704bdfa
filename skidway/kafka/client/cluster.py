"""What a client learns about a cluster: its brokers, topics, partitions, settings and offsets."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from skidway.dataclass import dataclass
from skidway.errors import UsageError
from skidway.kafka.client.illegal_names import IllegalNames
from skidway.kafka.errors import ErrorCode
from skidway.kafka.host_names import is_address
from skidway.kafka.protocol.describe_configs import ConfigSource
from skidway.kafka.protocol.list_offsets import EARLIEST, LATEST
from skidway.kafka.protocol.messages import NO_ID
from skidway.kafka.protocol.metadata import MetadataResponse, MetadataResponseTopic
from skidway.kafka.types import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "Address",
    "Broker",
    "Cluster",
    "ConfigChanges",
    "ConfigEntry",
    "ListedOffset",
    "LogDir",
    "NewTopic",
    "Partition",
    "TopicMetadata",
    "cluster_of",
    "parse_bootstrap",
]

_PORT_DEFAULT = 9092
_ILLEGAL = IllegalNames()  # of the process: a name is not logged again by its next client


class Address(NamedTuple):
    """Host and port on which a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker and the address that it advertises."""

    id: int
    host: str
    port: int

    @property
    def address(self) -> Address:
        """Host and port."""
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition. `leader` is -1 if the partition has no leader. `leader_epoch` is -1 if it is
    unknown."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic, with its partitions in the order of their indexes. `topic_id` is None if it is
    unknown."""

    name: str
    topic_id: uuid.UUID | None
    error: ErrorCode
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """One answer to a Metadata request. `controller_id` is -1 if there is no controller."""

    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, TopicMetadata]

    def leader(self, tp: TopicPartition) -> Address | None:
        """Returns the address of a partition's leader, or None if the address is unknown."""
        partition = self._partition(tp)
        broker = None if partition is None else self.brokers.get(partition.leader)
        return None if broker is None else broker.address

    def leader_epoch(self, tp: TopicPartition) -> int:
        """Returns a partition's leader epoch, or -1 if it is unknown."""
        partition = self._partition(tp)
        return -1 if partition is None else partition.leader_epoch

    def _partition(self, tp: TopicPartition) -> Partition | None:
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. In `partitions` and `replication_factor`, -1 means the broker's
    default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic or broker, with its value and the source of the value."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool


@dataclass(frozen=True, slots=True)
class ConfigChanges:
    """Changes to a topic's settings. Other settings keep their values. `append` and `subtract`
    change settings that are lists."""

    set: Mapping[str, str] = field(default_factory=dict)
    delete: Sequence[str] = ()
    append: Mapping[str, str] = field(default_factory=dict)
    subtract: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogDir:
    """A broker's log directory. An unknown number of bytes is -1. `error` is NONE if the broker can
    use the directory."""

    path: str
    error: ErrorCode
    total_bytes: int
    usable_bytes: int
    partition_bytes: Mapping[TopicPartition, int]


class ListedOffset(NamedTuple):
    """The offset that was found for a time, with the timestamp (ms) and the leader epoch of the
    record at that offset.

    The offset is -1 if no record is at or after the time. Timestamp and epoch are -1 if unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


def cluster_of(response: MetadataResponse) -> Cluster:
    """Returns a Metadata response as a `Cluster`, without the topics that have illegal names, and
    without the brokers that have illegal addresses."""
    brokers = _ILLEGAL.legal_brokers(response.brokers)
    return Cluster(
        response.cluster_id,
        response.controller_id,
        {b.node_id: Broker(b.node_id, b.host, b.port) for b in brokers},
        {name: _topic(name, topic) for name, topic in _ILLEGAL.legal_topics(response.topics)},
    )


def _topic(name: str, topic: MetadataResponseTopic) -> TopicMetadata:
    """Converts one topic of a Metadata response. If the topic's partitions are not numbered 0, 1, 2
    ..., the answer cannot be used, and the result has no partitions."""
    rows = sorted(topic.partitions, key=lambda row: row.partition_index)
    if [row.partition_index for row in rows] != list(range(len(rows))):
        rows = []
    partitions = tuple(
        Partition(
            row.partition_index,
            row.leader_id,
            row.leader_epoch,
            row.replica_nodes,
            row.isr_nodes,
        )
        for row in rows
    )
    topic_id = None if topic.topic_id == NO_ID else topic.topic_id
    return TopicMetadata(name, topic_id, code_of(topic.error_code), partitions)


def code_of(number: int) -> ErrorCode:
    """Returns the error code of a number from the wire. An unknown number is
    UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def parse_bootstrap(servers: str) -> tuple[Address, ...]:
    """Returns the addresses in a list like `host:port,host:port`. The default port is 9092; IPv6
    addresses need brackets.

    Raises UsageError if the list is empty, or a part of it is not an address.
    """
    addresses = tuple(_address(part.strip()) for part in servers.split(",") if part.strip())
    if not addresses:
        raise UsageError("bootstrap.servers names no broker")
    return addresses


def _address(text: str) -> Address:
    host, separator, port = text.rpartition(":")
    if text.endswith("]") or not separator:
        host, port = text, str(_PORT_DEFAULT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    if not (is_number and is_address(host, int(port))):
        raise UsageError(f"{text!r} in bootstrap.servers is not host:port")
    return Address(host, int(port))
