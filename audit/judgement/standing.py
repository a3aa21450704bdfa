"""The standing: a summary of the verdicts on all buckets, topic by topic. The module does no I/O.

The report, the web pages, the metrics, /health and the JSON documents all show the standing, so
they agree with each other. The standing covers every bucket, so no old problem is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from skidway.audit.counts.counts import joined_by_rule
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, GapNote
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source

NEWEST_BUCKETS = 24
"""The standing contains verdicts only on the newest buckets. These are the buckets with one of the
NEWEST_BUCKETS latest starts in all topics. Each verdict names only a few agents (see
BucketVerdict.short). For older buckets, the standing contains only sums.
"""


@dataclass(frozen=True, slots=True)
class TopicStanding:
    """All buckets of one source topic together.

    by_status: for each status, the number of buckets.
    overdue: for each status, the number of buckets that somebody should look at. A bucket's status
        here ignores its accepted findings.
    lost_early: how many of the buckets in `overdue` are lost already, although they are too young
        to be judged complete.
    accepted: the number of buckets that are complete except for accepted findings, by the status
        that they would have if nobody had accepted these findings.
    warned: the number of complete buckets with a warning that nobody accepted.
    warned_accepted: the number of complete buckets whose warnings were all accepted.
    complete_until: all buckets up to this time in ms are complete or accepted; None if there is no
        such time.
    oldest_overdue: the start of the oldest overdue bucket (see BucketVerdict.is_overdue).
    records, rejects, repeats: the sums over all buckets.
    newest: verdicts on the newest buckets (see NEWEST_BUCKETS), each with only a few agents, by the
        start of the bucket.
    recounts: the newest recount of each output.
    uncounted: the number of offsets that counters could not read.
    aborted: the number of records that counters left out, because their transactions were aborted.
    filtered: the records that rules of the agents left out, sorted by rule.
    written_until: for each tier that has counted records of the topic, the end in ms of the newest
        bucket of which all places of the tier have records. Retired places do not count here if the
        tier has other places. Buckets that begin after the time of the judgement are left out,
        because a line with a wrong time would make the topic look fresh.

    The clusters and outputs that counted a bucket may differ in their numbers of records, rejects
    and repeats. The sums use the greatest of the differing numbers. `rejects` includes only rejects
    of the loader, not rejects of agents. If a record without origin has one of the `uncounted`
    offsets, no sum includes the record.
    """

    source: Source
    by_status: Mapping[Status, int]
    overdue: Mapping[Status, int]
    lost_early: int
    accepted: Mapping[Status, int]
    warned: int
    warned_accepted: int
    complete_until: int | None
    oldest_overdue: int | None
    records: int
    rejects: int
    repeats: int
    newest: Mapping[int, BucketVerdict]
    recounts: tuple[RecountResult, ...] = ()
    uncounted: int = 0
    filtered: tuple[Filtered, ...] = ()
    written_until: Mapping[Tier, int] = field(default_factory=dict)
    aborted: int = 0

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return sum(self.by_status.values())

    @property
    def is_complete(self) -> bool:
        """Whether all buckets of the topic are complete or accepted."""
        complete = self.by_status.get(Status.COMPLETE, 0)
        return complete + sum(self.accepted.values()) == self.buckets

    def and_later(self, later: TopicStanding, starts: Collection[int]) -> TopicStanding:
        """Joins two standings of one topic. later: the standing of the topic's later buckets.
        starts: the starts of the newest buckets of all topics. `newest` of the result has only the
        verdicts on buckets with these starts."""
        ends = (self.complete_until, later.complete_until if self.is_complete else None)
        oldest = (self.oldest_overdue, later.oldest_overdue)
        newest = {**self.newest, **later.newest}
        return TopicStanding(
            self.source,
            _added([self.by_status, later.by_status]),
            _added([self.overdue, later.overdue]),
            self.lost_early + later.lost_early,
            _added([self.accepted, later.accepted]),
            self.warned + later.warned,
            self.warned_accepted + later.warned_accepted,
            max((end for end in ends if end is not None), default=None),
            min((start for start in oldest if start is not None), default=None),
            self.records + later.records,
            self.rejects + later.rejects,
            self.repeats + later.repeats,
            {start: verdict for start, verdict in newest.items() if start in starts},
            later.recounts,
            later.uncounted,
            joined_by_rule(self.filtered, later.filtered),
            {**self.written_until, **later.written_until},
            later.aborted,
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """The standing of all topics. starts: the starts of the newest buckets, newest first.
    judged_ms: the time by the audit's clock at which the newest buckets were judged. unjudged: how
    many hours of buckets are not judged yet (see collector.judge). rebuilding: how many messages
    the ledger must still read before anything can be judged; 0 if it has all messages."""

    topics: tuple[TopicStanding, ...]
    starts: tuple[int, ...]
    judged_ms: int
    unjudged: int = 0
    rebuilding: int = 0

    @property
    def by_status(self) -> Mapping[Status, int]:
        """For each status, the number of buckets in all topics together."""
        return _added(topic.by_status for topic in self.topics)

    @property
    def overdue(self) -> Mapping[Status, int]:
        """For each status, the number of buckets that somebody should look at. A bucket's status
        here ignores its accepted findings."""
        return _added(topic.overdue for topic in self.topics)

    @property
    def lost_early(self) -> int:
        """How many buckets have the verdict "lost" although they are still too young to be
        complete. `overdue` includes these buckets."""
        return sum(topic.lost_early for topic in self.topics)

    @property
    def accepted(self) -> Mapping[Status, int]:
        """Counts the buckets that are complete except for accepted findings. The keys are the
        statuses that these buckets would have if nobody had accepted anything.
        """
        return _added(topic.accepted for topic in self.topics)

    @property
    def warned(self) -> int:
        """How many complete buckets have a warning that nobody accepted."""
        return sum(topic.warned for topic in self.topics)

    @property
    def warned_accepted(self) -> int:
        """How many complete buckets have warnings, all of which were accepted."""
        return sum(topic.warned_accepted for topic in self.topics)

    @property
    def recounts(self) -> tuple[RecountResult, ...]:
        """The newest recount of each topic and output."""
        return tuple(recount for topic in self.topics for recount in topic.recounts)

    @property
    def uncounted(self) -> int:
        """The number of offsets that counters could not read."""
        return sum(topic.uncounted for topic in self.topics)

    @property
    def counted(self) -> tuple[TopicStanding, ...]:
        """The topics in which anything was counted."""
        return tuple(topic for topic in self.topics if topic.buckets)

    def where(self, is_meant: Callable[[Source], bool]) -> Standing:
        """The part of this standing about the topics for which `is_meant` is true."""
        topics = tuple(topic for topic in self.topics if is_meant(topic.source))
        return replace(self, topics=topics)


NOTHING_JUDGED = Standing((), (), 0)


def judged(evidence: Evidence, policy: Policy, now_ms: int) -> Standing:
    """Judges all buckets in the evidence, and sums up the verdicts."""
    return of_evidence(evidence, verdicts(evidence, policy, now_ms), now_ms)


def of_evidence(evidence: Evidence, found: Sequence[BucketVerdict], judged_ms: int = 0) -> Standing:
    """Sums up these verdicts. Adds the recounts in the evidence, and the gaps (offsets that
    counters could not read).
    """
    asked = [
        source
        for source in evidence.topics
        if evidence.asked is None or source.topic in evidence.asked
    ]
    whole = standing(found, asked, judged_ms)
    topics = tuple(with_notes(x, evidence) for x in whole.topics)
    return replace(whole, topics=topics, rebuilding=evidence.rebuilding)


def standing(
    found: Sequence[BucketVerdict], sources: Iterable[Source] = (), judged_ms: int = 0
) -> Standing:
    """Sums up these verdicts. sources: the topics that messages mention. Topics of `sources` in
    which nothing was counted are included, except topics of rejects."""
    by_source: dict[Source, list[BucketVerdict]] = {
        source: [] for source in sources if not source.topic.endswith(REJECTED_SUFFIX)
    }
    for verdict in found:
        by_source.setdefault(verdict.source, []).append(verdict)
    starts = sorted({verdict.bucket for verdict in found}, reverse=True)[:NEWEST_BUCKETS]
    ordered = sorted(by_source, key=order)
    topics = (_topic(x, by_source[x], set(starts), judged_ms) for x in ordered)
    return Standing(tuple(topics), tuple(starts), judged_ms)


def order(source: Source) -> tuple[str, str, str]:
    """The key by which the topics of a standing are sorted."""
    return source.cluster, source.topic, source.topic_id


def _topic(
    source: Source, found: Sequence[BucketVerdict], starts: set[int], judged_ms: int
) -> TopicStanding:
    overdue = [x for x in found if x.is_overdue]
    newest: dict[int, BucketVerdict] = {}
    for verdict in found:  # of buckets with the same start, stores the gravest verdict
        known = newest.get(verdict.bucket)
        if verdict.bucket in starts and (known is None or known.status < verdict.status):
            newest[verdict.bucket] = verdict.short()
    return TopicStanding(
        source,
        Counter(x.status for x in found),
        Counter(x.residue for x in overdue),
        sum(1 for x in overdue if not x.due),
        Counter(x.status for x in found if x.is_accepted),
        sum(x.is_warned for x in found),
        sum(x.is_warned_and_accepted for x in found),
        _complete_until(found),
        min((x.bucket for x in overdue), default=None),
        sum(x.records for x in found),
        sum(x.rejects for x in found),
        sum(x.repeats for x in found),
        newest,
        filtered=reduce(joined_by_rule, (x.filtered for x in found), ()),
        written_until=_written_until(found, judged_ms),
    )


def with_notes(found: TopicStanding, evidence: Evidence) -> TopicStanding:
    """Returns the standing with the recounts of the topic, the number of offsets that counters
    could not read, and the number of aborted records. None of them belongs to a single bucket."""
    topic = evidence.topic(found.source)
    aborted = max((x.aborted for x in topic.transactions.values()), default=0)
    return replace(
        found,
        recounts=tuple(topic.recounts),
        uncounted=_uncounted(topic.gaps),
        aborted=aborted,
    )


def _uncounted(gaps: Iterable[GapNote]) -> int:
    """The number of offsets that are in at least one gap (offsets that a counter could not read).
    An offset in several gaps counts once."""
    count, at = 0, (-1, 0)  # at: a partition, and the end of its offsets that `count` includes
    for partition, first, end in sorted((x.gap.partition, x.gap.first, x.gap.end) for x in gaps):
        begin = max(first, at[1]) if partition == at[0] else first
        count += max(end - begin, 0)
        at = partition, max(end, begin)
    return count


def _complete_until(found: Sequence[BucketVerdict]) -> int | None:
    """The time up to which all buckets are complete or accepted; None if there is no such time.
    Buckets of two sizes may overlap, so this time is never later than the start of the first bucket
    that is neither complete nor accepted."""
    first = min((x.bucket for x in found if x.residue is not Status.COMPLETE), default=None)
    ends = [x.bucket + x.bucket_ms for x in found if first is None or x.bucket < first]
    return min([max(ends), *([] if first is None else [first])]) if ends else None


def _written_until(found: Sequence[BucketVerdict], judged_ms: int) -> dict[Tier, int]:
    ends: dict[Tier, int] = {}
    for verdict in sorted(found, key=lambda x: (x.bucket, x.bucket_ms), reverse=True):
        if verdict.bucket <= judged_ms:
            lacking = [tier for tier in Tier if tier not in ends and verdict.count(tier)]
            ends |= dict.fromkeys(lacking, verdict.bucket + verdict.bucket_ms)
            if len(ends) == len(Tier):
                break
    return ends


def _added(parts: Iterable[Mapping[Status, int]]) -> Mapping[Status, int]:
    total: Counter[Status] = Counter()
    for part in parts:
        total.update(part)
    return total
