"""Rejects that somebody should look at: they arrived, but not as rows where people look. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import SenderKey, TopicEvidence
from skidway.audit.judgement import reasons
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Status
from skidway.audit.topic.messages import Tier


def warnings(
    found: BucketVerdict, parents: Iterable[TopicEvidence], share: float
) -> Iterator[Finding]:
    """One for everybody who rejected more than this share of a bucket's records.

    parents: for a topic of agents' rejects, the evidence of the topics whose lines were rejected. A
    retired output no longer warns.
    """
    for place, sums in found.places().items():
        if sums is not None and not place.is_retired and sums.rejects > share * sums.count:
            yield _warning(sums.rejects, sums.count, reasons.of_place(place))
    if found.source.topic.endswith(REJECTED_SUFFIX):
        lines = found.records + sum(_delivered(found, parent) for parent in parents)
        if found.records > share * lines:
            yield _warning(found.records, lines, "the agents")


def _warning(rejects: int, records: int, who: str) -> Finding:
    return Finding(Status.COMPLETE, reasons.of_rejects(rejects, records, who))


def _delivered(found: BucketVerdict, parent: TopicEvidence) -> int:
    """Lines in the same bucket that were not rejected: what the agents sent, or what the sender
    with the most counted, if the agents have reported less so far. (Only epochs of agents add up.)
    """
    agents, others = 0, Counter[SenderKey]()
    for tallies in parent.tallies.get((found.bucket, found.bucket_ms), {}).values():
        for key, tally in tallies.items():
            if key.tier is Tier.AGENT:
                agents += tally.sums.count
            else:
                others[key] += tally.sums.count
    return max(agents, *others.values(), 0)
