"""Makes the verdict on each bucket of a topic from the evidence, without I/O. The rules are in
docs/delivery.md, section 6.

One agent's part of a bucket of a source topic is complete only if all of these conditions are met:

    schemas   this version of Skidway knows the schema of every message, because a message with an
              unknown schema may concern any bucket
    numbers   for each sender whose counts are used: no message number is missing; no two messages
              with the same number differ; and if the sender's first messages expired, they cannot
              have counted anything in the bucket
    chains    no message with counts (delta) of any sender for this bucket is missing
    epochs    no new epoch of an agent puts the bucket in doubt (see rules.epochs)
    doublings no delta counted anything in the bucket while the agent of the delta may have been
              reading lines that another agent had delivered already
    losses    no line that may belong to the bucket was declared lost
    seal      the agent's newest seal (its message that all lines up to a time are counted) was made
              after the bucket's end plus lateness, or is the last seal of an agent for which the
              audit no longer waits; and no delta with a number above the seal's `at` counted
              anything in the bucket. A seal is for a topic name, so it also counts if the topic was
              deleted and created again
    clock     by the audit's clock, the bucket's end plus lateness has passed; if the audit's clock
              is ahead of most other clocks, it is corrected first (see clocks)
    equation  every tier that must count the topic has counted it, and all tiers counted the same
              records

Records that came from no agent have no seal. In place of a seal, the first counter that sees these
records must have sent a message after the bucket was due.

The judgement relies only on what messages say. If a tier never reported, the judgement does not
assume that the tier counted zero records. If a host never sent a seal, the judgement does not
assume that the host had nothing to send. A doubt can only make a verdict worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules import (
    epochs,
    equation,
    rejects,
    seals,
    sender_numbers,
    without_origin,
)
from skidway.audit.judgement.rules.doublings import Doublings
from skidway.audit.judgement.rules.losses import Losses
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts, name_of_doubt
from skidway.audit.judgement.verdict import AgentVerdict, BucketVerdict, Finding, Place, Status
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


def verdicts(evidence: Evidence, policy: Policy, now_ms: int) -> list[BucketVerdict]:
    """One verdict for each bucket of each source topic, sorted by topic and then by bucket. Only
    buckets in which anything was counted or declared lost have a verdict."""
    now_ms = present_ms(evidence, policy, now_ms)
    found = []
    for source in sorted(evidence.topics, key=lambda x: (x.cluster, x.topic, x.topic_id)):
        if evidence.asked is not None and source.topic not in evidence.asked:
            continue
        judgement = TopicJudgement(evidence, source, policy, now_ms)
        found += [judgement.bucket(bucket) for bucket in judgement.buckets()]
    return found


class TopicJudgement:
    """Judges the buckets of one source topic."""

    def __init__(self, evidence: Evidence, source: Source, policy: Policy, now_ms: int) -> None:
        self._facts = facts = TopicFacts(evidence, source, policy, now_ms)
        self._losses = Losses(facts)
        self._doublings = [Doublings(evidence, topic) for topic in facts.related]
        self._acceptances = _by_finding(facts.topic.acceptances)
        self._plain: dict[int, bool] = {}
        self._unheard = facts.expectation.unheard()

    def buckets(self) -> list[BucketId]:
        """The buckets in which anything was counted, and the buckets in which an agent declared a
        loss. If all lines of a bucket are lost, nobody counted anything in the bucket. Then the
        declared loss is the only message that mentions the bucket."""
        begin, end = self._facts.evidence.window
        size = self._facts.evidence.bucket_ms or DEFAULT_BUCKET_MS
        notes = (note for notes in self._facts.topic.losses.values() for note in notes)
        declared = {note.loss.to_bucket for note in notes}
        lossy = {(x, size) for x in declared if x is not None and begin <= x < end}
        if Tier.AGENT not in self._facts.tiers:  # without tier agent, losses do not matter
            lossy = set()
        return sorted(self._facts.topic.tallies.keys() | lossy)

    def bucket(self, bucket: BucketId) -> BucketVerdict:
        """The verdict on one bucket, for all agents together."""
        start, size = bucket
        by_agent = self._facts.topic.tallies.get(bucket, {})
        judged = self._judged(bucket)
        agents = [self._agent(agent, bucket, by_agent.get(agent, {})) for agent in sorted(judged)]
        agents += [x for x in self._losers(judged, bucket) if x.findings]
        findings = self._accepted(NO_AGENT, bucket, self._unheard_findings(bucket))
        findings = (*self._unread_findings(), *findings)
        statuses = [x.status for x in agents] + [x.status for x in findings]
        found = BucketVerdict(
            self._facts.source,
            start,
            size,
            max(statuses, default=Status.OPEN),
            (*(x.words for x in findings), *reasons.by_host(agents)),
            due=self._facts.now_ms >= self._facts.due(bucket),
            agents=tuple(agents),
            findings=findings,
        )
        said = rejects.warnings(found, self._facts.related[1:], self._facts.policy.rejects_share)
        warnings = self._accepted(NO_AGENT, bucket, said)
        return replace(found, warnings=warnings) if warnings else found

    def may_have_lost(self, span: BucketId) -> bool:
        """Whether an agent declared a loss of lines that may belong to a span of time (start and
        size in ms). The answer does not depend on whether anything was counted in the span's
        buckets."""
        if Tier.AGENT not in self._facts.tiers:
            return False
        losers = {agent for topic in self._facts.related for agent in topic.losses}
        return any(True for agent in losers for _ in self._losses.findings(agent, span, {}))

    def whole_bucket(self, bucket: BucketId) -> BucketVerdict:
        """Like `bucket`, but also makes a verdict on a bucket in which nobody counted anything:
        that bucket is complete if every expected agent has sealed it. For every bucket, the
        counters must have sent a message after the bucket was due, because agents do not seal
        records that came from no agent."""
        found = self.bucket(bucket)
        by_agent = self._facts.topic.tallies.get(bucket, {})
        agents = found.agents
        if not self._judged(bucket) or (not by_agent and self._has_records_without_origin()):
            agents = (self._agent(NO_AGENT, bucket, {}), *agents)
        unheard: Iterable[Finding] = ()
        if not by_agent or (NO_AGENT not in by_agent and Tier.AGENT in self._facts.tiers):
            unheard = without_origin.uncounted_findings(self._facts, bucket)
        findings = (*found.findings, *self._accepted(NO_AGENT, bucket, unheard))
        words = [*(x.words for x in findings), *reasons.by_host(agents)]
        return replace(
            found,
            status=max([x.status for x in agents] + [x.status for x in findings]),
            reasons=tuple(dict.fromkeys(words)),
            agents=agents,
            findings=findings,
        )

    def _has_records_without_origin(self) -> bool:
        return any(NO_AGENT in by_agent for by_agent in self._facts.topic.tallies.values())

    def _judged(self, bucket: BucketId) -> set[int]:
        """The agents whose part of the bucket is judged."""
        by_agent = self._facts.topic.tallies.get(bucket, {})
        return self._facts.expectation.agents | set(by_agent) | self._replaced(bucket[0])

    def _replaced(self, start: int) -> set[int]:
        """The replaced agents that may not have read all lines of this bucket."""
        replaced = self._facts.expectation.replaced
        return {agent for agent, until_ms in replaced.items() if start <= until_ms}

    # The verdict on one agent's part of a bucket.

    def agent(self, agent: int, bucket: BucketId) -> AgentVerdict:
        """The verdict on one agent's part of a bucket. If nobody counted anything in that part,
        there is nothing to compare: the part is complete if the agent has sealed the bucket."""
        found = self._agent(agent, bucket, self._facts.topic.tallies.get(bucket, {}).get(agent, {}))
        for each in self._unread_findings():
            found = replace(
                found,
                status=max(found.status, each.status),
                reasons=(each.reason, *found.reasons),
                findings=(each, *found.findings),
            )
        return found

    def _agent(self, agent: int, bucket: BucketId, tallies: Tallies) -> AgentVerdict:
        sums = equation.sums_of(self._facts, tallies)
        findings = [*sender_numbers.findings(self._facts, agent, bucket, tallies)]
        findings += sender_numbers.chain_findings(self._facts, tallies)
        if agent == NO_AGENT or Tier.AGENT not in self._facts.tiers:
            findings += without_origin.findings(self._facts, agent, bucket)
        else:
            findings += self._agent_findings(agent, bucket, tallies)
        if tallies and self._facts.now_ms >= self._facts.due(bucket):
            findings += equation.findings(self._facts, agent, sums)
        return self._verdict(agent, bucket, findings, sums)

    def _verdict(
        self,
        agent: int,
        bucket: BucketId,
        findings: Iterable[Finding],
        sums: Mapping[Place, Sums | None],
    ) -> AgentVerdict:
        marked = self._accepted(agent, bucket, findings)
        return AgentVerdict(
            agent,
            self._facts.evidence.hosts.get(agent, ""),
            max([x.status for x in marked], default=Status.COMPLETE),
            tuple(dict.fromkeys(x.words for x in marked)),
            sums,
            agent != NO_AGENT and self._facts.expectation.is_retired(agent),
            marked,
        )

    def _losers(self, others: set[int], bucket: BucketId) -> Iterator[AgentVerdict]:
        """The verdicts on agents that declared losses and are not in `others`. The audit no longer
        waits for these agents, but their losses still make the bucket's verdict worse."""
        losers = {agent for topic in self._facts.related for agent in topic.losses}
        for agent in sorted(losers - others) if Tier.AGENT in self._facts.tiers else ():
            yield self._verdict(agent, bucket, self._losses.findings(agent, bucket, {}), {})

    def _accepted(
        self, agent: int, bucket: BucketId, findings: Iterable[Finding]
    ) -> tuple[Finding, ...]:
        """The findings without duplicates, the gravest first. If a person accepted a finding for
        this bucket, adds the acceptance to the finding."""
        distinct = set(findings)
        if not distinct:
            return ()
        accepted = self._acceptances.get(bucket, {})
        ordered = sorted(distinct, key=lambda x: (-x.status, x.reason, x.key))
        return tuple(
            replace(x, acceptance=accepted.get((agent, x.name))) if accepted else x for x in ordered
        )

    def _unread_findings(self) -> Iterator[Finding]:
        """Yields a finding if the audit could not read some messages. Such messages may concern any
        agent, tier and bucket."""
        if self._facts.evidence.unread:
            yield Finding(Status.UNKNOWN, reasons.of_unread(self._facts.evidence.unread))

    def _unheard_findings(self, bucket: BucketId) -> Iterator[Finding]:
        for host in self._unheard:
            status = Status.OPEN
            if self._facts.now_ms >= self._facts.due(bucket) + self._facts.policy.silence_ms:
                status = Status.UNKNOWN
            yield Finding(status, f"host {host} is expected, but no agent of it reported yet")

    def _agent_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        if not self._is_plain(agent):
            yield from self._special_findings(agent, bucket, tallies)
        yield from seals.findings(self._facts, agent, bucket, tallies)

    def _is_plain(self, agent: int) -> bool:
        """Whether `_special_findings` finds nothing in any bucket: the agent is alone on its host,
        read nothing that another agent had read, had one epoch and declared no loss."""
        if agent not in self._plain:
            epochs_ = self._facts.epochs.get(agent, [])
            self._plain[agent] = (
                all(key.epoch <= 1 for key in epochs_)
                and len(epochs_) <= 1
                and not any(agent in x.rereadings or agent in x.losses for x in self._facts.related)
                and not self._facts.expectation.side_by_side(agent)
            )
        return self._plain[agent]

    def _special_findings(
        self, agent: int, bucket: BucketId, tallies: Tallies
    ) -> Iterator[Finding]:
        if namesakes := self._facts.expectation.side_by_side(agent):
            yield Finding(Status.COMPLETE, reasons.of_namesakes(namesakes))
        for doublings in self._doublings:
            for reason in doublings.reasons(agent, self._facts.topic.tallies.get(bucket, {})):
                yield Finding(Status.UNKNOWN, reason, name_of_doubt(reason, tallies))
        yield from epochs.findings(self._facts, agent, bucket, tallies)
        yield from self._losses.findings(agent, bucket, tallies)


def _by_finding(
    acceptances: Iterable[Acceptance],
) -> dict[BucketId, dict[tuple[int, str], Acceptance]]:
    """The acceptances by bucket and finding. If a finding was accepted several times, only the
    oldest acceptance is included."""
    found: dict[BucketId, dict[tuple[int, str], Acceptance]] = {}
    for each in acceptances:
        named = found.setdefault((each.bucket, each.bucket_ms), {})
        for name in each.findings:
            named.setdefault(name, each)
    return found
