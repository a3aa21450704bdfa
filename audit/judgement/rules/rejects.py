"""Warns, without I/O, if too many records were rejected. Rejected records have arrived, but are not
among the rows that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import TopicEvidence
from skidway.audit.evidence.tallies import BucketTallies, SenderKey
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Rejects, Status
from skidway.audit.topic.messages import Tier


def warnings(
    found: BucketVerdict, parents: Sequence[TopicEvidence], share: float
) -> Iterator[Finding]:
    """Yields a warning for each place that rejected more than `share` of a bucket's records, and a
    warning for the agents if they rejected more than `share`.

    parents: for a topic of agents' rejects, the evidence of the topics whose lines were rejected.
    If the counts of the bucket were deleted from one of these topics, nobody knows the share that
    the agents rejected, so there is no warning for the agents. There is no warning for a retired
    output.
    """
    for place, sums in found.places().items():
        if sums is not None and not place.is_retired and sums.rejects > share * sums.count:
            about = Rejects(sums.rejects, sums.count, place)
            yield _warning(about, reasons.of_place(place), share)
    is_known = not any((found.bucket, found.bucket_ms) in parent.pruned for parent in parents)
    if found.source.topic.endswith(REJECTED_SUFFIX) and is_known:
        lines = found.records + sum(_delivered(found, parent) for parent in parents)
        if found.records > share * lines:
            yield _warning(Rejects(found.records, lines, None), "the agents", share)


def _warning(about: Rejects, who: str, share: float) -> Finding:
    """Makes the warning that too many records were rejected. share: the share that is allowed. The
    name of the warning does not contain this share. So if somebody changes the allowed share, an
    earlier acceptance still covers the warning.
    """
    said = reasons.of_rejects(about.rejects, about.records, who)
    words = f"{said} ({100 * share:.3g}% is allowed)"
    return Finding(Status.COMPLETE, words, Cause.REJECTED, said, about=about)


def _delivered(found: BucketVerdict, parent: TopicEvidence) -> int:
    """Returns how many lines of the topic `parent` in the bucket of `found` were not rejected,
    including lines that a rule left out. Normally the result is the sum of the agents' counts. If a
    counter or a loader has counted more lines than the agents have reported so far, the result is
    the greatest count of a counter or a loader.
    """
    by_agent = parent.tallies.get((found.bucket, found.bucket_ms), {})
    agents, others = 0, Counter[SenderKey]()
    if isinstance(by_agent, BucketTallies):
        for key, count in by_agent.counts_by_sender().items():
            if key.tier is Tier.AGENT:
                agents += count
            else:
                others[key] = count
        return max(agents, *others.values(), 0)
    for tallies in by_agent.values():
        for key, tally in tallies.items():
            if key.tier is Tier.AGENT:
                agents += tally.sums.count + sum(x.records for x in tally.sums.filtered)
            else:
                others[key] += tally.sums.count
    return max(agents, *others.values(), 0)
