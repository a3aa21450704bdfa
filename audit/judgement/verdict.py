"""Verdicts on buckets, and their reasons.

    complete    all expected tiers counted the same records, and all expected agents sealed the
                bucket (vouched that all of its lines are counted)
    open        the bucket is too young to decide, or an agent has not sealed it yet
    incomplete  the bucket is old enough and counted, but a tier lacks records or has other records
    unknown     evidence that is needed to decide is missing, perhaps for ever
    lost        an agent declared that lines are lost, and the lines may belong to the bucket

A bucket gets the gravest status of its findings, and the reasons of all findings as text. A finding
that a person accepted stays in the verdict, but no longer counts against the bucket. `residue` is
the status of the bucket without its accepted findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, reduce

from skidway.audit.counts.counts import NO_AGENT, Sums, joined_by_rule, total
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.decisions import Acceptance, FindingName
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


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
    key: the finding's name, if the text of its reason may change. acceptance: the decision of a
    person to accept the finding."""

    status: Status
    reason: str
    key: str = ""
    acceptance: Acceptance | None = None

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
    """Says who accepted something, and why."""
    return f"accepted by {acceptance.person} ({acceptance.reason})"


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
        """The status without the accepted findings."""
        return left_of(self.findings) if _acceptances(self.findings) else self.status

    @property
    def name(self) -> str:
        """The agent's name in reasons: the name of its host, or its id if the host is unknown."""
        name = self.host or f"agent {self.agent}"
        return f"{name} (retired)" if self.retired else name


@dataclass(frozen=True)
class BucketVerdict:
    """The verdict on one (source topic, bucket). status: the gravest status of all agents and
    findings. due: whether the bucket is old enough to be complete. findings: those findings that
    belong to no single agent. warnings: what an operator should know even if the bucket is
    complete; a person can accept warnings like findings.

    What is summed up over all agents is computed once, when somebody asks for it first, because
    a standing and a page ask several times. So this class has no slots."""

    source: Source
    bucket: int
    bucket_ms: int
    status: Status
    reasons: tuple[str, ...]
    due: bool
    agents: tuple[AgentVerdict, ...] = field(default=())
    findings: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @cached_property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """The acceptances that cover a finding or warning of the bucket, the oldest first."""
        found = _acceptances((*self.findings, *self.warnings))
        for verdict in self.agents:
            found |= _acceptances(verdict.findings)
        return tuple(sorted(found.values(), key=lambda x: (x.time_ms, x.id)))

    @cached_property
    def residue(self) -> Status:
        """The status without the accepted findings."""
        if not self.acceptances:
            return self.status
        return max([left_of(self.findings), *(x.residue for x in self.agents)])

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
        """The status as reports print it: the status without the accepted findings and, if the
        accepted findings are graver, also their status."""
        accepted, left = f"{self.status.word}, accepted", self.residue
        if left is self.status:
            return left.word
        return accepted if left is Status.COMPLETE else f"{left.word} ({accepted})"

    def unaccepted(self) -> tuple[FindingName, ...]:
        """The names of the findings and warnings that would be accepted if a person accepted the
        bucket now."""
        found = [(NO_AGENT, x) for x in self.findings]
        found += [(verdict.agent, x) for verdict in self.agents for x in verdict.findings]
        found = [(agent, x) for agent, x in found if x.status > Status.OPEN]
        if found or self.status is Status.COMPLETE:  # an open bucket's warnings can still change
            found += [(NO_AGENT, x) for x in self.warnings]
        names = (FindingName(agent, x.name) for agent, x in found if x.acceptance is None)
        return tuple(dict.fromkeys(names))

    def places(self) -> dict[Place, Sums | None]:
        """For each place, the sums of all agents together."""
        return dict(self._places)

    @cached_property
    def _places(self) -> dict[Place, Sums | None]:
        counted: dict[Place, list[Sums]] = {}
        for verdict in self.agents:
            for place, sums in verdict.sums.items():
                found = counted.setdefault(place, [])
                if sums is not None:
                    found.append(sums)
        return {place: total(found) if found else None for place, found in counted.items()}

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
        """The records that rules of the agents left out, sorted by rule. Only agents filter."""
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


def _acceptances(findings: Iterable[Finding]) -> dict[int, Acceptance]:
    """The acceptances of these findings, by id."""
    return {x.acceptance.id: x.acceptance for x in findings if x.acceptance is not None}
