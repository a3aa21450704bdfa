"""Reads the samples that agents have published, from the audit topics of clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from skidway.audit.topic import topic
from skidway.audit.topic.messages import MessageRefused, sample_in
from skidway.audit.topic.sample import Sample
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.types import TopicPartition

SAMPLES_MAX: Final = 100_000
"""One run of `skidway audit sample` compares at most this many ranges."""


@dataclass(slots=True)
class Told:
    """The samples of a span of time. refused: the number of damaged messages on the audit topics.
    is_cut: whether the span has more than SAMPLES_MAX samples, so that some were left out.
    """

    samples: dict[tuple[int, int, int, int], Sample] = field(default_factory=dict)
    refused: int = 0
    is_cut: bool = False

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
        """How many of the ranges that agents have chosen are missing, because their messages have
        not arrived."""
        drawn = {(x.agent, x.period): x.count for x in self.samples.values()}
        return sum(drawn.values()) - len(self.samples)


def read(client: Client, clock: Clock, since_ms: int, until_ms: int, told: Told) -> None:
    """Reads the audit topics of a cluster, and adds to `told` the samples of periods that begin in
    [since_ms, until_ms). An agent publishes a sample after the end of the sample's period, so
    messages before `since_ms` need not be read. Raises Unreachable.
    """
    names = [name for name in client.metadata().topics if topic.is_audit_topic(name)]
    found = topic.bounds(client, names)
    if not found:
        return
    begins = client.list_offsets(dict.fromkeys(found, since_ms))
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for tp, (first, end) in found.items():
        at = begins[tp].offset
        ranges[tp] = max(first, at if at >= 0 else end), end
    values = (value for _, _, value in topic.read(client, Fetcher(client), ranges, clock))
    told.take(values, since_ms, until_ms)
