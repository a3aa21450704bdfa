"""Verdicts on buckets, and their reasons.

    complete    all expected tiers counted the same records, and all expected agents sealed the
                bucket (vouched that all of its lines are counted)
    open        the bucket is too young to decide, or a message that is needed may only be late
                (mostly the seal of an agent)
    incomplete  the bucket is old enough to decide, but a tier lacks records or has other records,
                or a row or a record has other content than its line
    unknown     evidence that is needed to decide is missing, perhaps for ever
    lost        an agent declared that lines are lost, and the lines may belong to the bucket

From best to worst, the statuses are complete, open, incomplete, unknown, lost. A bucket gets the
worst ("gravest") status of its findings, and the reasons of all findings as text. A finding
that a person accepted stays in the verdict, but no longer counts against the bucket. `residue` is
the status of the bucket without its accepted findings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property, reduce

from skidway.audit.counts.counts import NO_AGENT, Sums, joined_by_rule, total
from skidway.audit.evidence.evidence import GapNote, LossNote
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.cause import Cause
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

AGENTS_SHOWN = 3
"""If the verdict on a bucket does not contain the verdicts on all agents, it names at most this
many agents.
"""


class Status(IntEnum):
    """The statuses of a verdict, from best to worst."""

    COMPLETE = 0
    OPEN = 1
    INCOMPLETE = 2
    UNKNOWN = 3
    LOST = 4

    @property
    def word(self) -> str:
        """The status as reports print it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a bucket is not complete; a finding with the status COMPLETE is only a remark.
    key: the name by which acceptances refer to the finding. If the text of the reason never
    changes, the text itself is this name, and `key` is "". acceptance: the decision of a person to
    accept the finding. about: the subject of the finding, from which explanations are made."""

    status: Status
    reason: str
    cause: Cause
    key: str = ""
    acceptance: Acceptance | None = None
    about: Subject | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        """The finding's name in an acceptance."""
        return self.key or self.reason

    @property
    def words(self) -> str:
        """The reason, and who accepted it."""
        said = self.acceptance
        return self.reason if said is None else f"{self.reason}, {accepted_words(said)}"


def accepted_words(acceptance: Acceptance) -> str:
    """Says who accepted something, whether that is proven, and why."""
    signed = ", signed" if acceptance.is_signed else ""
    return f"accepted by {acceptance.person}{signed} ({acceptance.reason})"


def left_of(findings: Iterable[Finding]) -> Status:
    """The gravest status of the findings that nobody accepted."""
    statuses = (x.status for x in findings if x.acceptance is None)
    return max(statuses, default=Status.COMPLETE)


@dataclass(frozen=True, slots=True)
class Place:
    """The place where a tier counted: a cluster, or an output. is_retired: whether the audit no
    longer waits for the place's counts."""

    tier: Tier
    name: str
    is_retired: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """Two places, and their counts, which must be equal but are not. first, expected: the place
    with which all others are compared, and its counts. place, found: one of the other places, and
    its counts; `found` is None if this place never reported the topic.
    """

    first: Place
    expected: Sums
    place: Place
    found: Sums | None


@dataclass(frozen=True, slots=True)
class Rejects:
    """How many of a bucket's records a place rejected; place is None if agents rejected them."""

    rejects: int
    records: int
    place: Place | None


Subject = LossNote | GapNote | Difference | Rejects | SenderKey | Place | str
"""What a finding is about; a text is the name of a host."""


@dataclass(frozen=True, slots=True)
class AgentVerdict:
    """The verdict on one (source topic, agent, bucket). sums: the counts of each place that ever
    reported the topic; None for an expected tier that never reported the topic. retired: whether
    the audit no longer waits for the agent. findings: the findings that determine the status and
    the reasons."""

    agent: int
    host: str
    status: Status
    reasons: tuple[str, ...]
    sums: Mapping[Place, Sums | None]
    retired: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def residue(self) -> Status:
        """The status that the verdict has if accepted findings are ignored."""
        return left_of(self.findings) if acceptances_of(self.findings) else self.status

    @property
    def name(self) -> str:
        """The agent's name in reasons: the name of its host, or its id if the host is unknown."""
        name = self.host or f"agent {self.agent}"
        return f"{name} (retired)" if self.retired else name


@dataclass(frozen=True, slots=True)
class Parts:
    """The sum of the verdicts on all agents of a bucket.

    count: the number of agents. residue: the gravest status, if accepted findings are ignored.
    acceptances: the acceptances of findings, by id. places: for each place, the sums of all agents.
    gravest: the agents that are not complete, the gravest first, at most AGENTS_SHOWN.
    lacking: for each place that is not retired and lacks records, the number of lacking records.
        For each agent, this number is the highest count that any place has for this agent, minus
        the place's own count.
    has_remarks: whether an agent has a remark or an accepted finding. Such findings do not keep a
        bucket from being complete.
    """

    count: int
    residue: Status
    acceptances: Mapping[int, Acceptance]
    places: Mapping[Place, Sums | None]
    gravest: tuple[AgentVerdict, ...]
    lacking: Mapping[Place, int]
    has_remarks: bool

    @classmethod
    def of(cls, agents: Sequence[AgentVerdict]) -> Parts:
        """Sums up the verdicts on these agents."""
        acceptances: dict[int, Acceptance] = {}
        counted: dict[Place, list[Sums]] = {}
        for verdict in agents:
            acceptances |= acceptances_of(verdict.findings)
            for place, sums in verdict.sums.items():
                found = counted.setdefault(place, [])
                if sums is not None:
                    found.append(sums)
        return cls(
            len(agents),
            max([x.residue for x in agents], default=Status.COMPLETE),
            acceptances,
            {place: total(found) if found else None for place, found in counted.items()},
            gravest(agents),
            _lacking(agents),
            any(map(has_remarks, agents)),
        )


def has_remarks(verdict: AgentVerdict) -> bool:
    """Whether the agent has a remark (a finding that makes no verdict worse), or an accepted
    finding."""
    return any(x.status is Status.COMPLETE or x.acceptance for x in verdict.findings)


def _lacking(agents: Iterable[AgentVerdict]) -> dict[Place, int]:
    found: Counter[Place] = Counter()
    for part in agents:
        counts = {place: 0 if sums is None else sums.count for place, sums in part.sums.items()}
        most = max(counts.values(), default=0)
        for place, count in counts.items():
            is_counted = part.agent != NO_AGENT or place.tier is not Tier.AGENT
            if count < most and is_counted and not place.is_retired:
                found[place] += most - count
    return dict(found)


def gravest(agents: Iterable[AgentVerdict]) -> tuple[AgentVerdict, ...]:
    """The agents that are not complete, the gravest first, at most AGENTS_SHOWN of them."""
    found = [x for x in agents if x.status > Status.COMPLETE]
    return tuple(sorted(found, key=lambda x: -x.status)[:AGENTS_SHOWN])


@dataclass(frozen=True)
class BucketVerdict:
    """The verdict on one (source topic, bucket). status: the gravest status of all agents and
    findings. due: whether the bucket is old enough to be complete. findings: those findings that
    belong to no single agent. warnings: facts that an operator should know even if the bucket is
    complete; a person can accept warnings like findings. agents: the verdicts on all agents, or
    only on the agents with the gravest statuses (see the property `short`). known_parts: the sum of
    the verdicts on all agents, if it was computed without a verdict on each agent.

    Sums over all agents are computed at the first use, and then cached in the object, because a
    standing and a page use them several times. So this class has no slots."""

    source: Source
    bucket: int
    bucket_ms: int
    status: Status
    reasons: tuple[str, ...]
    due: bool
    agents: Sequence[AgentVerdict] = field(default=())
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    known_parts: Parts | None = field(default=None, compare=False, repr=False)

    @cached_property
    def parts(self) -> Parts:
        """The sum of the verdicts on all agents."""
        return Parts.of(self.agents) if self.known_parts is None else self.known_parts

    def short(self) -> BucketVerdict:
        """The same verdict with only the agents that have the gravest statuses, so that it is small
        even in a large fleet."""
        return replace(self, agents=self.parts.gravest, known_parts=self.parts)

    @cached_property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """The acceptances that cover a finding or warning of the bucket, the oldest first."""
        found = {**acceptances_of((*self.findings, *self.warnings)), **self.parts.acceptances}
        return tuple(sorted(found.values(), key=lambda x: (x.time_ms, x.id)))

    @cached_property
    def residue(self) -> Status:
        """The status that the verdict has if accepted findings are ignored. Before a bucket is due,
        a person can only accept that it is too young (see acceptances). This covers all that is
        open, because every agent's seal is still too old for such a bucket."""
        if not self.acceptances:
            return self.status
        left = max(left_of(self.findings), self.parts.residue)
        return Status.COMPLETE if left is Status.OPEN and not self.due else left

    @property
    def is_accepted(self) -> bool:
        """Whether the bucket is complete except for accepted findings."""
        return self.status is not Status.COMPLETE and self.residue is Status.COMPLETE

    @property
    def is_overdue(self) -> bool:
        """Whether somebody should look at the bucket: the bucket should be complete by now but is
        not complete, or it is lost already."""
        residue = self.residue
        return residue is Status.LOST or (self.due and residue is not Status.COMPLETE)

    @property
    def is_warned(self) -> bool:
        """Whether the bucket is complete, with a warning that nobody accepted."""
        return self.status is Status.COMPLETE and not all(x.acceptance for x in self.warnings)

    @property
    def is_warned_and_accepted(self) -> bool:
        """Whether the bucket is complete with warnings, all of which were accepted."""
        return self.status is Status.COMPLETE and bool(self.warnings) and not self.is_warned

    @property
    def words(self) -> tuple[str, ...]:
        """All reasons, and all warnings."""
        return *self.reasons, *(x.words for x in self.warnings)

    @property
    def word(self) -> str:
        """The status as reports print it. If accepted findings make the status graver, the text has
        both statuses, for example `open (lost, accepted)`. If the bucket is complete except for
        accepted findings, the text is for example `lost, accepted`.
        """
        accepted, left = f"{self.status.word}, accepted", self.residue
        if left is self.status:
            return left.word
        return accepted if left is Status.COMPLETE else f"{left.word} ({accepted})"

    def places(self) -> dict[Place, Sums | None]:
        """For each place, the sums of all agents together; None for a tier that never reported the
        topic."""
        return dict(self._places)

    @property
    def _places(self) -> Mapping[Place, Sums | None]:
        return self.parts.places

    @property
    def records(self) -> int:
        """The number of records in the place that counted the most records."""
        return self._most(lambda sums: sums.count)

    @property
    def rejects(self) -> int:
        """The number of the loader's rejects, in the place that counted most of them."""
        return self._most(lambda sums: sums.rejects)

    @property
    def repeats(self) -> int:
        """The number of repeated records, in the place that saw most of them."""
        return self._most(lambda sums: sums.repeats)

    @property
    def filtered(self) -> tuple[Filtered, ...]:
        """The records that rules of the agents left out, sorted by rule. Only agents have such
        rules."""
        found = (sums.filtered for sums in self._places.values() if sums is not None)
        return reduce(joined_by_rule, found, ())

    def _most(self, number: Callable[[Sums], int]) -> int:
        return max((number(x) for x in self._places.values() if x is not None), default=0)

    def count(self, tier: Tier) -> int | None:
        """The number of records at a tier: the smallest count among the tier's places. Retired
        places are left out if the tier has a place that is not retired. None if the tier never
        reported the topic."""
        here = {place: x for place, x in self._places.items() if place.tier is tier}
        counting = [x for place, x in here.items() if not place.is_retired] or [*here.values()]
        counts = [0 if x is None else x.count for x in counting]
        return None if all(x is None for x in counting) else min(counts)


def acceptances_of(findings: Iterable[Finding]) -> dict[int, Acceptance]:
    """The acceptances of these findings, by the id of the acceptance."""
    return {x.acceptance.id: x.acceptance for x in findings if x.acceptance is not None}
