"""A world for tests of the real `MirrorSource`, the broker's part that mirrors another cluster (the
source). In this world, the source is in memory, and a simulated network loses and delays messages.

All code that decides is the real code, that is, the MirrorSource, the follower of each partition,
the fetcher, and the logs, which are in files. The source's brokers, the network, ZooKeeper and the
disk's errors are simulated. Events happen only when a test causes them. `settle` lets time pass,
and lets all messages arrive.
"""

from __future__ import annotations

import errno
import re
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.catalog import Topic, TopicPartitionInfo
from skidway.broker.coordination.store import TooManyGaps
from skidway.broker.log import partition_log
from skidway.broker.log.config import LogConfig
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.opening import Opening
from skidway.broker.log.recovery import open_log
from skidway.broker.log.segment import Segment
from skidway.broker.mirror.rounds import Creation, Mirroring
from skidway.broker.mirror.source import MirrorSource
from skidway.broker.mirror.status import status_of
from skidway.broker.mirror.surroundings import Done
from skidway.broker.partitions.replica import Replica
from skidway.broker.topics.configs import log_config
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import gaps
from skidway.kafka.batch import BatchHeader, headers, read_header, unpack_header
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import EARLIEST, Address, Cluster, cluster_of
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.fetching import Fetching, PlannedFetch
from skidway.kafka.client.following import Turn
from skidway.kafka.client.session import Disconnected
from skidway.kafka.errors import ErrorCode
from skidway.kafka.gaps import Gap
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ResourceType,
)
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchedPartition
from skidway.kafka.protocol.find_coordinator import FindCoordinatorResponse
from skidway.kafka.protocol.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skidway.kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from skidway.kafka.types import TopicPartition
from support.batches import batch_at
from support.clock import ManualClock

BROKER = Address("dc1-1", 9092)
CLUSTER = "dc1"
ALL = 1 << 30


def batch(number: int, base: int, count: int, epoch: int = 0, size: int = 40) -> bytes:
    """Returns a batch of `count` records as it lies in the source's log, with the base offset
    `base`. Batches with different `number`s have different bytes."""
    body = (b"%020d" % number).ljust(size, b".")
    return batch_at(base, count, epoch=epoch, body=body)


@dataclass
class SourceLog:
    """The log of one partition of the source. It has batches that consumers can see (below the high
    watermark), and staged batches that they cannot see yet."""

    batches: list[bytes] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epoch: int = 0
    numbers: int = 0
    staged: list[bytes] = field(default_factory=list)

    def append(self, count: int = 3, *, skip: int = 0, salt: int = 0) -> None:
        """Skips `skip` offsets after the log end and then appends a batch of `count` records.
        Batches with different `salt` have different bytes."""
        self.numbers += 1
        base = self.end + skip
        self.batches.append(batch(self.numbers + salt, base, count, self.epoch))
        self.end = base + count

    def expire(self, offset: int) -> None:
        """Moves the log start to an offset, and drops the batches that are completely before this
        offset."""
        self.start = max(self.start, offset)
        self.batches = [b for b in self.batches if read_header(b).last_offset >= self.start]

    def stage(self, count: int) -> None:
        """Appends a batch of `count` records after the high watermark. Consumers do not see this
        batch before `flush`."""
        self.numbers += 1
        base = read_header(self.staged[-1]).last_offset + 1 if self.staged else self.end
        self.staged.append(batch(self.numbers, base, count, self.epoch))

    def flush(self) -> None:
        """Raises the high watermark above the staged batches. From now on consumers see these
        batches, and the batches survive `crash`."""
        for raw in self.staged:
            self.batches.append(raw)
            self.end = read_header(raw).last_offset + 1
        self.staged = []

    def crash(self) -> None:
        """Drops the batches that were not flushed, and begins a new leader epoch. The next batches
        get the offsets of the dropped ones."""
        self.staged = []
        self.epoch += 1

    def cut(self, offset: int) -> None:
        """Truncates the log by removing the batch that contains the offset and all later
        batches."""
        self.batches = [b for b in self.batches if read_header(b).last_offset < offset]
        last = read_header(self.batches[-1]).last_offset + 1 if self.batches else self.start
        self.end = min(self.end, last)

    def read(self, offset: int, max_bytes: int) -> bytes | None:
        """Returns the batch that contains the offset, and as many batches after it as fit into
        `max_bytes`. Returns None if the offset is out of range."""
        if not self.start <= offset <= self.end:
            return None
        found = b""
        for raw in self.batches:
            if unpack_header(raw).last_offset >= offset:
                if found and len(found) + len(raw) > max_bytes:
                    break
                found += raw
        return found


@dataclass
class SourceTopic:
    """One topic of the source."""

    logs: list[SourceLog]
    topic_id: uuid.UUID = field(default_factory=uuid.uuid4)
    configs: dict[str, str] = field(default_factory=dict)
    error: ErrorCode = ErrorCode.NONE
    describe_error: ErrorCode = ErrorCode.NONE


class SourceCluster:
    """Represents all brokers of the source in one object."""

    def __init__(self) -> None:
        self.cluster_id = "source-cluster"
        self.broker_configs: dict[str, str] = {}
        self.topics: dict[str, SourceTopic] = {}
        self.max_bytes = 400
        self.fetch_error: dict[TopicPartition, ErrorCode] = {}
        self.offsets_error = ErrorCode.NONE
        self.committed: dict[tuple[str, TopicPartition], int] = {}
        self.commits = 0
        self.commit_error = ErrorCode.NONE

    def create(self, name: str, partitions: int = 1, **configs: str) -> SourceTopic:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        made = SourceTopic([SourceLog() for _ in range(partitions)], configs=settings)
        self.topics[name] = made
        return made

    def log(self, name: str, partition: int = 0) -> SourceLog:
        return self.topics[name].logs[partition]

    def metadata(self) -> MetadataResponse:
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host=BROKER.host, port=BROKER.port),),
            cluster_id=self.cluster_id,
            controller_id=1,
            topics=tuple(self._metadata_of(name, topic) for name, topic in self.topics.items()),
        )

    def _metadata_of(self, name: str, topic: SourceTopic) -> MetadataResponseTopic:
        if topic.error:
            return MetadataResponseTopic(name=name, error_code=topic.error)
        rows = tuple(
            MetadataResponsePartition(
                partition_index=number,
                leader_id=1,
                leader_epoch=0,
                replica_nodes=(1,),
                isr_nodes=(1,),
            )
            for number in range(len(topic.logs))
        )  # fmt: skip
        return MetadataResponseTopic(name=name, topic_id=topic.topic_id, partitions=rows)

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        self.commits += 1
        rows = {}
        for topic in request.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                if not self.commit_error:
                    self.committed[request.group_id, tp] = row.committed_offset
                result = OffsetCommitResponsePartition(
                    partition_index=row.partition_index, error_code=self.commit_error
                )
                rows.setdefault(topic.name, []).append(result)
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(name=name, partitions=tuple(each))
                for name, each in rows.items()
            )
        )

    def answer(self, call: Any) -> Any:
        """Returns the answer that the source would give to a request now."""
        if call.api is ApiKey.METADATA:
            return self.metadata()
        request = call.build(0)
        if call.api is ApiKey.DESCRIBE_CONFIGS:
            return DescribeConfigsResponse(
                results=tuple(self._described(each) for each in request.resources)
            )
        if call.api is ApiKey.FIND_COORDINATOR:
            return FindCoordinatorResponse(node_id=1, host=BROKER.host, port=BROKER.port)
        if call.api is ApiKey.OFFSET_COMMIT:
            return self._commit(request)
        assert call.api is ApiKey.LIST_OFFSETS
        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        self._listed(topic.name, row.partition_index, row.timestamp)
                        for row in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _described(self, resource: DescribeConfigsResource) -> DescribeConfigsResult:
        kind, name = resource.resource_type, resource.resource_name
        if kind == ResourceType.BROKER:
            return self._configs(kind, name, self.broker_configs)
        topic = self.topics.get(name)
        if topic is None or topic.describe_error:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.describe_error
            return DescribeConfigsResult(error_code=code, resource_type=kind, resource_name=name)
        return self._configs(kind, name, topic.configs)

    def _configs(self, kind: int, name: str, configs: dict[str, str]) -> DescribeConfigsResult:
        rows = tuple(
            DescribeConfigsResourceResult(name=key, value=value) for key, value in configs.items()
        )
        return DescribeConfigsResult(resource_type=kind, resource_name=name, configs=rows)

    def _listed(self, name: str, number: int, timestamp: int) -> ListOffsetsPartitionResponse:
        topic = self.topics.get(name)
        code = self.offsets_error
        if topic is None or number >= len(topic.logs):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if code or topic is None:
            return ListOffsetsPartitionResponse(partition_index=number, error_code=code)
        log = topic.logs[number]
        offset = log.start if timestamp == EARLIEST else log.end
        return ListOffsetsPartitionResponse(partition_index=number, offset=offset)

    def fetch(self, planned: PlannedFetch, then: Mapping[str, SourceTopic]) -> FetchAnswer:
        """Returns the answer that the source would now give to a fetch. `SourceCluster.max_bytes`
        limits the size of the answer.

        `then` contains the topics that existed when the fetch was sent. If one of them has been
        deleted since, the fetch fails for this topic.
        """
        left, parts = self.max_bytes, []
        for wanted in planned.request.wanted:
            tp = TopicPartition(wanted.topic, wanted.partition)
            part = self._fetched(tp, wanted.offset, left)
            if then.get(tp.topic) is not self.topics.get(tp.topic):
                part = _part(tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            left -= len(part.records)
            parts.append(part)
        return FetchAnswer(0, 0, 0, parts)

    def _fetched(self, tp: TopicPartition, offset: int, left: int) -> FetchedPartition:
        topic = self.topics.get(tp.topic)
        if topic is None or tp.partition >= len(topic.logs):
            return _part(tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if tp in self.fetch_error:
            return _part(tp, self.fetch_error[tp])
        log = topic.logs[tp.partition]
        data = log.read(offset, left) if left > 0 else b""
        if data is None:
            return _part(tp, ErrorCode.OFFSET_OUT_OF_RANGE)
        return _part(tp, ErrorCode.NONE, log.end, log.start, data)


def _part(
    tp: TopicPartition, code: ErrorCode, end: int = -1, start: int = -1, data: bytes = b""
) -> FetchedPartition:
    return FetchedPartition(*tp, code, end, end, start, memoryview(data), None, -1)


class WireClient:
    """The mirror's connection to the source, with the real fetcher and a simulated network instead
    of sockets. Replaces `LoopClient` and implements SourceClient."""

    def __init__(self, world: MirrorWorld) -> None:
        self._world = world
        self._fetching = Fetching(max_bytes=ALL, max_wait_ms=500, min_bytes=1, random=world.jitter)
        self._tickets = 0
        self.connection = 0
        self.is_down = False
        self.fetches: deque[PlannedFetch] = deque()  # fetches that were sent and not answered
        self.served: deque[tuple[PlannedFetch, FetchAnswer]] = deque()
        self.arrived: deque[tuple[PlannedFetch, FetchAnswer | None, int]] = deque()
        self.asked: deque[tuple[int, Call]] = deque()
        self.answers: deque[Answer] = deque()
        self.inbox: deque[Answer] = deque()
        self._moved = False
        self._sent_at: dict[int, float] = {}
        self._topics_then: dict[str, SourceTopic] = {}

    @property
    def cluster(self) -> Cluster:
        return cluster_of(self._world.source.metadata())

    @property
    def high_watermarks(self) -> dict[TopicPartition, int]:
        return self._fetching.high_watermarks

    @property
    def positions(self) -> dict[TopicPartition, int]:
        return self._fetching.positions

    @property
    def last_failure(self) -> str:
        return "refused" if self.is_down else ""

    @property
    def has_news(self) -> bool:
        return bool(self._moved or self.arrived or self.inbox or self._fetching.has_something)

    @property
    def next_deadline(self) -> float | None:
        return self._fetching.next_deadline(self._world.clock.monotonic())

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._fetching.seek(tp, offset)
        self._moved = True

    def remove(self, tp: TopicPartition) -> None:
        self._fetching.remove(tp)

    def ask(self, call: Call, address: Address | None = None) -> int:
        self._tickets += 1
        self._moved = True
        if self.is_down:
            self.inbox.append(Answer(self._tickets, None, Disconnected("refused")))
        else:
            self.asked.append((self._tickets, call))
        return self._tickets

    def ready(self, fd: int, readable: bool, writable: bool) -> bool:
        raise AssertionError("there are no descriptors here")

    def close(self) -> None:
        self.lose()

    def turn(self) -> Turn:
        now = self._world.clock.monotonic()
        self._moved = False
        while self.arrived:
            planned, answer, connection = self.arrived.popleft()
            if answer is None:
                self._fetching.lost(planned.id, now)
            else:
                self._fetching.answered(planned.id, answer, now, (BROKER, connection))
        fetched = self._fetching.take()
        planned = self._fetching.plan(
            lambda _: BROKER, lambda _: not self.is_down and not self._open, now
        )
        self._sent_at = {each.id: now for each in planned} or self._sent_at
        self._topics_then = dict(self._world.source.topics)
        self.fetches += planned
        stopped = []
        while (error := self._fetching.take_error()) is not None:
            stopped.append(error)
        answers = list(self.inbox)
        self.inbox.clear()
        return Turn(fetched, stopped, answers, self._fetching.take_interruptions())

    # The simulated network.

    @property
    def _open(self) -> bool:
        return bool(self.fetches or self.served)

    def serve(self) -> None:
        """Lets the source answer its requests. If a fetch finds no records, the source answers only
        after the fetch's maximum wait. The client gets the answers only when the test calls
        `deliver`."""
        now = self._world.clock.monotonic()
        for planned in list(self.fetches):
            answer = self._world.source.fetch(planned, self._topics_then)
            if any(part.error_code or len(part.records) for part in answer.partitions) or (
                now >= self._sent_at[planned.id] + planned.request.max_wait_ms / 1000
            ):
                self.fetches.remove(planned)
                self.served.append((planned, answer))
        while self.asked:
            ticket, call = self.asked.popleft()
            self.answers.append(Answer(ticket, self._world.source.answer(call), None))

    def deliver(self) -> None:
        """Lets the client receive the source's answers."""
        while self.served:
            self.arrived.append((*self.served.popleft(), self.connection))
        while self.answers:
            self.inbox.append(self.answers.popleft())

    def lose(self, *, after_last_answer: bool = False) -> None:
        """Breaks the client's connections. Requests and answers that have not arrived are lost. If
        `after_last_answer` is true, the source's answers still arrive before the connections
        break."""
        if after_last_answer:
            self.deliver()
        for planned in [*self.fetches, *(planned for planned, _ in self.served)]:
            self.arrived.append((planned, None, self.connection))
        lost = [*(ticket for ticket, _ in self.asked), *(each.ticket for each in self.answers)]
        self.inbox += [Answer(ticket, None, Disconnected("lost")) for ticket in lost]
        for queue in (self.fetches, self.served, self.asked, self.answers):
            queue.clear()
        self.connection += 1


class Disk:
    """A simulated disk that refuses writes and new files while it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        self._write, self._create = partition_log.write_all_at, Segment.create
        monkeypatch.setattr(partition_log, "write_all_at", self.write)
        monkeypatch.setattr(Segment, "create", self.create)

    def write(self, descriptor: int, buffers: Any, position: int) -> None:
        self._check()
        self._write(descriptor, buffers, position)

    def create(self, directory: Path, base_offset: int) -> Segment:
        self._check()
        return self._create(directory, base_offset)

    def _check(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")


class LocalBroker:
    """The broker that runs the mirror. Implements `Local`, through which MirrorSource uses its
    broker. The broker's topics are in a simulated ZooKeeper, and its logs are in files."""

    def __init__(self, folder: Path, clock: ManualClock, defaults: LogConfig) -> None:
        self._folder = folder
        self._clock = clock
        self._defaults = defaults
        self._touched: dict[Replica, None] = {}
        self.catalog: dict[str, Topic] = {}
        self.replicas: dict[TopicPartition, Replica] = {}
        self.zookeeper: dict[str, dict[str, str]] = {}  # each topic's configs
        self.zookeeper_is_away = False
        self.jobs: deque[Callable[[], None]] = deque()
        self.posted: deque[Callable[[], None]] = deque()
        self.unreadable_logs: list[str] = []
        self.gaps_max = gaps.GAPS_MAX

    def topics(self) -> dict[str, Topic]:
        return self.catalog

    def busy(self) -> set[str]:
        return set()

    def replica(self, partition: TopicPartition) -> Replica | None:
        return self.replicas.get(partition)

    def create(self, creation: Creation, done: Done) -> None:
        self._job(lambda: self._create(creation), done)

    def extend(self, topic: Topic, partitions: int, done: Done) -> None:
        self._job(lambda: self._host(topic.name, topic.topic_id, partitions), done)

    def name_gap(self, topic: Topic, gap: Gap, done: Done) -> None:
        self._job(lambda: self._name_gap(topic, gap), done)

    def appended(self, replica: Replica, header: BatchHeader) -> None:
        self._touched[replica] = None

    def refused(self, replica: Replica) -> None:
        self._touched[replica] = None

    def unreadable(self, replica: Replica, error: StorageFailed | DamagedLog) -> None:
        self.unreadable_logs.append(str(error))
        self.replicas.pop(replica.partition, None)

    # The following methods are called directly by tests.

    def add(self, name: str, partitions: int = 1, **configs: str) -> Topic:
        """Adds a topic to the local broker, as if another client had created it."""
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        self._create(Creation(name, partitions, settings))
        return self.catalog[name]

    def delete(self, name: str) -> None:
        """Deletes a topic of the local broker and renames its directories, as the broker does
        before it removes them."""
        topic = self.catalog.pop(name)
        self.zookeeper.pop(name)
        for number in topic.partitions:
            del self.replicas[TopicPartition(name, number)]
            path = self._folder / f"{name}-{number}"
            path.rename(path.with_name(f"{path.name}.{topic.topic_id.hex}-delete"))

    def reopen(self, partition: TopicPartition, point: int = 0) -> Replica:
        """Opens a partition's log again from its files, as a broker does after a crash. `point` is
        the recovery point, that is, an offset up to which the log is certainly flushed."""
        old = self.replicas[partition]
        topic = self.catalog[partition.topic]
        config = log_config(self._defaults, self.zookeeper[partition.topic])
        opening = Opening(partition, old.log.directory, config, self._clock.time_ms(),
                          recovery_point=point)  # fmt: skip
        new = Replica(partition, topic.topic_id, open_log(opening).log, 0)
        self.replicas[partition] = new
        return new

    def write(self) -> None:
        """Writes to the log files the batches that were appended in this turn, as the broker does
        at the end of a turn. Does not raise transient errors, because the log itself handles
        them."""
        touched, self._touched = self._touched, {}
        for replica in touched:
            try:
                replica.log.write()
            except StorageFailed as error:
                if not error.is_passing:
                    raise

    def work(self) -> None:
        """Runs the waiting requests to ZooKeeper. `tell` then calls the callbacks with their
        results."""
        while self.jobs:
            self.jobs.popleft()()

    def tell(self) -> None:
        """Runs the callbacks that were posted to the loop."""
        while self.posted:
            self.posted.popleft()()

    def batches(self, name: str, number: int = 0) -> list[bytes]:
        """Returns the batches in the local broker's log files of partition `number` of the topic
        `name`."""
        directory = self._folder / f"{name}-{number}"
        data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
        return [data[at : at + header.size_bytes] for at, header in headers(data)]

    def named(self, name: str) -> list[Gap]:
        return gaps.decode(self.zookeeper[name].get(gaps.CONFIG, ""))

    def _job(self, work: Callable[[], None], done: Done) -> None:
        def run() -> None:
            error: SkidwayError | None = None
            try:
                if self.zookeeper_is_away:
                    raise Unreachable("ZooKeeper does not answer at present; try again")
                work()
            except SkidwayError as failure:
                error = failure
            self.posted.append(lambda: done(error))

        self.jobs.append(run)

    def _create(self, creation: Creation) -> None:
        self.zookeeper[creation.name] = dict(creation.configs)
        self._host(creation.name, uuid.uuid4(), creation.partitions)

    def _host(self, name: str, topic_id: uuid.UUID, partitions: int) -> None:
        infos = {number: TopicPartitionInfo((1,)) for number in range(partitions)}
        topic = Topic(name, topic_id, infos, dict(self.zookeeper[name]))
        self.catalog[name] = topic
        for number in range(partitions):
            tp = TopicPartition(name, number)
            if tp not in self.replicas:
                directory = self._folder / f"{name}-{number}"
                directory.mkdir()
                config = log_config(self._defaults, topic.configs)
                opened = open_log(Opening(tp, directory, config, self._clock.time_ms()))
                self.replicas[tp] = Replica(tp, topic_id, opened.log, 0)

    def _name_gap(self, topic: Topic, gap: Gap) -> None:
        if topic.name not in self.catalog:
            raise SkidwayError("gone")
        configs = self.zookeeper[topic.name]
        named = gaps.added(gaps.decode(configs.get(gaps.CONFIG, "")), gap)
        if len(named) > self.gaps_max:
            raise TooManyGaps("too many gaps")
        configs[gaps.CONFIG] = gaps.encode(named)
        self.catalog[topic.name] = replace(topic, configs=dict(configs))


class MirrorWorld:
    """One MirrorSource with its source cluster, its local broker and the other simulated parts."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, patterns: Sequence[str] = (".*",), *,
        defaults: LogConfig | None = None, jitter: Callable[[], float] = lambda: 0.5,
    ) -> None:  # fmt: skip
        self.clock = ManualClock()
        self.jitter = jitter
        self.source = SourceCluster()
        self.disk = Disk(monkeypatch)
        self.local = LocalBroker(folder, self.clock, defaults or LogConfig())
        self._mirroring = Mirroring(CLUSTER, "offline", [re.compile(each) for each in patterns])
        self.start()

    def start(self) -> None:
        """Makes a new MirrorSource with a new connection to the source, as a restart of the local
        broker does. The new MirrorSource knows only what the logs and ZooKeeper contain."""
        self.client = WireClient(self)
        self.mirror = MirrorSource(
            self._mirroring, self.client, self.local, self.clock, self.jitter
        )

    def turn(self) -> None:
        """Runs one turn of the local broker's loop."""
        self.local.tell()
        if self.mirror.is_due:
            self.mirror.turn()
        self.local.write()
        if self.mirror.has_appended:
            self.mirror.written()
        self.mirror.next_deadline()

    def settle(self, seconds: float = 10.0) -> None:
        """Runs turns until `seconds` have passed on the clock. In each turn, the source answers,
        and all messages arrive."""
        until = self.clock.monotonic() + seconds
        idle = turns = 0
        while turns < 10 or self.clock.monotonic() < until:
            turns += 1
            assert turns < 20_000, "it never comes to rest"
            self.client.serve()
            self.client.deliver()
            self.local.work()
            before = self.client.has_news
            self.turn()
            idle = 0 if before else idle + 1
            if idle > 2:
                due = self.mirror.next_deadline()
                self.clock.advance(max(0.05, min((due or 0) - self.clock.monotonic(), 0.5)))

    def round(self, seconds: float = 1.0) -> None:
        """Makes the mirror read the list of the source's topics once more, and then calls
        `settle`."""
        self.mirror.begin_round()
        self.settle(seconds)

    def follow(self) -> None:
        """Runs enough rounds for the mirror to create all new topics of the source, and to begin to
        copy their records."""
        for _ in range(3):
            self.round()

    @property
    def status(self) -> dict[str, Any]:
        return status_of(self.mirror, self.local.catalog, "offline:9092")

    def stopped(self) -> dict[str, str]:
        return dict(self.status["stopped"])
