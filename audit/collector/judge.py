"""Judges all buckets of a ledger, again and again, in bounded memory and time.

The verdicts on all buckets, summed up, are called the *standing*. A step judges only the buckets
whose verdict may have changed, because their counts or other evidence for the verdict have changed
(see judgement.dependence). So after a step that had enough time, the standing is the same as if the
step had judged every bucket. If the time is too short, the step leaves some buckets to later steps:
the buckets that are too young for a final verdict (not due yet) and, if this does not save enough
time, the oldest buckets. Every second step begins with the buckets that have waited longest. So
every bucket is judged in the end, even if evidence that concerns all buckets changes again and
again. The standing contains the number of hours with buckets that were never judged. While the
ledger is being rebuilt, nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from skidway.audit.collector.judging_times import Due
from skidway.audit.collector.topic_buckets import TopicBuckets
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.tallies import BucketId, BucketTallies
from skidway.audit.judgement.agent_columns import FleetColumns
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.dependence import Dependence
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules.topic_facts import CommonFacts
from skidway.audit.judgement.standing import (
    NEWEST_BUCKETS,
    Standing,
    TopicStanding,
    of_evidence,
    order,
    with_notes,
)
from skidway.audit.judgement.topic_judgement import TopicJudgement
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.clock import Clock
from skidway.kafka.source import Source

BLOCK_MS = 3_600_000
"""The length of a block, one hour of event time. Verdicts are summed up block by block."""

STEP_S = 2.0
"""A step ends after about this time, even if buckets are left, but judges at least one bucket."""

DUE_STEP_S = 6.0
"""For buckets that have become due, a step may take this long. DUE_STEP_S is longer than STEP_S,
because people and jobs wait for the verdicts of these buckets, and the next step may come a minute
later. On a slow machine, or with many topics, STEP_S is too short for the buckets that become due
in the same minute."""

STALE_MAX = 2_000
"""A step judges at most this many buckets of each topic."""

NOTED_AGENTS_MAX = 50_000
"""A step passes its verdicts to `note` (see `Judge`) in groups. A group ends when its verdicts list
more than this many agents in total.
"""

PATIENT_STEPS, YOUNG_PATIENT_STEPS = 4, 16
"""Every second step of judging begins with the buckets that have waited for PATIENT_STEPS steps or
longer. To be among them, a bucket that has a verdict and is not due yet must have waited for
YOUNG_PATIENT_STEPS steps."""

Note = Callable[[Sequence[BucketVerdict], int], None]
"""A function that gets verdicts that may have changed, and the time by the audit's clock."""


class Judge:
    """Owns the last judgement of each bucket. Only the thread that owns the ledger's connection
    uses this object, except that any thread may read `blocks`. note: a function that gets verdicts
    that may have changed. The object calls `note` only while `may_note` returns true, and only
    after it has judged every bucket once. From then on, `note` gets each verdict at least once.
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: Callable[[], Policy],
        clock: Clock,
        note: Note | None = None,
        may_note: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._clock = clock
        self._note = note
        self._may_note = may_note
        self._is_whole = self._is_counted = False
        self._steps = 0
        self._balanced: list[tuple[Source, BucketId]] = []
        self._scattered: list[tuple[Source, BucketId]] = []
        self._topics: dict[Source, TopicBuckets] = {}
        self._counted: dict[Source, set[BucketId]] = {}
        self._blocks: dict[int, Standing] = {}
        self._starts: tuple[int, ...] = ()
        self.evidence = Evidence()
        """The evidence from which the newest step judged. It has no counts of buckets."""
        self.due: Due | None = None
        """The times at which further buckets become due, in seconds after the beginning of the last
        step; None if no known bucket will become due."""
        self._take_facts()

    @property
    def blocks(self) -> Mapping[int, Standing]:
        """The last verdicts on the buckets of each block (an hour of event time), summed up, by the
        block's start. Any thread may read this property."""
        return self._blocks

    def take_balanced(self) -> list[tuple[Source, BucketId]]:
        """Returns the due buckets that the last step found complete or balanced (see
        BucketColumns.is_balanced), and whose checksums are still stored in full length. The caller
        may shorten these checksums (Ledger.narrow) before it adds further messages to the ledger.
        """
        found, self._balanced = self._balanced, []
        return found

    def take_scattered(self) -> list[tuple[Source, BucketId]]:
        """Returns the due buckets that the last step judged and whose counts are in several rows of
        the store. Leaves out the buckets that `take_balanced` returns. The caller may merge these
        rows (Ledger.merge)."""
        found, self._scattered = self._scattered, []
        return found

    def step(self) -> Standing:
        """Judges the buckets whose verdicts may have changed. Returns the standing of all
        buckets."""
        self._balanced, self._scattered = [], []
        began = self._clock.monotonic()
        if self._ledger.rebuilding:
            return self._forget_everything()
        changed = self._take_changes()
        evidence = self.evidence = self._ledger.evidence_without_counts()
        reading_s = self._clock.monotonic() - began
        now_ms = self._take_facts()
        common, fleet, policy = self.common, self.fleet, self.common.policy
        is_noting = self._note is not None and self._is_whole and self._may_note()
        looks = [
            self._look(
                TopicJudgement(evidence, source, policy, common.now_ms, common, fleet),
                changed,
                is_noting=is_noting,
            )
            for source in sorted(evidence.topics, key=order)
        ]
        self.due = _due(looks, reading_s)
        self._tell(self._judge(looks, is_noting=is_noting), now_ms if is_noting else None)
        return self._standing(evidence, now_ms, {x.source: x for x in looks})

    def _take_facts(self) -> int:
        """Computes the facts that the judgements of all topics share, and stores them in this
        object. Returns the time by the collector's clock.
        """
        policy, now_ms = self._policy(), self._clock.time_ms()
        self.common = CommonFacts(self.evidence, policy, present_ms(self.evidence, policy, now_ms))
        self.fleet = FleetColumns(self.common)
        return now_ms

    def _forget_everything(self) -> Standing:
        """Forgets all earlier verdicts, because the ledger is being rebuilt. Returns a standing
        that says that nothing is judged."""
        self.evidence = self._ledger.evidence_without_counts()
        self._topics, self._counted, self._blocks, self._starts = {}, {}, {}, ()
        self._is_whole = self._is_counted = False
        self.due = None
        found = of_evidence(self.evidence, [], self._take_facts())
        return replace(found, unjudged=1)

    # Which buckets to judge.

    def _take_changes(self) -> Mapping[Source, set[BucketId]]:
        """Returns, by topic, the buckets whose counts have changed or were deleted since the last
        step. In three cases, marks all buckets, so that they are judged, and returns an empty
        mapping: in the first step; if the ledger does not know which buckets have changed; and if
        one of the newest buckets was deleted.
        """
        found = self._ledger.changed_buckets()
        gone = set() if found is None else {key[0] for keys in found.gone.values() for key in keys}
        if found is None or not self._is_counted or not gone.isdisjoint(self._starts):
            self._is_counted = True
            self._counted = self._ledger.buckets()
            for topic in self._topics.values():
                topic.mark_all()
            return {}
        for source, keys in found.changed.items():
            known = self._counted.get(source, set())
            if not known >= keys:
                self._counted[source] = known | keys
        for source, keys in found.gone.items():
            self._counted[source] = self._counted.get(source, set()) - keys
        sources = found.changed.keys() | found.gone.keys()
        return {
            x: found.changed.get(x, set[BucketId]()) | found.gone.get(x, set()) for x in sources
        }

    def _look(
        self,
        judgement: TopicJudgement,
        changed: Mapping[Source, set[BucketId]],
        *,
        is_noting: bool,
    ) -> _Look:
        source = judgement.facts.source
        topic = self._topics.setdefault(source, TopicBuckets(source))
        topic.keep(self._counted.get(source, set()), judgement.buckets())
        for each in judgement.facts.sources:
            topic.mark(changed.get(each, ()))
        dependence = Dependence(judgement)
        lateness_ms = judgement.facts.policy.lateness_ms
        stale = topic.look(dependence, lateness_ms, is_noting=is_noting)
        return _Look(source, topic, judgement, dependence, stale)

    # Judging.

    def _judge(self, looks: Sequence[_Look], *, is_noting: bool) -> Iterator[BucketVerdict]:
        began = self._clock.monotonic()
        self._steps += 1
        is_fair = self._steps % 2 == 0
        is_over = False
        for look, place, became_due in _ordered(looks, is_fair=is_fair):
            if is_over and not became_due:
                continue
            verdict = self._verdict(look, place)
            look.topic.put(place, verdict, look.dependence, is_noted=is_noting)
            self._note_due(look, verdict)
            look.forget(verdict)
            yield verdict
            judged_s = self._clock.monotonic() - began
            if judged_s > DUE_STEP_S:
                return
            is_over = judged_s > STEP_S

    def _note_due(self, look: _Look, verdict: BucketVerdict) -> None:
        key = verdict.bucket, verdict.bucket_ms
        tallies = look.judgement.facts.topic.tallies.get(key)
        if not isinstance(tallies, BucketTallies) or not verdict.due:
            return
        columns = look.judgement.columns_of(key)
        is_balanced = columns is not None and columns.is_balanced
        is_narrow = tallies.columns.is_narrow
        if not is_narrow and (is_balanced or verdict.status is Status.COMPLETE):
            self._balanced.append((look.source, key))
        elif self._ledger.additions(look.source, key):
            self._scattered.append((look.source, key))

    def _tell(self, judged: Iterable[BucketVerdict], now_ms: int | None) -> None:
        """Passes verdicts to `note` in groups. judged: an iterator over verdicts. It judges a
        bucket only when the bucket's verdict is asked for. now_ms: the time by the audit's clock;
        if it is None, the buckets are judged, but no verdict is passed to `note`. To save memory, a
        group is dropped before the next group is made, because a verdict holds the counts of its
        bucket.
        """
        found, agents = list[BucketVerdict](), 0
        for verdict in judged:
            if self._note is not None and now_ms is not None:
                found.append(verdict)
                agents += len(verdict.agents)
                if agents > NOTED_AGENTS_MAX:
                    self._note(found, now_ms)
                    found, agents = [], 0
        if self._note is not None and now_ms is not None:
            self._note(found, now_ms)

    def _verdict(self, look: _Look, place: int) -> BucketVerdict:
        key, facts = look.topic.key(place), look.judgement.facts
        for source in facts.sources:
            topic, tallies = facts.evidence.topic(source), self._ledger.tallies(source, key)
            if tallies is not None:
                topic.tallies = {**topic.tallies, key: tallies}
            if self._ledger.is_pruned(source, key):
                topic.pruned.add(key)
        return look.judgement.bucket(key)

    # The sum of all verdicts.

    def _standing(self, evidence: Evidence, now_ms: int, looks: Mapping[Source, _Look]) -> Standing:
        for source in self._topics.keys() - looks.keys():
            del self._topics[source]
        unjudged = {x for topic in self._topics.values() for x in topic.unjudged(BLOCK_MS)}
        starts = {x for topic in self._topics.values() for x in topic.newest_starts(NEWEST_BUCKETS)}
        self._is_whole = self._is_whole or not unjudged
        self._starts = tuple(sorted(starts, reverse=True)[:NEWEST_BUCKETS])
        found = []
        for source, look in looks.items():
            total = look.topic.total(BLOCK_MS)
            if not total.buckets and source.topic.endswith(REJECTED_SUFFIX):
                continue
            total = replace(
                total,
                complete_until=None if unjudged else look.topic.complete_until(),
                newest=look.topic.newest(self._starts),
                written_until=look.topic.written_until(now_ms),
            )
            found.append(with_notes(total, evidence))
        self._tell_blocks(looks.values(), unjudged, now_ms)
        return Standing(tuple(found), self._starts, now_ms, len(unjudged))

    def _tell_blocks(self, looks: Iterable[_Look], unjudged: set[int], now_ms: int) -> None:
        parts: dict[int, list[TopicStanding]] = {}
        old: set[int] = set()
        for look in looks:
            for block, part in look.topic.parts.items():
                parts.setdefault(block, []).append(part)
            old.update(look.left(BLOCK_MS))
        before, found = self._blocks, dict[int, Standing]()
        for block in sorted(parts.keys() - unjudged):
            judged_ms = before[block].judged_ms if block in old and block in before else now_ms
            found[block] = Standing(tuple(parts[block]), (), judged_ms)
        self._blocks = found


@dataclass(slots=True)
class _Look:
    """The work on one topic in one step of judging. stale: for each row of `topic.rows` (one row
    for each bucket), whether the step must still judge the bucket.
    """

    source: Source
    topic: TopicBuckets
    judgement: TopicJudgement
    dependence: Dependence
    stale: npt.NDArray[np.bool_]

    def forget(self, verdict: BucketVerdict) -> None:
        """Drops the tallies (sums of counts) of this verdict's bucket, and notes that the bucket is
        judged.
        """
        key = verdict.bucket, verdict.bucket_ms
        for topic in self.judgement.facts.related:
            topic.tallies = {x: y for x, y in topic.tallies.items() if x != key}
        self.judgement.forget_columns()
        self.stale[self.topic.place(key)] = False

    def left(self, size_ms: int) -> set[int]:
        """Returns the starts of the blocks with buckets that this step had no time to judge.
        size_ms: the length of a block (of event time).
        """
        starts = self.topic.rows["bucket"][self.stale]
        return set((starts - starts % size_ms).tolist())


def _due(looks: Sequence[_Look], reading_s: float) -> Due | None:
    """Returns the times at which further buckets become due, in seconds after the beginning of the
    step. reading_s: the time at which the step read the audit's clock for its judgements, also in
    seconds after the beginning of the step."""
    found = []
    for look in looks:
        now_ms, lateness_ms = look.judgement.facts.now_ms, look.judgement.facts.policy.lateness_ms
        due = look.topic.next_due(now_ms, lateness_ms)
        if due is not None:
            found.append(Due(reading_s + (due[0] - now_ms) / 1000, due[1] / 1000))
    return min(found, default=None)


def _ordered(looks: Sequence[_Look], *, is_fair: bool) -> Iterator[tuple[_Look, int, bool]]:
    """Yields the rows to judge, in the order in which to judge them; a row stands for a bucket.
    With each row, yields whether its bucket has become due since it was judged. First come the
    buckets that have become due, because people and jobs wait for their verdicts. Last come the
    buckets that have a verdict and are not due yet. All other buckets come in between. Within each
    of these three groups, the newest bucket comes first. is_fair: if true, buckets that have waited
    for many steps (see PATIENT_STEPS) come before all others.
    """
    found = [np.empty((7, 0), np.int64)]
    for number, look in enumerate(looks):
        places = np.flatnonzero(look.stale)
        rows, is_due = look.topic.rows[places], look.topic.is_due[places]
        is_young = rows["is_judged"] & ~is_due
        became_due = rows["is_judged"] & ~rows["due"] & is_due
        waiting = look.topic.waiting()[places]
        is_early = waiting < np.where(is_young, YOUNG_PATIENT_STEPS, PATIENT_STEPS)
        waiting[is_early | (not is_fair)] = 0
        order = -waiting, ~became_due, is_young, -rows["bucket"]
        table = np.array([*order, np.full(len(places), number), places, became_due], np.int64)
        found.append(table[:, np.lexsort(order[::-1])[:STALE_MAX]])
    table = np.concatenate(found, axis=1)
    for number, place, has_become_due in table[4:, np.lexsort(table[3::-1])].T.tolist():
        yield looks[number], place, bool(has_become_due)
