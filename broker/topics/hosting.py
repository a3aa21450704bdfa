"""Follows the topics in ZooKeeper, and hosts the partitions that are assigned to this broker.

`apply` adopts a new catalog (the topics and brokers that ZooKeeper lists). It makes a log for each
new partition, begins to lead the partition, and stops serving partitions that no longer exist. At
the start, `load` opens the partitions that the log directories contain. If a partition belongs to
no known topic or is assigned to another broker, its directory is set aside (renamed) and not
deleted. But the directory is deleted if the topic is being deleted.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace

from skidway import log
from skidway.broker.catalog import (
    Catalog,
    LiveBroker,
    PartitionState,
    Topic,
    TopicPartitionInfo,
)
from skidway.broker.coordination import store
from skidway.broker.coordination.session import ZooKeeperSession
from skidway.broker.log import names
from skidway.broker.log.config import UNLIMITED, LogConfig
from skidway.broker.log.files import DEVICE_ERRORS, StorageFailed
from skidway.broker.log.log_manager import Found, LogManager, NewLog
from skidway.broker.network.loop import Loop
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.partitions.replica import Replica
from skidway.broker.topics import configs
from skidway.broker.topics.config_table import RETENTION_HOLD
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused
from skidway.kafka.types import TopicPartition

TRY_AGAIN_MS = 1000
DELETED_REMEMBERED = 10_000
PREPARE_AGAIN_MS = 10_000
Done = Callable[[SkidwayError | None], None]
_log = log.get(__name__)


class Hosting:
    """Keeps the catalog of topics, and serves the partitions on this broker. Only the event loop
    uses this object. The subclass `Topics` creates, changes and deletes topics.
    """

    def __init__(
        self,
        own: LiveBroker,
        defaults: LogConfig,
        loop: Loop,
        logs: LogManager,
        partitions: HostedPartitions,
        catalog: Catalog,
    ) -> None:
        self.catalog = _with(own, catalog)
        self._own = own
        self._broker_id = own.broker_id
        self._defaults = defaults
        self._loop = loop
        self._logs = logs
        self._partitions = partitions
        self._session: ZooKeeperSession | None = None
        self._preparing: set[TopicPartition] = set()
        self._when_ready: dict[uuid.UUID, list[Done]] = {}
        self._deleted: dict[uuid.UUID, None] = {}

    @property
    def session(self) -> ZooKeeperSession:
        """The session with ZooKeeper."""
        assert self._session is not None
        return self._session

    def use(self, session: ZooKeeperSession) -> None:
        """Sets the session with ZooKeeper. The session calls this object's method `apply` when the
        catalog changes, so the caller makes this object first, and the session afterwards."""
        self._session = session

    def log_config(self, topic: Topic) -> LogConfig:
        """Returns the settings of a topic that affect the topic's logs."""
        return configs.log_config(self._defaults, topic.configs)

    def load(self, found: Iterable[tuple[TopicPartition, Found]]) -> None:
        """Opens this broker's partitions when it starts, on the calling thread. Raises
        SkidwayError.
        """
        deleting = self.catalog.deleting
        for partition, each in self._ours(found).items():
            topic = self.catalog.topics[partition.topic]
            if each.topic_id is None:
                self._logs.adopt(partition, each, topic.topic_id)
            self._logs.load(partition, each, self.log_config(topic))
        for name in deleting:
            self._finish_deletion(name, ignore)
        self._lead_again()
        self.apply(self.catalog)

    def _ours(self, found: Iterable[tuple[TopicPartition, Found]]) -> dict[TopicPartition, Found]:
        """Returns the partitions that belong to this broker. Sets the directories of all other
        partitions aside, or deletes them if their topic is being deleted. Raises StateRefused if
        two directories contain the same partition.
        """
        deleting = self.catalog.deleting
        ours: dict[TopicPartition, Found] = {}
        for partition, each in found:
            topic = self.catalog.topics.get(partition.topic)
            ours_now = topic is not None and self._is_ours(topic, partition.partition)
            if topic is None or not ours_now or each.topic_id not in (None, topic.topic_id):
                gone = partition.topic in deleting and each.topic_id == deleting[partition.topic]
                self._logs.set_aside(partition, each, delete=gone)
            elif partition in ours:
                paths = ours[partition].directory.path, each.directory.path
                raise StateRefused(f"{partition} lies in both {paths[0]} and {paths[1]}")
            else:
                ours[partition] = each
        return ours

    def _is_ours(self, topic: Topic, number: int) -> bool:
        info = topic.partitions.get(number)
        return info is not None and info.replicas[:1] == (self._broker_id,)

    def apply(self, catalog: Catalog) -> None:
        """Adopts a new catalog: hosts new partitions, drops partitions that no longer exist, and
        gives changed settings to the logs."""
        catalog = _with(self._own, self._without_deleted(catalog))
        self.catalog = catalog
        self._drop_vanished()
        wanted: dict[str, list[int]] = {}
        for topic in catalog.topics.values():
            for number, info in topic.partitions.items():
                if self._is_ours(topic, number):
                    self._host(topic, number, info, wanted)
        for name, numbers in wanted.items():
            self._prepare(catalog.topics[name], numbers)

    def topic_id(self, name: str) -> uuid.UUID | None:
        """Returns the id of the topic with the name `name`; None if there is no such topic."""
        topic = self.catalog.topics.get(name)
        return None if topic is None else topic.topic_id

    def holds_of(self, group: str) -> dict[str, float]:
        """Returns the topics whose `retention.hold` names the group. The value of each topic is the
        longest time (ms) for which the group may keep the topic's segments from being deleted.
        """
        named = (each for each in self.catalog.topics.values() if RETENTION_HOLD in each.configs)
        limits = {each.name: self.log_config(each) for each in named}
        return {
            name: math.inf if config.hold_ms_max == UNLIMITED else config.hold_ms_max
            for name, config in limits.items()
            if group in config.held_by
        }

    def _learn(self, topic: Topic) -> None:
        """Puts into the catalog a topic that this broker has just written to ZooKeeper. So the
        broker need not wait until ZooKeeper reports the change.
        """
        self.apply(replace(self.catalog, topics={**self.catalog.topics, topic.name: topic}))

    def _remember_deleted(self, topic_id: uuid.UUID) -> None:
        self._deleted[topic_id] = None
        if len(self._deleted) > DELETED_REMEMBERED:
            del self._deleted[next(iter(self._deleted))]

    def _without_deleted(self, catalog: Catalog) -> Catalog:
        """Returns the catalog without the topics that this broker deleted. A newer topic of the
        same name stays in the catalog.
        """
        late = [name for name, each in catalog.topics.items() if each.topic_id in self._deleted]
        if not late:
            return catalog
        topics = dict(catalog.topics)
        for name in late:
            del topics[name]
            if name in self.catalog.topics:
                topics[name] = self.catalog.topics[name]
        return replace(catalog, topics=topics)

    def _finish_deletion(self, name: str, done: Done) -> None:
        def work(coordinator: Coordinator) -> None:
            store.remove_topic(coordinator, name)

        def removed(outcome: SkidwayError | None) -> None:
            if outcome is not None:
                # The deletion is not complete, so try again later. Until then, ZooKeeper says that
                # this topic is being deleted. So no new topic can get the name before the deletion
                # is complete.
                self._loop.call_later(TRY_AGAIN_MS, lambda: self._finish_deletion(name, ignore))
            done(outcome)

        self.session.submit(work, removed)

    def _drop_vanished(self) -> None:
        deleting = self.catalog.deleting
        for partition, replica in list(self._partitions.replicas.items()):
            topic = self.catalog.topics.get(partition.topic)
            if topic is None or topic.topic_id != replica.topic_id:
                marked = deleting.get(partition.topic) == replica.topic_id
                suffix = names.DELETED_DIRECTORY if marked else names.STRAY_DIRECTORY
                self._take_out(partition, suffix)
        for partition in list(self._logs.stopped):
            topic = self.catalog.topics.get(partition.topic)
            is_gone = topic is None and partition.topic not in deleting
            if is_gone or (topic is not None and not self._is_ours(topic, partition.partition)):
                self._take_out(partition, names.STRAY_DIRECTORY)

    def _take_out(self, partition: TopicPartition, suffix: str) -> None:
        self._logs.delete(partition, suffix=suffix)
        self._partitions.drop(partition)

    def _host(
        self, topic: Topic, number: int, info: TopicPartitionInfo, wanted: dict[str, list[int]]
    ) -> None:
        partition = TopicPartition(topic.name, number)
        if partition in self._preparing or partition in self._logs.stopped:
            return
        replica = self._partitions.get(partition)
        config = self.log_config(topic)
        if replica is not None:
            replica.log.config = config
            return
        known = self._logs.logs.get(partition)
        if known is not None and info.state is not None and info.state.leader == self._broker_id:
            self._partitions.host(
                Replica(partition, topic.topic_id, known, info.state.leader_epoch)
            )
        elif info.state is None:
            wanted.setdefault(topic.name, []).append(number)
        elif known is None:
            self._logs.stop(partition, self._why_missing(partition))

    def _why_missing(self, partition: TopicPartition) -> str:
        moved = self._logs.moved(partition)
        if moved is not None:
            return (
                f"{partition} was handed over and lies in {moved}; take it over where it is to be "
                "served (skidway broker take-over), here or on another broker"
            )
        return (
            f"the directory of {partition} is missing; bring it back, or delete the topic"
            f"{self._logs.offline_words()}"
        )

    def _prepare(self, topic: Topic, numbers: list[int]) -> None:
        """Makes the logs of new partitions, then writes to ZooKeeper that this broker leads
        them.
        """
        partitions = [TopicPartition(topic.name, number) for number in numbers]
        self._preparing.update(partitions)
        missing = [
            NewLog(each, topic.topic_id, self.log_config(topic))
            for each in partitions
            if each not in self._logs.logs
        ]

        def made(error: StorageFailed | None) -> None:
            if error is None:
                self._lead(topic, numbers)
                return
            _log.error("partitions_not_created", topic=topic.name, reason=str(error))
            self._preparing.difference_update(partitions)
            if error.errno in DEVICE_ERRORS:
                self._partitions.storage_failed(error)
            self._tell(topic, error)
            # No log directory could take the logs of the new partitions, but their topic exists. So
            # try again until a directory can take them.
            self._loop.call_later(PREPARE_AGAIN_MS, lambda: self.apply(self.catalog))

        if missing:
            self._logs.create(missing, made)
        else:
            made(None)

    def _lead(self, topic: Topic, numbers: list[int]) -> None:
        def work(coordinator: Coordinator) -> dict[int, PartitionState]:
            return store.lead_new(coordinator, topic.name, topic.topic_id, numbers, self._broker_id)

        def led(outcome: dict[int, PartitionState] | SkidwayError) -> None:
            known = self.catalog.topics.get(topic.name)
            gone = known is None or known.topic_id != topic.topic_id
            if isinstance(outcome, SkidwayError) and not gone:
                # ZooKeeper could not be reached, but the topic still exists. So try again later.
                self._loop.call_later(TRY_AGAIN_MS, lambda: self._lead(topic, numbers))
                return
            self._preparing.difference_update(TopicPartition(topic.name, n) for n in numbers)
            if known is None or gone or isinstance(outcome, SkidwayError):
                self._give_up(topic, numbers)
                return
            partitions = dict(known.partitions)
            for number, state in outcome.items():
                # If the catalog is older than the partition, the catalog's topic (`known`) lacks
                # the partition. In this case the partition is added here.
                info = partitions.get(number, TopicPartitionInfo((self._broker_id,)))
                partitions[number] = replace(info, state=state)
            self._learn(replace(known, partitions=partitions))
            self._tell(topic, None)

        self.session.submit(work, led)

    def _give_up(self, topic: Topic, numbers: list[int]) -> None:
        """Drops partitions whose logs were just made. Called if their topic was deleted (or deleted
        and recreated) meanwhile.
        """
        for number in numbers:
            self._take_out(TopicPartition(topic.name, number), names.STRAY_DIRECTORY)
        self._tell(topic, SkidwayError(f"Topic '{topic.name}' was deleted."))
        self.apply(self.catalog)

    def _tell(self, topic: Topic, error: SkidwayError | None) -> None:
        for done in self._when_ready.pop(topic.topic_id, []):
            done(error)

    def _lead_again(self) -> None:
        """Begins a new leader epoch for each partition whose log was not closed cleanly. Called
        when the broker starts; waits for ZooKeeper.

        Unflushed records of such a log may be lost. New records would then get the offsets of the
        lost records; the leader epoch distinguishes the new records from the lost records.
        """
        for partition in sorted(self._logs.unclean & set(self._logs.logs)):
            topic = self.catalog.topics[partition.topic]
            info = topic.partitions[partition.partition]
            if info.state is None or info.state.leader != self._broker_id:
                continue
            wanted = replace(info.state, leader_epoch=info.state.leader_epoch + 1)
            state = self.session.lead(partition, wanted)
            partitions = {**topic.partitions, partition.partition: replace(info, state=state)}
            known = {**self.catalog.topics, topic.name: replace(topic, partitions=partitions)}
            self.catalog = replace(self.catalog, topics=known)


def _with(own: LiveBroker, catalog: Catalog) -> Catalog:
    """Returns the catalog with this broker in its list of brokers. ZooKeeper's list lacks this
    broker while it registers again after a lost session, but even then the answers to Metadata
    requests must name it.
    """
    return replace(catalog, brokers={**catalog.brokers, own.broker_id: own})


def ignore(_error: SkidwayError | None) -> None:
    """Ignores the outcome of a deletion for which no client waits, because the broker itself began
    it: at its start, or after a failed attempt.
    """
