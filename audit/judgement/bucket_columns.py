"""Applies the rules to all agents of one bucket at once, on columns. The module does no I/O.

The agents of a bucket fall into three groups:

    quiet     plain agents (see agent_columns) for which no rule has a finding: they are complete
    told      plain agents with one of these findings: the bucket is too young, the agent's seal is
              missing, or the counts of places differ. This module makes these findings for all
              agents at once
    others    all other agents. The rules judge them one by one

In a large fleet, nearly all agents of a bucket belong to the group `told` while the bucket is young
or a tier lags behind. Later, nearly all belong to the group `quiet`. If this module cannot be sure
that it gives the same verdict on an agent as the rules for single agents, the agent belongs to the
group `others`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Final

import numpy as np

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import NO_AGENT, Sums, joined_by_rule
from skidway.audit.evidence.tallies import (
    BYTES,
    CHECKSUM,
    COUNT,
    LAST,
    LINKS,
    NO_EPOCH,
    REJECTS,
    REPEATS,
    SENDER,
    BucketId,
    BucketTallies,
    Int64s,
    links_of_all,
)
from skidway.audit.judgement import reasons
from skidway.audit.judgement.agent_columns import AgentColumns, Bools
from skidway.audit.judgement.rules import seals
from skidway.audit.judgement.rules.topic_facts import TopicFacts
from skidway.audit.judgement.verdict import AgentVerdict, Place, Status
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Tier

_SUMS: Final = slice(COUNT, REPEATS + 1)
_CONTENT: Final = (COUNT, BYTES, CHECKSUM)
UNBALANCED_ONE_IN: Final = 10
"""The value 10 means: a bucket can be balanced (see `is_balanced`) only if at most a tenth of its
agents lack a seal, and the places have different counts for at most a tenth of its agents.
"""

_GREAT: Final = 1 << 40
"""Greater counts than this are not added in columns, because their sums may not fit into 64
bits."""


@dataclass(frozen=True, slots=True)
class Told:
    """One reason why some agents are not complete. count: how many agents have this reason. agents:
    the lowest ids of these agents, at most reasons.NAMES_MAX."""

    status: Status
    reason: str
    agents: tuple[int, ...]
    count: int


class BucketColumns:
    """The agents of one bucket of one topic, divided into the groups `quiet`, `told` and `others`
    (see the module's docstring). special: agents that are always judged one by one, in the group
    `others`."""

    def __init__(
        self,
        facts: TopicFacts,
        agents: AgentColumns,
        tallies: BucketTallies,
        bucket: BucketId,
        special: Mapping[int, object],
    ) -> None:
        self._facts, self._agents, self._tallies = facts, agents, tallies
        self._start, self._due = bucket[0], facts.due(bucket)
        self._is_young = facts.now_ms < self._due
        self._table = tallies.columns.table
        counted = tallies.agents
        self._at, self._is_known = agents.places(counted)
        has = np.zeros(len(agents), np.bool_)
        has[self._at[self._is_known]] = True
        judged = (agents.waited_until >= self._start) | has
        clean = judged & agents.is_plain & (self._start >= agents.counted_from)
        clean &= self._on_agents(self._is_whole, else_=True)
        if special:
            clean &= ~np.isin(agents.agents, list(special))
        self.late = self._on_agents(self._is_late, else_=False)
        """For each agent, whether it counted records in the bucket after its newest seal."""
        self._lacks_seal = (agents.vouched < self._due) | self.late
        is_silent = self._lacks_seal & agents.is_silent
        if facts.now_ms < self._due + facts.policy.silence_ms:
            is_silent[:] = False
        clean &= ~is_silent
        self._differs = np.zeros(len(agents), np.bool_)
        if not self._is_young:
            self._differs = clean & ~self._on_agents(self._is_equal, else_=True)
            if not self._is_plainly_unequal:
                clean &= ~self._differs
                self._differs[:] = False
        self._waits = clean if self._is_young else clean & self._lacks_seal
        self.others = [*counted[~self._is_known].tolist(), *agents.agents[judged & ~clean].tolist()]
        """The agents that the rules judge one by one."""
        self.judged: Int64s = np.union1d(agents.agents[judged], counted)
        """The ids of all agents that are judged in this bucket, in ascending order."""

    @property
    def statuses(self) -> list[Status]:
        """The different statuses of the agents in the groups `quiet` and `told` (see the module's
        docstring). If any agent is judged in the bucket, the list begins with COMPLETE, even if no
        agent is in the group `quiet`; this does no harm, because callers look for the gravest
        status."""
        found = [Status.COMPLETE] if len(self.judged) else []
        found += [Status.OPEN] if self._waits.any() else []
        return found + ([Status.INCOMPLETE] if self._differs.any() else [])

    @property
    def has_records_without_origin(self) -> bool:
        """Whether the bucket has records that did not come from an agent."""
        return NO_AGENT in self._tallies

    @property
    def is_balanced(self) -> bool:
        """Whether the bucket is due, nearly all of its agents have sealed it, and all places have
        equal counts for nearly all agents. False if, for some agent, two places have the same
        numbers of records and bytes but different checksums."""
        equal, unsealed = self._is_equal, self._lacks_seal[self._at[self._is_known]]
        lacking = max(int((~equal).sum()), int(unsealed.sum()))
        if self._is_young or not len(equal) or lacking * UNBALANCED_ONE_IN > len(equal):
            return False
        first, *others = (x for x in self._places.values() if x is not None)
        return all(
            equal[(each[:2] == first[:2]).all(axis=0) & (each[2] != first[2])].all()
            for each in others
        )

    def told(self) -> Iterator[Told]:
        """Yields each reason why agents of the group `told` (see the module's docstring) are not
        complete."""
        agents, waits = self._agents, self._waits
        if self._is_young:
            yield from self._one(Status.OPEN, seals.TOO_YOUNG.reason, waits & agents.has_seal)
        yield from self._one(Status.OPEN, seals.NEVER_SEALED, waits & ~agents.has_seal)
        yield from self._one(Status.OPEN, seals.LATE, waits & agents.has_seal & self.late)
        behind = np.flatnonzero(waits & agents.has_seal & (agents.vouched < self._due))
        until = agents.vouched[behind]
        seconds = np.where(until >= 0, until - until % 1000, until)  # reasons show whole seconds
        for chosen in _alike(seconds):
            yield self._told(Status.OPEN, seals.until(int(until[chosen[0]])), behind[chosen])
        if self._differs.any():
            yield from self._differences()

    def gravest(self, count: int) -> list[int]:
        """Returns the ids of at most `count` agents of the group `told` (see the module's
        docstring): those with the gravest statuses.
        """
        found: list[int] = []
        for chosen in (self._differs, self._waits & ~self._differs):
            found += self._agents.agents[np.flatnonzero(chosen)[: count - len(found)]].tolist()
        return found

    def status_of_judged(self, others: Iterable[AgentVerdict]) -> Int64s:
        """The status of each judged agent. others: the verdicts on the agents that the rules judge
        one by one."""
        found = np.zeros(len(self.judged), np.int64)
        for chosen, status in ((self._waits, Status.OPEN), (self._differs, Status.INCOMPLETE)):
            found[np.searchsorted(self.judged, self._agents.agents[chosen])] = status
        for each in others:
            found[np.searchsorted(self.judged, each.agent)] = each.status
        return found

    def lacking(self) -> dict[Place, int]:
        """Returns how many records each place lacks. Leaves out retired places, and places that
        lack nothing. The number is a sum over all agents: for each agent, the highest count of any
        place minus the place's own count.
        """
        counts = {place: x[0] for place, x in self._places.items() if x is not None}
        if not counts:
            return {}
        if self._are_great:
            counts = {place: x.astype(np.object_) for place, x in counts.items()}
        most = reduce(np.maximum, counts.values())
        if any(x is None for x in self._places.values()):
            most = np.maximum(most, 0)
        found = {}
        for place, sums in self._places.items():
            if place.is_retired:
                continue
            lack = most - (0 if sums is None else counts[place])
            if place.tier is Tier.AGENT and len(lack):
                lack = np.where(self._tallies.agents == NO_AGENT, 0, lack)
            if records := int(lack.sum()):
                found[place] = records
        return found

    def _one(self, status: Status, reason: str, chosen: Bools) -> Iterator[Told]:
        places = np.flatnonzero(chosen)
        if len(places):
            yield self._told(status, reason, places)

    def _told(self, status: Status, reason: str, places: Int64s) -> Told:
        named = self._agents.agents[places[: reasons.NAMES_MAX]].tolist()
        return Told(status, reason, tuple(named), len(places))

    def _differences(self) -> Iterator[Told]:
        """Compares each place with the first place in `_places`, and yields a reason for each
        difference between their counts. Agents with the same difference share a reason."""
        (first, expected), *others = ((x, y) for x, y in self._places.items() if y is not None)
        differs = np.flatnonzero(self._is_known)
        differs = differs[self._differs[self._at[differs]]]
        for place, found in others:
            is_here = (found[: len(_CONTENT), differs] != expected[: len(_CONTENT), differs]).any(0)
            here = differs[is_here]
            of = expected[0, here]
            missing = of - found[0, here]
            for chosen in _alike(missing, np.where(missing == 0, 0, of)):
                one = here[chosen[0]]
                sums = Sums(int(expected[0, one])), Sums(int(found[0, one]))
                words = reasons.difference(first, sums[0], place, sums[1])
                yield self._told(Status.INCOMPLETE, words, self._at[here[chosen]])

    def places(self) -> dict[Place, Sums | None]:
        """For each place, the sums of all agents together; None for a tier that never reported the
        topic, as in equation.sums_of."""
        if not len(self.judged):
            return {}
        return {place: self._total(place) for place in self._places}

    # The methods below apply the rules. Each array has an element for each agent whose records are
    # counted in the bucket.

    @cached_property
    def _is_whole(self) -> Bools:
        """For each agent, whether all deltas of its tallies have arrived. Each delta names the
        delta before it, so the column `LINKS` shows whether one is missing.
        """
        last = self._table[LAST]
        broken = self._table[LINKS] != links_of_all(last, np.zeros_like(last))
        return ~np.logical_or.reduceat(broken, self._tallies.begins) if len(last) else broken

    @cached_property
    def _is_late(self) -> Bools:
        """For each agent, whether it counted records of the bucket in a delta after its newest
        seal.
        """
        rows = self._agent_rows
        late = np.zeros(len(self._tallies), np.bool_)
        if not self._is_known.any():
            return late
        owner = self._owners[rows]
        at = self._at[owner]
        epochs = self._tallies.senders.agent_epochs[self._table[SENDER, rows]]
        newest, last = self._agents.epoch[at], self._table[LAST, rows]
        touched = (epochs > newest) | ((epochs == newest) & (last > self._agents.at[at]))
        late[owner[touched & self._is_known[owner]]] = True
        return late

    @cached_property
    def _is_equal(self) -> Bools:
        """For each agent, whether all places that must count its records have equal counts of
        them."""
        counted = len(self._tallies)
        places = list(self._places.values())
        first = places[0] if places else None
        if self._facts.needed or first is None or self._are_great:
            return np.zeros(counted, np.bool_)
        equal = np.ones(counted, np.bool_)
        for each in places[1:]:
            if each is None:
                return np.zeros(counted, np.bool_)
            for row in _CONTENT:
                equal &= each[row - COUNT] == first[row - COUNT]
        return equal

    @property
    def _is_plainly_unequal(self) -> bool:
        """Whether every difference between places is a finding: no place is retired or lacks the
        topic, and no gap (offsets that a counter could not read) may explain a difference."""
        facts = self._facts
        return not (
            self._are_great
            or facts.needed
            or facts.topic.gaps
            or any(x.place.is_retired for x in facts.places)
            or any(x is None for x in self._places.values())
        )

    @cached_property
    def _are_great(self) -> bool:
        values = self._table[[COUNT, BYTES, REJECTS, REPEATS]]
        return bool(values.size) and not -_GREAT < int(values.min()) <= int(values.max()) < _GREAT

    # These methods divide the tallies by place.

    @cached_property
    def _places(self) -> dict[Place, Int64s | None]:
        """For each place, an array of five rows (count, bytes, checksum, rejects, repeats), with a
        column for each agent whose records are counted in the bucket. None for a tier that never
        reported the topic."""
        found: dict[Place, Int64s | None] = {}
        for place, rows in self._rows_of_places.items():
            found[place] = None if rows is None else self._by_agent(rows)
        return found

    @cached_property
    def _rows_of_places(self) -> dict[Place, Int64s | None]:
        """For each place, which columns of the table of tallies have its counts, as indexes. None
        for a tier that never reported the topic."""
        facts, found = self._facts, dict[Place, Int64s | None]()
        for tier in facts.tiers:
            if tier is Tier.AGENT:
                found[Place(tier, "")] = self._agent_rows
                continue
            places = facts.places_of(tier)
            ids = self._tallies.senders.ids
            for each in places:
                of = [ids[key] for key in each.senders if key in ids]
                senders = self._table[SENDER]
                is_here = senders == of[0] if len(of) == 1 else np.isin(senders, of)
                found[each.place] = np.flatnonzero(is_here)
            if not places:
                found[Place(tier, "", facts.retired.holds_tier(tier))] = None
        return found

    @cached_property
    def _agent_rows(self) -> Int64s:
        epochs = self._tallies.senders.agent_epochs[self._table[SENDER]]
        return np.flatnonzero(epochs != NO_EPOCH)

    @cached_property
    def _owners(self) -> Int64s:
        """For each column of the table of tallies, which agent it belongs to, as an index into the
        agents of the tallies."""
        begins = np.zeros(self._table.shape[1], np.int64)
        begins[self._tallies.begins] = 1
        return np.cumsum(begins) - 1

    def _by_agent(self, rows: Int64s) -> Int64s:
        owners = self._owners[rows]
        sums = np.zeros((REPEATS + 1 - COUNT, len(self._tallies)), np.int64)
        values = self._table[_SUMS, rows]
        if (np.diff(owners) > 0).all():
            sums[:, owners] = values
        else:  # several senders counted one agent's records
            for row, column in enumerate(values):
                np.add.at(sums[row], owners, column)
        return sums

    def _total(self, place: Place) -> Sums | None:
        sums, rows = self._places[place], self._rows_of_places[place]
        if sums is None or rows is None:
            return None
        if not self._are_great:
            count, size, digest, rejects, repeats = sums.sum(axis=1).tolist()
        else:
            count, size, digest, rejects, repeats = (
                sum(x) for x in self._table[_SUMS, rows].tolist()
            )
        rules = self._filtered(set(self._table[SENDER, rows].tolist()))
        return Sums(count, size, checksum.signed(digest), rejects, repeats, rules)

    def _filtered(self, senders: set[int]) -> tuple[Filtered, ...]:
        found = (
            tuple(rules)
            for (_, sender), rules in sorted(self._tallies.filtered.items(), key=lambda x: x[0])
            if sender in senders
        )
        return reduce(joined_by_rule, found, ())

    # Takes a value for each agent with tallies in the bucket, and returns a value for each agent of
    # the topic: `else_` for an agent without tallies.

    def _on_agents(self, counted: Bools, *, else_: bool) -> Bools:
        found = np.full(len(self._agents), else_)
        found[self._at[self._is_known]] = counted[self._is_known]
        return found


def _alike(*columns: Int64s) -> Iterator[Int64s]:
    """Groups the elements that are equal in all columns, and yields the indexes of each group. The
    groups come in ascending order of their values, compared column by column."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, own = np.unique(column, return_inverse=True)
        _, group = np.unique(group * (len(column) + 1) + own, return_inverse=True)
    order = np.argsort(group, kind="stable")
    ends = np.flatnonzero(np.diff(group[order], append=-1)) + 1
    yield from (order[begin:end] for begin, end in pairwise([0, *ends.tolist()]))
