"""A Kafka cluster in memory. The classes of this module replace those of `skidway.kafka.client`,
and have the methods that Skidway's programs call.

No call waits, and by default no batch is lost. A test can change this: `MemoryCluster.refusals`
contains the errors with which the cluster refuses the next batches, and `MemoryLog.expire` drops
the beginning of a log. `MemoryCluster.fetch_errors` contains, for each partition that the cluster
refuses to send at present, the error with which it answers fetches of this partition. Retriable
errors do not belong there, because the real fetcher does not raise them.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.batch import CorruptBatch, EncodedBatch, seal, stamp, unpack_header
from skidway.kafka.client import (
    EARLIEST,
    READ_UNCOMMITTED,
    Address,
    Broker,
    BufferFull,
    Cluster,
    Delivery,
    Drained,
    Fetched,
    ListedOffset,
    NewTopic,
    Partition,
    TopicMetadata,
)
from skidway.kafka.client.fetching import LogEnd, whole_batches
from skidway.kafka.client.transactions import OpenTransaction
from skidway.kafka.errors import ErrorCode, KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition


@dataclass
class MemoryLog:
    """The log of one partition, which consists of whole batches with their offsets."""

    batches: list[bytearray] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epoch: int = 0
    stable: int | None = None
    """Where a transaction is open; None if none is open."""

    def append(self, encoded: EncodedBatch) -> int:
        batch = bytearray(seal(encoded))
        stamp(batch, 0, self.end, self.epoch)
        self.batches.append(batch)
        base, self.end = self.end, self.end + encoded.count
        return base

    def at_time(self, time_ms: int) -> int:
        """Returns the first offset of the first batch with a record of this time or later, or -1 if
        there is no such batch."""
        late = (b for b in map(unpack_header, self.batches) if b.max_timestamp >= time_ms)
        return next((b.base_offset for b in late), -1)

    def expire(self, offset: int) -> None:
        """Drops the batches whose last offset is lower than `offset`."""
        self.batches = self.at(offset)
        self.start = unpack_header(self.batches[0]).base_offset if self.batches else self.end

    def at(self, offset: int) -> list[bytearray]:
        """Returns the batch that contains an offset, and all later batches. Like a broker, which
        finds batches by its indexes, this method does not notice whether a batch is damaged."""
        return [b for b in self.batches if unpack_header(b).last_offset >= offset]


@dataclass
class MemoryTopic:
    name: str
    topic_id: uuid.UUID
    logs: list[MemoryLog]
    configs: dict[str, str] = field(default_factory=dict)


class MemoryCluster:
    def __init__(self, cluster_id: str = "memory") -> None:
        self.cluster_id = cluster_id
        self.topics: dict[str, MemoryTopic] = {}
        self.refusals: deque[KafkaError | None] = deque()
        self.fetch_errors: dict[TopicPartition, ErrorCode] = {}
        self.hidden: dict[str, ErrorCode] = {}
        """Topics that the brokers do not show, with the error for who asks for them by name."""
        self.secret: dict[str, ErrorCode] = {}
        """Topics of which the brokers do not tell the settings."""
        self.others: dict[Address, dict[str, MemoryTopic] | None] = {}
        """Further brokers, each with the topics that it shows; None for one that is silent."""

    def create(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> MemoryTopic:
        logs = [MemoryLog() for _ in range(partitions)]
        self.topics[name] = MemoryTopic(name, uuid.uuid4(), logs, dict(configs or {}))
        return self.topics[name]

    def log(self, tp: TopicPartition) -> MemoryLog:
        return self.topics[tp.topic].logs[tp.partition]


def _described(name: str, topic: MemoryTopic | None) -> TopicMetadata:
    if topic is None:
        return TopicMetadata(name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    partitions = tuple(Partition(i, 1, 0, (1,), (1,)) for i in range(len(topic.logs)))
    return TopicMetadata(name, topic.topic_id, ErrorCode.NONE, partitions)


class MemoryClient:
    def __init__(self, cluster: MemoryCluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock

    def metadata(
        self, topics: Sequence[str] | None = None, broker: Broker | None = None
    ) -> Cluster:
        shown = [x for x in self.cluster.topics if x not in self.cluster.hidden]
        names = shown if topics is None else topics
        return Cluster(self.cluster.cluster_id, 1, {}, {n: self._topic(n) for n in names})

    def metadata_of_each(
        self, timeout_ms: int, topics: Sequence[str] | None = None
    ) -> tuple[dict[Address, Cluster], dict[Address, str]]:
        found, failed = {Address("memory", 9092): self.metadata(topics)}, {}
        for address, shown in self.cluster.others.items():
            if shown is None:
                failed[address] = f"{address}: no answer in time"
                continue
            names = shown if topics is None else topics
            known = {name: _described(name, shown.get(name)) for name in names}
            found[address] = Cluster(self.cluster.cluster_id, 1, {}, known)
        return found, failed

    def _topic(self, name: str) -> TopicMetadata:
        if name in self.cluster.hidden:
            return TopicMetadata(name, None, self.cluster.hidden[name], ())
        return _described(name, self.cluster.topics.get(name))

    def create_topics(self, topics: Sequence[NewTopic]) -> dict[str, KafkaError | None]:
        results: dict[str, KafkaError | None] = {}
        for topic in topics:
            results[topic.name] = None
            if topic.name in self.cluster.topics:
                results[topic.name] = KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, topic.name)
                continue
            self.cluster.create(topic.name, max(topic.partitions, 1), topic.configs)
        return results

    def topic_configs_now(
        self, names: Sequence[str]
    ) -> tuple[dict[str, dict[str, str]], dict[str, KafkaError]]:
        errors = {x: KafkaError(self.cluster.secret[x]) for x in names if x in self.cluster.secret}
        return self.topic_configs([x for x in names if x not in errors]), errors

    def topic_configs(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return {name: dict(self.cluster.topics[name].configs) for name in names}

    def list_offsets(
        self, times: Mapping[TopicPartition, int], isolation_level: int | None = None
    ) -> dict[TopicPartition, ListedOffset]:
        found = {}
        for tp, time in times.items():
            log = self.cluster.log(tp)
            if time >= 0:
                found[tp] = ListedOffset(log.at_time(time), -1, 0)
            else:
                is_committed = isolation_level != READ_UNCOMMITTED
                end = log.stable if is_committed and log.stable is not None else log.end
                found[tp] = ListedOffset(log.start if time == EARLIEST else end, -1, 0)
        return found

    def list_offsets_now(
        self, times: Mapping[TopicPartition, int], isolation_level: int | None = None
    ) -> tuple[dict[TopicPartition, ListedOffset], dict[TopicPartition, KafkaError]]:
        return self.list_offsets(times, isolation_level), {}

    def close(self) -> None:
        pass


class MemoryProducer:
    """A producer that delivers its batches to the cluster when `poll` is called next."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self._cluster = cluster
        self._queue: deque[tuple[TopicPartition, EncodedBatch, object]] = deque()
        self.room = 1_000

    @property
    def has_room(self) -> bool:
        return len(self._queue) < self.room

    @property
    def pending_count(self) -> int:
        return len(self._queue)

    def send(self, tp: TopicPartition, encoded: EncodedBatch, token: object) -> None:
        if not self.has_room:
            raise BufferFull("full")
        self._queue.append((tp, encoded, token))

    def poll(self, timeout_ms: int, *wake: int) -> list[Delivery]:
        deliveries: list[Delivery] = []
        refused: KafkaError | None = None
        while self._queue:
            tp, encoded, token = self._queue.popleft()
            if refused is not None:
                deliveries.append(Delivery(token, tp, -1, Drained(tp)))
                continue
            refused = self._cluster.refusals.popleft() if self._cluster.refusals else None
            base = -1 if refused is not None else self._cluster.log(tp).append(encoded)
            deliveries.append(Delivery(token, tp, base, refused))
        return deliveries

    def close(self) -> None:
        pass


class MemoryFetcher:
    """A fetcher that returns at most `batches_max` batches of each partition at each poll.

    Like the real fetcher, this one stops a partition that cannot be read: it raises the error once,
    after the batches that it fetched before the error, and reads the partition again only after
    `seek`. With a clock, it has `ends` like the real fetcher. `fetch_count` is the number of times
    that it asked the cluster for a partition.
    """

    def __init__(
        self, cluster: MemoryCluster, batches_max: int = 1_000, clock: Clock | None = None
    ) -> None:
        self._cluster = cluster
        self._batches_max = batches_max
        self.positions: dict[TopicPartition, int] = {}
        self._halted: dict[TopicPartition, SkidwayError] = {}
        self._errors: deque[tuple[TopicPartition, SkidwayError]] = deque()
        self._errors_due = 0
        self.stopped: TopicPartition | None = None
        self.refusals: dict[TopicPartition, tuple[float, str]] = {}
        self.clock = clock
        self.ends: dict[TopicPartition, LogEnd] = {}
        self.open_transactions: dict[TopicPartition, OpenTransaction] = {}
        self.held: dict[TopicPartition, int] = {}
        """The high watermarks of partitions in which a transaction is open at the log's end."""
        self.fetch_count = 0
        self.interruptions: dict[TopicPartition, str] = {}
        self._unbroken: set[TopicPartition] = set()

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        return {tp: self._cluster.log(tp).end for tp in self.positions}

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.positions[tp] = offset
        self._unbroken.discard(tp)
        self._halted.pop(tp, None)

    def take_interruptions(self) -> dict[TopicPartition, str]:
        found, self.interruptions = self.interruptions, {}
        return found

    def remove(self, tp: TopicPartition) -> None:
        self.positions.pop(tp, None)
        self.ends.pop(tp, None)
        self._halted.pop(tp, None)

    def poll(self, timeout_ms: int, *wake: int) -> list[Fetched]:
        while self._errors_due:
            self._errors_due -= 1
            self._raise_error()
        read = [tp for tp in self.positions if tp not in self._halted]
        found = [each for each in map(self._fetch, read) if each is not None]
        self._errors_due = len(self._errors) if found else 0
        if not found:
            self._raise_error()
        return found

    def _fetch(self, tp: TopicPartition) -> Fetched | None:
        self.fetch_count += 1
        log, position = self._cluster.log(tp), self.positions[tp]
        error: SkidwayError
        if tp in self._cluster.fetch_errors:
            error = KafkaError(self._cluster.fetch_errors[tp], f"{tp} cannot be read")
        elif not log.start <= position <= log.end:
            error = OffsetOutOfRange(tp, position, log.start, log.end)
        else:
            if self.clock is not None:
                self._note_end(self.clock.monotonic(), tp, log.end)
            records = memoryview(b"".join(log.at(position)[: self._batches_max]))
            try:
                batches, self.positions[tp] = whole_batches(records, position)
                if not batches:
                    return None
                unbroken = tp in self._unbroken and tp not in self.interruptions
                self._unbroken.add(tp)
                return Fetched(tp, log.end, log.start, batches, unbroken)
            except CorruptBatch as damage:
                error = CorruptBatch(f"{tp} cannot be read at offset {position}: {damage}")
        self._halted[tp] = error
        self._errors.append((tp, error))
        return None

    def _note_end(self, now: float, tp: TopicPartition, end: int) -> None:
        self.ends[tp] = LogEnd(self.held.get(tp, end), now)
        if tp in self.held:
            self.open_transactions.setdefault(tp, OpenTransaction(end, now))
        else:
            self.open_transactions.pop(tp, None)

    def _raise_error(self) -> None:
        while self._errors:
            tp, error = self._errors.popleft()
            if self._halted.get(tp) is error:  # nobody has called `seek` since
                self.stopped = tp
                raise error
