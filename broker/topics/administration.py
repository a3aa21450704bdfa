"""Creates, extends, alters and deletes topics. `hosting` serves the partitions that are on this
broker.

The steps of these changes are in an order in which a crash between any two steps does no harm:

    create   the topic's node and settings (in one transaction) -> directories -> states of
             partitions; a partition is served when its state says that this broker leads it
    delete   a deletion node in ZooKeeper says that the topic is to be deleted -> the topic is no
             longer served, and its directories are renamed -> the topic's nodes and the deletion
             node are removed
    start    the broker completes each deletion that still has its deletion node. It makes a
             directory for each partition that is assigned to it and has no state yet. If a
             partition *with* state has no directory, data is lost. Then the broker does not serve
             the partition and reports it, instead of beginning it again at offset 0

A topic may be deleted and recreated under the same name while this broker still creates its
partitions. Therefore, before the broker writes states, it checks that the topic still has the same
topic id. If not, it sets the new directories aside. If this broker began to read a catalog before
it deleted a topic, that catalog may still contain the deleted topic. In this case `hosting` ignores
this topic in the catalog.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from skidway.broker.catalog import (
    Catalog,
    LiveBroker,
    Topic,
    TopicPartitionInfo,
)
from skidway.broker.coordination import store
from skidway.broker.log import names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.log_manager import LogManager
from skidway.broker.network.loop import Loop
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.topics.hosting import Done, Hosting
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition

CREATING_MAX = 500
"""This many topics are created at the same time. The queue of jobs for ZooKeeper has twice as many
places, so that groups find some."""


class TooManyTopics(SkidwayError):
    """The cluster has as many topics as `max.topics` allows."""


class Topics(Hosting):
    """Changes topics; `Hosting` serves their partitions. Only the loop uses it."""

    def __init__(
        self,
        own: LiveBroker,
        defaults: LogConfig,
        loop: Loop,
        logs: LogManager,
        partitions: HostedPartitions,
        catalog: Catalog,
        topics_max: int,
    ) -> None:
        super().__init__(own, defaults, loop, logs, partitions, catalog)
        self._topics_max = topics_max
        self._creating: set[str] = set()

    def create(
        self, name: str, assignment: Mapping[int, tuple[int, ...]], settings: Mapping[str, str],
        done: Done,
    ) -> uuid.UUID:  # fmt: skip
        """Creates a topic, whose settings and assignment the caller has checked, and returns its
        id. Calls `done` once this broker serves the topic's partitions that are assigned to it; if
        this fails, or if there is no room for a further topic, calls `done` with the error.
        """
        topic_id = uuid.uuid4()
        refused = self.no_room()
        if refused is not None:
            self._loop.post(lambda: done(refused))
            return topic_id
        self._creating.add(name)

        def work(coordinator: Coordinator) -> None:
            store.create_topic(coordinator, name, topic_id, assignment, settings)

        def created(outcome: SkidwayError | None) -> None:
            self._creating.discard(name)
            if outcome is not None:
                done(outcome)
                return
            infos = {number: TopicPartitionInfo(each) for number, each in assignment.items()}
            self._learn(Topic(name, topic_id, infos, dict(settings)))
            self._ready(name, topic_id, done)

        self.session.submit(work, created)
        return topic_id

    def no_room(self) -> SkidwayError | None:
        """Returns why no further topic may be created now; None if one may be created."""
        if len(self.catalog.topics) + len(self._creating) >= self._topics_max:
            return TooManyTopics(
                f"the cluster has {self._topics_max} topics, as many as max.topics allows"
            )
        if len(self._creating) >= CREATING_MAX:
            return Unreachable(f"{CREATING_MAX} topics are being created; try again later")
        return None

    def is_creating(self, name: str) -> bool:
        """Returns whether this broker is creating the topic."""
        return name in self._creating

    @property
    def creating(self) -> frozenset[str]:
        """Returns the names of the topics that this broker is creating."""
        return frozenset(self._creating)

    def extend(self, topic: Topic, assignment: Mapping[int, tuple[int, ...]], done: Done) -> None:
        """Adds partitions to a topic. `assignment` has all partitions, the old and the new ones."""

        def work(coordinator: Coordinator) -> None:
            store.add_partitions(coordinator, topic.name, topic.topic_id, assignment)

        def extended(outcome: SkidwayError | None) -> None:
            if outcome is not None:
                done(outcome)
                return
            found = self.catalog.topics.get(topic.name)
            # The topic's settings may have been changed since the caller read `topic`. The catalog
            # has the current settings.
            now = topic if found is None or found.topic_id != topic.topic_id else found
            known = dict(now.partitions)
            for number, each in assignment.items():
                known.setdefault(number, TopicPartitionInfo(each))
            self._learn(replace(now, partitions=known))
            self._ready(topic.name, topic.topic_id, done)

        self.session.submit(work, extended)

    def alter(
        self,
        topic: Topic,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        done: Done,
    ) -> None:
        """Changes a topic's settings. `change` computes the new settings from the old ones, without
        side effects, and runs on the thread of the session with ZooKeeper."""

        def work(coordinator: Coordinator) -> dict[str, str]:
            return store.alter_configs(coordinator, topic.name, topic.topic_id, change)

        def altered(outcome: dict[str, str] | SkidwayError) -> None:
            if isinstance(outcome, SkidwayError):
                done(outcome)
                return
            known = self.catalog.topics.get(topic.name)
            if known is not None and known.topic_id == topic.topic_id:
                self._learn(replace(known, configs=outcome))
            done(None)

        self.session.submit(work, altered)

    def delete(self, topic: Topic, done: Done) -> None:
        """Deletes a topic and its data. Calls `done` when the topic is removed from ZooKeeper; if
        this fails, calls `done` with the error."""

        def work(coordinator: Coordinator) -> None:
            store.mark_deletion(coordinator, topic.name, topic.topic_id)

        def marked(outcome: SkidwayError | None) -> None:
            if outcome is not None:
                done(outcome)
                return
            known = {each: self.catalog.topics[each] for each in self.catalog.topics}
            known.pop(topic.name, None)
            self.catalog = replace(self.catalog, topics=known)
            self._remember_deleted(topic.topic_id)
            for number in topic.partitions:
                self._take_out(TopicPartition(topic.name, number), names.DELETED_DIRECTORY)
            self._finish_deletion(topic.name, done)

        self.session.submit(work, marked)

    def _ready(self, name: str, topic_id: uuid.UUID, done: Done) -> None:
        if any(each.topic == name for each in self._preparing):
            self._when_ready.setdefault(topic_id, []).append(done)
        else:
            done(None)
