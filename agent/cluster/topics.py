"""What the agent knows about each topic: its id, the time up to which it is sealed, and whether its
log was replaced. A topic is sealed up to a time if the agent has sent the audit all counts of lines
up to this time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.settings import REJECTED_SUFFIX
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import TopicState
from skidway.agent.values.tracked import TrackedFile
from skidway.kafka.client import Delivery
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition


def has_fallen_back(deliveries: Iterable[Delivery], offsets: Mapping[TopicPartition, int]) -> bool:
    """Whether one of the delivered batches got an offset at or below its partition's last
    acknowledged offset. If so, the partition's log was replaced.

    offsets: the last acknowledged offset of each partition.
    """
    return any(
        delivery.error is None and 0 <= delivery.base_offset <= offsets.get(delivery.tp, -1)
        for delivery in deliveries
    )


class Topics:
    """Owns the rows of the table `topics` in the agent's state."""

    def __init__(
        self, cluster: Cluster, known: Mapping[str, TopicState], *, same_cluster: bool
    ) -> None:
        """same_cluster: whether the topics in `known` belong to the cluster to which the agent
        sends now.
        """
        self._cluster = cluster
        self._known = dict(known)
        self._former = set(known) if same_cluster else set()

    def take_ids(self, destinations: Sequence[Destination], changes: Changes) -> None:
        """Takes over the topic ids that the cluster reports. Forgets the offsets and seals of
        topics that were deleted and made again.
        """
        for destination in destinations:
            for source in (destination.data, destination.rejected):
                before = self._known.get(source.topic)
                if before is not None and before.topic_id == source.topic_id:
                    continue
                changes.forget_offsets(source.topic)
                self._put(source.topic, TopicState(source.topic_id, None), changes)

    @property
    def names(self) -> frozenset[str]:
        """The topics that the agent has sent to, or could have sent to, since its state began."""
        return frozenset(self._known)

    def made_again(self, destinations: Sequence[Destination]) -> list[str]:
        """Returns those topics of these destinations that were deleted and made again: their ids
        differ from the ids in the state."""
        sources = (source for each in destinations for source in (each.data, each.rejected))
        return sorted(
            {
                source.topic
                for source in sources
                if (known := self._known.get(source.topic)) is not None
                and known.topic_id
                and source.topic_id
                and known.topic_id != source.topic_id
            }
        )

    def keep_former(self, topics: Iterable[str]) -> None:
        """Makes the agent continue to seal these data topics, even if no source of the reloaded
        settings names them.
        """
        for topic in topics:
            self._former |= {topic, topic + REJECTED_SUFFIX}

    def sealed(self, destinations: Sequence[Destination]) -> dict[str, tuple[Source, Source]]:
        """Returns the data topics to seal, by name. For each, returns two topics as audit messages
        name them: the data topic itself, and its rejected topic.

        The result includes topics that only earlier settings named. The agent no longer reads files
        for these topics, and has declared their unread bytes lost. So the agent can go on sealing
        these topics, and the audit need not wait for them.
        """
        found = {}
        for topic in self._former:
            rejected = topic + REJECTED_SUFFIX
            if rejected in self._former:
                found[topic] = self.source(topic), self.source(rejected)
        for destination in destinations:
            found[destination.data.topic] = destination.data, destination.rejected
        return found

    def seal(self, topic: str, topic_id: str, until_ms: int, changes: Changes) -> None:
        """Notes the wall time (ms) up to which a topic is sealed."""
        self._put(topic, TopicState(topic_id, until_ms), changes)

    def sealed_until(self, topic: str) -> int | None:
        """Returns the wall time (ms) up to which the topic is sealed; None if it has no seal."""
        known = self._known.get(topic)
        return None if known is None else known.sealed_until

    def source(self, topic: str) -> Source:
        """Returns the topic as audit messages name it."""
        known = self._known.get(topic)
        return self.named(topic, "" if known is None else known.topic_id)

    def source_of(self, tracked: TrackedFile) -> Source:
        """Returns the topic of a file's lines. The topic id of the result is the one that the
        file's announcement names."""
        return self.named(tracked.birth.topic, tracked.birth.topic_id)

    def named(self, topic: str, topic_id: str) -> Source:
        """Returns the topic with this name and id, as audit messages name a topic of the agent's
        cluster.
        """
        return Source(self._cluster.name, self._cluster.id, topic, topic_id)

    def _put(self, topic: str, state: TopicState, changes: Changes) -> None:
        self._known[topic] = state
        changes.put_topic(topic, state.topic_id, state.sealed_until)
