"""The facts that the rules use: the evidence of one topic, and what the audit expects of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from skidway.audit.counts.counts import NO_AGENT, Sums, total
from skidway.audit.evidence.evidence import Evidence, Numbers, agent_named
from skidway.audit.evidence.tallies import BucketId, SenderKey, Tally
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import ours_ahead_ms
from skidway.audit.judgement.counting_places import Counting, counting_places, needed_still
from skidway.audit.judgement.expectation import Expectations
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.topic.messages import NOTHING_SAID, Tier
from skidway.kafka.source import Source

Tallies = Mapping[SenderKey, Tally]
"""The counts of each sender for one agent in one bucket."""


class CommonFacts:
    """The facts that are the same for all topics.

    now_ms: the present time (see clocks.present_ms).
    retired: the retired places.
    epochs: the epochs of each agent, oldest first.
    """

    def __init__(self, evidence: Evidence, policy: Policy, now_ms: int) -> None:
        self.evidence = evidence
        self.policy = policy
        self.now_ms = now_ms
        self.retired = retired_by(policy.retired_places, evidence.retirements)
        self.epochs = _epochs_by_agent(evidence)
        self.expectations = Expectations(evidence, policy, now_ms)

    def ahead_ms(self, key: SenderKey) -> int:
        """How far an event time in the counts of a sender can be ahead of the time at which the
        line was read: the policy's bound or, of an agent, its own one if that is larger. What an
        agent announces holds for its own lines only, because it may announce anything."""
        agent = agent_named(key.producer) if key.tier is Tier.AGENT else NO_AGENT
        return max(self.policy.ahead_ms, self.evidence.bounds.get(agent, NOTHING_SAID).ahead_ms)

    @cached_property
    def counters(self) -> list[tuple[SenderKey, Numbers]]:
        """All counters and loaders (the senders that are not agents), each with its message
        numbers."""
        return [(key, x) for key, x in self.evidence.senders.items() if key.tier is not Tier.AGENT]

    @cached_property
    def ours_ahead_ms(self) -> int:
        """By how many ms the audit's clock is ahead of most senders' clocks; 0 if it is not ahead.
        Rules read this property only if an agent seems silent, because the computation takes long:
        it reads the clocks of all senders."""
        return ours_ahead_ms(self.evidence, self.policy)


class TopicFacts:
    """The facts of one source topic, for all of its buckets.

    tiers: the tiers in which the topic's records must be counted.
    now_ms, retired, epochs: see CommonFacts.
    topic: the topic's evidence.
    sources, related: the topic and its evidence, and for a topic of rejects also those of the topic
        whose lines were rejected.
    expectation: the agents that must have sealed the topic.
    places: the places that count the topic, including retired ones, each with its senders.
    needed: the tiers in which only retired places have counted the topic, but which also have a
        place that is not retired (see counting_places.needed_still).
    seals: by agent, the seals that the rules may use, oldest first (see expectation.UsableSeals).
    """

    def __init__(self, common: CommonFacts, source: Source) -> None:
        evidence, policy = common.evidence, common.policy
        self.common = common
        self.evidence = evidence
        self.source = source
        self.policy = policy
        self.tiers = policy.tiers_of(source)
        self.now_ms = common.now_ms
        self.topic = evidence.topic(source)
        self.expectation = common.expectations.of(source)
        parents = common.expectations.parents(source)
        self.sources = [source, *parents.sources]
        self.related = [self.topic, *parents.topics]
        self.retired = common.retired
        self.places = list(counting_places(evidence, self.topic, self.tiers, self.retired))
        self.needed = needed_still(evidence, source, self.places, self.retired)
        self.epochs = common.epochs
        self.seals = self.expectation.seals

    @property
    def ours_ahead_ms(self) -> int:
        """See CommonFacts."""
        return self.common.ours_ahead_ms

    @cached_property
    def unread(self) -> dict[str, int]:
        """How many messages that may concern the topic were not read, by fingerprint."""
        found = dict(self.evidence.unread)
        for name, count in self.evidence.unread_of_clusters.get(self.source.cluster, {}).items():
            found[name] = found.get(name, 0) + count
        return found

    @cached_property
    def doubtful_places(self) -> list[Counting]:
        """The places in `places` with doubtful counts: those with findings, and those with a sender
        whose message numbers are doubtful (see Numbers.is_doubtful). The list is cached, because
        the rules read it for every agent of every bucket."""
        senders = self.evidence.senders
        return [
            each
            for each in self.places
            if each.findings or any(senders[key].is_doubtful for key in each.senders)
        ]

    def places_of(self, tier: Tier) -> list[Counting]:
        """The places in `places` that belong to a tier."""
        return self._by_tier.get(tier, [])

    @cached_property
    def _by_tier(self) -> dict[Tier, list[Counting]]:
        found: dict[Tier, list[Counting]] = {}
        for each in self.places:
            found.setdefault(each.place.tier, []).append(each)
        return found

    def due(self, bucket: BucketId) -> int:
        """The time in ms at which the bucket is due: lateness_ms after its end."""
        return sum(bucket) + self.policy.lateness_ms


def added(tallies: Tallies, keys: Iterable[SenderKey]) -> Sums:
    """The sum of the counts that these senders have in `tallies`."""
    return total([tallies[key].sums for key in keys if key in tallies])


def name_of_doubt(words: str, tallies: Tallies) -> str:
    """The name by which an acceptance refers to a doubt about lines. If the agent counts more lines
    later, the doubt has another name, and the acceptance does not cover it."""
    counted = [key for key in tallies if key.tier is Tier.AGENT]
    return reasons.name_of_lack(words, added(tallies, counted))


def _epochs_by_agent(evidence: Evidence) -> dict[int, list[SenderKey]]:
    epochs: dict[int, list[SenderKey]] = {}
    for key in sorted(x for x in evidence.senders if x.tier is Tier.AGENT):
        agent = agent_named(key.producer)
        if agent != NO_AGENT:
            epochs.setdefault(agent, []).append(key)
    return epochs
