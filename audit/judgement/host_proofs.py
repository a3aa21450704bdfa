"""Decides, without I/O, whether hosts are proven healthy since a given time, for `skidway audit
wait`.

The proof concerns the bucket that contains the given time. A host is proven if these three
conditions are met for each agent that counts as a newest agent of the host (see newest_agents):

    heard      the agent has sent a message, and is neither silent nor behind (see hosts)
    sealed     each of its topics is sealed past the end of that bucket, and past the end of each
               later bucket that is due. So brokers have acknowledged all bytes that the files had
               when these buckets ended, and these bytes are counted
    counted    these buckets are complete in the requested tiers: each tier has the same records,
               nothing is lost, and no message is missing. The proof does not wait for late lines:
               it judges a bucket as soon as the agent has sealed it

So if no lines are written on a host, its seals are enough for the proof. If lines are written, the
other tiers must also have counted their records. A host can be proven as soon as the bucket of the
given time is over, a seal past the bucket's end has arrived, and the counters have reported the
bucket. The proof ignores later buckets that are not over, or are too young to be due, because there
are always such buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from skidway.audit.counts import bucket
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.fileless import told_by
from skidway.audit.judgement.hosts import AgentState, HostState, HostStatus, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import TopicJudgement
from skidway.audit.judgement.verdict import AgentVerdict, Status
from skidway.errors import UsageError
from skidway.kafka.source import Source

BUCKETS_MAX = 10_080
"""The greatest number of buckets in a proof. If a bucket is one minute long, this is a week. For
earlier times, operators can use `skidway audit report`."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result for one host of one cluster. reasons: what is missing for the proof; empty if the
    host is proven."""

    state: HostState
    reasons: tuple[str, ...]

    @property
    def name(self) -> str:
        """The host's name."""
        return self.state.host

    @property
    def is_short(self) -> bool:
        """Whether something is missing for the proof, so that the host is not proven."""
        return bool(self.reasons)


def proofs(
    evidence: Evidence,
    policy: Policy,
    hosts: Iterable[str],
    since_ms: int,
    now_ms: int,
) -> list[Proof]:
    """Returns a `Proof` for each pair of a host and one of its clusters. A host's clusters are
    those for which the roster names the host. If the roster names no cluster for the host, its
    clusters are those from which its agents sent messages.

    Raises UsageError for a retired host, for a time more than BUCKETS_MAX buckets ago, and for a
    host that the roster does not name and that never sent a message.
    """
    asking = _Asking(evidence, policy, since_ms, now_ms)
    states = survey(evidence, policy, now_ms)
    if evidence.rebuilding:  # messages of these hosts were perhaps not read yet
        heard = {state.host for state in states}
        states += [
            HostState(None, host, HostStatus.NEVER_HEARD, expected=True)
            for host in dict.fromkeys(hosts)
            if host not in heard
        ]
    chosen = [state for host in dict.fromkeys(hosts) for state in _states_of(host, states, policy)]
    return [Proof(state, tuple(asking.reasons(state))) for state in chosen]


def _states_of(host: str, states: Sequence[HostState], policy: Policy) -> list[HostState]:
    found = [state for state in states if state.host == host]
    clusters = policy.roster.clusters(host)
    if clusters and None not in clusters:
        found = [state for state in found if state.cluster in clusters]
    if not found:
        raise UsageError(
            f"--host {host}: no roster names this host, and no agent of it was ever heard."
        )
    waited = [state for state in found if state.status is not HostStatus.RETIRED]
    if not waited:
        raise UsageError(f"--host {host}: it is retired, so nobody waits for it.")
    return waited


class _Asking:
    def __init__(self, evidence: Evidence, policy: Policy, since_ms: int, now_ms: int) -> None:
        self._evidence = evidence
        self._policy = policy
        self._at_once = replace(policy, lateness_ms=0)
        self._since_ms = since_ms
        self._now_ms = now_ms = present_ms(evidence, policy, now_ms)
        self._judgements: dict[Source, tuple[TopicJudgement, TopicJudgement]] = {}
        size = policy.bucket_ms
        self._first: BucketId = bucket.start_of(since_ms, size), size
        due_until = bucket.start_of(now_ms - policy.lateness_ms, size)
        self._needed = max(sum(self._first), due_until)
        if self._needed - self._first[0] > BUCKETS_MAX * size:
            raise UsageError(
                f"--since: {reasons.of_time(since_ms)} is more than {BUCKETS_MAX:,} buckets ago."
            )

    def reasons(self, state: HostState) -> Iterator[str]:
        if self._evidence.rebuilding:
            yield reasons.of_rebuilding(self._evidence.rebuilding)
            return
        if state.status is HostStatus.NEVER_HEARD:
            yield "no agent of it was ever heard"
            return
        if state.status is HostStatus.SILENT:
            yield f"its agent is silent since {reasons.of_time(state.last_heard_ms)}"
        if state.status is HostStatus.BEHIND:
            yield f"its agent is {reasons.of_delay(state.behind_ms)}"
        for agent in state.agents:
            whose = f"agent {agent.agent}: " if len(state.agents) > 1 else ""
            yield from (whose + reason for reason in self._unproven(state.cluster, agent))

    def _unproven(self, cluster: str | None, state: AgentState) -> Iterator[str]:
        if not state.topics:
            yield "its agent has not said yet which topics it has"
        unsealed = {
            topic: reason
            for topic, until in state.topics.items()
            if (reason := self._unsealed(state.agent, topic, until)) is not None
        }
        yield from unsealed.values()
        for source, evidence in self._evidence.topics.items():
            if source.cluster == cluster and state.agent in evidence.agents:
                is_sealed = source.topic.removesuffix(REJECTED_SUFFIX) not in unsealed
                yield from self._uncounted(state.agent, source, is_sealed=is_sealed)

    def _unsealed(self, agent: int, topic: str, until: int | None) -> str | None:
        needed = self._needed
        if until is None:
            return f"topic {topic} was never sealed"
        if until < needed or self._now_ms < needed:
            why = "".join(f": {each.words}" for each in told_by(self._evidence, agent, topic)[:1])
            return (
                f"topic {topic} is sealed only to {reasons.of_time(until)},"
                f" not yet to {reasons.of_time(needed)}{why}"
            )
        if until > self._now_ms + self._policy.lateness_ms:
            return f"topic {topic} is sealed to {reasons.of_time(until)}, which is still to come"
        return None

    def _uncounted(self, agent: int, source: Source, *, is_sealed: bool) -> Iterator[str]:
        """Yields the reasons why the counts of the topic's buckets do not prove the host.
        is_sealed: whether `_unsealed` found nothing wrong with the seals of a topic of this name.
        An open bucket is a reason only if `is_sealed` is true and the agent has counts in the
        bucket. In all other cases the bucket is open only because a seal is missing. This needs no
        further reason: either `_unsealed` has named the missing seal already, or the agent has
        sealed another topic of the same name and will still seal this one."""
        tallies = self._evidence.topic(source).tallies
        for each in self._buckets(agent, source):
            counted = agent in tallies.get(each, {})
            least = Status.OPEN if is_sealed and counted else Status.INCOMPLETE
            for found in self._verdicts(agent, source, each):
                if found.residue >= least:
                    when = reasons.of_time(each[0])
                    words = "; ".join(found.reasons)
                    yield f"bucket {when} of topic {source.topic} is {found.status.word}: {words}"
                    break

    def _buckets(self, agent: int, source: Source) -> list[BucketId]:
        """The bucket that contains the given time, and later buckets that are due. Buckets without
        counts are included, because their counts may be in missing messages. The newest deleted
        bucket is included, whatever its size: one such bucket makes a proof impossible."""
        now_ms, lateness_ms = self._now_ms, self._policy.lateness_ms
        start, size = self._first
        found = {(each, size) for each in range(start, self._needed, size)}
        for (start, size), by_agent in self._evidence.topic(source).tallies.items():
            end = start + size
            asked = start <= self._since_ms or end + lateness_ms <= now_ms
            if agent in by_agent and end > self._since_ms and asked:
                found.add((start, size))
        pruned = self._evidence.topic(source).pruned
        deleted = sorted(x for x in pruned if sum(x) > self._since_ms)
        return sorted(found.union(deleted[-1:]))

    def _verdicts(self, agent: int, source: Source, each: BucketId) -> Iterator[AgentVerdict]:
        """Yields one or two verdicts on the agent's part of the bucket. One verdict is made as if
        no late lines could come. The other is the usual verdict, which waits for late lines; it is
        yielded only if it is worse than OPEN.
        """
        if source not in self._judgements:
            self._judgements[source] = (
                TopicJudgement(self._evidence, source, self._at_once, self._now_ms),
                TopicJudgement(self._evidence, source, self._policy, self._now_ms),
            )
        at_once, late = self._judgements[source]
        yield at_once.agent(agent, each)
        found = late.agent(agent, each)
        if found.residue > Status.OPEN:
            yield found
