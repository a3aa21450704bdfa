"""All mirror sources of a broker, driven by its loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.broker import Broker
from broker.coordination import store
from broker.log.files import StorageFailed
from broker.mirror.source import MirrorSource
from broker.network.timers import Timer
from broker.partitions.replica import Replica
from broker.settings import MirrorSettings
from broker.topics.catalog import Topic
from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.batch import BatchHeader
from skidway.kafka.client.following import LoopClient
from skidway.kafka.types import TopicPartition

_log = log.get(__name__)


class LoopWatcher:
    """The descriptors of one client on the broker's epoll."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.source: MirrorSource | None = None

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        """Begins to watch a descriptor, or changes what for."""

        def ready(readable: bool, writable: bool) -> None:
            if self.source is not None:
                self.source.ready(fd, readable, writable)

        self._broker.loop.watch_both(fd, ready, read=read, write=write)

    def unwatch(self, fd: int) -> None:
        """Ends it."""
        self._broker.loop.unwatch(fd)


class Mirrors:
    """Every source, its rounds and its deadlines. Also what sources may do to this broker."""

    def __init__(self, broker: Broker, settings: Sequence[MirrorSettings], clock: Clock) -> None:
        self.cluster_name = broker.settings.cluster_name
        self._broker = broker
        self._interval_ms = broker.settings.mirror_metadata_interval_ms
        self._timer: Timer | None = None
        self._sources = [self._source(each, clock) for each in settings]

    def start(self) -> None:
        """Begins the rounds."""
        self._round()

    def turn(self) -> None:
        """Before the end of each turn of the loop: what has come is appended, to be written."""
        for source in self._sources:
            source.turn()
        self._set_timer()

    def close(self) -> None:
        """Ends all connections to sources."""
        for source in self._sources:
            source.close()

    def status(self) -> list[dict[str, Any]]:
        """For /health and `skidway mirror status`."""
        return [source.status() for source in self._sources]

    # what a source may do (broker.mirror.source.Local)

    def topics(self) -> Sequence[Topic]:
        """All topics of this cluster."""
        return list(self._broker.topics.catalog.topics.values())

    def replica(self, partition: TopicPartition) -> Replica | None:
        """A partition that this broker leads."""
        return self._broker.partitions.get(partition)

    def has(self, topic: str) -> bool:
        """Whether a topic exists here or is being made."""
        topics = self._broker.topics
        return (
            topic in topics.catalog.topics
            or topic in topics.catalog.deleting
            or topics.is_creating(topic)
        )

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        """Makes a topic whose partitions this broker leads."""
        here = (self._broker.settings.broker_id,)
        assignment = dict.fromkeys(range(partitions), here)
        self._broker.topics.create(
            name, assignment, configs, lambda error: self._done("mirror_topic_created", name, error)
        )

    def extend(self, topic: Topic, partitions: int) -> None:
        """Gives a topic more partitions."""
        here = (self._broker.settings.broker_id,)
        assignment = {number: info.replicas for number, info in topic.partitions.items()}
        for number in range(partitions):
            assignment.setdefault(number, here)
        self._broker.topics.extend(
            topic, assignment, lambda error: self._done("mirror_topic_extended", topic.name, error)
        )

    def set_config(
        self, topic: str, name: str, value: str, done: Callable[[SkidwayError | None], None]
    ) -> None:
        """Writes one config of a topic into ZooKeeper."""
        self._broker.topics.session.submit(
            lambda coordinator: store.set_config(coordinator, topic, name, value), done
        )

    def appended(self, replica: Replica, header: BatchHeader) -> None:
        """A batch was appended and is to be written at the end of the turn."""
        self._broker.partitions.touch(replica)
        self._broker.counts.batches += 1
        self._broker.counts.messages += header.count
        self._broker.counts.appended_bytes += header.size_bytes

    def storage_failed(self, replica: Replica, error: StorageFailed) -> None:
        """A log refused an append."""
        self._broker.partitions.touch(replica)
        _log.error("mirror_append_refused", partition=str(replica.partition), reason=str(error))

    def _source(self, settings: MirrorSettings, clock: Clock) -> MirrorSource:
        watcher = LoopWatcher(self._broker)
        client = LoopClient(
            settings.bootstrap_servers,
            watcher,
            client_id=f"skidway-mirror-{self.cluster_name}",
            clock=clock,
        )
        source = MirrorSource(settings.cluster, settings.topics, client, self)
        watcher.source = source
        return source

    def _round(self) -> None:
        for source in self._sources:
            source.begin_round()
        self._broker.loop.call_later(self._interval_ms, self._round)

    def _set_timer(self) -> None:
        deadlines = [source.next_deadline for source in self._sources]
        due = min((each for each in deadlines if each is not None), default=None)
        if self._timer is not None and self._timer.action is not None:
            if self._timer.at == due:
                return
            self._broker.loop.timers.cancel(self._timer)
        # The timer only wakes the loop: the turn that follows does what is due.
        self._timer = None if due is None else self._broker.loop.timers.call_at(due, _wake)

    def _done(self, event: str, topic: str, error: SkidwayError | None) -> None:
        if error is None:
            _log.info(event, topic=topic)
        else:
            _log.warning(f"{event}_not", topic=topic, reason=str(error))


def _wake() -> None:
    """A turn of the loop is all that was wanted."""
