"""Reads all audit topics of a cluster, both its own topic and mirrored topics, into a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import Counter as Metric

from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.topic import topic
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.kafka.client import Client, Fetcher, TopicMetadata
from skidway.kafka.errors import ErrorCode
from skidway.kafka.types import TopicPartition

REFRESH_S = 5.0
STALLED_AFTER_S = 30.0
GONE_AFTER_S = 60.0
"""If the cluster has not named a partition for this long, the partition counts as deleted."""

LIVE_WITHIN_S = 5.0
"""When the reader is at the end of a partition, it waits for new records. A record that arrives
within this many seconds counts as new, that is, as appended while the reader waited."""

_MESSAGES = Metric("skidway_audit_messages_read_total", "Records read from audit topics.")


TAKE_SHARE = 10
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Writing many records together is much cheaper than writing each of them alone. So if a
transaction of the ledger took 0.1 s, the next transaction begins 1 s (TAKE_SHARE times 0.1 s) after
this one began, and records wait until then. The ledger gets them earlier if REFRESH_S has passed,
or if WAITING_BYTES_MAX are waiting. In a small fleet, transactions are short, so the ledger gets
each record almost at once."""


class Collection:
    """Reads the audit topics into the ledger, beginning at the ledger's positions. Only one thread
    uses this object. If the program ends before records are in the ledger, it reads these records
    again after its next start. has_caught_up: whether the ledger has all records of every partition
    that is read. has_caught_up becomes false when the reader begins to read a further partition.
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
        self._waiting: list[tuple[bytes, Heard]] = []
        self._waiting_bytes = 0
        self._has_moved = False
        self.has_caught_up = False
        self._take_at = clock.monotonic()
        self._refresh_at = clock.monotonic()

    def turn(self, timeout_ms: int, *wake: int) -> int:
        """Reads the records that have arrived, and returns their number. Now and then, and whenever
        the waiting records have many bytes, puts all of them into the ledger together."""
        if self._clock.monotonic() >= self._refresh_at:
            self._refresh_at = self._clock.monotonic() + REFRESH_S
            self.refresh()
        read = list(topic.poll(self._client, self._fetcher, self._begins, timeout_ms, *wake))
        now, now_ms = self._clock.monotonic(), self._clock.time_ms()
        positions = self._fetcher.positions
        if positions != self._begins:
            self._waiting += [(each.value, self._heard(each, now, now_ms)) for each in read]
            self._waiting_bytes += sum(len(each.value) for each in read)
            self._begins, self._has_moved = dict(positions), True
        if now >= self._take_at or self._waiting_bytes >= WAITING_BYTES_MAX:
            self.take()
        ends = self._fetcher.high_watermarks
        self._at_end = {tp: now for tp, at in positions.items() if tp in ends and at >= ends[tp]}
        if not self.has_caught_up and self._begins and self._at_end.keys() >= self._begins.keys():
            self.take()
            self.has_caught_up = True
        return len(read)

    def take(self) -> None:
        """Puts all records that were read into the ledger."""
        if not self._has_moved:
            return
        began = self._clock.monotonic()
        reached = {
            tp: Position(at, self._topic_ids.get(tp.topic, "")) for tp, at in self._begins.items()
        }
        values, places = [x for x, _ in self._waiting], [x for _, x in self._waiting]
        self._waiting, self._waiting_bytes, self._has_moved = [], 0, False
        self._ledger.take(drained(values), reached, self._clock.time_ms(), places)
        _MESSAGES.inc(len(places))
        self._take_at = began + TAKE_SHARE * (self._clock.monotonic() - began)

    def _heard(self, read: topic.Record, now: float, now_ms: int) -> Heard:
        tp = read.tp
        is_live = now - self._at_end.get(tp, -LIVE_WITHIN_S) < LIVE_WITHIN_S
        topic_id = self._topic_ids.get(tp.topic, "")
        return Heard(
            tp.topic, topic_id, tp.partition, read.offset, read.sent_ms, now_ms,
            is_live=is_live, appended_ms=read.appended_ms,
        )  # fmt: skip

    def refresh(self) -> None:
        """Begins to read new audit topics, such as those of a newly mirrored cluster. If a topic
        was deleted and created again, reads the new topic from its beginning, because offsets of
        the old topic mean nothing in it."""
        self.take()
        found = self._client.metadata().topics
        known = self._ledger.positions()
        new = []
        for name in filter(topic.is_audit_topic, found):
            topic_id = _id(found[name])
            again = topic_id != self._topic_ids.setdefault(name, topic_id)
            self._topic_ids[name] = topic_id
            for partition in found[name].partitions:
                tp = TopicPartition(name, partition.index)
                if again or tp not in self._begins:
                    self.has_caught_up = False
                    self._begins[tp] = _begin(known.get(tp), topic_id)
                    self._fetcher.seek(tp, self._begins[tp])
                    if not self._begins[tp]:
                        new.append(tp)
        if new:
            self._ledger.rebuild(self._ends(new))
        self._forget_deleted(found)

    def _forget_deleted(self, found: Mapping[str, TopicMetadata]) -> None:
        """Forgets the partitions that the cluster has not named for GONE_AFTER_S, so that nobody
        waits for their messages. If such a partition comes back, it is read from its beginning. If
        the cluster names no audit topic, nothing is forgotten, because the cluster may not know its
        topics yet."""
        now = self._clock.monotonic()
        followed = self._begins.keys() | self._ledger.partitions_to_rebuild()
        absent = {tp for tp in followed if _is_absent(tp, found)}
        if not any(map(topic.is_audit_topic, found)):
            absent = set()
        self._absent = {tp: self._absent.get(tp, now) for tp in absent}
        gone = [tp for tp, since in self._absent.items() if now - since >= GONE_AFTER_S]
        for tp in gone:
            self._fetcher.remove(tp)
            self._begins.pop(tp, None)
        if gone:
            self._ledger.forget(gone)

    def _ends(self, new: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Returns the high watermarks of these partitions, which are read from their beginnings; 0
        for an empty partition."""
        found = topic.bounds(self._client, {tp.topic for tp in new})
        return {
            tp: end if first < end else 0
            for tp, (first, end) in ((tp, found[tp]) for tp in new if tp in found)
        }

    def catch_up(self) -> None:
        """Reads all records up to the current high watermarks. Raises Unreachable if nothing
        arrives for STALLED_AFTER_S."""
        self.refresh()
        found = topic.bounds(self._client, {tp.topic for tp in self._begins})
        ends = {tp: end for tp, (first, end) in found.items() if first < end}
        deadline = self._clock.monotonic() + STALLED_AFTER_S
        while behind := [tp for tp, end in ends.items() if self._begins.get(tp, 0) < end]:
            if self.turn(topic.POLL_MS):
                deadline = self._clock.monotonic() + STALLED_AFTER_S
            elif self._clock.monotonic() > deadline:
                raise Unreachable(f"Nothing of {min(behind)} came for {STALLED_AFTER_S:.0f} s.")
        self.take()

    @property
    def partitions(self) -> int:
        """The number of partitions that are read."""
        return len(self._begins)


def drained(values: list[bytes]) -> Iterator[bytes]:
    """Yields the values in their order, and empties the list, so that the memory of a decoded
    message is free before the ledger writes its rows."""
    values.reverse()
    while values:
        yield values.pop()


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
    """Reads all audit topics up to their current high watermarks. Raises Unreachable."""
    Collection(client, Fetcher(client), ledger, clock).catch_up()
