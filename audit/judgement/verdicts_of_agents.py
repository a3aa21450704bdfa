"""The verdicts on all agents of a bucket. A verdict is made only when it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from skidway.audit.evidence.tallies import Int64s
from skidway.audit.judgement.verdict import AgentVerdict, Status


@dataclass(frozen=True, slots=True)
class Ranks:
    """The facts by which `Agents` sorts agents before the verdicts on them are made. statuses: a
    function that returns the status that each agent's verdict will have, in the order of the
    argument `agents` of `Agents`. host: a function that returns the name of an agent's host.
    """

    statuses: Callable[[], Int64s]
    host: Callable[[int], str]


class Agents(Sequence[AgentVerdict]):
    """A verdict on each of `agents`, by ascending agent id, followed by the verdicts in `further`,
    which exist already. Any thread may read the verdicts, because the evidence from which they are
    made never changes.
    """

    def __init__(
        self,
        agents: Int64s,
        verdict: Callable[[int], AgentVerdict],
        further: tuple[AgentVerdict, ...],
        ranks: Ranks,
    ) -> None:
        self._agents = agents
        self._verdict = verdict
        self._further = further
        self._ranks = ranks
        self._made: dict[int, AgentVerdict] = {}

    def __len__(self) -> int:
        return len(self._agents) + len(self._further)

    @overload
    def __getitem__(self, index: int) -> AgentVerdict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AgentVerdict, ...]: ...
    def __getitem__(self, index: int | slice) -> AgentVerdict | tuple[AgentVerdict, ...]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._at(places)
        return tuple(map(self._at, places))

    def __iter__(self) -> Iterator[AgentVerdict]:
        return map(self._at, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def gravest(self, count: int) -> tuple[AgentVerdict, ...]:
        """Returns the `count` gravest verdicts, the gravest first. Equally grave verdicts are
        sorted by host and then by agent. Only these verdicts are made.
        """
        statuses = self._statuses()
        found: list[int] = []
        for status in np.unique(statuses)[::-1].tolist():
            places = np.flatnonzero(statuses == status).tolist()
            found += sorted(places, key=self._name)[: count - len(found)]
            if len(found) == count:
                break
        return tuple(map(self._at, found))

    def not_complete(self) -> Iterator[AgentVerdict]:
        """The verdicts on the agents that are not complete, in the order of this sequence. No other
        verdicts are made.
        """
        return map(self._at, np.flatnonzero(self._statuses() > Status.COMPLETE).tolist())

    def _statuses(self) -> Int64s:
        return np.array([*self._ranks.statuses().tolist(), *(x.status for x in self._further)])

    def _name(self, place: int) -> tuple[str, int]:
        if place < len(self._agents):
            agent = int(self._agents[place])
            return self._ranks.host(agent), agent
        verdict = self._further[place - len(self._agents)]
        return verdict.host, verdict.agent

    def _at(self, place: int) -> AgentVerdict:
        if place >= len(self._agents):
            return self._further[place - len(self._agents)]
        if place not in self._made:
            self._made[place] = self._verdict(int(self._agents[place]))
        return self._made[place]


def gravest_first(agents: Sequence[AgentVerdict], count: int) -> tuple[AgentVerdict, ...]:
    """Returns the `count` gravest verdicts, the gravest first. Equally grave verdicts are sorted by
    host and then by agent.
    """
    if isinstance(agents, Agents):
        return agents.gravest(count)
    return tuple(sorted(agents, key=lambda x: (-x.status, x.host, x.agent))[:count])


def not_complete(agents: Sequence[AgentVerdict]) -> Iterator[AgentVerdict]:
    """Yields the verdicts on the agents that are not complete, in the order of `agents`. Only these
    agents have findings that make the verdict on a bucket graver.
    """
    if isinstance(agents, Agents):
        return agents.not_complete()
    return (x for x in agents if x.status > Status.COMPLETE)


class GravestFirst(Sequence[AgentVerdict]):
    """All verdicts, the gravest first. A verdict is made only when it is read."""

    def __init__(self, agents: Sequence[AgentVerdict]) -> None:
        self._agents = agents

    def __len__(self) -> int:
        return len(self._agents)

    @overload
    def __getitem__(self, index: int) -> AgentVerdict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AgentVerdict, ...]: ...
    def __getitem__(self, index: int | slice) -> AgentVerdict | tuple[AgentVerdict, ...]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return gravest_first(self._agents, places + 1)[places]
        found = gravest_first(self._agents, max(places, default=-1) + 1)
        return tuple(found[x] for x in places)

    def __iter__(self) -> Iterator[AgentVerdict]:
        return iter(gravest_first(self._agents, len(self)))
