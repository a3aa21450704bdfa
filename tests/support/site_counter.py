"""The mirror and the counters of the simulated site (see support.site_world).

Three modules of the real counter are used. `skidway.audit.counter.continuity` decides at each batch
whether the counter counts the batch, declares a gap or stops. `skidway.audit.counts.marks` decides
which records are repeats. A file's mark is the byte position up to which the file's records have
been counted. `skidway.audit.counter.counted_until` decides which lags a heartbeat says.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import numpy as np

from skidway.audit.counter import continuity, counted_until
from skidway.audit.counter.continuity import Following, Step
from skidway.audit.counter.counted_until import CountedUntil
from skidway.audit.counter.state import Position
from skidway.audit.counts import marks
from skidway.audit.counts.counts import Sums
from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.messages import Behind, Gap, Heartbeat, Range, Sender, Tier
from skidway.kafka.source import Source
from support.site_logs import PARTITIONS, SECOND, AuditLogs, Log, Placed, Record, Teller, Topic

PartitionId = tuple[Source, int]


def copy(topic: Topic, partition: int, count: int, skipped: int, *, names: bool) -> None:
    """Copies up to `count` further records of a partition to the mirror. Before them, the mirror
    leaves out `skipped` offsets, and all offsets whose records have expired at the source. If
    `names` is true, the mirror also declares a gap, which names the offsets that it left out."""
    source, mirror = topic.broker[partition], topic.mirror[partition]
    begin = max(source.start, min(mirror.end + skipped, source.end))
    if begin > mirror.end:
        if names:
            mirror.gaps.append((mirror.end, begin))
        mirror.records += [None] * (begin - mirror.end)
    mirror.records += source.records[mirror.end : mirror.end + count]


def unrepeated(records: list[Record], known: dict[FileKey, int]) -> list[Record]:
    """Returns the records that are not repeats, and moves the marks in `known` forward to the ends
    of these records."""
    if not records:
        return []
    parts = [[x.line.agent, x.file, x.first, x.length] for x in records]
    agent, file, first, length = np.array(parts, np.int64).T
    length = np.maximum(length, 1)  # else a record of length 0 could count as a repeat
    walked = marks.walk(agent, file, first, length, known)
    marks.advance(known, walked.highest)
    return [record for record, kept in zip(records, walked.keep, strict=True) if kept]


class SiteCounter:
    """The counter of one tier (broker or mirror). The function `current` returns the topic that now
    has the given name in the counter's cluster. The positions in the partitions, the marks (see the
    module's docstring) and the message numbers become durable together. `kill` makes the counter
    lose everything else."""

    def __init__(
        self,
        tier: Tier,
        cluster: str,
        current: Callable[[str], Topic],
        audit: AuditLogs,
        choose: random.Random,
    ) -> None:
        self.current, self.random, self.audit = current, choose, audit
        sender = Sender(tier, cluster, f"count-{cluster}", "audit", 1)
        self.teller = Teller(sender, cluster, audit)
        self.seen: dict[str, Topic] = {}
        self.positions: dict[PartitionId, Position] = {}
        self.marks: dict[PartitionId, dict[FileKey, int]] = {}
        self.until: dict[PartitionId, float] = {}
        self.kill()

    def kill(self) -> None:
        """Kills and restarts the counter: it loses everything that is not durable and continues
        from its durable state."""
        self.following: dict[PartitionId, Following] = {}
        self.stopped: set[PartitionId] = set()
        self.walked: dict[PartitionId, dict[FileKey, int]] = {}
        self.followed = {key: CountedUntil(time) for key, time in self.until.items()}
        self.counted: list[tuple[Placed, Sums]] = []
        self.ranges: dict[PartitionId, tuple[int, int]] = {}
        self.gaps: list[Gap] = []
        self.seen = {}

    def begin_epoch(self) -> None:
        """Makes the counter lose its state and count everything again in a new epoch. Deltas that
        were not yet published are dropped."""
        self.positions.clear()
        self.marks.clear()
        self.until.clear()
        sender = self.teller.sender
        begun = Sender(sender.tier, sender.cluster, sender.producer, sender.host, sender.epoch + 1)
        self.teller = Teller(begun, self.teller.cluster, self.audit)
        self.kill()

    def logs(self, topic: Topic) -> list[Log]:
        """Returns the logs that this counter counts: those of the topic itself or of its mirror, in
        the order of the partitions."""
        return topic.broker if self.teller.sender.tier is Tier.BROKER else topic.mirror

    def notice(self, name: str, now_ms: int) -> None:
        """Makes the counter notice whether the topic `name` was deleted and created again. If so,
        the counter first commits the counts of the old topic."""
        if self.seen.get(name) is not self.current(name):
            self.commit(now_ms)
            self.seen[name] = self.current(name)

    def fetch(self, name: str, partition: int, count: int, now_ms: int) -> None:
        """Counts up to `count` further records of a partition. If the topic was created again, the
        counter gets the new topic's records, but counts them under the old topic until `notice` is
        called."""
        source = self.seen.setdefault(name, self.current(name)).source
        key, log = (source, partition), self.logs(self.current(name))[partition]
        if key in self.stopped:
            return
        if key not in self.following:
            self.following[key] = continuity.resumed(self.positions.get(key, Position()))
            self.walked[key] = dict(self.marks.get(key, {}))
        at = self.following[key].fetch_offset
        self.followed.setdefault(key, CountedUntil()).answered(now_ms / SECOND, log.end)
        if not log.start <= at <= log.end:
            self.take(key, continuity.out_of_range(self.following[key], log.start, log.end))
            return
        found = []
        for offset in range(at, min(at + count, log.end)):
            header, record = log.header(offset), log.records[offset]
            if header is None or record is None:
                continue
            step = continuity.at_batch(self.following[key], header)
            self.take(key, step)
            if step.stop:
                break
            if step.counts:
                found.append(record)
        for each in unrepeated(found, self.walked[key]):
            place = Placed(each.line.number, source, each.line.agent, each.line.bucket)
            self.counted.append((place, each.sums))

    def take(self, key: PartitionId, step: Step) -> None:
        """Moves the counter's position in a partition as `step` says, or stops counting the
        partition. Keeps the offsets that the step counted, and the gap that it found, if any, for
        the next delta."""
        if step.stop:
            self.stopped.add(key)
            return
        before = self.following[key].position.next_offset
        after = step.following.position.next_offset
        if step.gap is not None:
            self.gaps.append(Gap(*key, *step.gap, step.reason))
        self.following[key] = step.following
        if after > before:
            self.ranges[key] = (self.ranges.get(key, (before, before))[0], after)

    def commit(self, now_ms: int) -> None:
        """Commits positions, marks and deltas together."""
        self.positions.update({key: x.position for key, x in self.following.items()})
        self.marks.update({key: dict(x) for key, x in self.walked.items()})
        for key, position in self.positions.items():
            self.followed[key].counted(position.next_offset)
        self.until = {key: self.followed[key].time for key in self.positions}
        ranges = [Range(*key, *span) for key, span in self.ranges.items()]
        self.teller.tell(now_ms, self.counted, ranges=ranges, gaps=self.gaps, choose=self.random)
        self.counted, self.ranges, self.gaps = [], {}, []

    def heartbeat(self, now_ms: int) -> None:
        """Publishes a heartbeat if no message waits in the outbox. It says up to when the committed
        counts of each topic have all records."""
        teller = self.teller
        if not teller.outbox:
            beat = Heartbeat(teller.sender, teller.last, now_ms, *self.lags(now_ms))
            self.audit.append(teller.cluster, teller.sender.producer, beat)

    def lags(self, now_ms: int) -> tuple[int, tuple[Behind, ...]]:
        """Returns how far the committed counts are behind. A partition that was never fetched is
        behind for ever."""
        found: dict[Source, int] = {}
        for topic in self.seen.values():
            for partition in PARTITIONS:
                time = self.until.get((topic.source, partition), counted_until.NEVER)
                lag_ms = counted_until.lag_ms(time, now_ms / SECOND, now_ms)
                found[topic.source] = max(found.get(topic.source, 0), lag_ms)
        return counted_until.lags(found)

    def lag(self, names: Mapping[str, Topic]) -> int:
        """The number of offsets between the counter's committed positions and the ends of the logs,
        summed over all partitions of these topics."""
        return sum(
            log.end - self.positions.get((topic.source, partition), Position()).next_offset
            for topic in names.values()
            for partition, log in zip(PARTITIONS, self.logs(topic), strict=True)
        )
