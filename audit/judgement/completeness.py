"""Decides, without I/O, whether a topic is complete in a span of time, for `skidway audit
complete`.

A job runs this command before it reads the rows of a day. The answer is yes only if the audit knows
that no record of the span can be missing. It is not enough that all known buckets are complete.
These are the conditions:

    each bucket     every bucket of the span has a verdict, even if nothing was counted in it.
                    (`skidway audit report` leaves such empty buckets out.) An empty bucket is
                    complete if every expected agent has sealed it, and if the counters sent
                    messages after it was due
    due             a bucket is due when lateness_ms have passed since its end; before that, it is
                    not complete. So a span that ends in the future is not complete either. A bucket
                    that is only partly in the span is judged as a whole
    known topic     the audit has messages about the topic, in each cluster for which the roster
                    (the list of the hosts that must report) names the topic. If a host of the
                    roster never sent a message, and the roster does not name the host's topics, no
                    topic of the host's cluster is complete, because the host may have any of these
                    topics
    heard lately    an agent or a counter of the topic's cluster sent a message within the policy's
                    silence_ms. If there is no such message, the collector, which reads the audit's
                    messages, may have stopped, or may still be reading old messages. Messages that
                    the collector has not read may have counts for a bucket, so that the bucket is
                    not complete any more
    files           if nothing was counted in the span, no agent has a source of the topic that has
                    never matched a file
    as the report   there are not too many rejects, the newest recounts found no difference, and the
                    clock of this program is not wrong. If one of these three conditions is not met,
                    `skidway audit report` ends with status 1, too

A bucket also counts as complete if a person accepted its findings. Nobody can accept a bucket in
which nothing was counted, because reports do not list it. For an empty bucket, the acceptances of
other buckets apply. If a declared loss was accepted in any bucket of the span, or in the bucket in
which the loss ends, the loss counts as accepted in the empty bucket. The same loss also concerns
the topic of rejects, so it counts as accepted in the empty buckets of this topic, too. Any other
finding counts as accepted in the empty bucket if it was accepted both in an earlier bucket and in a
later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from skidway.audit.counts import bucket
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import Evidence, TopicEvidence
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import fileless, reasons
from skidway.audit.judgement.agent_columns import FleetColumns
from skidway.audit.judgement.clocks import clocks, present_ms
from skidway.audit.judgement.hosts import HostState, HostStatus, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.rules.topic_facts import CommonFacts, TopicFacts
from skidway.audit.judgement.topic_judgement import TopicJudgement
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Place, Status
from skidway.audit.topic.decisions import Acceptance, FindingName
from skidway.audit.topic.messages import Tier
from skidway.errors import UsageError
from skidway.kafka.source import Source

BUCKETS_MAX = 10_080
"""The greatest number of buckets in a span. If a bucket is one minute long, this is a week."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question of the caller. name: the topic's name, as it was given. names: a function that
    returns whether a topic has that name. covers: a function that returns whether a topic has that
    name, or has the rejects of a topic with that name. since_ms, until_ms: the span of event time.
    """

    name: str
    names: Callable[[Source], bool]
    covers: Callable[[Source], bool]
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class Known:
    """The facts that are the same for all topics. hosts: the states of all hosts."""

    common: CommonFacts
    fleet: FleetColumns
    hosts: Sequence[HostState]


@dataclass(frozen=True, slots=True)
class Completeness:
    """The answer for one topic in the span. name: cluster and topic, or the given name if the
    cluster is not known. source: None if no message mentions the topic. verdicts: one verdict for
    every bucket of the span, oldest first. doubts: reasons against completeness that do not concern
    a single bucket. has_agents: whether the audit waits for an agent of the topic."""

    name: str
    source: Source | None = None
    verdicts: tuple[BucketVerdict, ...] = ()
    doubts: tuple[str, ...] = ()
    has_agents: bool = False

    @property
    def short(self) -> tuple[BucketVerdict, ...]:
        """The verdicts on the buckets whose rows a job should not read yet (`is_good` is false)."""
        return tuple(x for x in self.verdicts if not is_good(x))

    @property
    def is_short(self) -> bool:
        """Whether a job must not read the topic's rows of the span yet, because there is a doubt or
        a bucket in `short`."""
        return bool(self.doubts or self.short)

    @property
    def accepted(self) -> tuple[BucketVerdict, ...]:
        """The verdicts on buckets that are complete except for findings that a person accepted."""
        return tuple(x for x in self.verdicts if x.is_accepted)

    def lacking(self) -> dict[Place, int]:
        """For each place that is not retired, how many records the place lacks in those buckets
        whose rows a job should not read yet (see `short`, and Parts.lacking)."""
        found: Counter[Place] = Counter()
        for verdict in self.short:
            found.update(verdict.parts.lacking)
        return dict(found)


def is_good(verdict: BucketVerdict) -> bool:
    """Whether a job may read the bucket's rows. The bucket must be due. Besides, it must be
    complete with all of its warnings accepted, or a person must have accepted its findings."""
    return verdict.due and verdict.residue is Status.COMPLETE and not verdict.is_warned


def completeness(
    evidence: Evidence,
    policy: Policy,
    question: Question,
    now_ms: int,
    known: Known | None = None,
) -> list[Completeness]:
    """Returns one answer for each topic that has the name in `question` in any cluster, and one
    answer for each topic with the rejects of such a topic. Raises UsageError for a span that is
    empty or has more than BUCKETS_MAX buckets. known: the facts that are the same for all topics,
    if the caller has them already. These facts may be some seconds older than now_ms; then the
    answer may treat a bucket as not yet due although it is due now."""
    grid = _grid(question, policy.bucket_ms)
    topics = [x for x, topic in evidence.topics.items() if question.covers(x) and _is_known(topic)]
    if known is None:
        common = CommonFacts(evidence, policy, present_ms(evidence, policy, now_ms))
        fleet = FleetColumns(common)
        known = Known(common, fleet, survey(evidence, policy, now_ms, fleet))
    asking = _Asking(known, question, grid, now_ms)
    found = [asking.answer(source) for source in sorted(topics, key=_order)]
    return [*found, *_unknown(policy, question, topics)]


def _grid(question: Question, size: int) -> list[BucketId]:
    """The buckets of this size in the span, also those in which nothing was counted."""
    since_ms, until_ms = question.since_ms, question.until_ms
    if since_ms >= until_ms:
        raise UsageError("--since must be earlier than --until.")
    first = bucket.start_of(since_ms, size)
    if until_ms - first > BUCKETS_MAX * size:
        raise UsageError(f"--since: there are more than {BUCKETS_MAX:,} buckets until --until.")
    return [(start, size) for start in range(first, until_ms, size)]


def _is_known(topic: TopicEvidence) -> bool:
    return bool(topic.agents or topic.coverage or topic.tallies or topic.losses)


def _order(source: Source) -> tuple[str, str, str]:
    return source.cluster, source.topic, source.topic_id


def _unknown(policy: Policy, question: Question, known: Sequence[Source]) -> Iterator[Completeness]:
    """Yields answers for topics that no message mentions. If no message mentions the topic in any
    cluster, yields one answer for all clusters. If a message mentions the topic in some cluster,
    yields an answer for each other cluster for which the roster names the topic, but in which no
    message mentions it.
    """
    heard = {(x.cluster, x.topic) for x in known if question.names(x)}
    if not heard:
        yield Completeness(question.name, doubts=("the audit has never heard of this topic",))
        return
    listed = {(x.cluster, topic) for x in policy.roster if x.cluster for topic in x.topics}
    for cluster, topic in sorted(listed):
        is_asked = question.names(Source(cluster, "", topic, ""))
        if is_asked and (cluster, topic) not in heard and policy.roster.hosts(cluster, topic):
            words = f"hosts of {cluster} must report it, but the audit has never heard of it there"
            yield Completeness(f"{cluster}.{topic}", doubts=(words,))


def _may_have_any_topic(state: HostState) -> bool:
    """Whether a host of the roster never sent a message, and the roster does not name its
    topics."""
    return state.expected and state.status is HostStatus.NEVER_HEARD and not state.topics


class _Asking:
    def __init__(
        self,
        known: Known,
        question: Question,
        grid: Sequence[BucketId],
        now_ms: int,
    ) -> None:
        self._known = known
        self._evidence = evidence = known.common.evidence
        self._policy = policy = known.common.policy
        self._question = question
        self._grid = grid
        self._now_ms = present_ms(evidence, policy, now_ms)
        self._is_clock_wrong = clocks(evidence, policy, now_ms).is_ours_wrong
        self._hosts = [x for x in known.hosts if _may_have_any_topic(x)]
        notes = (x for topic in evidence.topics.values() for x in topic.losses.values())
        self._losses = {reasons.name_of_loss(note) for own in notes for note in own}

    def answer(self, source: Source) -> Completeness:
        common, fleet = self._known.common, self._known.fleet
        judgement = TopicJudgement(
            self._evidence, source, self._policy, common.now_ms, common, fleet
        )
        named = self._accepted_of(judgement.facts)
        since_ms, until_ms = self._question.since_ms, self._question.until_ms
        deleted = sorted(judgement.facts.topic.pruned)
        known = {*judgement.buckets(), *deleted[-BUCKETS_MAX:]}
        inside = {x for x in known if sum(x) > since_ms and x[0] < until_ms}
        found = []
        for each in sorted(inside | set(self._grid)):
            verdict = judgement.whole_bucket(each)
            verdict = verdict if each in inside else self._accepted_beside(verdict, named)
            is_plainly_good = is_good(verdict) and not verdict.is_accepted
            found.append(verdict.short() if is_plainly_good else verdict)
        name, doubts = f"{source.cluster}.{source.topic}", [*self._doubts(source)]
        if not any(verdict.records for verdict in found):
            doubts += [f"unknown: {each.words}" for each in fileless.of_topic(judgement.facts)]
        has_agents = bool(judgement.facts.expectation.agents)
        return Completeness(name, source, tuple(found), tuple(doubts), has_agents)

    def _doubts(self, source: Source) -> Iterator[str]:
        if self._evidence.rebuilding:
            yield reasons.of_rebuilding(self._evidence.rebuilding)
        if self._is_clock_wrong:
            yield "the clock of this host is wrong, so no bucket is certain to be over"
        heard_ms = self._last_heard(source)
        if self._now_ms - heard_ms > self._policy.silence_ms:
            when = f"since {reasons.of_time(heard_ms)}" if heard_ms else "yet"
            yield (
                f"nobody of cluster {source.cluster} was heard {when}: no program sends, or the"
                " audit has not read yet what they sent"
            )
        for state in self._hosts:
            if state.cluster in (None, source.cluster):
                yield f"host {state.host} is expected, but was never heard, whatever its topics are"
        for recount in self._evidence.topic(source).recounts:
            if not recount.is_good:
                yield f"by the newest recount of {recount.output} its rows are not what was counted"

    def _last_heard(self, source: Source) -> int:
        """Returns the time of the last message from an agent or a counter that sends from the
        topic's cluster. If there is no such sender, or if the cluster is retired, returns the time
        of the last message from any sender.
        """
        evidence = self._evidence
        retired = retired_by(self._policy.retired_places, evidence.retirements)
        here = [
            key
            for key, numbers in evidence.senders.items()
            if key.tier in (Tier.AGENT, Tier.BROKER) and numbers.cluster == source.cluster
        ]
        if not here or retired.holds_cluster(source.cluster):
            here = list(evidence.senders)
        return max((evidence.heard_ms(key[:2]) for key in here), default=0)

    def _accepted_of(self, facts: TopicFacts) -> Mapping[FindingName, Sequence[Acceptance]]:
        """Returns the acceptances in the buckets of the topic, by finding. Of declared losses, also
        returns the acceptances in later buckets. For a topic of rejects, also returns the
        acceptances of declared losses in the topic whose lines were rejected, because people cannot
        accept a loss in a topic of rejects that has no counts."""
        topic, *parents = facts.related
        found = _by_name(topic.acceptances)
        others = [x for each in facts.related for x in each.loss_acceptances]
        others += [x for parent in parents for x in parent.acceptances]
        for name, given in _by_name(others).items():
            if name.finding in self._losses:
                found.setdefault(name, []).extend(given)
        return found

    def _accepted_beside(
        self, verdict: BucketVerdict, named: Mapping[FindingName, Sequence[Acceptance]]
    ) -> BucketVerdict:
        """Returns the verdict on a bucket without counts, with acceptances that people gave for the
        same findings in other buckets (see the module's docstring)."""

        def accepted(agent: int, finding: Finding) -> Finding:
            given = named.get(FindingName(agent, finding.name), ())
            if finding.acceptance is not None or not given:
                return finding
            starts = [x.bucket for x in given]
            is_between = min(starts) < verdict.bucket < max(starts)
            if not is_between and finding.name not in self._losses:
                return finding
            return replace(finding, acceptance=given[0])

        if verdict.residue is Status.COMPLETE or not named:
            return verdict
        agents = [
            replace(x, findings=tuple(accepted(x.agent, each) for each in x.findings))
            for x in verdict.agents
        ]
        findings = tuple(accepted(NO_AGENT, each) for each in verdict.findings)
        return replace(verdict, agents=tuple(agents), findings=findings)


def _by_name(acceptances: Sequence[Acceptance]) -> dict[FindingName, list[Acceptance]]:
    found: dict[FindingName, list[Acceptance]] = {}
    for each in acceptances:
        for name in each.findings:
            found.setdefault(name, []).append(each)
    return found
