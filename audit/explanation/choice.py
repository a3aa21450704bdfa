"""Chooses, without I/O, which bucket of a topic to explain first, and finds the buckets that have
the same causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Difference, Finding, Place, Status
from skidway.audit.topic.messages import Tier


def is_bad(verdict: BucketVerdict) -> bool:
    """Returns whether somebody should look at the bucket, because it should be complete by now but
    is not, because it is lost, or because it has a warning. Findings and warnings that a person
    accepted do not count.
    """
    return verdict.is_overdue or verdict.is_warned


def first_explained(bad: Sequence[BucketVerdict]) -> list[BucketVerdict]:
    """Returns the verdicts in `bad` on the oldest bucket; several topics may have a verdict on it.
    Buckets that lack only rows are chosen only if there are no others. Between two loads, some
    buckets always lack rows, and these buckets must not hide another cause.
    """
    if not bad:
        return []
    is_last, first = min((lacks_only_rows(x), x.bucket) for x in bad)
    return [x for x in bad if (lacks_only_rows(x), x.bucket) == (is_last, first)]


def lacks_only_rows(verdict: BucketVerdict) -> bool:
    """Whether the bucket would be complete if no output lacked records."""
    return all(_is_of_rows(x) for x, _ in _open_findings(verdict))


def alike(verdict: BucketVerdict, bad: Sequence[BucketVerdict]) -> list[BucketVerdict]:
    """Takes from `bad` the verdicts on the same topic as `verdict` and on later buckets, the oldest
    bucket first. Returns them up to, but not including, the first one whose causes or reasons
    differ from those of `verdict`.
    """
    later = [x for x in bad if x.source == verdict.source and x.bucket > verdict.bucket]
    if not later:
        return []  # saves time: `_signature` makes a verdict on each agent
    own = set(_signature(verdict))
    ordered = sorted(later, key=lambda x: x.bucket)
    return list(takewhile(lambda x: set(_signature(x)) == own, ordered))


def _signature(verdict: BucketVerdict) -> Iterator[tuple[Cause, str, int | None]]:
    return ((x.cause, x.name, agent) for x, agent in _open_findings(verdict))


def _open_findings(verdict: BucketVerdict) -> Iterator[tuple[Finding, int | None]]:
    """Yields the findings and warnings that nobody accepted, each with the id of its agent, or with
    None if it does not belong to a single agent."""
    of_agents = ((x, agent.agent) for agent in verdict.agents for x in agent.findings)
    for finding, agent in (*((x, None) for x in verdict.findings), *of_agents):
        if finding.status > Status.COMPLETE and finding.acceptance is None:
            yield finding, agent
    yield from ((x, None) for x in verdict.warnings if x.acceptance is None)


def _is_of_rows(finding: Finding) -> bool:
    about = finding.about
    place = about.place if isinstance(about, Difference) else about
    is_short = finding.cause in (Cause.RECORDS_MISSING, Cause.TIER_ABSENT)
    return is_short and isinstance(place, Place) and place.tier is Tier.HDFS
