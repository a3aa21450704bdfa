"""The class `Broker`: it has all parts that the handlers of requests use, and does the work at the
end of a turn of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from skidway import log
from skidway.broker.access_control import AccessControl
from skidway.broker.coordination.producer_ids import ProducerIds
from skidway.broker.counts import Counts
from skidway.broker.groups.administration import GroupAdministration
from skidway.broker.groups.coordinator import Groups
from skidway.broker.kept_answers import KeptAnswers
from skidway.broker.log import names
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.log_manager import LogManager
from skidway.broker.log.producer_state import OutOfOrderSequence
from skidway.broker.network.loop import Loop
from skidway.broker.partitions.hosted import HostedPartitions
from skidway.broker.purgatory import Purgatory
from skidway.broker.refusals import Refusals
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.administration import Topics
from skidway.broker.topics.auto_creation import AutoCreation
from skidway.clock import Clock
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.types import TopicPartition

DISK_FULL = "DiskFull"
"""The reason under which the broker counts a batch that was refused because the disk is full. All
other reasons under which refused batches are counted are names of exceptions.
"""
_log = log.get(__name__)


class Appended(Protocol):
    """One or more produce requests whose batches were appended to logs in this turn of the loop,
    but are not yet written to files."""

    def answer_written(self, broker: Broker) -> None:
        """Answers the produce requests, whose batches have now been written. A request with
        acks=all waits until the high watermark has passed its batches."""
        ...

    def abandon(self) -> None:
        """Closes the connection of the requests. Called if the requests cannot be answered."""
        ...


class Broker:
    """All parts of a broker. The handlers of requests get every part from this object."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        loop: Loop,
        logs: LogManager,
        partitions: HostedPartitions,
        purgatory: Purgatory,
        topics: Topics,
        producer_ids: ProducerIds,
        groups: Groups,
        group_administration: GroupAdministration,
        access: AccessControl,
    ) -> None:
        # This constructor has so many parameters because this object, unlike all others, needs all
        # parts of the broker.
        self.settings = settings
        self.loop = loop
        self.logs = logs
        self.partitions = partitions
        self.purgatory = purgatory
        self.topics = topics
        self.producer_ids = producer_ids
        self.groups = groups
        self.group_administration = group_administration
        self.access = access
        self.metadata_answers = KeptAnswers(
            lambda: (topics.catalog, logs.stopped, access.authorizer.rules)
        )
        self.counts = Counts()
        self.refusals = Refusals(clock.monotonic)
        self.auto_creation = AutoCreation(clock.monotonic)
        self.api_ranges: Mapping[ApiKey, VersionRange] = {}
        """The APIs that the broker offers, with their versions. `api.requests` sets this."""
        self.api_versions_answers = KeptAnswers(lambda: (self.api_ranges,))
        self.now_ms = clock.time_ms()
        self.appended: list[Appended] = []
        self.stopping = False
        self.own_status: Callable[[], Mapping[str, Any]] = dict
        """Returns how the broker was started, and what keeps it from its work."""
        self._clock = clock

    def read_clock(self) -> None:
        """Called when the handling of a request begins. Reads the clock if nothing was appended in
        this turn yet. So all batches of a turn are appended with the same time.
        """
        if not self.appended:
            self.now_ms = self._clock.time_ms()

    def answer_appended(self) -> None:
        """Answers the requests whose batches were written at the end of this turn."""
        if self.appended:
            appended, self.appended = self.appended, []
            for each in appended:
                self._answer(each)

    def unreadable(self, error: StorageFailed | DamagedLog) -> None:
        """Called when a log's file cannot be read. If the disk has failed, the broker stops using
        the log directory. If only the file is damaged, the broker stops serving the file's
        partition."""
        partition = names.partition_of(error.path.parent.name)
        if isinstance(error, StorageFailed):
            self.partitions.storage_failed(error)
        elif partition is not None:
            self.partitions.damaged(partition, error)

    def count_refused(self, partition: TopicPartition, kind: type[Exception]) -> None:
        """Counts a batch that was refused with an exception of type `kind`.

        If one batch of an idempotent producer does not fit on the disk, the producer's next batches
        are refused as out of order, because that batch is missing. So while the log directory of
        the partition is full, batches that are out of order are counted under DISK_FULL, like those
        that did not fit.
        """
        follows = issubclass(kind, (StorageFailed, OutOfOrderSequence))
        is_full = follows and self.logs.why_full(partition) is not None
        self.counts.count_refused(DISK_FULL if is_full else kind.__name__)

    def not_written(self, partition: TopicPartition) -> str | None:
        """Counts a batch that could not be written to its log. If its log directory is full,
        returns a description of the operation that failed for lack of space; otherwise returns
        None."""
        self.count_refused(partition, StorageFailed)
        return self.logs.why_full(partition)

    def why_not_served(self, topic: str, partition: int) -> ErrorCode:
        """Returns the error code that a client gets for a partition that this broker does not
        serve.
        """
        if TopicPartition(topic, partition) in self.logs.stopped:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self.topics.catalog.topics.get(topic)
        info = None if known is None else known.partitions.get(partition)
        if info is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if info.state is None:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _answer(self, appended: Appended) -> None:
        try:
            appended.answer_written(self)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not reach other connections
            self.counts.answers_failed += 1
            _log.error("answer_failed", exc=error)
            appended.abandon()
