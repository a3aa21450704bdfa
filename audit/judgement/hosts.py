"""Finds, without I/O, the state of each host from the messages of its agents: reporting, behind,
silent, never heard, or retired.

A state belongs to one host in one cluster. So a host that reports to two clusters has two states,
and each state comes from the agents that report to that cluster. The state of a host is the state
of its newest agents (see the module newest_agents). Normally a host has only one newest agent.

An agent has sealed a topic until time T if it vouches that it has counted all lines that the
topic's files had at T. A host is heard when a message of its agent arrives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, SealNote, agent_named
from skidway.audit.judgement.agent_columns import FleetColumns
from skidway.audit.judgement.clocks import behind_ms, ours_ahead_ms
from skidway.audit.judgement.newest_agents import namesakes, newest_agents
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.refusals import Refusal, Refusals
from skidway.audit.judgement.rules.topic_facts import CommonFacts
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

HostKey = tuple[str | None, str]
"""A cluster and a host. The cluster is None if neither the roster nor a message of the host's
agents names the cluster."""


class HostStatus(StrEnum):
    """The states of a host."""

    REPORTING = "reporting"
    BEHIND = "behind"
    SILENT = "silent"
    NEVER_HEARD = "never heard"
    RETIRED = "retired"


MISSED = (HostStatus.BEHIND, HostStatus.SILENT, HostStatus.NEVER_HEARD)


@dataclass(frozen=True, slots=True)
class AgentState:
    """One agent of a host. topics: by name, the topics that the roster names for the host and the
    topics in the agent's messages. Each topic has the time (ms) until which the agent has sealed
    it, or None for never."""

    agent: int
    topics: dict[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostState:
    """One host of one cluster.

    agents: the newest agents of the host (see the module newest_agents); normally only one. The
        agent that was heard last comes first. Retired agents are left out if the roster names the
        host or if the host has other agents. Empty if no agent is left or none was ever heard.
    topics: the topics of all these agents and of the roster. Each has the time (ms) until which all
        agents that have the topic have sealed it, or None for never.
    expected: whether the audit waits for the host.
    last_heard_ms: the time at which the host was last heard, by the agent's clock or by the audit's
        clock, whichever time is earlier; 0 for never. If there are namesakes, `last_heard_ms` is
        the time of the namesake that has been silent longest.
    behind_ms: by how many ms the host is behind; 0 if it is not behind. A host is behind if its
        messages arrive, but the times in them are older than policy.silence_ms.
    namesakes: agents that were alive at the same time, for example on two machines with the same
        name.
    refusal: why the host is not heard, if its messages are refused.
    """

    cluster: str | None
    host: str
    status: HostStatus
    expected: bool
    agents: tuple[AgentState, ...] = ()
    last_heard_ms: int = 0
    topics: dict[str, int | None] = field(default_factory=dict)
    behind_ms: int = 0
    namesakes: tuple[int, ...] = ()
    refusal: Refusal | None = None

    @property
    def sealed_until(self) -> int | None:
        """The time in ms until which all of the host's topics are sealed; None if one of the topics
        was never sealed, or if the host has no topics."""
        seals = [until for until in self.topics.values() if until is not None]
        return min(seals) if seals and len(seals) == len(self.topics) else None

    @property
    def is_missed(self) -> bool:
        """Whether the host is expected, but is silent, was never heard, or is behind."""
        return self.expected and self.status in MISSED


def survey(
    evidence: Evidence, policy: Policy, now_ms: int, fleet: FleetColumns | None = None
) -> list[HostState]:
    """The states of all hosts that the roster names or that were ever heard, sorted by cluster and
    name. fleet: the columns of all agents, if they were made from this evidence already."""
    if fleet is None:
        fleet = FleetColumns(CommonFacts(evidence, policy, now_ms))
    return _Survey(evidence, policy, now_ms, fleet).states()


class _Survey:
    def __init__(
        self, evidence: Evidence, policy: Policy, now_ms: int, fleet: FleetColumns
    ) -> None:
        self._fleet = fleet
        self._evidence = evidence
        self._policy = policy
        self._ours_ahead_ms = ours_ahead_ms(evidence, policy)
        self._now_ms = now_ms - self._ours_ahead_ms
        self._groups: list[list[Source]] = []
        self._speaks_of: dict[int, list[int]] = {}
        """`_groups` has groups of topics. This dictionary has, for each agent, the indexes of the
        groups that have a topic which the agent's messages mention."""
        self._named: dict[tuple[object, ...], _Named] = {}
        self._agents: dict[HostKey, set[int]] = {}
        self._unplaced: dict[str, set[int]] = {}
        self._refusals = Refusals(evidence)
        self._place()

    def states(self) -> list[HostState]:
        keys = sorted({*self._agents, *self._listed()}, key=lambda x: (x[0] or "", x[1]))
        return [self._state(*key) for key in keys]

    def _place(self) -> None:
        """Fills `_agents`: the agents by cluster and host. An agent whose cluster is not known yet
        may belong to any cluster, so it is stored in `_unplaced`, by host only."""
        for number, (sources, agents) in enumerate(_alike(self._evidence)):
            self._groups.append(sources)
            clusters = {x.cluster for x in sources}
            for agent in agents:
                self._speaks_of.setdefault(agent, []).append(number)
                for cluster in clusters:
                    self._agents.setdefault((cluster, self._host(agent)), set()).add(agent)
        for key, numbers in self._evidence.senders.items():
            agent = agent_named(key.producer)
            if key.tier is Tier.AGENT and agent != NO_AGENT and agent not in self._speaks_of:
                self._speaks_of[agent] = []
                self._agents.setdefault((numbers.cluster, self._host(agent)), set()).add(agent)
        for agent, host in self._evidence.hosts.items():
            if agent not in self._speaks_of and agent != NO_AGENT:
                self._unplaced.setdefault(host, set()).add(agent)

    def _listed(self) -> Iterator[HostKey]:
        heard = {host for _, host in self._agents}
        for entry in self._policy.roster:
            if entry.cluster is not None or entry.host not in heard:
                yield entry.cluster, entry.host
        listed = {entry.host for entry in self._policy.roster}
        yield from ((None, host) for host in self._unplaced if host not in heard | listed)

    def _host(self, agent: int) -> str:
        return self._evidence.hosts.get(agent) or f"agent {agent}"

    def _state(self, cluster: str | None, host: str) -> HostState:
        roster = self._policy.roster
        found = self._agents.get((cluster, host), set()) | self._unplaced.get(host, set())
        waited = {agent for agent in found if not roster.is_retired(cluster, host, agent)}
        is_named = not roster.is_silent and roster.waits_for(cluster, host)
        counting = waited if is_named else waited or found
        newest = newest_agents(self._evidence, counting, self._policy.silence_ms, self._now_ms)
        beside = namesakes(self._evidence, newest)
        heard = {x: self._evidence.heard_ms((Tier.AGENT, str(x))) for x in newest}
        heard_ms = min((heard[x] for x in beside), default=max(heard.values(), default=0))
        late_ms = min(filter(None, map(self._behind_ms, newest)), default=0)
        is_gone = bool(found) and not waited and not is_named
        is_retired = roster.is_retired(cluster, host) or is_gone
        agents = tuple(AgentState(x, self._topics(cluster, host, x)) for x in newest)
        status = HostStatus.RETIRED if is_retired else self._status(heard_ms, late_ms)
        return HostState(
            cluster,
            host,
            status,
            not is_retired and roster.waits_for(cluster, host),
            agents,
            heard_ms,
            _of_all(agents) if agents else dict.fromkeys(sorted(roster.topics(cluster, host))),
            late_ms,
            tuple(sorted(beside)),
            self._refusals.of_host(cluster, host) if status in MISSED else None,
        )

    def _behind_ms(self, agent: int) -> int:
        sender = Tier.AGENT, str(agent)
        return behind_ms(self._evidence, self._policy, sender, self._now_ms, self._ours_ahead_ms)

    def _status(self, heard_ms: int, late_ms: int) -> HostStatus:
        if heard_ms == 0:
            return HostStatus.NEVER_HEARD
        if self._now_ms - heard_ms <= self._policy.silence_ms:
            return HostStatus.REPORTING
        return HostStatus.BEHIND if late_ms else HostStatus.SILENT

    def _topics(self, cluster: str | None, host: str, agent: int) -> dict[str, int | None]:
        """Returns the agent's topics in the form of `AgentState.topics`. If a topic was deleted and
        created again, the old and the new topic share one entry, which has the newest of their
        seals.
        """
        roster = self._policy.roster
        groups, listed = tuple(self._speaks_of.get(agent, ())), roster.topics(cluster, host)
        key = cluster, listed, groups
        if key not in self._named:
            self._named[key] = self._seals(cluster, listed, groups)
        names, seals = self._named[key]
        found = [None if x is None else x.vouched_until for x in (y.get(agent) for y in seals)]
        return {name: found[place] for name, place in names}

    def _seals(self, cluster: str | None, listed: Iterable[str], groups: Iterable[int]) -> _Named:
        by_name: dict[str, list[Source]] = {name: [] for name in listed}
        for source in chain.from_iterable(self._groups[x] for x in groups):
            if source.cluster == cluster:
                by_name.setdefault(source.topic.removesuffix(REJECTED_SUFFIX), []).append(source)
        names: list[tuple[str, int]] = []
        places: dict[int, int] = {}
        found: list[Mapping[int, SealNote]] = []
        for name, named in sorted(by_name.items()):
            data = [self._evidence.topic(x) for x in named if x.topic == name]
            seals = self._fleet.newest_seals(data)
            if id(seals) not in places:
                places[id(seals)] = len(found)
                found.append(seals)
            names.append((name, places[id(seals)]))
        return _Named(names, found)


class _Named(NamedTuple):
    """The newest seals of some topics, without seals that only say that the agent has the topic
    (see expectation.usable_seals). names: for each topic, its name and an index into `seals`.
    seals: dictionaries that map an agent to its newest seal. Topics that all agents seal together
    have the same index, to save memory.
    """

    names: Sequence[tuple[str, int]]
    seals: Sequence[Mapping[int, SealNote]]


def _alike(evidence: Evidence) -> list[tuple[list[Source], set[int]]]:
    """Groups the topics that have the same agents. Returns the topics and the agents of each
    group."""
    found: dict[frozenset[int], tuple[list[Source], set[int]]] = {}
    for source, topic in evidence.topics.items():
        sources, _ = found.setdefault(frozenset(topic.agents), ([], topic.agents))
        sources.append(source)
    return list(found.values())


def _of_all(agents: tuple[AgentState, ...]) -> dict[str, int | None]:
    """For each topic, the time until which all agents that have the topic have sealed it; None if
    one of these agents never sealed it."""
    if len(agents) == 1:
        return agents[0].topics
    found: dict[str, int | None] = {}
    for name in sorted({name for each in agents for name in each.topics}):
        seals = [each.topics[name] for each in agents if name in each.topics]
        known = [until for until in seals if until is not None]
        found[name] = min(known) if len(known) == len(seals) else None
    return found
