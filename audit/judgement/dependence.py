"""The evidence on which the verdicts on the buckets of a topic depend. A verdict is made again only
if this evidence has changed. The module does no I/O.

Some of this evidence changes all the time: the newest seals of the agents, the times at which
senders were heard, and the present time. Only a few of these changes matter for a bucket:

    seals    a bucket depends on the newest seals of two groups of agents: those whose newest seal
             does not reach the time at which the bucket is due, and those that counted records in
             the bucket after their newest seal (`late`). A newer seal of any other agent changes
             nothing
    heard    for an agent of these two groups, the verdict depends only on whether the agent is
             silent. For records without origin, the verdict depends on the time up to which a
             counter has counted, but only if this is before the bucket was due
    time     whether the bucket is due, and whether it has been due for silence_ms

All other evidence that concerns every bucket is the *shape* of the topic. If the shape changes,
every bucket of the topic is judged again. The shape has no values that change regularly. It
changes, for example, when a new host begins or when an agent declares a loss.

A `Dependence` object has the evidence of one moment. If the methods of two such objects return the
same values for a bucket, the verdicts on the bucket at the two moments are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby

import numpy as np
import numpy.typing as npt

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import Numbers, SealNote
from skidway.audit.evidence.tallies import BucketId, BucketTallies, Int64s
from skidway.audit.judgement import reasons
from skidway.audit.judgement.agent_columns import AgentColumns
from skidway.audit.judgement.bucket_columns import BucketColumns
from skidway.audit.judgement.clocks import behind_ms
from skidway.audit.judgement.rules import without_origin
from skidway.audit.judgement.topic_judgement import TopicJudgement
from skidway.audit.topic.messages import Tier

UInt64s = npt.NDArray[np.uint64]


class Dependence:
    """The evidence on which the verdicts of one topic depend, at one moment."""

    def __init__(self, judgement: TopicJudgement) -> None:
        self._judgement = judgement
        self._facts = judgement.facts

    @cached_property
    def shape(self) -> tuple[object, ...]:
        """The evidence that concerns every bucket of the topic, except newest seals and times."""
        facts, columns = self._facts, self._judgement.agent_columns
        evidence = facts.evidence
        return (
            facts.policy,
            columns.agents.tobytes(),
            columns.waited_until.tobytes(),
            columns.is_plain.tobytes(),
            columns.counted_from.tobytes(),
            self._judgement.fleet.names(facts, columns.agents),
            tuple(self._judgement.unheard),
            tuple(sorted(x.place for x in evidence.retirements)),
            tuple(facts.places),
            frozenset(facts.needed),
            tuple((key, _numbers_of(x)) for key, x in facts.common.counters),
            tuple(sorted(facts.unread.items())),
            evidence.unproven,
            tuple((x.sender, x.time_ms, x.gap) for x in facts.topic.gaps),
            tuple(
                (key, partition, covered.first)
                for key, partitions in facts.topic.coverage.items()
                for partition, covered in partitions.items()
            ),
            tuple(facts.sources),
            tuple(self._special()),
        )

    def of_buckets(self, dues: Int64s) -> tuple[UInt64s, UInt64s]:
        """Returns two arrays, each with an element for each bucket. The argument `dues` has the
        times at which the buckets are due. A bucket's element in the first array is the sum of the
        hashes (see `_states`) of the agents whose newest seals do not reach the time at which the
        bucket is due. The bucket's element in the second array is 0 if the bucket is not due, 1 if
        it is due, and 2 if it has been due for at least silence_ms.
        """
        facts = self._facts
        phases = (facts.now_ms >= dues).astype(np.uint64)
        phases += (facts.now_ms >= dues + facts.policy.silence_ms).astype(np.uint64)
        return self._sums[np.searchsorted(self._vouched, dues, "left")], phases

    def of_late(self, agents: Int64s) -> np.uint64:
        """The sum of these agents' hashes. An agent's hash (see `_late_states`) covers its newest
        seal, and whether it is silent or behind."""
        places, is_known = self._judgement.agent_columns.places(agents)
        found: np.uint64 = self._late_states[places[is_known]].sum(dtype=np.uint64)
        return found

    def of_records_without_origin(self, bucket: BucketId) -> tuple[object, ...] | None:
        """The evidence on which the rules about records without origin depend. None if this
        evidence cannot change any more, because all counters that are the first to count such
        records have counted up to the time at which the bucket was due.
        """
        found = tuple(without_origin.depends_on(self._facts, bucket))
        return found or None

    @cached_property
    def accepted(self) -> frozenset[BucketId]:
        """The buckets in which a person accepted a finding or a warning."""
        return frozenset(self._judgement.acceptances)

    def acceptances(self, bucket: BucketId) -> tuple[object, ...]:
        """The findings and warnings of a bucket that people accepted."""
        return tuple(self._judgement.acceptances.get(bucket, {}).items())

    def late(self, bucket: BucketId) -> Int64s:
        """The agents that counted records in the bucket after their newest seal."""
        tallies, agents = self._facts.topic.tallies.get(bucket), self.columns
        if not isinstance(tallies, BucketTallies):
            return np.empty(0, np.int64)
        columns = self._judgement.columns_of(bucket)
        if columns is None:  # this bucket's agents were not judged in columns, but one by one
            columns = BucketColumns(self._facts, agents, tallies, bucket, {})
        return agents.agents[columns.late]

    def has_records_without_origin(self, bucket: BucketId) -> bool:
        """Whether the bucket has records that no agent seals."""
        is_sealed = Tier.AGENT in self._facts.tiers
        return not is_sealed or NO_AGENT in self._facts.topic.tallies.get(bucket, {})

    def vouches_for_less(self, before: AgentColumns | None) -> bool:
        """Whether any agent's newest seal covers fewer deltas than the agent's newest seal in
        `before`. In this case any bucket may have lines that came after the newest seal."""
        if before is None:
            return False
        now = self._judgement.agent_columns
        places, is_known = before.places(now.agents)
        both = is_known & now.has_seal
        if len(before):
            both &= before.has_seal[places]
        old = places[both]
        less = now.epoch[both] < before.epoch[old]
        less |= (now.epoch[both] == before.epoch[old]) & (now.at[both] < before.at[old])
        return bool(less.any())

    @property
    def columns(self) -> AgentColumns:
        """The columns of the topic's agents."""
        return self._judgement.agent_columns

    @property
    def _agents(self) -> list[int]:
        agents: list[int] = self._judgement.agent_columns.agents.tolist()
        return agents

    @cached_property
    def _states(self) -> UInt64s:
        """For each agent, a hash of its newest seal, of whether it is silent, and of how far its
        clock or its messages are behind (`_delays`). For an agent with a clone (two different
        messages with one number), the hash also covers all its seals. If a source of the agent has
        no files, each of its seals vouches for the same time, and only `at` grows; on this, only
        buckets with late lines depend, so the hash leaves it out.
        """
        columns = self._judgement.agent_columns
        return self._hashes(np.where(columns.is_fileless, 0, columns.at))

    @cached_property
    def _late_states(self) -> UInt64s:
        """The hashes of `_states`, with `at` for all agents."""
        return self._hashes(self._judgement.agent_columns.at)

    def _hashes(self, at: Int64s) -> UInt64s:
        columns = self._judgement.agent_columns
        found = checksum.mixed(columns.agents.view(np.uint64))
        for column in (at, *_numbers(columns), self._delays, self._seals_of_cloned):
            found = checksum.mixed(found ^ column.astype(np.int64).view(np.uint64))
        return found

    @cached_property
    def _delays(self) -> Int64s:
        """For each agent that looks silent by its own clock, how far its clock or its messages are
        behind (see clocks.behind_ms); 0 for the other agents."""
        facts, columns = self._facts, self._judgement.agent_columns
        found = np.zeros(len(columns), np.int64)
        for place in np.flatnonzero(columns.is_silent).tolist():
            name = Tier.AGENT, str(columns.agents[place])
            found[place] = behind_ms(
                facts.evidence, facts.policy, name, facts.now_ms, facts.ours_ahead_ms
            )
        return found

    @cached_property
    def _seals_of_cloned(self) -> Int64s:
        """For each agent with a clone (two different messages with one number), a hash of all its
        seals, because the rules use each of these seals; 0 for the other agents."""
        facts, found = self._facts, np.zeros(len(self._agents), np.int64)
        for place in np.flatnonzero(~self._judgement.agent_columns.is_plain).tolist():
            keys = facts.epochs.get(self._agents[place], ())
            if any(facts.evidence.senders[key].cloned_at is not None for key in keys):
                found[place] = hash(tuple(facts.seals[self._agents[place]]))
        return found

    @cached_property
    def _order(self) -> Int64s:
        return np.argsort(self._judgement.agent_columns.vouched, kind="stable")

    @cached_property
    def _vouched(self) -> Int64s:
        return self._judgement.agent_columns.vouched[self._order]

    @cached_property
    def _sums(self) -> UInt64s:
        """Returns an array of sums of the agents' hashes in `_states`. The agents are sorted by the
        times up to which their newest seals vouch, the earliest first. Element n of the array is
        the sum of the first n hashes.
        """
        ordered = self._states[self._order]
        return np.concatenate(([np.uint64(0)], np.cumsum(ordered, dtype=np.uint64)))

    def _special(self) -> Iterator[tuple[object, ...]]:
        """Yields the evidence about agents that are judged one by one (agents that are not plain,
        see agent_columns). Leaves out evidence that concerns only single buckets.
        """
        facts, judgement = self._facts, self._judgement
        is_plain = judgement.agent_columns.is_plain
        agents = {self._agents[x] for x in np.flatnonzero(~is_plain).tolist()}
        for agent in sorted(agents | judgement.losing):
            senders = facts.evidence.senders
            epochs = facts.epochs.get(agent, [])
            yield (
                agent,
                tuple(epochs),
                tuple(_numbers_of(senders[key]) for key in epochs),
                tuple(facts.evidence.resumed.get((agent, x.epoch), 0) for x in epochs),
                reasons.of_namesakes(facts.expectation.side_by_side(agent)),
                facts.expectation.is_gone(agent),
                facts.evidence.bounds.get(agent),
                tuple(sorted(facts.evidence.unread_of_agents.get(agent, {}).items())),
                tuple(
                    (agent in topic.agents, bool(topic.seals.get(agent))) for topic in facts.related
                ),
                tuple(self._seals_between_epochs(agent)),
                judgement.of_agent(agent),
            )  # fmt: skip

    def _seals_between_epochs(self, agent: int) -> Iterator[tuple[SealNote | None, ...]]:
        """Yields, for each epoch of the agent, its first and its last seal. For the newest epoch,
        yields None instead of the last seal, because this seal changes all the time, and is already
        part of the hash in `_states`."""
        facts = self._facts
        epochs = facts.epochs.get(agent, [])
        newest = epochs[-1].epoch if epochs else 0
        for epoch, found in groupby(facts.seals.get(agent, ()), key=lambda x: x.epoch):
            seals = list(found)
            yield seals[0], (None if epoch >= newest else seals[-1])


def _numbers_of(x: Numbers) -> tuple[object, ...]:
    return x.cluster, x.missing, x.first, x.first_time_ms, x.cloned_at


def _numbers(columns: AgentColumns) -> Iterator[Int64s]:
    yield columns.epoch
    yield columns.sealed
    yield columns.vouched
    flags = columns.has_seal.astype(np.int64) + 2 * columns.is_final + 4 * columns.is_silent
    yield flags + 8 * columns.is_fileless
