"""All mirror sources of a broker, which run on the broker's loop."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skidway import log
from skidway.broker.broker import Broker
from skidway.broker.catalog import Topic
from skidway.broker.coordination import store
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.mirror.resolver import Resolver
from skidway.broker.mirror.rounds import Creation, Mirroring
from skidway.broker.mirror.source import MirrorSource
from skidway.broker.mirror.status import status_of
from skidway.broker.mirror.surroundings import Done
from skidway.broker.network.timers import Timer
from skidway.broker.partitions.replica import Replica
from skidway.broker.settings import MirrorSettings
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.batch import BatchHeader
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition

Step = Callable[[], None]
_log = log.get(__name__)


class LoopWatcher:
    """Registers the descriptors of one source's client with the epoll object of the broker's
    loop."""

    def __init__(self, broker: Broker, run: Callable[[MirrorSource, Step], None]) -> None:
        self._broker = broker
        self._run = run
        self.source: MirrorSource | None = None

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        """Begins to watch a descriptor. If the descriptor is watched already, changes the events to
        watch for."""

        def ready(readable: bool, writable: bool) -> None:
            source = self.source
            if source is not None:
                self._run(source, lambda: source.ready(fd, readable, writable))

        self._broker.loop.watch_both(fd, ready, read=read, write=write)

    def unwatch(self, fd: int) -> None:
        """Stops watching a descriptor."""
        self._broker.loop.unwatch(fd)


class Mirrors:
    """Runs one MirrorSource for each source cluster. Begins the rounds, in which each MirrorSource
    asks for its cluster's topics, and wakes the loop when a MirrorSource has something to do.
    Implements `broker.mirror.surroundings.Local`.
    """

    def __init__(self, broker: Broker, settings: Sequence[MirrorSettings], clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._interval_ms = broker.settings.mirror_metadata_interval_ms
        self._timer: Timer | None = None
        self._closed = False
        self._resolvers: list[Resolver] = []
        self._sources = [self._source(each) for each in settings]

    def start(self) -> None:
        """Begins the rounds."""
        self._broker.loop.call_every(self._interval_ms, self._round)
        self._round()

    def turn(self) -> None:
        """Called in each turn of the loop, before its writes. Appends the batches that have arrived
        from the sources.
        """
        due = [source for source in self._sources if source.is_due and not self._closed]
        for source in due:
            self._run(source, source.turn)
        if due:
            self._set_timer()

    def written(self) -> None:
        """Called in each turn of the loop, after its writes. Tells every MirrorSource that has
        appended batches to check which of them were written.
        """
        for source in self._sources:
            if source.has_appended and not self._closed:
                self._run(source, source.written)
                self._set_timer()

    def close(self) -> None:
        """Ends all connections to sources."""
        self._closed = True
        for resolver in self._resolvers:
            resolver.close()
        for source in self._sources:
            source.close()

    def status(self) -> list[dict[str, Any]]:
        """Returns the status for /health, metrics and `skidway mirror status`. Any thread may call
        this.
        """
        catalog = self._broker.topics.catalog
        address = catalog.brokers[self._broker.settings.broker_id].endpoints[0].address
        return [status_of(source, catalog.topics, address) for source in self._sources]

    # Each MirrorSource calls these methods (see the class `Local` in broker.mirror.surroundings).

    def topics(self) -> Mapping[str, Topic]:
        """Returns all topics of this cluster, by name."""
        return self._broker.topics.catalog.topics

    def busy(self) -> set[str]:
        """Returns the names of topics that are being created or deleted."""
        topics = self._broker.topics
        return {*topics.creating, *topics.catalog.deleting}

    def replica(self, partition: TopicPartition) -> Replica | None:
        """Returns this broker's replica of a partition; None if this broker does not lead the
        partition.
        """
        return self._broker.partitions.get(partition)

    def create(self, creation: Creation, done: Done) -> None:
        """Creates a mirror topic, and assigns all of its partitions to this broker."""
        here = (self._broker.settings.broker_id,)
        assignment = dict.fromkeys(range(creation.partitions), here)

        def created(error: SkidwayError | None) -> None:
            if error is None:
                _log.info("mirror_topic_created", topic=creation.name)
            done(error)

        self._broker.topics.create(creation.name, assignment, creation.configs, created)

    def extend(self, topic: Topic, partitions: int, done: Done) -> None:
        """Adds partitions to a topic, so that it has `partitions` partitions. Assigns the new
        partitions to this broker."""
        here = (self._broker.settings.broker_id,)
        assignment = {number: info.replicas for number, info in topic.partitions.items()}
        for number in range(partitions):
            assignment.setdefault(number, here)

        def extended(error: SkidwayError | None) -> None:
            if error is None:
                _log.info("mirror_topic_extended", topic=topic.name, partitions=partitions)
            done(error)

        self._broker.topics.extend(topic, assignment, extended)

    def name_gap(self, topic: Topic, gap: Gap, done: Done) -> None:
        """Writes a gap (missing offsets) into the topic's settings in ZooKeeper."""

        def named(error: SkidwayError | None) -> None:
            if not self._closed:
                done(error)
                self._set_timer()

        self._broker.topics.session.submit(
            lambda coordinator: store.name_gap(coordinator, topic.name, topic.topic_id, gap), named
        )

    def appended(self, replica: Replica, header: BatchHeader) -> None:
        """Notes that a batch was appended."""
        self._broker.partitions.touch(replica)
        self._broker.counts.batches += 1
        self._broker.counts.messages += header.count
        self._broker.counts.appended_bytes += header.size_bytes

    def refused(self, replica: Replica) -> None:
        """Notes that a log refused an append."""
        self._broker.partitions.touch(replica)

    def unreadable(self, replica: Replica, error: StorageFailed | DamagedLog) -> None:
        """Called when the log of a replica cannot be read. The broker then stops using the log, or
        the whole log directory.
        """
        if isinstance(error, DamagedLog):
            self._broker.partitions.damaged(replica.partition, error)
        else:
            self._broker.partitions.storage_failed(error)

    def _source(self, settings: MirrorSettings) -> MirrorSource:
        here = self._broker.settings.cluster_name
        watcher = LoopWatcher(self._broker, self._run)
        resolver = Resolver(self._broker.loop.post, lambda: client.looked_up())
        self._resolvers.append(resolver)
        kafka = settings.kafka.named(f"skidway-mirror-{here}")
        client = kafka.loop_client(watcher, clock=self._clock, look_up=resolver.look_up)
        patterns = [re.compile(pattern) for pattern in settings.topics]
        mirroring = Mirroring(settings.cluster, here, patterns)
        source = MirrorSource(mirroring, client, self, self._clock)
        watcher.source = source
        return source

    def _run(self, source: MirrorSource, step: Step) -> None:
        """Runs a step of a MirrorSource. If there is a bug in the step, only this MirrorSource
        stops, and its status reports the bug.
        """
        if source.broken:
            return
        try:
            step()
        except Exception as error:  # noqa: BLE001 - see above
            self._broker.counts.mirrors_failed += 1
            cluster = source.topics.mirroring.cluster
            _log.error("mirror_failed", exc=error, cluster=cluster)
            source.give_up(f"the mirror of {cluster} failed: {error!r}")

    def _round(self) -> None:
        if self._closed:
            return
        for source in self._sources:
            self._run(source, source.begin_round)

    def _set_timer(self) -> None:
        deadlines = [source.next_deadline() for source in self._sources]
        due = min((each for each in deadlines if each is not None), default=None)
        if self._timer is not None and self._timer.action is not None:
            if self._timer.at == due:
                return
            self._broker.loop.timers.cancel(self._timer)
        # The timer only wakes the loop. The next turn of the loop then does the work that is due.
        self._timer = None if due is None else self._broker.loop.timers.call_at(due, _wake)


def _wake() -> None:
    """Does nothing: the timer that calls this function only has to cause a turn of the loop."""
