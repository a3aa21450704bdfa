"""Finds, without I/O, the agents that must seal a topic, and the seals that vouch for the topic.
With a seal, an agent vouches that all lines up to a time are counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, SealNote, TopicEvidence
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.newest_agents import namesakes, newest_agents, unread_until
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.seal_columns import NEVER_SEALED
from skidway.kafka.source import Source

NewestOfHosts = list[tuple[set[int], dict[str, list[int]]]]
"""Each pair has a set of agents, and a dictionary that names for each host the newest of these
agents. Most topics have the same set of agents, so the newest agents are computed once for all
these topics.
"""


class Expectation:
    """The agents that may have lines of one source topic, and the agents among them that must have
    sealed the topic.

        related: the topic and, for a topic of rejects, the topic whose lines were rejected.
        topics: the evidence of the related topics.
        namesakes: the evidence of all topics that have the same names as `topics`.
        known: every agent that announced files of any topic of `namesakes`, sealed such a topic, or
            has counts or losses in it.
        agents: the agents of `known` that must have sealed the topic, even if they sent no records.
            If the roster is silent (see the module roster), these are all agents that are not
            retired. If the roster is not silent, they are the newest agents (see newest_agents) of
            each host that must report the topic. Empty if the tier agent is not expected.
        replaced: the other agents of these hosts that are not retired, each with a time (ms, by the
            host's clock). The agent may have left lines unread that were written before this time.

    A topic that was deleted and created again has another id but the same agents, so `namesakes`
    has the evidence of both topics. If an agent seals the new topic, it has delivered all lines for
    the old topic. If an agent has messages only about the old topic, it may have lines for the new
    topic.
    """

    def __init__(
        self,
        evidence: Evidence,
        source: Source,
        policy: Policy,
        now_ms: int,
        found: NewestOfHosts | None = None,
    ) -> None:
        """found: newest agents that were already computed from the same evidence for other topics
        (see NewestOfHosts). The constructor may add a pair to this list."""
        self._found = [] if found is None else found
        self._evidence = evidence
        self._roster = policy.roster
        self._cluster = source.cluster
        self._name = source.topic.removesuffix(REJECTED_SUFFIX)
        self.related = _related(evidence, source)
        self.topics = [evidence.topic(each) for each in self.related]
        self.namesakes = [evidence.topic(each) for each in _of_names(evidence, source)]
        self.known = {agent for topic in self.namesakes for agent in topic.agents}
        waited = self.known
        if self._roster.has_retired:
            waited = {agent for agent in self.known if not self.is_retired(agent)}
        self._silence_ms = policy.silence_ms
        self._newest = self._newest_of_hosts(waited, now_ms)
        is_told = Tier.AGENT in policy.tiers
        self.agents = self._expected(waited) if is_told else set()
        self.replaced = self._replaced(waited - self.agents) if is_told else {}

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
        newest = self._newest.get(self._host(agent), [])
        return not self._roster.is_silent and agent not in newest

    def side_by_side(self, agent: int) -> list[int]:
        """All agents of this agent's host that are alive at the same time, including this agent.
        The audit waits for all of them. Empty if no other agent is alive at the same time."""
        newest = self._newest.get(self._host(agent), [])
        found = namesakes(self._evidence, newest)
        return sorted(found) if agent in found else []

    def _expected(self, waited: set[int]) -> set[int]:
        if self._roster.is_silent:
            return waited
        return {
            agent
            for host, agents in self._newest.items()
            for agent in agents
            if self._roster.expects(self._cluster, self._name, host)
        }

    def _replaced(self, others: set[int]) -> dict[int, int]:
        found = {}
        for agent in others:
            host = self._host(agent)
            if self._roster.expects(self._cluster, self._name, host):
                found[agent] = unread_until(
                    self._evidence, agent, self._of_host(host), self._silence_ms
                )
        return found

    def _of_host(self, host: str) -> list[int]:
        return [agent for agent in self.known if self._host(agent) == host]

    def _newest_of_hosts(self, waited: set[int], now_ms: int) -> dict[str, list[int]]:
        for known, newest in self._found:
            if known == waited:
                return newest
        newest = self._newest_of(waited, now_ms)
        self._found.append((waited, newest))
        return newest

    def _newest_of(self, waited: set[int], now_ms: int) -> dict[str, list[int]]:
        by_host: dict[str, set[int]] = {}
        for agent in waited:
            by_host.setdefault(self._host(agent), set()).add(agent)
        return {
            host: newest_agents(self._evidence, agents, self._silence_ms, now_ms)
            for host, agents in by_host.items()
        }

    def _host(self, agent: int) -> str:
        return self._evidence.hosts.get(agent, "")


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


def _of_names(evidence: Evidence, source: Source) -> list[Source]:
    """Returns the topic itself, and all topics with its name, whatever their topic ids are. For a
    topic of rejects, also returns all topics with the name of the topic whose lines were
    rejected.
    """
    names = {source.topic, source.topic.removesuffix(REJECTED_SUFFIX)}
    named = [x for x in evidence.topics if x.cluster == source.cluster and x.topic in names]
    return named if source in named else [source, *named]


def _related(evidence: Evidence, source: Source) -> list[Source]:
    """Returns the topic itself. For a topic of rejects, also returns the topic whose lines were
    rejected.
    """
    if not source.topic.endswith(REJECTED_SUFFIX):
        return [source]
    name = source.topic.removesuffix(REJECTED_SUFFIX)
    here = (source.cluster, source.cluster_id, name)
    parents = [x for x in evidence.topics if (x.cluster, x.cluster_id, x.topic) == here]
    return [source, *parents]
