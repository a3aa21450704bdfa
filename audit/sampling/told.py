"""Reads the samples that agents have published, from the audit topics of clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC, MessageRefused, sample_in
from skidway.audit.topic.sample import Sample
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.types import TopicPartition

SAMPLES_MAX: Final = 100_000
"""One run of `skidway audit sample` compares the records of at most this many samples. (A sample is
a range of bytes that an agent has chosen in one of its files.)"""


@dataclass(slots=True)
class Told:
    """The samples of a span of time, as agents have published them. refused: the number of damaged
    samples on the audit topics. is_cut: whether the span has more than SAMPLES_MAX samples, so that
    some were left out.

    Mirrors copy the partitions of audit topics. The name of a partition has two parts: the cluster
    whose audit topic it belongs to, and its number. So all copies of a partition have the same
    name. expired: the partitions with a copy from which messages of the span may have expired.
    kept: the partitions with a copy that still has all messages of the span; a partition may be in
    both sets.
    """

    samples: dict[tuple[int, int, int, int], Sample] = field(default_factory=dict)
    refused: int = 0
    is_cut: bool = False
    expired: set[tuple[str, int]] = field(default_factory=set)
    kept: set[tuple[str, int]] = field(default_factory=set)

    def found_copy(self, partition: tuple[str, int], first: int, begin: int) -> None:
        """Stores whether a copy of a partition still has all messages of the time span. first: the
        first offset that the copy has. begin: the offset of the copy's first message in the time
        span; the copy's end if there is none. If the copy still has a message from before the time
        span, no message of the time span has expired.
        """
        has_all = first == 0 or first < begin
        (self.kept if has_all else self.expired).add(partition)

    def take(self, values: Iterable[bytes], since_ms: int, until_ms: int) -> None:
        """Adds the samples of periods that begin in [since_ms, until_ms). Adds each sample only
        once, although an agent may send a message again, and mirrors copy messages.
        """
        for value in values:
            try:
                sample = sample_in(value)
            except MessageRefused:
                self.refused += 1
                continue
            if sample is None or not since_ms <= sample.period < until_ms:
                continue
            if sample.key not in self.samples and len(self.samples) >= SAMPLES_MAX:
                self.is_cut = True
                return
            self.samples.setdefault(sample.key, sample)

    @property
    def missing(self) -> int:
        """How many samples are missing in `samples`: each sample says how many samples its agent
        made in the same period."""
        return _missing_of(self.samples.values())

    def has_all_of(self, day: int) -> bool:
        """Whether all samples of a day are there, as far as this can be known. This is so if all of
        these statements are true: Of each agent in `samples`, all samples are there (each sample
        says how many there are). No sample was refused or left out. No message of the span may have
        expired from all copies. The method does not notice that an audit topic was not read, or
        that a mirror lags. day: the begin of the day (UTC), in ms.
        """
        missing = _missing_of(x for x in self.samples.values() if x.day == day)
        return not (missing or self.refused or self.is_cut or self.expired - self.kept)


def _missing_of(samples: Iterable[Sample]) -> int:
    """How many ranges are missing. Each sample says how many ranges its agent chose in the sample's
    period. If `samples` has no sample of an agent for a period, nobody knows how many ranges the
    agent chose in that period, and none of them is counted as missing.
    """
    found: Counter[tuple[int, int]] = Counter()
    chosen: dict[tuple[int, int], int] = {}
    for each in samples:
        found[each.agent, each.period] += 1
        chosen[each.agent, each.period] = each.count
    return sum(max(0, count - found[key]) for key, count in chosen.items())


def read(
    client: Client, cluster: str, clock: Clock, since_ms: int, until_ms: int, told: Told
) -> None:
    """Reads the audit topics of a cluster, and adds to `told` the samples of periods that begin in
    [since_ms, until_ms). cluster: the name of the cluster. An agent publishes a sample after the
    end of the sample's period, so messages from before `since_ms` need not be read. Raises
    Unreachable, and DamagedBatch if a batch of an audit topic is damaged.
    """
    names = [name for name in client.metadata().topics if topic.is_audit_topic(name)]
    found = topic.bounds(client, names)
    if not found:
        return
    begins = client.list_offsets(dict.fromkeys(found, since_ms))
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for tp, (first, end) in found.items():
        at = begins[tp].offset
        begin = at if at >= 0 else end
        ranges[tp] = max(first, begin), end
        origin = tp.topic.removesuffix(TOPIC).removesuffix(".") or cluster
        told.found_copy((origin, tp.partition), first, begin)
    values = (value for _, _, value in topic.read(client, Fetcher(client), ranges, clock))
    told.take(values, since_ms, until_ms)
