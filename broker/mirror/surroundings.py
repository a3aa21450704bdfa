"""The interfaces that a MirrorSource needs: a client of the source cluster, and this broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from skidway.broker.catalog import Topic
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.mirror.rounds import Creation
from skidway.broker.partitions.replica import Replica
from skidway.errors import SkidwayError
from skidway.kafka.batch import BatchHeader
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import Address, Cluster
from skidway.kafka.client.following import Turn
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition

Done = Callable[[SkidwayError | None], None]
"""A function that is called when an operation is done. Its argument is the operation's error, or
None for success."""


Question = TypeVar("Question", covariant=True)


class Ask(NamedTuple, Generic[Question]):
    """Asks the caller to send a request to the broker at an address, or to any broker of the source
    if there is no address. The caller returns the answer together with the question."""

    call: Call
    question: Question
    address: Address | None = None


class SourceClient(Protocol):
    """The attributes and methods of `skidway.kafka.client.following.LoopClient` that a MirrorSource
    needs.
    """

    @property
    def cluster(self) -> Cluster: ...

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]: ...

    @property
    def last_failure(self) -> str: ...

    @property
    def has_news(self) -> bool: ...

    @property
    def next_deadline(self) -> float | None: ...

    def seek(self, tp: TopicPartition, offset: int) -> None: ...
    def remove(self, tp: TopicPartition) -> None: ...
    def ask(self, call: Call, address: Address | None = None) -> int: ...
    def ready(self, fd: int, readable: bool, writable: bool) -> bool: ...
    def turn(self) -> Turn: ...
    def close(self) -> None: ...


class Local(Protocol):
    """What a MirrorSource may do with this broker. All methods are called on the loop's thread."""

    def topics(self) -> Mapping[str, Topic]:
        """Returns all topics of this cluster, by name."""
        ...

    def busy(self) -> set[str]:
        """Returns the names of topics that are being created or deleted."""
        ...

    def replica(self, partition: TopicPartition) -> Replica | None:
        """Returns this broker's replica of a partition; None if this broker does not lead the
        partition.
        """
        ...

    def create(self, creation: Creation, done: Done) -> None:
        """Creates a mirror topic."""
        ...

    def extend(self, topic: Topic, partitions: int, done: Done) -> None:
        """Adds partitions to a topic, so that it has `partitions` partitions."""
        ...

    def name_gap(self, topic: Topic, gap: Gap, done: Done) -> None:
        """Stores a gap (missing offsets) durably, in addition to the gaps that are stored
        already."""
        ...

    def appended(self, replica: Replica, header: BatchHeader) -> None:
        """Notes that a batch was appended. At the end of the turn, the log writes the batch to its
        file."""
        ...

    def refused(self, replica: Replica) -> None:
        """Notes that a log has refused an append. The broker learns the reason from the write at
        the end of the turn."""
        ...

    def unreadable(self, replica: Replica, error: StorageFailed | DamagedLog) -> None:
        """Called when the log of a replica cannot be read."""
        ...
