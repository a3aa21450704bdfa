"""One source cluster, followed from inside of the broker's loop.

Rounds: every `mirror.metadata.interval.ms` the source's topics are asked for. What is wanted and
not here yet is created with its origin in the topic's configs; partitions that the source got later
are added; partitions that this broker leads get a follower. Between rounds the followers fetch.

A source topic made again under the same name (another topic id) is another topic: its followers
stop, by name. One that is gone keeps what was mirrored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.log.files import DamagedLog, StorageFailed
from broker.log.partition_log import PartitionLog
from broker.mirror import selection
from broker.mirror.follower import Append, Below, Follower, NameGap, Phase, Stop, Unverifiable
from broker.partitions.replica import Replica
from broker.topics.catalog import Topic as LocalTopic
from skidway import log
from skidway.errors import SkidwayError
from skidway.kafka import gaps
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch, check, read_header
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import (
    EARLIEST,
    LATEST,
    Address,
    Cluster,
    ListedOffset,
    Topic,
    cluster_of,
)
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.fetching import Fetched
from skidway.kafka.client.following import LoopClient
from skidway.kafka.client.metadata import metadata_call
from skidway.kafka.client.requests import (
    describe_configs_call,
    described_configs,
    list_offsets_call,
    listed_offsets,
)
from skidway.kafka.errors import KafkaError, OffsetOutOfRange
from skidway.kafka.gaps import Gap
from skidway.kafka.protocol.describe_configs import ResourceType
from skidway.kafka.types import TopicPartition

CONFIG_PREFIX = "mirror.source."
_log = log.get(__name__)


class Local(Protocol):
    """What a source may do to this broker; everything on the loop's thread."""

    cluster_name: str

    def topics(self) -> Sequence[LocalTopic]:
        """All topics of this cluster."""
        ...

    def replica(self, partition: TopicPartition) -> Replica | None:
        """A partition that this broker leads."""
        ...

    def has(self, topic: str) -> bool:
        """Whether a topic exists here or is being made."""
        ...

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        """Makes a topic; whoever fails is asked again with the next round."""
        ...

    def extend(self, topic: LocalTopic, partitions: int) -> None:
        """Gives a topic more partitions."""
        ...

    def set_config(
        self, topic: str, name: str, value: str, done: Callable[[SkidwayError | None], None]
    ) -> None:
        """Writes one config of a topic, durably."""
        ...

    def appended(self, replica: Replica, header: BatchHeader) -> None:
        """A batch was appended and is to be written at the end of the turn."""
        ...

    def storage_failed(self, replica: Replica, error: StorageFailed) -> None:
        """A log refused an append."""
        ...


@dataclass(slots=True)
class _Followed:
    """A follower and the replica whose log it fills."""

    replica: Replica
    follower: Follower
    unverifiable: int = 0


@dataclass(slots=True)
class _Round:
    """What a round is waiting for."""

    tickets: dict[int, Callable[[Answer], None]] = field(default_factory=dict)
    known: dict[str, bool] = field(default_factory=dict)
    """Topics whose configs were looked at, and whether they are mirrors themselves."""
    cluster: Cluster | None = None


class MirrorSource:
    """Owned by the loop; `turn` is called at the end of each of its turns."""

    def __init__(
        self, cluster: str, patterns: Sequence[str], client: LoopClient, local: Local
    ) -> None:
        self.cluster = cluster
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self._client = client
        self._local = local
        self._followed: dict[TopicPartition, _Followed] = {}
        self._round = _Round()
        self._failures = client.failure_count
        self.records = 0
        self.bytes = 0

    def begin_round(self) -> None:
        """Asks for the source's topics."""
        self._ask(metadata_call(None), self._topics_told)

    def turn(self) -> None:
        """Takes what has come, and carries out what it means."""
        if self._client.failure_count != self._failures:
            self._failures = self._client.failure_count
            self._interrupt_all()
        self._notice_refused_writes()
        turn = self._client.turn()
        for fetched in turn.fetched:
            self._take(fetched)
        for tp, error in turn.stopped:
            self._stopped(tp, error)
        for answer in turn.answers:
            action = self._round.tickets.pop(answer.ticket, None)
            if action is not None:
                action(answer)

    @property
    def next_deadline(self) -> float | None:
        """When the next turn is due though nothing has come (monotonic seconds)."""
        return self._client.next_deadline

    def ready(self, fd: int, readable: bool, writable: bool) -> None:
        """Serves one of the client's descriptors."""
        self._client.ready(fd, readable, writable)

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

    def status(self) -> dict[str, Any]:
        """For /health: what is followed, how far behind, what stopped and why. Only reads."""
        followed = list(self._followed.items())
        watermarks = dict(self._client.high_watermarks)
        lag = {
            tp: max(watermarks[tp] - each.follower.log_end, 0)
            for tp, each in followed
            if tp in watermarks
        }
        stopped = {
            str(tp): each.follower.reason
            for tp, each in followed
            if each.follower.phase is Phase.STOPPED
        }
        return {
            "cluster": self.cluster,
            "partitions": len(followed),
            "lag": sum(lag.values()),
            "checking": sum(each.follower.phase is Phase.CHECKING for _, each in followed),
            "stopped": stopped,
            "unverifiable": sum(each.unverifiable for _, each in followed),
            "records": self.records,
            "bytes": self.bytes,
            "last_failure": self._client.last_failure,
        }

    # rounds

    def _ask(
        self, call: Call, then: Callable[[Answer], None], address: Address | None = None
    ) -> None:
        self._round.tickets[self._client.ask(call, address)] = then

    def _topics_told(self, answer: Answer) -> None:
        if answer.error is not None:
            return
        cluster = self._round.cluster = cluster_of(answer.response)
        names = [name for name, topic in cluster.topics.items() if not topic.error]
        here = {
            each.configs[f"{CONFIG_PREFIX}topic"]: each
            for each in self._local.topics()
            if each.configs.get(f"{CONFIG_PREFIX}cluster") == self.cluster
        }
        for name in selection.wanted(names, self._patterns, self._local.cluster_name):
            if name not in here and not self._local.has(selection.mirror_name(self.cluster, name)):
                self._create(cluster, cluster.topics[name])
        for name, topic in here.items():
            self._follow(topic, cluster.topics.get(name))
        self._drop_unhosted()

    def _create(self, cluster: Cluster, topic: Topic) -> None:
        """Makes the mirror of a topic, once its configs say that it is none itself."""
        refusal = selection.name_refusal(self.cluster, topic.name)
        if refusal is not None:
            _log.error("topic_not_mirrored", topic=topic.name, reason=refusal)
            return
        known = self._round.known.get(topic.name)
        if known is None:
            call = describe_configs_call(ResourceType.TOPIC, [topic.name])
            self._ask(call, lambda answer: self._configs_told(topic.name, answer))
        elif not known and topic.partitions:
            self._local.create(
                selection.mirror_name(self.cluster, topic.name),
                len(topic.partitions),
                {
                    f"{CONFIG_PREFIX}cluster": self.cluster,
                    f"{CONFIG_PREFIX}cluster.id": cluster.cluster_id or "",
                    f"{CONFIG_PREFIX}topic": topic.name,
                    f"{CONFIG_PREFIX}topic.id": _id(topic),
                },
            )

    def _configs_told(self, topic: str, answer: Answer) -> None:
        if answer.error is not None:
            return
        try:
            configs = described_configs(answer.response).get(topic, {})
        except KafkaError as error:
            _log.warning("topic_not_described", topic=topic, reason=str(error))
            return
        self._round.known[topic] = selection.is_mirror(configs)
        cluster = self._round.cluster
        if cluster is not None and topic in cluster.topics:
            self._create(cluster, cluster.topics[topic])

    def _follow(self, local: LocalTopic, source: Topic | None) -> None:
        """Gives every partition of a mirror topic that is led here its follower."""
        name = local.configs[f"{CONFIG_PREFIX}topic"]
        remade = source is not None and local.configs.get(f"{CONFIG_PREFIX}topic.id") != _id(source)
        if source is not None and not remade and len(source.partitions) > len(local.partitions):
            self._local.extend(local, len(source.partitions))
        for number in local.partitions:
            tp = TopicPartition(name, number)
            replica = self._local.replica(TopicPartition(local.name, number))
            followed = self._followed.get(tp)
            if replica is None or (followed is not None and followed.replica is replica):
                if remade and followed is not None:
                    self._stop(tp, followed, f"topic {name} was made again in {self.cluster}")
                continue
            follower = Follower(replica.log.log_end_offset, last_batch(replica.log))
            followed = self._followed[tp] = _Followed(replica, follower)
            if remade:
                self._stop(tp, followed, f"topic {name} was made again in {self.cluster}")
            else:
                self._client.seek(tp, follower.position())

    def _drop_unhosted(self) -> None:
        for tp, followed in list(self._followed.items()):
            if self._local.replica(followed.replica.partition) is not followed.replica:
                self._client.remove(tp)
                del self._followed[tp]

    # followers

    def _take(self, fetched: Fetched) -> None:
        followed = self._followed.get(fetched.tp)
        if followed is None:
            return
        try:
            found = [_checked(batch) for batch in fetched.batches]
        except CorruptBatch as error:
            # The next look may find it whole (a bad transfer); it is never appended.
            _log.error("mirror_batch_corrupt", partition=str(fetched.tp), reason=str(error))
            self._recheck(fetched.tp, followed)
            return
        at = 0
        while at < len(found):
            action = followed.follower.fetched(found[at:])
            if not isinstance(action, Append):
                self._carry_out(fetched.tp, followed, action)
                return
            at += action.first
            batches = zip(fetched.batches[at : at + action.count], found[at:], strict=False)
            if not self._append(fetched.tp, followed, batches):
                return
            at += action.count

    def _append(self, tp: TopicPartition, followed: _Followed, batches: Any) -> bool:
        replica = followed.replica
        for batch, header in batches:
            try:
                replica.log.append_mirrored(batch, header, self._now_ms())
            except StorageFailed as error:
                self._local.storage_failed(replica, error)
                self._recheck(tp, followed)
                return False
            followed.follower.appended(header)
            self._local.appended(replica, header)
            self.records += header.count
            self.bytes += len(batch)
        return True

    def _now_ms(self) -> int:
        return self._client.time_ms()

    def _stopped(self, tp: TopicPartition, error: SkidwayError) -> None:
        followed = self._followed.get(tp)
        if followed is None or followed.follower.phase is Phase.STOPPED:
            return
        if isinstance(error, OffsetOutOfRange):
            self._ask_bounds(tp)
        else:
            self._stop(tp, followed, str(error))

    def _ask_bounds(self, tp: TopicPartition) -> None:
        """Brokers do not all say in the refusal where the log begins and ends."""
        leader = self._client.cluster.leader(tp)

        def earliest(answer: Answer) -> None:
            first = _listed(answer, tp)
            if first is None:
                self._again(tp)
            else:
                self._ask(
                    list_offsets_call({tp: LATEST}), lambda second: latest(first, second), leader
                )

        def latest(first: ListedOffset, answer: Answer) -> None:
            last, followed = _listed(answer, tp), self._followed.get(tp)
            if last is None:
                self._again(tp)
            elif followed is not None and followed.follower.phase is not Phase.STOPPED:
                action = followed.follower.out_of_range(first.offset, last.offset)
                self._carry_out(tp, followed, action)

        self._ask(list_offsets_call({tp: EARLIEST}), earliest, leader)

    def _again(self, tp: TopicPartition) -> None:
        followed = self._followed.get(tp)
        if followed is not None:
            self._recheck(tp, followed)

    def _carry_out(self, tp: TopicPartition, followed: _Followed, action: object) -> None:
        if isinstance(action, NameGap):
            self._name_gap(tp, followed, action)
        elif isinstance(action, Stop):
            self._stop(tp, followed, action.reason)
        elif isinstance(action, Unverifiable):
            followed.unverifiable += 1
            _log.warning(
                "mirror_unverifiable", partition=str(followed.replica.partition),
                offset=action.offset, reason="the batch below is gone in the source",
            )  # fmt: skip
            self._client.seek(tp, followed.follower.position())

    def _name_gap(self, tp: TopicPartition, followed: _Followed, action: NameGap) -> None:
        """Writes a gap down before anything behind it is copied."""
        self._client.remove(tp)
        partition = followed.replica.partition
        gap = Gap(tp.partition, action.first, action.end, action.reason)
        topic = next(each for each in self._local.topics() if each.name == partition.topic)
        known = gaps.added(gaps.decode(topic.configs.get(gaps.CONFIG, "")), gap)
        if len(known) > gaps.GAPS_MAX:
            self._stop(tp, followed, f"more than {gaps.GAPS_MAX} gaps")
            return

        def named(error: SkidwayError | None) -> None:
            if self._followed.get(tp) is not followed:
                return
            if error is None:
                _log.error("mirror_gap", partition=str(partition), first=gap.first, end=gap.end,
                           reason=gap.reason)  # fmt: skip
                followed.follower.gap_named(gap.end)
            else:
                _log.warning("mirror_gap_not_named", partition=str(partition), reason=str(error))
                followed.follower.gap_not_named()
            self._client.seek(tp, followed.follower.position())

        self._local.set_config(partition.topic, gaps.CONFIG, gaps.encode(known), named)

    def _stop(self, tp: TopicPartition, followed: _Followed, reason: str) -> None:
        if followed.follower.phase is not Phase.STOPPED or followed.follower.reason != reason:
            _log.error("mirror_stopped", partition=str(followed.replica.partition), reason=reason)
        followed.follower.stop(reason)
        self._client.remove(tp)

    def _interrupt_all(self) -> None:
        for tp, followed in self._followed.items():
            if followed.follower.phase is Phase.FOLLOWING:
                self._recheck(tp, followed)

    def _notice_refused_writes(self) -> None:
        """A write at a turn's end that failed was taken back by its log, behind our back."""
        for tp, followed in self._followed.items():
            end = followed.replica.log.log_end_offset
            if followed.follower.phase is Phase.FOLLOWING and end < followed.follower.log_end:
                self._recheck(tp, followed)

    def _recheck(self, tp: TopicPartition, followed: _Followed) -> None:
        partition_log = followed.replica.log
        followed.follower.interrupted(partition_log.log_end_offset, last_batch(partition_log))
        self._client.seek(tp, followed.follower.position())


def last_batch(partition_log: PartitionLog) -> Below | None:
    """The batch that ends at the log end offset; None for an empty log.

    Of an append that is not written yet there is nothing to read: the written end counts, which
    is the log end between turns.
    """
    end = partition_log.written
    if end.offset == partition_log.log_start_offset:
        return None
    try:
        found = partition_log.read(end.offset - 1, HEADER_BYTES, end, at_least_one=True)
    except DamagedLog:
        return None
    if found is None:
        return None
    data = os.pread(found.file.fileno(), HEADER_BYTES, found.position)
    return Below.of(read_header(memoryview(data)))


def _checked(batch: memoryview) -> BatchHeader:
    header = read_header(batch)
    check(batch, 0, header)
    return header


def _listed(answer: Answer, tp: TopicPartition) -> ListedOffset | None:
    if answer.error is not None:
        return None
    found = listed_offsets(answer.response).get(tp)
    return found if isinstance(found, ListedOffset) else None


def _id(topic: Topic) -> str:
    return topic.topic_id.hex if topic.topic_id is not None else ""
