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
    seal      the agent's newest seal (its message that all lines up to a time are counted) reaches
              the bucket's end plus lateness, or it is the last seal of an agent for which the audit
              no longer waits. And no delta with a number above the seal's `at` counted anything in
              the bucket. A seal is for a topic name, so it also counts if the topic was deleted and
              created again
    clock     by the audit's clock, the bucket's end plus lateness has passed; if the audit's clock
              is ahead of most other clocks, it is corrected first (see clocks)
    equation  every tier that must count the topic has counted it, and all tiers counted the same
              records

The whole bucket is complete only if these conditions are met, too:

    hosts     an agent of every expected host has sent a message
    pruned    the bucket's counts were not deleted because of the bucket's age

Records that came from no agent have no seal. Instead of a seal, such records need a message of the
counters that are the first to count them: these counters must have sent a message after the bucket
was due (see rules.without_origin).

The judgement relies only on what messages say. If a tier never reported, the judgement does not
assume that the tier counted zero records. If a host never sent a seal, the judgement does not
assume that the host had nothing to send. A doubt can only make a verdict worse.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b

from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.tallies import BucketId, BucketTallies
from skidway.audit.judgement import reasons
from skidway.audit.judgement.agent_columns import AgentColumns, FleetColumns
from skidway.audit.judgement.bucket_columns import BucketColumns, Told
from skidway.audit.judgement.cause import Cause
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
from skidway.audit.judgement.rules.topic_facts import (
    CommonFacts,
    Tallies,
    TopicFacts,
    name_of_doubt,
)
from skidway.audit.judgement.verdict import (
    AGENTS_SHOWN,
    AgentVerdict,
    BucketVerdict,
    Finding,
    Parts,
    Place,
    Status,
    acceptances_of,
    gravest,
    has_remarks,
)
from skidway.audit.judgement.verdicts_of_agents import Agents, Ranks
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


def verdicts(evidence: Evidence, policy: Policy, now_ms: int) -> list[BucketVerdict]:
    """One verdict for each bucket of each source topic, sorted by topic and then by bucket. Only
    buckets in which anything was counted or declared lost have a verdict."""
    common = CommonFacts(evidence, policy, present_ms(evidence, policy, now_ms))
    return verdicts_of(common, FleetColumns(common))


def verdicts_of(
    common: CommonFacts, fleet: FleetColumns, chosen: Collection[BucketId] | None = None
) -> list[BucketVerdict]:
    """Like `verdicts`, for a caller that already has the facts that all topics share. chosen: if
    given, only these buckets are judged."""
    evidence, policy, now_ms = common.evidence, common.policy, common.now_ms
    found = list[BucketVerdict]()
    for source in sorted(evidence.topics, key=lambda x: (x.cluster, x.topic, x.topic_id)):
        if evidence.asked is not None and source.topic not in evidence.asked:
            continue
        judgement = TopicJudgement(evidence, source, policy, now_ms, common, fleet)
        buckets = (x for x in judgement.buckets() if chosen is None or x in chosen)
        found += map(judgement.bucket, buckets)
    return found


class TopicJudgement:
    """Judges the buckets of one source topic."""

    def __init__(
        self,
        evidence: Evidence,
        source: Source,
        policy: Policy,
        now_ms: int,
        common: CommonFacts | None = None,
        fleet: FleetColumns | None = None,
    ) -> None:
        """common, fleet: the facts that are the same for all topics, if they were already computed
        for another topic."""
        common = common or CommonFacts(evidence, policy, now_ms)
        self._fleet = fleet
        self._facts = facts = TopicFacts(common, source)
        self._losses = Losses(facts)
        self._doublings = [Doublings(evidence, x) for x in facts.related if x.rereadings]
        self._acceptances = _by_finding(facts.topic.acceptances)
        self._plain: dict[int, bool] = {}
        self._last: tuple[BucketId, BucketColumns | None] | None = None
        self._unheard = facts.expectation.unheard()
        self._losing = {agent for topic in facts.related for agent in topic.losses}

    @property
    def facts(self) -> TopicFacts:
        """The facts of the topic."""
        return self._facts

    @property
    def acceptances(self) -> Mapping[BucketId, Mapping[tuple[int, str], Acceptance]]:
        """The acceptances of people, by bucket and finding."""
        return self._acceptances

    @property
    def unheard(self) -> Sequence[str]:
        """The hosts that must report the topic and have not reported it."""
        return self._unheard

    @property
    def losing(self) -> set[int]:
        """The agents that declared losses in the topic or, for a topic of rejects, also in the
        topic whose lines were rejected."""
        return self._losing

    def of_agent(self, agent: int) -> tuple[object, ...]:
        """Returns the evidence about an agent that the rules about losses and doublings use for
        every bucket. If this evidence changes, all verdicts on the agent may change.
        """
        return tuple(self._losses.of_agent(agent)), *(x.of_agent(agent) for x in self._doublings)

    def buckets(self) -> list[BucketId]:
        """Returns the buckets in which anything was counted, and the buckets that are named only by
        declared losses (see evidence.loss_buckets).
        """
        begin, end = self._facts.evidence.window
        lossy = {x for x in self._facts.topic.lossy if begin <= x[0] < end}
        if Tier.AGENT not in self._facts.tiers:  # losses count only if the tier agent is expected
            lossy = set()
        return sorted(self._facts.topic.tallies.keys() | lossy)

    def bucket(self, bucket: BucketId) -> BucketVerdict:
        """The verdict on one bucket, for all agents together."""
        if bucket in self._facts.topic.pruned:
            return self._pruned(bucket)
        columns = self.columns_of(bucket)
        if columns is not None:
            return self._of_columns(bucket, columns)
        by_agent = self._facts.topic.tallies.get(bucket, {})
        judged = self._judged(bucket)
        agents = [self._agent(agent, bucket, by_agent.get(agent, {})) for agent in sorted(judged)]
        agents += [x for x in self._losers(judged, bucket) if x.findings]
        statuses = [x.status for x in agents]
        return self._whole(bucket, statuses, tuple(agents), reasons.by_host(agents), None)

    def _whole(
        self,
        bucket: BucketId,
        statuses: Iterable[Status],
        agents: Sequence[AgentVerdict],
        said: Sequence[str],
        parts: Parts | None,
    ) -> BucketVerdict:
        start, size = bucket
        unheard = self._accepted(NO_AGENT, bucket, self._unheard_findings(bucket))
        findings = (*self._unread_findings(), *unheard)
        found = BucketVerdict(
            self._facts.source,
            start,
            size,
            max([*statuses, *(x.status for x in findings)], default=Status.OPEN),
            (*(x.words for x in findings), *said),
            due=self._facts.now_ms >= self._facts.due(bucket),
            agents=agents,
            findings=findings,
            known_parts=parts,
        )
        warned = rejects.warnings(found, self._facts.related[1:], self._facts.policy.rejects_share)
        warnings = self._accepted(NO_AGENT, bucket, warned)
        return replace(found, warnings=warnings) if warnings else found

    # These methods make the verdict on a whole bucket, normally from columns (see bucket_columns).

    def columns_of(self, bucket: BucketId) -> BucketColumns | None:
        """The bucket as columns. None if the bucket's agents have to be judged one by one, for one
        of these reasons: the tallies are not stored as columns; the tier agent is not expected;
        there is a doubt about the messages or the epochs of a counter or a loader (see
        rules.sender_numbers). (Such a doubt may change the verdict on every agent.)
        """
        if self._last is None or self._last[0] != bucket:
            self._last = bucket, self._made_columns(bucket)
        return self._last[1]

    def forget_columns(self) -> None:
        """Drops the columns of the bucket that was judged last, because they take megabytes in a
        large fleet.
        """
        self._last = None

    def _made_columns(self, bucket: BucketId) -> BucketColumns | None:
        tallies = self._facts.topic.tallies.get(bucket)
        if not isinstance(tallies, BucketTallies) or Tier.AGENT not in self._facts.tiers:
            return None
        if any(True for _ in sender_numbers.findings(self._facts, NO_AGENT, bucket, {})):
            return None
        senders = self._facts.evidence.senders
        for counting in self._facts.doubtful_places:
            if any(senders[key].cloned_at is not None for key in counting.senders):
                return None
        named = {agent: True for agent, _ in self._acceptances.get(bucket, ())}
        return BucketColumns(self._facts, self.agent_columns, tallies, bucket, named)

    @cached_property
    def agent_columns(self) -> AgentColumns:
        """All agents of the topic, as columns."""
        return AgentColumns(self._facts, self.fleet)

    @property
    def fleet(self) -> FleetColumns:
        """All agents of all topics, as columns."""
        self._fleet = self._fleet or FleetColumns(self._facts.common)
        return self._fleet

    def _of_columns(self, bucket: BucketId, columns: BucketColumns) -> BucketVerdict:
        by_agent = self._facts.topic.tallies.get(bucket, {})

        def verdict(agent: int) -> AgentVerdict:
            return self._agent(agent, bucket, by_agent.get(agent, {}))

        others = [verdict(agent) for agent in sorted(columns.others)]
        judged = set(columns.judged.tolist()) if self._losing else set[int]()
        losers = tuple(x for x in self._losers(judged, bucket) if x.findings)
        unlike = [*others, *losers]
        acceptances: dict[int, Acceptance] = {}
        for each in unlike:
            acceptances |= acceptances_of(each.findings)
        told = [verdict(agent) for agent in columns.gravest(AGENTS_SHOWN)]
        grave = [*sorted([*others, *told], key=lambda x: x.agent), *losers]
        statuses = [*columns.statuses, *(x.status for x in unlike)]
        parts = Parts(
            len(columns.judged) + len(losers),
            max([Status.COMPLETE, *columns.statuses, *(x.residue for x in unlike)]),
            acceptances,
            columns.places(),
            gravest(grave),
            columns.lacking(),
            any(map(has_remarks, unlike)),
        )
        said = reasons.listed(
            [
                *(reasons.said_of((0, x.agent), x) for x in others),
                *(reasons.said_of((1, x.agent), x) for x in losers),
                map(self._said, columns.told()),
            ]
        )
        ranks = Ranks(lambda: columns.status_of_judged(others), self._host)
        agents = Agents(columns.judged, verdict, losers, ranks)
        return self._whole(bucket, statuses, agents, said, parts)

    def _pruned(self, bucket: BucketId) -> BucketVerdict:
        """Returns the verdict on a bucket whose counts were deleted because of the bucket's age.
        The verdict shows the counts that came later, but does not compare them with each other,
        because the deleted counts are missing from the sums.
        """
        by_agent = self._facts.topic.tallies.get(bucket, {})
        agents = tuple(
            self._verdict(agent, bucket, (), equation.sums_of(self._facts, by_agent[agent]))
            for agent in sorted(by_agent)
        )
        found = BucketVerdict(
            self._facts.source, *bucket, Status.UNKNOWN, (), due=True, agents=agents
        )
        reason = reasons.of_pruned(found.records)
        finding = Finding(Status.UNKNOWN, reason, Cause.PRUNED, _name_of_late(by_agent))
        findings = (
            *self._unread_findings(), *self._accepted(NO_AGENT, bucket, [finding])
        )  # fmt: skip
        return replace(found, findings=findings, reasons=tuple(x.words for x in findings))

    def may_have_lost(self, span: BucketId) -> bool:
        """Whether an agent declared a loss of lines that may belong to a span of time (start and
        size in ms). The answer does not depend on whether anything was counted in the span's
        buckets."""
        if Tier.AGENT not in self._facts.tiers:
            return False
        return any(True for agent in self._losing for _ in self._losses.findings(agent, span, {}))

    def whole_bucket(self, bucket: BucketId) -> BucketVerdict:
        """Like `bucket`, but also makes a verdict on a bucket in which nobody counted anything:
        such a bucket can be complete, but only if every expected agent has sealed it. In addition,
        a bucket, empty or not, is complete only if the counters that are the first to count records
        (see `without_origin`) have sent messages since the bucket became due, because some records
        may come from no agent, and no agent seals such records."""
        found = self.bucket(bucket)
        if bucket in self._facts.topic.pruned:
            return found
        by_agent = self._facts.topic.tallies.get(bucket, {})
        said = found.reasons[len(found.findings) :]
        if not self._judged(bucket) or (not by_agent and self._has_records_without_origin):
            agents = (self._agent(NO_AGENT, bucket, {}), *found.agents)
            said = tuple(reasons.by_host(agents))
            statuses = [x.status for x in agents]
            found = replace(found, status=max(statuses), agents=agents, known_parts=None)
        unheard: Iterable[Finding] = ()
        if not by_agent or (NO_AGENT not in by_agent and Tier.AGENT in self._facts.tiers):
            unheard = without_origin.uncounted_findings(self._facts, bucket)
        findings = (*found.findings, *self._accepted(NO_AGENT, bucket, unheard))
        return replace(
            found,
            status=max([found.status, *(x.status for x in findings)]),
            reasons=tuple(dict.fromkeys([*(x.words for x in findings), *said])),
            findings=findings,
        )

    @cached_property
    def _has_records_without_origin(self) -> bool:
        """Whether some bucket of the evidence has records that came from no agent. The answer is
        cached, because a question about an hour with small buckets needs the answer for thousands
        of empty buckets.
        """
        return any(NO_AGENT in by_agent for by_agent in self._facts.topic.tallies.values())

    def _judged(self, bucket: BucketId) -> set[int]:
        """Returns the agents whose verdicts make up the verdict on the bucket."""
        by_agent = self._facts.topic.tallies.get(bucket, {})
        return self._facts.expectation.agents | set(by_agent) | self._replaced(bucket[0])

    def _replaced(self, start: int) -> set[int]:
        """The agents that a newer agent of their host has replaced, and that may have left lines of
        the bucket unread. start: the bucket's start."""
        replaced = self._facts.expectation.replaced
        return {agent for agent, until_ms in replaced.items() if start <= until_ms}

    def _said(self, told: Told) -> reasons.Said:
        """Returns the reason in `told` (see bucket_columns) with sort keys. The keys put reasons
        into the same order as `_verdict` does for agents that are judged one by one."""
        first = [((0, x, -told.status, told.reason), self._name(x)) for x in told.agents]
        return reasons.Said(told.reason, told.count, first)

    def _name(self, agent: int) -> str:
        is_retired = self._is_retired(agent)
        return AgentVerdict(agent, self._host(agent), Status.OPEN, (), {}, is_retired).name

    def _host(self, agent: int) -> str:
        return self._facts.evidence.hosts.get(agent, "")

    def _is_retired(self, agent: int) -> bool:
        return agent != NO_AGENT and self._facts.expectation.is_retired(agent)

    # These methods make the verdict on one agent's part of a bucket.

    def agent(self, agent: int, bucket: BucketId) -> AgentVerdict:
        """The verdict on one agent's part of a bucket. If nobody counted anything in that part,
        there is nothing to compare: the part is complete if the agent has sealed the bucket."""
        found = self._agent(agent, bucket, self._facts.topic.tallies.get(bucket, {}).get(agent, {}))
        older = self._pruned(bucket).findings if bucket in self._facts.topic.pruned else ()
        for each in older or self._unread_findings():
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
            self._host(agent),
            max([x.status for x in marked], default=Status.COMPLETE),
            tuple(dict.fromkeys(x.words for x in marked)),
            sums,
            self._is_retired(agent),
            marked,
        )

    def _losers(self, others: set[int], bucket: BucketId) -> Iterator[AgentVerdict]:
        """The verdicts on agents that declared losses and are not in `others` (the agents that are
        judged in any case). The audit no longer waits for these agents, but their losses still make
        the bucket's verdict worse."""
        for agent in sorted(self._losing - others) if Tier.AGENT in self._facts.tiers else ():
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
        """Yields a finding if the audit could not read some messages, or has not read them yet.
        Such messages may concern any agent, tier and bucket."""
        if self._facts.evidence.rebuilding:
            yield Finding(Status.UNKNOWN, reasons.REBUILDING, Cause.REBUILDING)
        if self._facts.evidence.unproven:
            yield Finding(Status.UNKNOWN, reasons.NOT_VERIFIED, Cause.NOT_VERIFIED)
        if unread := self._facts.unread:
            words = reasons.of_unread(unread)
            yield Finding(Status.UNKNOWN, words, Cause.NEWER_VERSION)

    def _unheard_findings(self, bucket: BucketId) -> Iterator[Finding]:
        for host in self._unheard:
            status = Status.OPEN
            if self._facts.now_ms >= self._facts.due(bucket) + self._facts.policy.silence_ms:
                status = Status.UNKNOWN
            words = f"host {host} is expected, but no agent of it reported yet"
            yield Finding(status, words, Cause.HOST_NEVER_HEARD, about=host)

    def _agent_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        if not self._is_plain(agent):
            yield from self._special_findings(agent, bucket, tallies)
        yield from seals.findings(self._facts, agent, bucket, tallies)

    def _is_plain(self, agent: int) -> bool:
        """Whether the agent is alone on its host, read nothing that another agent had read, had one
        epoch and declared no loss, and all of its messages were read. If so, `_special_findings`
        finds nothing in any bucket."""
        if agent not in self._plain:
            epochs_ = self._facts.epochs.get(agent, [])
            self._plain[agent] = (
                all(key.epoch <= 1 for key in epochs_)
                and len(epochs_) <= 1
                and not any(agent in x.rereadings or agent in x.losses for x in self._facts.related)
                and not self._facts.expectation.side_by_side(agent)
                and agent not in self._facts.evidence.unread_of_agents
            )
        return self._plain[agent]

    def _special_findings(
        self, agent: int, bucket: BucketId, tallies: Tallies
    ) -> Iterator[Finding]:
        if namesakes := self._facts.expectation.side_by_side(agent):
            words = reasons.of_namesakes(namesakes)
            yield Finding(Status.COMPLETE, words, Cause.SAME_HOST_NAME)
        if unread := self._facts.evidence.unread_of_agents.get(agent):
            yield Finding(Status.UNKNOWN, reasons.of_unread(unread), Cause.NEWER_VERSION)
        for doublings in self._doublings:
            for reason in doublings.reasons(agent, self._facts.topic.tallies.get(bucket, {})):
                name = name_of_doubt(reason, tallies)
                yield Finding(Status.UNKNOWN, reason, Cause.READ_TWICE, name)
        yield from epochs.findings(self._facts, agent, bucket, tallies)
        yield from self._losses.findings(agent, bucket, tallies)


def _name_of_late(by_agent: Mapping[int, Tallies]) -> str:
    """Returns the name by which an acceptance refers to the counts that came after the bucket's
    other counts were deleted: a hash of the agents, the senders and their counts. Each later count
    changes the name, and so does a change of the senders, even if all sums stay equal. So an
    earlier acceptance does not cover later counts. The name depends neither on the ledger's ids nor
    on whether the ledger's checksums are narrow.
    """
    counted = sorted(
        (agent, *key, tally.sums.count, tally.last, tally.links)
        for agent, by_sender in by_agent.items()
        for key, tally in by_sender.items()
    )
    return f"pruned {blake2b(json.dumps(counted).encode(), digest_size=8).hexdigest()}"


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
