"""The data of the simulated site (see support.site_world): lines, records, logs, topics and audit
messages.

Every line has a number. Whenever a sender counts a line, the simulation remembers the topic, agent
and bucket under which the sender counted it (`Placed`). So the tests know the truth about each
single line, while the audit can only compare sums.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.topic.messages import Gap, Loss, Message, Range, Sender, Tier
from skidway.audit.topic.topic import partition_of
from skidway.kafka.batch import BatchHeader
from skidway.kafka.source import Source
from support.audit_model import NumberedSender

SECOND = 1_000
LENGTH = 10
"""The length of each line in bytes."""
PARTITIONS = (0, 1)
AUDIT_PARTITIONS = 2

NumberKey = tuple[Tier, str, int, int]
"""The tier, producer (the sender's name) and epoch of a message's sender, and the message's
number."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an agent's file or, if the agent is NO_AGENT, of a producer that sends records
    without origin (agent, file and first byte).

    - bucket: the start of the bucket (span of time) in which the audit counts the line.
    - written: the line's place in the order in which all lines of the site were written.
    - written_ms: the time at which the line was written.
    - rule: the agent's rule that leaves the line out, or an empty text.
    """

    number: int
    agent: int
    topic: str
    bucket: int
    written: int
    written_ms: int
    rule: str = ""


class Placed(NamedTuple):
    """The number of a line, and the topic, agent and bucket under which a sender counted the line
    (or the loader wrote its row)."""

    line: int
    source: Source
    agent: int
    bucket: int


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a line. `file` and `first` are the file id and first byte in its origin. If the
    record has no origin, `file` is the record's partition and `first` is the record's offset."""

    line: Line
    file: int
    first: int
    sums: Sums

    @property
    def length(self) -> int:
        """The length in the record's origin, or 0 if the record has no origin."""
        return 0 if self.line.agent == NO_AGENT else LENGTH


def record_of(line: Line, file: int, first: int) -> Record:
    """Returns the record of a line. A tier that counts the record adds the record's `sums` to its
    counts."""
    length = 0 if line.agent == NO_AGENT else LENGTH
    columns = (np.array([x], np.int64) for x in (line.agent, file, first, length))
    return Record(
        line, file, first, Sums(1, length, checksum.total(checksum.record_hash(*columns)))
    )


@dataclass(slots=True)
class Log:
    """The log of a partition. `records` contains the record at each offset, or None if the offset
    is missing. `gaps` contains the gaps that the mirror declared."""

    records: list[Record | None] = field(default_factory=list)
    start: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The log end offset."""
        return len(self.records)

    def header(self, offset: int) -> BatchHeader | None:
        """The header of the batch at an offset, or None if the offset is missing. Each batch has
        one record."""
        record = self.records[offset]
        if record is None:
            return None
        return BatchHeader(offset, 0, 0, 2, record.line.number, 0, 0, 0, 0, -1, -1, -1, 1)


@dataclass(slots=True, eq=False)
class Topic:
    """A topic from its creation to its deletion. If a topic with the same name is created again,
    that is another `Topic`.

    - broker, mirror: the logs of the topic and of its mirror, by partition.
    - carried: the lines that have ever had a record in the topic.
    """

    source: Source
    broker: list[Log] = field(default_factory=lambda: [Log() for _ in PARTITIONS])
    mirror: list[Log] = field(default_factory=lambda: [Log() for _ in PARTITIONS])
    carried: set[int] = field(default_factory=set)


def topic_made(name: str, times: int) -> Topic:
    """A new topic with this name. `times` is the number of topics that have had this name,
    including the new topic."""
    return Topic(Source("dc1", "cluster-id", name, f"id-{times}"))


@dataclass(slots=True)
class AuditLogs:
    """The topic `_skidway_audit` of both clusters: the messages by cluster and partition. The
    fields `told`, `left_out`, `ranges` and `gaps` say what each delta contains. `told` contains the
    lines that the delta counts. `left_out` contains the lines that the delta counts as left out by
    rules. `ranges` and `gaps` contain the ranges and the gaps in the delta."""

    logs: dict[tuple[str, int], list[Message]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    told: dict[NumberKey, list[Placed]] = field(default_factory=dict)
    left_out: dict[NumberKey, list[Placed]] = field(default_factory=dict)
    ranges: dict[NumberKey, tuple[Range, ...]] = field(default_factory=dict)
    gaps: dict[NumberKey, tuple[Gap, ...]] = field(default_factory=dict)

    def append(self, cluster: str, producer: str, message: Message) -> None:
        """Appends a message. All messages of a producer go to one partition of the audit topic."""
        self.logs[cluster, partition_of(producer, AUDIT_PARTITIONS)].append(message)


class Teller(NumberedSender):
    """A sender of audit messages, with the numbers of its messages and its outbox. The rest of the
    sender's durable state is in the object that owns the Teller: a `SiteAgent`, a `SiteCounter` or
    an `Output`."""

    def __init__(self, sender: Sender, topic_of: str, audit: AuditLogs) -> None:
        super().__init__(sender)
        self.cluster, self.audit = topic_of, audit
        self.outbox: list[Message] = []

    def tell(
        self,
        now_ms: int,
        placed: Iterable[tuple[Placed, Sums]],
        *,
        ranges: Iterable[Range] = (),
        gaps: Iterable[Gap] = (),
        losses: Iterable[Loss] = (),
        choose: random.Random,
    ) -> None:
        """Puts deltas (messages with counts) into the outbox. Together, the deltas contain all the
        given counts, ranges, gaps and losses."""
        placed = list(placed)
        deltas = self.deltas(
            now_ms,
            (((each.source, each.agent, each.bucket), sums) for each, sums in placed),
            ranges=list(ranges),
            gaps=list(gaps),
            losses=list(losses),
            limit_bytes=choose.choice([1, 900_000]),
        )
        for delta in deltas:
            key = (*self.name, delta.number)
            keys = {(x.source, x.agent, x.bucket) for x in delta.counts}
            here = [(each, sums) for each, sums in placed if each[1:] in keys]
            self.audit.told[key] = [each for each, sums in here if not sums.filtered]
            self.audit.left_out[key] = [each for each, sums in here if sums.filtered]
            self.audit.ranges[key], self.audit.gaps[key] = delta.ranges, delta.gaps
            self.outbox.append(delta)

    @property
    def name(self) -> tuple[Tier, str, int]:
        """The sender's tier, producer and epoch. Together with a message's number, they identify
        the message."""
        return self.sender.tier, self.sender.producer, self.sender.epoch

    def publish(self) -> None:
        """Moves the messages of the outbox to the audit topic, in order."""
        for message in self.outbox:
            self.audit.append(self.cluster, self.sender.producer, message)
        self.outbox.clear()
