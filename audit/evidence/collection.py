"""Reads all audit topics of a cluster, both its own topic and mirrored topics, into a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from prometheus_client import Counter as Metric

from skidway.audit.evidence.blocked import Blocked
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.topic import topic
from skidway.clock import Clock
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.batch import CorruptBatch, read_header
from skidway.kafka.client import Client, Fetcher, TopicMetadata
from skidway.kafka.errors import ErrorCode, KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition

REFRESH_S = 5.0
STALLED_AFTER_S = 30.0
REFUSED_AFTER_S = 30.0
"""If the brokers have sent nothing of a partition for this long (because they refuse it or cannot
be reached), it counts as a partition that cannot be read. The brokers may still send it later."""

GONE_AFTER_S = 60.0
"""If the cluster has not named a partition for this long, the partition counts as deleted."""

LIVE_WITHIN_S = 5.0
"""When the reader is at the end of a partition, it waits for new records. A record that arrives
within this many seconds counts as new, that is, as appended while the reader waited."""

_MESSAGES = Metric("skidway_audit_messages_read_total", "Records read from audit topics.")

TAKE_SHARE = 10
WAITING_RECORDS_MAX = 65_536
WAITING_BYTES_MAX = 24 * 1024 * 1024
"""Writing many records together is much cheaper than writing each of them alone. So record batches
wait, and transactions of the ledger take at most about one part in TAKE_SHARE of the time: if a
transaction took 0.1 s, the next transaction begins 1 s after this transaction began. The next
transaction begins earlier in three cases: WAITING_RECORDS_MAX records or WAITING_BYTES_MAX bytes
wait; the topics are about to be looked up again (at least every REFRESH_S seconds); or the ends of
all partitions are reached for the first time. In a small fleet, transactions are short, so the
ledger gets each record almost at once. Batches wait as the brokers sent them, mostly compressed."""


class _Arrival(NamedTuple):
    """A batch that was fetched, and what is known of its records. The fields are those of
    `Heard`."""

    batch: topic.TopicBatch
    topic_id: str
    taken_ms: int
    is_live: bool


class Waiting:
    """Fetched batches that the ledger does not have yet."""

    def __init__(self) -> None:
        self._arrivals: list[_Arrival] = []
        self._records = self._bytes = 0

    def add(self, batch: topic.TopicBatch, topic_id: str, taken_ms: int, *, is_live: bool) -> None:
        """Adds a batch. topic_id, taken_ms, is_live: see Heard."""
        self._add(_Arrival(batch, topic_id, taken_ms, is_live))

    @property
    def is_full(self) -> bool:
        """Whether the ledger has to take the waiting batches now."""
        return self._records >= WAITING_RECORDS_MAX or self._bytes >= WAITING_BYTES_MAX

    def records(self) -> Iterator[tuple[bytes, Heard]]:
        """Yields the value of each record that has a value, and where and when the record was read.
        Decodes the records as they are asked for, so memory holds few decoded records. Raises
        DamagedBatch."""
        return _heard(self._arrivals)

    def clear(self) -> None:
        """Forgets all batches."""
        self._arrivals = []
        self._records = self._bytes = 0

    def drop(self, tp: TopicPartition, offset: int) -> None:
        """Forgets the batches of a partition from an offset on."""
        arrivals, self._arrivals = self._arrivals, []
        self._records = self._bytes = 0
        for arrival in arrivals:
            if arrival.batch.tp != tp or arrival.batch.begin < offset:
                self._add(arrival)

    def _add(self, arrival: _Arrival) -> None:
        self._arrivals.append(arrival)
        self._records += read_header(arrival.batch.raw).count
        self._bytes += len(arrival.batch.raw)


def _heard(arrivals: Sequence[_Arrival]) -> Iterator[tuple[bytes, Heard]]:
    for part in topic.decoded([arrival.batch for arrival in arrivals]):
        for index, count, is_appended in zip(*part[:-1], strict=True):
            ((name, partition), begin, _), topic_id, taken_ms, is_live = arrivals[index]
            for offset, value, time_ms, signature in islice(part.rows, count):
                if offset >= begin and value is not None:
                    sent_ms, appended_ms = (None, time_ms) if is_appended else (time_ms, None)
                    yield (
                        value,
                        Heard(
                            name, topic_id, partition, offset, sent_ms, taken_ms, is_live,
                            appended_ms, signature,
                        ),
                    )  # fmt: skip


class Collection:
    """Reads the audit topics into the ledger, beginning at the ledger's positions. Only one thread
    uses this object. If the program ends before records are in the ledger, it reads these records
    again after its next start. has_caught_up: becomes true when the ledger has all records of every
    partition, and stays true while new records arrive. It becomes false when the reader begins to
    read a further partition, or when a partition cannot be read (see the property `blocked`).
    """

    def __init__(self, client: Client, fetcher: Fetcher, ledger: Ledger, clock: Clock) -> None:
        self._client = client
        self._fetcher = fetcher
        self._ledger = ledger
        self._clock = clock
        self._begins: dict[TopicPartition, int] = {}
        self._topic_ids: dict[str, str] = {}
        self._at_end: dict[TopicPartition, float] = {}
        self._absent: dict[TopicPartition, float] = {}
        self._lacks_some = False
        self._waiting = Waiting()
        self._blocked = Blocked()
        self._has_moved = False
        self.has_caught_up = False
        self._take_at = clock.monotonic()
        self._refresh_at = clock.monotonic()

    def turn(self, timeout_ms: int, *wake: int) -> int:
        """Reads the batches that have arrived, and returns their number. Now and then, and whenever
        many batches wait, puts all of them into the ledger together."""
        if self._clock.monotonic() >= self._refresh_at:
            self._refresh_at = self._clock.monotonic() + REFRESH_S
            self.refresh()
        read = self._poll(timeout_ms, *wake)
        now, now_ms = self._clock.monotonic(), self._clock.time_ms()
        positions = self._fetcher.positions
        moved = positions.items() - self._begins.items()
        if moved and not read:
            # Offsets were out of range, perhaps because the topic was made again. Then the next
            # records belong to another topic, so its id must be known before they are read.
            self._refresh_at = now
        if moved:
            for batch in read:
                is_live = now - self._at_end.get(batch.tp, -LIVE_WITHIN_S) < LIVE_WITHIN_S
                topic_id = self._topic_ids.get(batch.tp.topic, "")
                self._waiting.add(batch, topic_id, now_ms, is_live=is_live)
            self._begins.update(positions)
            self._has_moved = True
        if now >= self._take_at or self._waiting.is_full:
            self.take()
        positions, ends = self._fetcher.positions, self._fetcher.high_watermarks
        self._at_end = {tp: now for tp, at in positions.items() if tp in ends and at >= ends[tp]}
        if self._has_fetched_all and not self.has_caught_up and not self.blocked:
            self.take()
        if not self._has_moved:
            self._blocked.remove_read(self._begins, self._at_end)
            is_whole = self.has_caught_up or self._has_fetched_all
            self.has_caught_up = is_whole and not self.blocked
        return len(read)

    def take(self) -> None:
        """Puts all records that were read into the ledger."""
        if not self._has_moved:
            return
        began = self._clock.monotonic()
        self._has_moved = False
        while True:
            reached = {
                tp: Position(at, self._topic_ids.get(tp.topic, ""))
                for tp, at in self._begins.items()
            }
            records = self._waiting.records()
            try:
                count = self._ledger.take_records(records, reached, self._clock.time_ms())
                break
            except topic.DamagedBatch as error:  # the ledger has none of the waiting records
                self._waiting.drop(error.tp, error.offset)
                self._block(error.tp, error.offset, error)
        self._waiting.clear()
        _MESSAGES.inc(count)
        self._take_at = began + TAKE_SHARE * (self._clock.monotonic() - began)

    @property
    def blocked(self) -> Mapping[TopicPartition, SkidwayError]:
        """The partitions that cannot be read at present, and why: the blocked partitions, and those
        of which the brokers have sent nothing for REFUSED_AFTER_S."""
        now = self._clock.monotonic()
        refused = {
            tp: Unreachable(f"{tp} cannot be read: {why}")
            for tp, (since, why) in self._fetcher.refusals.items()
            if now - since >= REFUSED_AFTER_S and tp not in self._absent
        }
        return {**refused, **self._blocked.errors}

    @property
    def _has_fetched_all(self) -> bool:
        """Whether all partitions are read, and were fetched up to their ends."""
        is_at_end = self._begins and self._at_end.keys() >= self._begins.keys()
        return bool(is_at_end) and not self._lacks_some

    def _poll(self, timeout_ms: int, *wake: int) -> list[topic.TopicBatch]:
        try:
            return topic.poll(self._client, self._fetcher, self._begins, timeout_ms, *wake)
        except (CorruptBatch, KafkaError) as error:
            tp = self._fetcher.stopped
            is_passing = isinstance(error, KafkaError) and error.retriable
            if tp is None or isinstance(error, OffsetOutOfRange) or is_passing:
                raise
            self._block(tp, self._fetcher.positions[tp], error)
            return []

    def _block(self, tp: TopicPartition, offset: int, error: SkidwayError) -> None:
        """Stops reading a partition at an offset that cannot be read, until the offset is tried
        again."""
        self._blocked.add(tp, offset, error, self._clock.monotonic())
        self._begins[tp] = offset
        self._at_end.pop(tp, None)
        self._fetcher.remove(tp)
        self.has_caught_up = False

    def refresh(self) -> None:
        """Begins to read new audit topics, such as those of a newly mirrored cluster. If a topic
        was deleted and created again, reads the new topic from its beginning, because offsets of
        the old topic mean nothing in the new topic. Forgets deleted partitions. Tries blocked
        partitions again when they are due."""
        self.take()
        found = self._client.metadata().topics
        known = self._ledger.positions()
        new = []
        for name in filter(topic.is_audit_topic, found):
            topic_id = _id(found[name]) or self._known_id(name, known)
            again = topic_id != self._topic_ids.setdefault(name, topic_id)
            self._topic_ids[name] = topic_id
            for partition in found[name].partitions:
                tp = TopicPartition(name, partition.index)
                if again or tp not in self._begins:
                    self.has_caught_up = False
                    self._blocked.remove(tp)
                    self._begins[tp] = _begin(known.get(tp), topic_id)
                    self._fetcher.seek(tp, self._begins[tp])
                    if not self._begins[tp]:
                        new.append(tp)
        if new:
            self._ledger.rebuild(self._ends(new))
        self._forget_deleted(found)
        self._lacks_some = self._lacks_partitions(found)
        for tp in self._blocked.due(self._clock.monotonic()):
            if tp not in self._absent:
                self._blocked.try_again(tp)
                self._fetcher.seek(tp, self._begins[tp])

    def _known_id(self, name: str, known: Mapping[TopicPartition, Position]) -> str:
        """Returns the topic id that the topic had last, for an answer of the cluster that contains
        no id. If this id was forgotten, nothing would show that the topic was made again."""
        stored = (at.topic_id for tp, at in known.items() if tp.topic == name and at.topic_id)
        return self._topic_ids.get(name) or next(stored, "")

    def _forget_deleted(self, found: Mapping[str, TopicMetadata]) -> None:
        """Forgets the partitions that the cluster has not named for GONE_AFTER_S, so that nobody
        waits for their messages. If such a partition comes back, it is read from its beginning. If
        the cluster names no audit topic, nothing is forgotten, because the cluster may not know its
        topics yet."""
        now = self._clock.monotonic()
        known = self._ledger.positions().keys() | self._ledger.partitions_to_rebuild()
        followed = self._begins.keys() | known
        absent = {tp for tp in followed if _is_absent(tp, found)}
        if not any(map(topic.is_audit_topic, found)):
            absent = set()
        self._absent = {tp: self._absent.get(tp, now) for tp in absent}
        gone = [tp for tp, since in self._absent.items() if now - since >= GONE_AFTER_S]
        for tp in gone:
            self._fetcher.remove(tp)
            self._begins.pop(tp, None)
            self._blocked.remove(tp)
        if gone:
            self._ledger.forget(gone)

    def _lacks_partitions(self, found: Mapping[str, TopicMetadata]) -> bool:
        """Whether there are partitions that are not read because the cluster does not name them:
        the ledger has read them earlier, or their topic is named with an error and without
        partitions."""
        names = filter(topic.is_audit_topic, found)
        is_hidden = any(
            found[x].error is not ErrorCode.NONE and not found[x].partitions for x in names
        )
        return is_hidden or not self._ledger.positions().keys() <= self._begins.keys()

    def _ends(self, new: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the high watermarks of new partitions, that is, partitions that are read from
        their beginnings. The high watermark of an empty partition is 0."""
        found = topic.bounds(self._client, {tp.topic for tp in new})
        return {
            tp: end if first < end else 0
            for tp, (first, end) in ((tp, found[tp]) for tp in new if tp in found)
        }

    def catch_up(self) -> None:
        """Reads all records up to the current high watermarks. Raises Unreachable if nothing
        arrives for STALLED_AFTER_S, or if the brokers have sent nothing of a partition for
        REFUSED_AFTER_S. Raises CorruptBatch or KafkaError if a partition cannot be read."""
        self.refresh()
        found = topic.bounds(self._client, {tp.topic for tp in self._begins})
        ends = {tp: end for tp, (first, end) in found.items() if first < end}
        deadline = self._clock.monotonic() + STALLED_AFTER_S
        while behind := [tp for tp, end in ends.items() if self._begins.get(tp, 0) < end]:
            before = {tp: self._begins.get(tp, 0) for tp in behind}
            self.turn(topic.POLL_MS)
            if any(self._begins.get(tp, 0) > before[tp] for tp in behind):
                deadline = self._clock.monotonic() + STALLED_AFTER_S
            elif self._clock.monotonic() > deadline:
                raise Unreachable(f"Nothing of {min(behind)} came for {STALLED_AFTER_S:.0f} s.")
            self._raise_if_blocked()
        self.take()
        self._raise_if_blocked()

    def _raise_if_blocked(self) -> None:
        for error in self.blocked.values():
            raise error

    @property
    def partitions(self) -> int:
        """The number of partitions that are read."""
        return len(self._begins)


def _id(found: TopicMetadata) -> str:
    return "" if found.topic_id is None else found.topic_id.hex


def _is_absent(tp: TopicPartition, found: Mapping[str, TopicMetadata]) -> bool:
    """Returns whether the cluster says that this partition does not exist. A topic with an error
    may have partitions that the cluster does not name.
    """
    known = found.get(tp.topic)
    if known is None:
        return True
    is_named = any(x.index == tp.partition for x in known.partitions)
    return known.error is ErrorCode.NONE and not is_named


def _begin(known: Position | None, topic_id: str) -> int:
    """Returns the offset at which reading continues: 0 if nothing was read, or if the topic that
    was read has another id than the present topic. If one of the two ids is unknown, they count as
    equal."""
    if known is None or (known.topic_id and topic_id and known.topic_id != topic_id):
        return 0
    return known.next_offset


def collect_all(client: Client, ledger: Ledger, clock: Clock) -> None:
    """Reads all audit topics up to their current high watermarks. Raises the same errors as
    `Collection.catch_up`."""
    Collection(client, Fetcher(client), ledger, clock).catch_up()
