"""The loader of the simulated site (see support.site_world). The module models the rows that the
loader writes, and the deltas (messages with counts) that it commits with them.

The real `skidway.loader.planning.plan` decides which gaps (ranges of missing offsets) the loader
may skip. The faults of a `World` (see support.site_world) can make the loader write rows under a
wrong bucket, agent or topic, or can change rows after they were written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from skidway.audit.counts.counts import BucketKey, Counts, Sums
from skidway.audit.counts.marks import FileKey
from skidway.audit.topic.messages import Gap, Range, Sender, Tier
from skidway.kafka.source import Source
from skidway.loader.planning import plan
from skidway.loader.state.manifest import Gap as NamedGap
from support.audit_model import BUCKET_MS
from support.site_counter import unrepeated
from support.site_logs import PARTITIONS, AuditLogs, Log, Placed, Record, Teller, Topic

Rows = list[tuple[Placed, Sums]]


@dataclass
class Output:
    """The loader's output for one source topic. `positions` are the next offsets to load, by
    partition. `marks` say up to which byte each log file is loaded, by partition. Positions and
    marks are those of the output's newest manifest. `rows` contains the rows in the output's
    Parquet files."""

    teller: Teller
    positions: dict[int, int] = field(default_factory=lambda: dict.fromkeys(PARTITIONS, 0))
    marks: dict[int, dict[FileKey, int]] = field(
        default_factory=lambda: {x: {} for x in PARTITIONS}
    )
    rows: Rows = field(default_factory=list)


@dataclass
class Taken:
    """What a load has read of one topic and not committed yet."""

    positions: dict[int, int]
    marks: dict[int, dict[FileKey, int]]
    rows: Rows = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


class SiteLoader:
    """A loader of the mirrored topics. The function `place` gets the correct rows of all topics of
    one load, and returns the rows that the loader writes instead. With this function, a test makes
    the loader write wrong rows."""

    def __init__(
        self,
        current: Callable[[str], Topic],
        audit: AuditLogs,
        choose: random.Random,
        place: Callable[[list[Rows]], list[Rows]],
    ) -> None:
        self.current, self.audit, self.random, self.place = current, audit, choose, place
        self.outputs: dict[Source, Output] = {}
        self.removed: dict[tuple[Source, int], Output] = {}
        self.accepted: set[tuple[Source, int, int, int]] = set()

    def load(self, names: Iterable[str], now_ms: int) -> None:
        """Loads each partition of the mirrored topics up to its end. In a partition, the load stops
        before missing offsets, unless the mirror declared them as a gap or the operator accepted
        them as lost."""
        topics = [self.current(name) for name in names]
        taken = [self.take(topic) for topic in topics]
        for part, rows in zip(taken, self.place([x.rows for x in taken]), strict=True):
            part.rows = rows
        for topic, part in zip(topics, taken, strict=True):
            if part.ranges or part.rows:
                self.commit(self.output(topic.source), part, now_ms)

    def commit(self, output: Output, taken: Taken, now_ms: int) -> None:
        """Commits the rows, positions and marks in `taken` in one manifest, with the deltas that
        count the rows."""
        output.positions, output.marks = taken.positions, taken.marks
        output.rows += taken.rows
        output.teller.tell(
            now_ms, taken.rows, ranges=taken.ranges, gaps=taken.gaps, choose=self.random
        )

    def output(self, source: Source) -> Output:
        """The output of a topic. A topic that is created again gets a new output."""
        if source not in self.outputs:
            producer = f"/{source.topic_id}/{source.cluster}.{source.topic}"
            sender = Sender(Tier.HDFS, "offline", producer, "loader", 1)
            self.outputs[source] = Output(Teller(sender, "offline", self.audit))
        return self.outputs[source]

    def remove(self, source: Source) -> None:
        """Removes the output of a topic. The next load begins a new output in a new epoch."""
        output = self.output(source)
        sender = output.teller.sender
        self.removed[source, sender.epoch] = output
        begun = Sender(Tier.HDFS, "offline", sender.producer, "loader", sender.epoch + 1)
        self.outputs[source] = Output(Teller(begun, "offline", self.audit))

    def accept_gaps(self, topic: Topic) -> None:
        """Accepts all missing offsets of a topic as lost for good, as an operator does."""
        for partition, log in enumerate(topic.mirror):
            missing = [*range(log.start), *(x for x in range(log.end) if log.records[x] is None)]
            self.accepted |= {(topic.source, partition, x, x + 1) for x in missing}

    def take(self, topic: Topic) -> Taken:
        """Returns what a load would read of a topic now. Commits nothing."""
        output = self.output(topic.source)
        marks = {partition: dict(known) for partition, known in output.marks.items()}
        taken = Taken(dict(output.positions), marks)
        for partition, log in enumerate(topic.mirror):
            self.walk(topic.source, partition, log, taken)
        return taken

    def walk(self, source: Source, partition: int, log: Log, taken: Taken) -> None:
        """Reads further records of one partition into `taken`, up to the partition's end. Stops
        before missing offsets, unless the mirror declared them as a gap or the operator accepted
        them as lost."""
        begin = at = taken.positions[partition]
        named = self.named(source, partition, log)
        found: list[Record] = []
        for offset in range(max(at, log.start), log.end):
            record = log.records[offset]
            if record is None:
                continue
            if offset > at:
                gap = plan.cover(at, offset, named)
                if gap is None:
                    break
                taken.gaps.append(Gap(source, partition, at, offset, gap.reason))
            found.append(record)
            at = offset + 1
        taken.positions[partition] = at
        if at > begin:
            taken.ranges.append(Range(source, partition, begin, at))
        for each in unrepeated(found, taken.marks[partition]):
            place = Placed(each.line.number, source, each.line.agent, each.line.bucket)
            taken.rows.append((place, each.sums))

    def named(self, source: Source, partition: int, log: Log) -> list[NamedGap]:
        """The gaps in a partition's offsets that the mirror declared or the operator accepted."""
        mirror = [NamedGap(first, end, "the mirror named them") for first, end in log.gaps]
        accepted = [
            NamedGap(first, end, "accepted by the operator")
            for x, number, first, end in self.accepted
            if (x, number) == (source, partition)
        ]
        return [*mirror, *accepted]

    # The methods below return what a recount finds in the loader's output.

    def lying(self, source: Source, epoch: int | None = None) -> Counter[Placed]:
        """The rows in the output of a topic, with how often each occurs. Without `epoch`, these are
        the present rows. With the epoch of a removed output, they are the rows that this output had
        when it was removed."""
        known = self.outputs.get(source)
        if epoch is not None:
            known = self.removed.get((source, epoch), known)
        return Counter(place for place, _ in known.rows) if known else Counter()

    def recounted(self, source: Source) -> dict[tuple[BucketKey, int], Sums]:
        """The sums of the rows that are in the output of a topic now, by topic, agent and
        bucket."""
        counts = Counts(BUCKET_MS)
        for place, sums in self.output(source).rows:
            counts.put((place.source, place.agent, place.bucket), sums)
        return {(key, BUCKET_MS): sums for key, sums in counts.items()}
