"""Finds, without I/O, the agents that must seal a topic, and the seals that vouch for the topic.
With a seal, an agent vouches that all lines up to a time are counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, SealNote, TopicEvidence
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.newest_agents import Successors, namesakes, newest_agents
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.seal_columns import NEVER_SEALED
from skidway.kafka.source import Source


class Expectations:
    """The expectations of all topics, from one state of the evidence. They depend on the name of a
    topic only, so they are made once for each name. Most names have the same agents, so the newest
    agents of hosts are computed once for each set of agents. (One host may name many topics.)"""

    def __init__(self, evidence: Evidence, policy: Policy, now_ms: int) -> None:
        self._evidence = evidence
        self._policy = policy
        self._now_ms = now_ms
        self._by_name: dict[tuple[str, str], list[Source]] = {}
        for source in evidence.topics:
            self._by_name.setdefault((source.cluster, source.topic), []).append(source)
        self._last: tuple[tuple[str, str], Expectation] | None = None
        """That of the name that was asked for last: topics are judged in the order of their names,
        and what is kept of a topic keeps all its evidence in memory."""
        self._last_parents: tuple[tuple[str, str, str], Parents] | None = None
        self._newest: dict[frozenset[int], dict[str, NewestOfHost]] = {}
        self._by_host: dict[frozenset[int], dict[str, set[int]]] = {}
        self._successors: dict[frozenset[int], Successors] = {}

    def of(self, source: Source) -> Expectation:
        """The agents that may have lines of a source topic."""
        key = source.cluster, source.topic
        if self._last is None or self._last[0] != key:
            names = dict.fromkeys((source.topic, source.topic.removesuffix(REJECTED_SUFFIX)))
            named = [x for name in names for x in self._by_name.get((source.cluster, name), ())]
            topics = [self._evidence.topic(x) for x in named or [source]]
            found = Expectation(self._evidence, self._policy, self, source, topics)
            self._last = key, found
        return self._last[1]

    def parents(self, source: Source) -> Parents:
        """Returns the topics whose rejected lines a topic of rejects has; none for other topics."""
        if not source.topic.endswith(REJECTED_SUFFIX):
            return _NO_PARENTS
        key = source.cluster, source.cluster_id, source.topic
        if self._last_parents is None or self._last_parents[0] != key:
            named = self._by_name.get((source.cluster, source.topic.removesuffix(REJECTED_SUFFIX)))
            found = [x for x in named or () if x.cluster_id == source.cluster_id]
            self._last_parents = key, Parents(found, [self._evidence.topic(x) for x in found])
        return self._last_parents[1]

    def newest_of_hosts(self, agents: frozenset[int]) -> dict[str, NewestOfHost]:
        """Returns, for each host, the newest of these agents."""
        if agents not in self._newest:
            self._newest[agents] = {
                host: self._newest_of(of_host) for host, of_host in self._of_hosts(agents).items()
            }
        return self._newest[agents]

    def successors(self, agents: frozenset[int], host: str) -> Successors:
        """Returns the successors among those of these agents that are of one host."""
        of_host = frozenset(self._of_hosts(agents)[host])
        if of_host not in self._successors:
            self._successors[of_host] = Successors(self._evidence, of_host)
        return self._successors[of_host]

    def _of_hosts(self, agents: frozenset[int]) -> dict[str, set[int]]:
        if agents not in self._by_host:
            self._by_host[agents] = agents_by_host(self._evidence, agents)
        return self._by_host[agents]

    def _newest_of(self, agents: set[int]) -> NewestOfHost:
        found = newest_agents(self._evidence, agents, self._policy.silence_ms, self._now_ms)
        return NewestOfHost(found, sorted(namesakes(self._evidence, found)))


class Parents(NamedTuple):
    """The topics whose rejected lines a topic of rejects has, and their evidence."""

    sources: Sequence[Source]
    topics: Sequence[TopicEvidence]


_NO_PARENTS: Final = Parents((), ())


class NewestOfHost(NamedTuple):
    """The newest agents of a host (see newest_agents), and those of them that were alive at the
    same time."""

    agents: Sequence[int]
    beside: Sequence[int]


_NONE: Final = NewestOfHost((), ())


class Expectation:
    """The agents that may have lines of the source topics of one name, and the agents among them
    that must have sealed them.

        namesakes: the evidence of all topics that have this name or, for a topic of rejects, also
            the name of the topic whose lines were rejected.
        known: every agent that announced files of any topic of `namesakes`, sealed such a topic, or
            has counts or losses in it.
        agents: the agents of `known` that must have sealed the topic, even if they sent no records.
            If the roster is silent (see the module roster), these are all agents that are not
            retired. If the roster is not silent, they are the newest agents (see newest_agents) of
            each host that must report the topic. Empty if the tier agent is not expected.
        replaced: the other agents of these hosts that are not retired, each with a time (ms, by the
            host's clock). The agent may have left lines unread that were written before this time.
        seals: by agent, the seals that the rules may use, oldest first (see UsableSeals).

    A topic that was deleted and created again has another id but the same agents, so `namesakes`
    has the evidence of both topics. If an agent seals the new topic, it has delivered all lines for
    the old topic. If an agent has messages only about the old topic, it may have lines for the new
    topic.
    """

    def __init__(
        self,
        evidence: Evidence,
        policy: Policy,
        all_: Expectations,
        source: Source,
        named: Sequence[TopicEvidence],
    ) -> None:
        """named: the evidence of all topics that have the same names as `source`."""
        self._evidence = evidence
        self._roster = policy.roster
        self._cluster = source.cluster
        self._name = source.topic.removesuffix(REJECTED_SUFFIX)
        self.namesakes = named
        self.known = {agent for topic in named for agent in topic.agents}
        self.seals = UsableSeals(evidence, named, self.known)
        waited = self.known
        if self._roster.has_retired:
            waited = {agent for agent in self.known if not self.is_retired(agent)}
        self._silence_ms = policy.silence_ms
        self._newest = all_.newest_of_hosts(frozenset(waited))
        is_told = Tier.AGENT in policy.tiers
        self.agents = self._expected(waited) if is_told else set()
        self.replaced = self._replaced(all_, waited - self.agents) if is_told else {}

    def unheard(self) -> list[str]:
        """The hosts that must report the topic, but have not reported it: no message of their
        agents mentions the topic. Agents that are retired by their ids are ignored."""
        wanted = self._roster.hosts(self._cluster, self._name)
        if not wanted:
            return []
        heard = {self._host(agent) for agent in self.known if not self.is_retired(agent)}
        return sorted(wanted - heard)

    def is_retired(self, agent: int) -> bool:
        """Whether this agent is retired, so that the audit does not wait for it."""
        return self._roster.is_retired(self._cluster, self._host(agent), agent)

    def is_gone(self, agent: int) -> bool:
        """Whether the agent may have sent its last message: it is retired, or there is a roster and
        the agent's host has a newer agent."""
        if self.is_retired(agent):
            return True
        newest = self._newest.get(self._host(agent), _NONE)
        return not self._roster.is_silent and agent not in newest.agents

    def side_by_side(self, agent: int) -> Sequence[int]:
        """All agents of this agent's host that are alive at the same time, including this agent.
        The audit waits for all of them. Empty if no other agent is alive at the same time."""
        found = self._newest.get(self._host(agent), _NONE).beside
        place = bisect_left(found, agent)
        return found if agent in found[place : place + 1] else ()

    def _expected(self, waited: set[int]) -> set[int]:
        if self._roster.is_silent:
            return waited
        return {
            agent
            for host, newest in self._newest.items()
            for agent in newest.agents
            if self._roster.expects(self._cluster, self._name, host)
        }

    def _replaced(self, all_: Expectations, others: set[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        known = frozenset(self.known)
        for host, agents in agents_by_host(self._evidence, others).items():
            if self._roster.expects(self._cluster, self._name, host):
                successors = all_.successors(known, host)
                for agent in agents:
                    found[agent] = successors.unread_until(agent, self._silence_ms)
        return found

    def _host(self, agent: int) -> str:
        return self._evidence.hosts.get(agent, "")


class UsableSeals(Mapping[int, list[SealNote]]):
    """For each agent of a name of topics, the seals that the rules may use, oldest first (see
    usable_seals). The seals of an agent are computed only when they are read.
    """

    def __init__(
        self, evidence: Evidence, named: Sequence[TopicEvidence], known: Collection[int]
    ) -> None:
        """named, known: see Expectation. (This object does not name its expectation: a circle would
        stay in memory until the next collection of garbage, which is rare.)"""
        self._evidence, self._named, self._known = evidence, named, known
        self._found: dict[int, list[SealNote]] = {}

    def __getitem__(self, agent: int) -> list[SealNote]:
        if agent not in self._found:
            if agent not in self._known:
                raise KeyError(agent)
            self._found[agent] = usable_seals(self._evidence, self._named, agent)
        return self._found[agent]

    def __iter__(self) -> Iterator[int]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def usable_seals(evidence: Evidence, topics: Iterable[TopicEvidence], agent: int) -> list[SealNote]:
    """Returns the agent's seals of these topics, oldest first. Leaves out seals that only say that
    the agent has the topic. If an epoch of the agent has two different messages with one number,
    also leaves out the seals of this epoch from this number on.
    """
    found = []
    for seal in {seal for topic in topics for seal in topic.seals.get(agent, ())}:
        if seal.sealed_until == NEVER_SEALED:
            continue
        numbers = evidence.senders.get(SenderKey(Tier.AGENT, str(agent), seal.epoch))
        cloned_at = None if numbers is None else numbers.cloned_at
        if cloned_at is None or seal.number < cloned_at:
            found.append(seal)
    return sorted(found)


def agents_by_host(evidence: Evidence, agents: Iterable[int]) -> dict[str, set[int]]:
    """Returns the agents of each host."""
    found: dict[str, set[int]] = {}
    for agent in agents:
        found.setdefault(evidence.hosts.get(agent, ""), set()).add(agent)
    return found
