"""The policy says what the audit expects, and how long the audit waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from skidway.audit.counts import topic_patterns
from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.judgement.roster import Roster
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

DEFAULT_LATENESS_MS = 120_000
DEFAULT_SILENCE_MS = 180_000
DEFAULT_REJECTS_SHARE = 0.01
DEFAULT_CLOCK_DIFFERENCE_MS = 60_000
AHEAD_MS = 3_600_000
"""How far an event time can be ahead of the time at which the line was read. Agents replace event
times that are further ahead. Each agent announces the bound that it uses. If that bound is larger
than AHEAD_MS, it replaces AHEAD_MS."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """Topics that a tier (a stage that counts records) never has. topics: names of the form
    `<cluster>.<topic>`, or patterns that match such names as a whole."""

    tier: Tier
    topics: tuple[str, ...]

    def holds(self, source: Source) -> bool:
        """Whether the exemption applies to the source topic."""
        return bool(topic_patterns.choose(self.topics, [f"{source.cluster}.{source.topic}"]))


@dataclass(frozen=True, slots=True)
class FreshnessTarget:
    """Buckets of the topics that `topic` names should be complete `target_ms` after their ends.
    topic: a name of the form `<cluster>.<topic>`, or a pattern that matches such names as a whole.
    """

    topic: str
    target_ms: int

    def holds(self, source: Source) -> bool:
        """Whether the target applies to the source topic."""
        return bool(topic_patterns.choose([self.topic], [f"{source.cluster}.{source.topic}"]))


@dataclass(frozen=True, slots=True)
class Policy:
    """The tiers, hosts and times that the audit expects, and how long the audit waits.

    tiers: the tiers in which each record must be counted (but see `exemptions`).
    silence_ms: an agent or a counter counts as silent if none of its messages arrives for this
        long.
    lateness_ms: a bucket is due this long after its end; until then it may get lines. For lines
        that an agent declares lost, the agent's own value applies if it is larger.
    ahead_ms: how far an event time may be ahead of the time at which the line was read. For the
        lines of an agent that announces a larger value, that value applies.
    clock_difference_ms: clocks that differ by more than this are reported.
    roster: the hosts that must report, and the hosts that are retired.
    exemptions: the topics that need not be counted in all tiers of `tiers`.
    rejects_share: the greatest share of a bucket's records that may be rejects without a warning.
    retired_places: texts that name places (see the module retired_places).
    loads_every_ms: the longest time between two loads into an output; None if unknown.
    bucket_ms: the size of the buckets in which nothing was counted. It is a setting, because no
        sender may decide how the topics of others are judged.
    freshness_targets: how soon after their ends the buckets of these topics should be complete.
    """

    tiers: tuple[Tier, ...] = (Tier.AGENT, Tier.BROKER, Tier.MIRROR, Tier.HDFS)
    lateness_ms: int = DEFAULT_LATENESS_MS
    silence_ms: int = DEFAULT_SILENCE_MS
    ahead_ms: int = AHEAD_MS
    clock_difference_ms: int = DEFAULT_CLOCK_DIFFERENCE_MS
    roster: Roster = field(default_factory=Roster)
    exemptions: tuple[Exemption, ...] = ()
    rejects_share: float = DEFAULT_REJECTS_SHARE
    retired_places: tuple[str, ...] = ()
    loads_every_ms: int | None = None
    bucket_ms: int = DEFAULT_BUCKET_MS
    freshness_targets: tuple[FreshnessTarget, ...] = ()

    def freshness_target_ms(self, source: Source) -> int | None:
        """How soon after its end a bucket of the topic should be complete; None without a target.
        The first target that names the topic is used."""
        return next((x.target_ms for x in self.freshness_targets if x.holds(source)), None)

    def tiers_of(self, source: Source) -> tuple[Tier, ...]:
        """The tiers in which the records of this source topic must be counted."""
        exempt = {each.tier for each in self.exemptions if each.holds(source)}
        return tuple(tier for tier in self.tiers if tier not in exempt)
