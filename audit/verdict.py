"""Verdicts: what can be said of a bucket, and why.

    complete    every expected tier counted the same records, and every expected agent has sealed
    open        too young to say, or an agent has not sealed it yet
    incomplete  old enough and counted, but a tier is short or has other records
    unknown     something that would be needed to say is not there and may never be
    lost        an agent declared lines lost that may belong to it

A bucket gets the gravest of its findings, and every finding's reason in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from audit import topics
from audit.counts import Sums
from audit.messages import Tier
from audit.roster import Roster
from skidway.kafka.source import Source

DEFAULT_LATENESS_MS = 120_000
DEFAULT_SILENCE_MS = 180_000
DEFAULT_REJECTS_SHARE = 0.01
DEFAULT_CLOCK_DIFFERENCE_MS = 60_000
AHEAD_MS = 3_600_000
"""Event times further ahead of the reading time than this are not expected: the agents replace
them, and say from where on. Where one says more, that holds."""


class Status(IntEnum):
    """From best to worst."""

    COMPLETE = 0
    OPEN = 1
    INCOMPLETE = 2
    UNKNOWN = 3
    LOST = 4

    @property
    def word(self) -> str:
        """As people read it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Exemption:
    """Topics that a tier never has, as `<cluster>.<topic>`: names, or patterns of whole names."""

    tier: Tier
    topics: tuple[str, ...]

    def holds(self, source: Source) -> bool:
        """Whether the source topic is one of them."""
        return bool(topics.choose(self.topics, [f"{source.cluster}.{source.topic}"]))


@dataclass(frozen=True, slots=True)
class Policy:
    """What is expected, and how long is waited.

    tiers: where each record must be counted, but for the exemptions. roster: the hosts whose agents
    must seal, and those that nobody waits for any more. silence_ms: an agent unheard for so long is
    dead. lateness_ms, ahead_ms: how late lines come, and how far ahead their times are; where an
    agent says more of its own, that holds. clock_difference_ms: clocks that differ by more are
    named. rejects_share: the greatest share of a bucket's records that may be rejects without a
    warning.
    """

    tiers: tuple[Tier, ...] = (Tier.AGENT, Tier.BROKER, Tier.MIRROR, Tier.HDFS)
    lateness_ms: int = DEFAULT_LATENESS_MS
    silence_ms: int = DEFAULT_SILENCE_MS
    ahead_ms: int = AHEAD_MS
    clock_difference_ms: int = DEFAULT_CLOCK_DIFFERENCE_MS
    roster: Roster = field(default_factory=Roster)
    exemptions: tuple[Exemption, ...] = ()
    rejects_share: float = DEFAULT_REJECTS_SHARE

    def tiers_of(self, source: Source) -> tuple[Tier, ...]:
        """Where the records of this source topic must be counted."""
        exempt = {each.tier for each in self.exemptions if each.holds(source)}
        return tuple(tier for tier in self.tiers if tier not in exempt)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that speaks against completeness (or, with COMPLETE, a remark)."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tier counted: a cluster, or for hdfs an output root."""

    tier: Tier
    name: str


@dataclass(frozen=True, slots=True)
class AgentVerdict:
    """Of one (source topic, agent, bucket). sums: per place that reported the topic at all; None
    stands for an expected tier that never did. retired: nobody waits for its host any more."""

    agent: int
    host: str
    status: Status
    reasons: tuple[str, ...]
    sums: Mapping[Place, Sums | None]
    retired: bool = False

    @property
    def name(self) -> str:
        """The host as reasons call it; its agent's id where no host is known."""
        name = self.host or f"agent {self.agent}"
        return f"{name} (retired)" if self.retired else name


@dataclass(frozen=True, slots=True)
class BucketVerdict:
    """Of one (source topic, bucket): the gravest of its agents'. due: old enough to be complete.
    warnings: what an operator should know of it though it may be complete."""

    source: Source
    bucket: int
    bucket_ms: int
    status: Status
    reasons: tuple[str, ...]
    due: bool
    agents: tuple[AgentVerdict, ...] = field(default=())
    warnings: tuple[str, ...] = ()

    def places(self) -> dict[Place, Sums | None]:
        """The sums of all agents together, per place."""
        total: dict[Place, Sums | None] = {}
        for verdict in self.agents:
            for place, sums in verdict.sums.items():
                known = total.get(place)
                total[place] = known if sums is None else (known or Sums()) + sums
        return total

    @property
    def records(self) -> int:
        """As many as the place has that counted most."""
        return self._most(lambda sums: sums.count)

    @property
    def rejects(self) -> int:
        """How many of the records are the loader's rejects."""
        return self._most(lambda sums: sums.rejects)

    @property
    def repeats(self) -> int:
        """How often a record came again, where that happened most often."""
        return self._most(lambda sums: sums.repeats)

    def _most(self, number: Callable[[Sums], int]) -> int:
        return max((number(x) for x in self.places().values() if x is not None), default=0)

    def count(self, tier: Tier) -> int | None:
        """Records at a tier: the least of its places, None where it never reported."""
        counts = [0 if x is None else x.count for p, x in self.places().items() if p.tier is tier]
        missing = all(x is None for p, x in self.places().items() if p.tier is tier)
        return None if missing else min(counts)
