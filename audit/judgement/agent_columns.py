"""What the audit knows about each agent of a topic, as columns: arrays with an element for each
agent. Columns make it possible to apply the rules to ten thousand agents at once. The module does
no I/O.

The columns contain enough to judge an agent if the agent is *plain*. A plain agent is alone on its
host, read nothing that another agent had read, declared no loss, and sent no last word (the last
seal of a host that is removed). All its sources have matched files. It had only one epoch (an agent
that starts with an older copy of its state begins another epoch). None of its messages is missing
(but its first messages may have expired), and no two of its messages have the same number but
different contents. All other agents are judged one by one.

In a fleet, most topics have the same agents, and an agent seals all its topics together. So the
columns that do not depend on the topic are made once, and all topics share them (`FleetColumns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from skidway.audit.evidence.evidence import SealNote, TopicEvidence
from skidway.audit.evidence.tallies import Int64s
from skidway.audit.judgement.expectation import Expectation, usable_seals
from skidway.audit.judgement.rules.topic_facts import CommonFacts, TopicFacts
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.seal_columns import NEVER_SEALED

Bools = npt.NDArray[np.bool_]

NEVER: Final = -(1 << 62)
"""A time that is earlier than all others. An agent without a seal counts as if it had sealed up to
this time.
"""

EVER: Final = 1 << 62

_SEAL_TIMES: Final = 1 << 55
"""In ms. Columns compute with times of seals in 64 bits. If a time in an agent's newest seal is not
between -_SEAL_TIMES and _SEAL_TIMES, the agent is judged without columns."""

_SealsByAgent = Mapping[int, list[SealNote]]


class NewestSeals:
    """The newest usable seal of each agent: the newest seal that vouches for lines and has no
    doubtful number (see `usable_seals`). Each array has an element for each agent, in ascending
    order of the agents' ids. The elements come from the fields of `SealNote`.
    """

    def __init__(self, seals: Mapping[int, SealNote]) -> None:
        agents = sorted(seals)
        ordered = [seals[x] for x in agents]
        self.agents = _column(agents)
        self.epoch = _column(x.epoch for x in ordered)
        self.at = _column(x.at for x in ordered)
        self.sealed = _column(_bounded(x.sealed_until) for x in ordered)
        self.vouched = _column(_bounded(x.vouched_until) for x in ordered)
        self.is_final = np.fromiter((x.final for x in ordered), np.bool_)
        self.is_fileless = np.fromiter((x.is_fileless for x in ordered), np.bool_)


class FleetColumns:
    """The columns that do not depend on the topic, for all agents of all topics, sorted by id.

    seen: the time at which the agent was last heard. is_silent: whether the agent has not been
    heard for silence_ms. counted_from: buckets that start before this time may lack counts of the
    agent, because its first messages have expired. The value is NEVER if no message of the agent
    has expired. It is EVER (later than all other times) if a message after these first messages is
    missing, or if two messages with the same number have different contents. is_plain: whether the
    columns contain enough to judge the agent, as far as this does not depend on the topic.
    """

    def __init__(self, common: CommonFacts) -> None:
        self._common = common
        evidence, policy = common.evidence, common.policy
        agents = sorted({x for topic in evidence.topics.values() for x in topic.agents})
        self.agents = _column(agents)
        self.seen = _column(_bounded(evidence.heard_ms((Tier.AGENT, str(x)))) for x in agents)
        self.is_silent: Bools = common.now_ms - self.seen >= policy.silence_ms
        self.counted_from = _column(_counted_from(common, x) for x in agents)
        many = {x for x, keys in common.epochs.items() if len(keys) > 1 or keys[0].epoch > 1}
        many |= evidence.unread_of_agents.keys()
        self.is_plain = ~_are_in(self.agents, many) & (self.counted_from < EVER)
        self._is_any_cloned = any(x.cloned_at is not None for x in evidence.senders.values())
        self._seals: dict[tuple[int, ...], dict[int, SealNote]] = {}
        self._newest: dict[tuple[int, ...], NewestSeals] = {}
        self._last: tuple[Expectation, NewestSeals] | None = None
        self._names: dict[tuple[str, bytes], tuple[tuple[str, bool], ...]] = {}

    @cached_property
    def beside(self) -> set[int]:
        """The agents that were alive at the same time as another agent of their host."""
        return set(self._common.evidence.overlaps)

    def newest(self, facts: TopicFacts) -> NewestSeals:
        """Returns the newest seal of each of the topic's agents. Ignores seals that do not vouch
        for lines (see `usable_seals`).
        """
        expectation = facts.expectation
        if self._last is None or self._last[0] is not expectation:
            named = expectation.namesakes
            key = _key(named)
            if key not in self._newest:
                self._newest[key] = NewestSeals(self.newest_seals(named))
            self._last = expectation, self._newest[key]
        return self._last[1]

    def newest_seals(self, topics: Sequence[TopicEvidence]) -> Mapping[int, SealNote]:
        """Returns each agent's newest seal of these topics. Ignores seals that do not vouch for
        lines (see `usable_seals`). The result is computed once for each set of seals, because
        topics with the same seals of all agents have the same result.
        """
        key = _key(topics)
        if key not in self._seals:
            parts: list[_SealsByAgent] = [*{id(x.seals): x.seals for x in topics}.values()]
            if len(parts) == 1 and not self._is_any_cloned:
                found = {x: _last_usable(seals) for x, seals in parts[0].items()}
            else:
                evidence = self._common.evidence
                agents = {x for seals in parts for x in seals}
                usable = {x: usable_seals(evidence, topics, x) for x in agents}
                found = {x: seals[-1] if seals else None for x, seals in usable.items()}
            self._seals[key] = {x: seal for x, seal in found.items() if seal is not None}
        return self._seals[key]

    def names(self, facts: TopicFacts, agents: Int64s) -> tuple[tuple[str, bool], ...]:
        """For each agent, the name of its host, and whether the agent is retired."""
        key = facts.source.cluster, agents.tobytes()
        if key not in self._names:
            hosts, expectation = facts.evidence.hosts, facts.expectation
            self._names[key] = tuple(
                (hosts.get(x, ""), expectation.is_retired(x)) for x in agents.tolist()
            )
        return self._names[key]


class AgentColumns:
    """The agents of one topic, sorted by id. Every array has an element for each agent.

    agents: the ids.
    has_seal: whether the agent has a usable seal (see `usable_seals`). epoch, at, sealed, vouched,
    is_final, is_fileless: the values of its newest usable seal. seen, is_silent, counted_from: see
    FleetColumns.
    is_plain: whether the agent is plain (see the module's docstring). waited_until: if a bucket
    starts at this time or earlier, the audit waits for the agent's seal of the bucket.
    """

    def __init__(self, facts: TopicFacts, fleet: FleetColumns) -> None:
        expectation = facts.expectation
        self.agents = agents = np.sort(_column(expectation.known))
        places = np.searchsorted(fleet.agents, agents)
        self.seen, self.is_silent = fleet.seen[places], fleet.is_silent[places]
        self.counted_from = fleet.counted_from[places]
        newest = fleet.newest(facts)
        at, self.has_seal = _places(newest.agents, agents)
        self.epoch = self._of_seals(newest.epoch, at, EVER)
        self.at = self._of_seals(newest.at, at, NEVER)
        self.sealed = self._of_seals(newest.sealed, at, NEVER)
        self.vouched = self._of_seals(newest.vouched, at, NEVER)
        self.is_final = self._of_seals(newest.is_final, at, 0).astype(np.bool_)
        beside = fleet.beside & expectation.known
        special = {x for x in beside if expectation.side_by_side(x)}
        for topic in facts.related:
            special |= topic.rereadings.keys() | topic.losses.keys()
        self.is_fileless = self._of_seals(newest.is_fileless, at, 0).astype(np.bool_)
        self.is_plain = fleet.is_plain[places] & ~_are_in(agents, special)
        self.is_plain &= ~self.is_final & ~self.is_fileless
        for times in (self.sealed, self.vouched):
            self.is_plain &= ~self.has_seal | (abs(times) < _SEAL_TIMES)
        self.waited_until = np.where(_are_in(agents, expectation.agents), EVER, NEVER)
        for agent, until_ms in expectation.replaced.items():
            self.waited_until[np.searchsorted(agents, agent)] = _bounded(until_ms)

    def __len__(self) -> int:
        return len(self.agents)

    def places(self, agents: Int64s) -> tuple[Int64s, Bools]:
        """Returns, for each of these agents, the agent's index in the columns, and whether the
        columns have the agent.
        """
        return _places(self.agents, agents)

    def _of_seals(self, column: npt.NDArray[np.generic], at: Int64s, else_: int) -> Int64s:
        found = np.full(len(self.agents), else_, np.int64)
        found[self.has_seal] = column[at[self.has_seal]]
        return found


def _key(topics: Sequence[TopicEvidence]) -> tuple[int, ...]:
    return tuple(sorted({id(x.seals) for x in topics if x.seals}))


def _last_usable(seals: Sequence[SealNote]) -> SealNote | None:
    """Returns the last of these sorted seals that vouches for lines, or None if there is no such
    seal. (Some seals only say that the agent has the topic.)
    """
    return next((x for x in reversed(seals) if x.sealed_until != NEVER_SEALED), None)


def _places(known: Int64s, wanted: Int64s) -> tuple[Int64s, Bools]:
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return found, known[found] == wanted


def _are_in(agents: Int64s, some: Iterable[int]) -> Bools:
    """For each of `agents`, whether it is in `some`."""
    return np.isin(agents, _column(some))


def _counted_from(common: CommonFacts, agent: int) -> int:
    found = NEVER
    for key in common.epochs.get(agent, ()):
        numbers = common.evidence.senders[key]
        if numbers.missing is not None or numbers.cloned_at is not None:
            return EVER
        if numbers.first > 1:
            found = max(found, _bounded(numbers.first_time_ms + common.ahead_ms(key)))
    return found


def _bounded(time_ms: int) -> int:
    return max(NEVER, min(time_ms, EVER))


def _column(values: Iterable[int]) -> Int64s:
    return np.fromiter(values, np.int64)
