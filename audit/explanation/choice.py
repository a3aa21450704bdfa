"""Chooses, without I/O, which bucket of a topic to explain first, and finds the buckets that have
the same causes.

An explanation prints the command that accepts the bucket. The command names a topic and one or two
times, so it may also accept findings of other buckets: buckets of the topic with the rejects,
buckets of earlier topics with the same name, and overlapping buckets of another length. A person
must not accept findings without having seen them. So the findings that a printed command would
accept are explained too (`with_covered`), or have causes that are explained (`alike`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement.acceptances import unaccepted
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Difference, Finding, Place, Status
from skidway.audit.judgement.verdicts_of_agents import not_complete
from skidway.audit.reports.topic_names import is_named, topic_name, with_rejects, without_id
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


def is_bad(verdict: BucketVerdict) -> bool:
    """Returns whether somebody should look at the bucket. This is so if the bucket should be
    complete by now but is not, if it is lost, or if it is complete with a warning. Findings and
    warnings that a person accepted do not count.
    """
    return verdict.is_overdue or verdict.is_warned


def nothing_due(*, is_alone: bool) -> str:
    """Returns a sentence for the case that no bucket is bad. is_alone: whether nothing else is
    wrong; if something is, the sentence does not deny it."""
    apart = "Every" if is_alone else "Apart from this, every"
    return f"{apart} bucket that is due is complete or accepted."


def first_explained(bad: Sequence[BucketVerdict]) -> list[BucketVerdict]:
    """Returns the verdicts in `bad` on the worst buckets; they may be buckets of several topics
    with one start. Buckets with the cause that is nearest to the source of trouble come first, and
    of these the oldest. Buckets with nothing but a warning come after all others, because an old
    warning must not hide what is wrong now. Buckets that lack nothing but rows come last: between
    two loads, some buckets always lack rows.
    """
    if not bad:
        return []
    places = [urgency(x) for x in bad]
    first = min(places)
    return [x for x, place in zip(bad, places, strict=True) if place == first]


def urgency(verdict: BucketVerdict) -> tuple[bool, bool, int, int]:
    """Returns the key that sorts bad buckets, the worst first (see `first_explained`)."""
    rank = min((x.cause.rank for x, _ in _open_findings(verdict)), default=len(Cause))
    return lacks_only_rows(verdict), not verdict.is_overdue, rank, verdict.bucket


def lacks_only_rows(verdict: BucketVerdict) -> bool:
    """Whether the bucket would be complete if no output lacked records."""
    return all(_is_of_rows(x) for x, _ in _open_findings(verdict))


class ByTopic:
    """Verdicts by the names of their topics. For each of many topics, finds the few verdicts that
    matter to `covered` and `alike` without a look at the verdicts on all other topics."""

    def __init__(self, found: Iterable[BucketVerdict]) -> None:
        self._found = list(found)
        self._places: dict[str, list[int]] = {}
        """For each name of a topic, with and without the cluster's name, the indexes in `_found` of
        the verdicts on the topics that have this name."""
        for place, verdict in enumerate(self._found):
            for name in {verdict.source.topic, topic_name(verdict.source)}:
                self._places.setdefault(name, []).append(place)

    def related(self, source: Source) -> list[BucketVerdict]:
        """Returns the verdicts on this topic, and on all topics that a command may name when it
        accepts a bucket of this topic. The verdicts are in the order in which they were given."""
        name = topic_name(source)
        names = {name, *map(without_id, with_rejects([name]))}
        places = {place for each in names for place in self._places.get(each, ())}
        return [self._found[place] for place in sorted(places)]


def with_covered(
    shown: Sequence[BucketVerdict], found: Iterable[BucketVerdict]
) -> list[BucketVerdict]:
    """Returns the verdicts in `shown`, followed by the verdicts in `found` on other buckets that
    the printed commands would also accept. Each printed command names only one bucket."""
    known = {_key(x): x for x in shown}
    waiting, by_topic = list(shown), ByTopic(found)
    for verdict in waiting:  # `waiting` grows: the added verdicts have a command, too
        if _can_be_accepted(verdict):
            near = by_topic.related(verdict.source)
            new = [x for x in covered(verdict, verdict.bucket, near) if _key(x) not in known]
            known |= {_key(x): x for x in new}
            waiting += new
    return waiting


def acceptable_with(time_ms: int, buckets: Iterable[BucketId]) -> set[BucketId]:
    """Returns those of `buckets` that begin at this time, and those that `with_covered` may add to
    them. A command that accepts a bucket also accepts each bucket that contains the start of this
    bucket. Such a bucket may have begun earlier, and is explained with a command of its own, so the
    buckets that contain its start belong to the result, too."""
    left, found = set(buckets), set[BucketId]()
    starts = [time_ms] if any(start == time_ms for start, _ in left) else []
    for time in starts:  # `starts` grows
        new = {(start, size) for start, size in left if start <= time < start + size}
        left -= new
        found |= new
        starts += {start for start, _ in new}
    return found


def covered(
    verdict: BucketVerdict, last: int, found: Iterable[BucketVerdict]
) -> list[BucketVerdict]:
    """Suppose that a command accepts the bucket of `verdict` and all buckets up to `last`. Returns
    the verdicts in `found` that have a finding or a warning that this command would accept."""
    return [x for x in _named_by(verdict, found) if x.bucket <= last and _can_be_accepted(x)]


def alike(verdict: BucketVerdict, found: Sequence[BucketVerdict]) -> list[BucketVerdict]:
    """Looks through the bad buckets (see `is_bad`) that come after the bucket of `verdict` in the
    same topic, the oldest first. Returns the verdicts in `found` on these buckets. The result ends
    before the first bucket that cannot be accepted, or whose causes or reasons differ from those of
    `verdict`. A command that accepts all of these buckets may also accept later buckets of related
    topics. So the result also ends before the command would accept a finding whose cause is not
    explained.
    """
    later = [x for x in found if x.source == verdict.source and x.bucket > verdict.bucket]
    later = sorted(filter(is_bad, later), key=lambda x: x.bucket)
    if not later:
        return []  # saves time: `_signature` makes a verdict on each agent that is not complete
    own = set(_signature(verdict))
    explained = own.union(*map(_signature, covered(verdict, verdict.bucket, found)))
    related = sorted(_named_by(verdict, found), key=lambda x: x.bucket)
    ends = [bisect_right(related, x.bucket, key=lambda x: x.bucket) for x in (verdict, *later)]
    run: list[BucketVerdict] = []
    for each, first, end in zip(later, ends, ends[1:], strict=False):
        if not _can_be_accepted(each) or set(_signature(each)) != own:
            break
        new = (x for x in related[first:end] if x is not each and _can_be_accepted(x))
        if not all(explained.issuperset(_signature(x)) for x in new):
            break
        run.append(each)
    return run


def _named_by(verdict: BucketVerdict, found: Iterable[BucketVerdict]) -> list[BucketVerdict]:
    """Returns the verdicts in `found` on the topics that a command names when it accepts the bucket
    of `verdict`. Leaves out buckets that end before this bucket begins."""
    names = with_rejects([topic_name(verdict.source)])
    later = [x for x in found if x.bucket + x.bucket_ms > verdict.bucket]
    meant = {source for source in {x.source for x in later} if is_named(source, names)}
    return [x for x in later if x.source in meant]


def _key(verdict: BucketVerdict) -> tuple[Source, int, int]:
    return verdict.source, verdict.bucket, verdict.bucket_ms


def _can_be_accepted(verdict: BucketVerdict) -> bool:
    is_open = verdict.residue is not Status.COMPLETE or not all(
        x.acceptance for x in verdict.warnings
    )  # saves time: `unaccepted` makes a verdict on each agent that is not complete
    return verdict.due and is_open and bool(unaccepted(verdict))


def _signature(verdict: BucketVerdict) -> Iterator[tuple[Cause, str, int | None]]:
    return ((x.cause, x.name, agent) for x, agent in _open_findings(verdict))


def _open_findings(verdict: BucketVerdict) -> Iterator[tuple[Finding, int | None]]:
    agents = not_complete(verdict.agents)
    of_agents = ((x, agent.agent) for agent in agents for x in agent.findings)
    for finding, agent in (*((x, None) for x in verdict.findings), *of_agents):
        if finding.status > Status.COMPLETE and finding.acceptance is None:
            yield finding, agent
    yield from ((x, None) for x in verdict.warnings if x.acceptance is None)


def _is_of_rows(finding: Finding) -> bool:
    about = finding.about
    place = about.place if isinstance(about, Difference) else about
    is_short = finding.cause in (Cause.RECORDS_MISSING, Cause.TIER_ABSENT)
    return is_short and isinstance(place, Place) and place.tier is Tier.HDFS
