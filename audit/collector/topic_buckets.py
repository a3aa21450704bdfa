"""Stores the last verdict on each bucket of one topic, and the state of the evidence from which the
verdict was made, in little memory.

A topic has 50,000 buckets in 35 days. So for each bucket, an array has one row with the values that
the standing (the verdicts on all buckets, summed up) needs. The array is sorted by the starts of
the buckets. Verdicts with their reasons are kept only for the newest buckets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from skidway.audit.counts.counts import joined_by_rule
from skidway.audit.evidence.tallies import BucketId, Int64s
from skidway.audit.judgement.agent_columns import AgentColumns
from skidway.audit.judgement.dependence import Dependence
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

Rows = npt.NDArray[Any]

_BITS: Final = {tier: 1 << number for number, tier in enumerate(Tier)}

_ROW: Final = np.dtype(
    [
        ("bucket", np.int64),
        ("bucket_ms", np.int64),
        # the state of the evidence from which the verdict was made
        ("shape", np.int64),
        ("phase", np.uint64),
        ("unsealed", np.uint64),
        ("late", np.uint64),
        ("rest", np.int64),
        ("is_stale", np.bool_),
        ("stale_since", np.int64),  # the first call of `look` that found the bucket stale
        ("is_judged", np.bool_),
        ("is_noted", np.bool_),
        # the values of the verdict
        ("status", np.uint8),
        ("residue", np.uint8),
        ("due", np.bool_),
        ("overdue", np.bool_),
        ("accepted", np.bool_),
        ("warned", np.bool_),
        ("warned_accepted", np.bool_),
        ("records", np.object_),
        ("rejects", np.object_),
        ("repeats", np.object_),
        ("written", np.uint8),  # a bit for each tier that has records
    ]
)


class TopicBuckets:
    """The buckets of one topic. rows: a row for each bucket, sorted by the starts and sizes of the
    buckets."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.rows: Rows = np.empty(0, _ROW)
        self.is_due = np.empty(0, np.bool_)
        """For each row, whether the bucket was due at the last call of `look`."""
        self.parts: dict[int, TopicStanding] = {}
        """For each block (an hour of event time), by its start: the verdicts on the judged buckets
        of the block, summed up."""
        self._looks = 0
        self._totals: list[tuple[int, TopicStanding]] = []
        self._changed: set[int] = set()
        self._kept: tuple[set[BucketId], frozenset[BucketId]] = set(), frozenset()
        self._shape: tuple[object, ...] | None = None
        self._shape_revision = 0
        self._agents: AgentColumns | None = None
        self._late: dict[BucketId, Int64s] = {}
        self._without_origin: set[BucketId] = set()
        self._filtered: dict[BucketId, tuple[Filtered, ...]] = {}
        self._accepted: frozenset[BucketId] = frozenset()
        self.shorts: dict[BucketId, BucketVerdict] = {}
        """The short verdicts on the newest buckets. A short verdict has only the agents with the
        gravest findings."""

    def keep(self, counted: set[BucketId], lossy: Iterable[BucketId]) -> None:
        """Sets which buckets the topic has: those in `counted` and in `lossy`. Deletes the rows of
        all other buckets, and adds rows for new buckets. counted: the buckets in which anything was
        counted; if they have changed, the caller must pass a new set object. lossy: the buckets in
        which an agent declared a loss."""
        keys = counted, frozenset(lossy)
        if keys[0] is self._kept[0] and keys[1] == self._kept[1]:
            return
        self._kept = keys
        wanted = sorted(keys[0] | keys[1])
        known = {key: place for place, key in enumerate(self._keys())}
        rows = np.zeros(len(wanted), _ROW)
        rows["shape"] = -1
        places = np.array([known.get(key, -1) for key in wanted], np.int64)
        rows[places >= 0] = self.rows[places[places >= 0]]
        rows["bucket"] = [start for start, _ in wanted]
        rows["bucket_ms"] = [size for _, size in wanted]
        self.rows = rows
        for key in known.keys() - set(wanted):
            self._forget(key)
            self._changed.add(key[0])

    def mark(self, keys: Iterable[BucketId]) -> None:
        """Notes that the counts of these buckets have changed, so that they are judged again."""
        for key in keys:
            place = self.place_of(key)
            if place is not None:
                self.rows["is_stale"][place] = True

    def mark_all(self) -> None:
        """Notes that the counts of all buckets may have changed, so that all are judged again."""
        self.rows["is_stale"] = True

    def look(
        self, dependence: Dependence, lateness_ms: int, *, is_noting: bool
    ) -> npt.NDArray[np.bool_]:
        """Compares the present evidence with the evidence from which the verdicts were made.
        Returns, for each row, whether the bucket must be judged again. is_noting: whether buckets
        whose verdict was not passed to the history must be judged again, too."""
        rows = self.rows
        if not len(rows):  # anybody can name thousands of topics in which nobody counts
            self.is_due = np.zeros(0, np.bool_)
            return self.is_due
        self._look_at_shape(dependence)
        self._look_at_acceptances(dependence)
        self._unsealed, self._phases = dependence.of_buckets(
            rows["bucket"] + rows["bucket_ms"] + lateness_ms
        )
        self.is_due = self._phases > 0
        stale: npt.NDArray[np.bool_] = (
            rows["is_stale"]
            | ~rows["is_judged"]
            | (rows["shape"] != self._shape_revision)
            | (rows["phase"] != self._phases)
            | (rows["unsealed"] != self._unsealed)
        )
        for key in self._late:
            place = self.place(key)
            stale[place] |= rows["late"][place] != self._state_of_late(dependence, key)
        for key in self._without_origin | dependence.accepted:
            row = self.place_of(key)
            if row is not None:
                stale[row] |= rows["rest"][row] != self._rest(dependence, key)
        if is_noting:
            stale |= ~rows["is_noted"]
        self._looks += 1
        rows["stale_since"][~stale] = 0
        rows["stale_since"][stale & (rows["stale_since"] == 0)] = self._looks
        return stale

    def next_due(self, now_ms: int, lateness_ms: int) -> tuple[int, int] | None:
        """Returns the first time after `now_ms` at which a bucket becomes due, and the bucket's
        size, both in ms. Returns None if all buckets are due."""
        due_ms = self.rows["bucket"] + self.rows["bucket_ms"] + lateness_ms
        later = np.flatnonzero(due_ms > now_ms)
        if not len(later):
            return None
        first = later[np.argmin(due_ms[later])]
        return int(due_ms[first]), int(self.rows["bucket_ms"][first])

    def waiting(self) -> npt.NDArray[np.int64]:
        """Returns, for each row, how many calls of `look` the bucket has waited to be judged again.
        The number is 0 if the bucket need not be judged, or if only the last call has found that it
        must be judged.
        """
        since = self.rows["stale_since"]
        return np.where(since > 0, self._looks - since, 0)

    def put(
        self, place: int, verdict: BucketVerdict, dependence: Dependence, *, is_noted: bool
    ) -> None:
        """Stores the verdict on a bucket, and the state of the evidence as the last call of `look`
        saw it. place: the index of the bucket's row. is_noted: whether the verdict was also passed
        to the history."""
        row, key = self.rows[place], (verdict.bucket, verdict.bucket_ms)
        late = dependence.late(key)
        self._forget(key)
        if len(late):
            self._late[key] = late
        if dependence.has_records_without_origin(key) and dependence.of_records_without_origin(key):
            self._without_origin.add(key)
        self._changed.add(verdict.bucket)
        if verdict.filtered:
            self._filtered[key] = verdict.filtered
        self.shorts[key] = verdict.short()
        row["shape"], row["phase"] = self._shape_revision, self._phases[place]
        row["unsealed"] = self._unsealed[place]
        row["late"] = self._state_of_late(dependence, key)
        row["rest"] = self._rest(dependence, key)
        row["is_stale"], row["is_judged"], row["is_noted"] = False, True, is_noted
        row["stale_since"] = 0
        row["status"], row["residue"] = verdict.status, verdict.residue
        row["due"], row["overdue"] = verdict.due, verdict.is_overdue
        row["accepted"], row["warned"] = verdict.is_accepted, verdict.is_warned
        row["warned_accepted"] = verdict.is_warned_and_accepted
        row["records"], row["rejects"] = verdict.records, verdict.rejects
        row["repeats"] = verdict.repeats
        row["written"] = sum(bit for tier, bit in _BITS.items() if verdict.count(tier))

    def key(self, place: int) -> BucketId:
        """Returns the bucket (start and size) whose row has the index `place`."""
        return int(self.rows["bucket"][place]), int(self.rows["bucket_ms"][place])

    @property
    def is_whole(self) -> bool:
        """Whether every bucket was judged."""
        return bool(self.rows["is_judged"].all())

    def unjudged(self, size_ms: int) -> set[int]:
        """Returns the starts of the blocks (hours of event time) with buckets that were never
        judged. size_ms: the length of a block.
        """
        if self.is_whole:
            return set()
        starts = self.rows["bucket"][~self.rows["is_judged"]]
        return set((starts - starts % size_ms).tolist())

    def newest_starts(self, count: int) -> set[int]:
        """Returns the starts of the newest judged buckets, at most `count` of them."""
        found: set[int] = set()
        for start, is_judged in zip(
            self.rows["bucket"][::-1], self.rows["is_judged"][::-1], strict=True
        ):
            if len(found) == count:
                break
            if is_judged:
                found.add(int(start))
        return found

    def total(self, size_ms: int) -> TopicStanding:
        """Returns the verdicts on all judged buckets, summed up; the field `newest` is empty. To
        save time, keeps for each block (an hour of event time) the sum of this block and all
        earlier blocks. Computes these sums again only from the first block that has a changed
        verdict. size_ms: the length of a block.
        """
        changed = {start - start % size_ms for start in self._changed}
        self._changed = set()
        for block in changed:
            begin, end = np.searchsorted(self.rows["bucket"], (block, block + size_ms), "left")
            self.parts.pop(block, None)
            if self.rows["is_judged"][begin:end].any():
                self.parts[block] = self._part(int(begin), int(end))
        if changed:
            first = min(changed)
            self._totals = [x for x in self._totals if x[0] < first]
            for block in sorted(x for x in self.parts if x >= first):
                part = self.parts[block]
                if self._totals:
                    part = self._totals[-1][1].and_later(part, ())
                self._totals.append((block, part))
        return self._totals[-1][1] if self._totals else self._part(0, 0)

    def _part(self, begin: int, end: int) -> TopicStanding:
        """Returns the verdicts on the judged buckets in the rows [begin, end), summed up; the field
        `newest` is empty."""
        rows = self.rows[begin:end]
        rows = rows[rows["is_judged"]]
        overdue = rows[rows["overdue"]]
        keys = zip(rows["bucket"].tolist(), rows["bucket_ms"].tolist(), strict=True)
        filtered = (self._filtered[key] for key in keys if key in self._filtered)
        return TopicStanding(
            self.source,
            _counted(rows["status"]),
            _counted(overdue["residue"]),
            int((~overdue["due"]).sum()),
            _counted(rows["status"][rows["accepted"]]),
            int(rows["warned"].sum()),
            int(rows["warned_accepted"].sum()),
            _complete_until(rows),
            int(overdue["bucket"].min()) if len(overdue) else None,
            sum(rows["records"].tolist()),
            sum(rows["rejects"].tolist()),
            sum(rows["repeats"].tolist()),
            {},
            filtered=reduce(joined_by_rule, filtered, ()),
        )

    def complete_until(self) -> int | None:
        """See TopicStanding.complete_until. All buckets must be judged."""
        return _complete_until(self.rows)

    def written_until(self, now_ms: int) -> dict[Tier, int]:
        """See TopicStanding.written_until."""
        end = int(np.searchsorted(self.rows["bucket"], now_ms, "right"))
        found = {}
        for tier, bit in _BITS.items():
            rows = np.flatnonzero(self.rows["written"][:end] & bit)
            if len(rows):
                found[tier] = sum(self.key(int(rows[-1])))
        return found

    def newest(self, starts: Iterable[int]) -> dict[int, BucketVerdict]:
        """Returns, by start, the verdicts on the buckets with these starts, each with only the
        agents that have the gravest findings. If several buckets have the same start, returns the
        gravest of their verdicts. Deletes the short verdicts on all other buckets."""
        wanted, found = set(starts), dict[int, BucketVerdict]()
        for key in sorted(self.shorts):
            if key[0] not in wanted:
                del self.shorts[key]
                continue
            known, verdict = found.get(key[0]), self.shorts[key]
            if known is None or known.status < verdict.status:
                found[key[0]] = verdict
        return found

    def place_of(self, key: BucketId) -> int | None:
        """Returns the index of a bucket's row; None if the bucket has no row."""
        place = int(np.searchsorted(self.rows["bucket"], key[0], "left"))
        while place < len(self.rows) and self.rows["bucket"][place] == key[0]:
            if self.rows["bucket_ms"][place] == key[1]:
                return place
            place += 1
        return None

    def place(self, key: BucketId) -> int:
        """Returns the index of a bucket's row. The bucket must have a row."""
        place = self.place_of(key)
        assert place is not None
        return place

    def _keys(self) -> Iterable[BucketId]:
        return zip(self.rows["bucket"].tolist(), self.rows["bucket_ms"].tolist(), strict=True)

    def _forget(self, key: BucketId) -> None:
        self._late.pop(key, None)
        self._filtered.pop(key, None)
        self.shorts.pop(key, None)
        self._without_origin.discard(key)

    def _look_at_shape(self, dependence: Dependence) -> None:
        """Increases `_shape_revision` if the verdicts on all buckets may have changed; then `look`
        finds that every bucket must be judged again. This is the case if the shape (the evidence
        that concerns all buckets) has changed. It is also the case if an agent's newest seal covers
        fewer deltas than before, because then any bucket may have lines that no seal covers any
        more.
        """
        is_less = dependence.vouches_for_less(self._agents)
        self._agents = dependence.columns
        if is_less or dependence.shape != self._shape:
            self._shape = dependence.shape
            self._shape_revision += 1

    def _look_at_acceptances(self, dependence: Dependence) -> None:
        """Since the last call, people may have taken back all acceptances of a bucket. Marks such
        buckets, so that they are judged again. Later calls cannot find these buckets again, so they
        stay marked until they are judged.
        """
        self.mark(self._accepted - dependence.accepted)
        self._accepted = dependence.accepted

    def _state_of_late(self, dependence: Dependence, key: BucketId) -> np.uint64:
        late = self._late.get(key)
        return np.uint64(0) if late is None else dependence.of_late(late)

    def _rest(self, dependence: Dependence, key: BucketId) -> int:
        said: tuple[object, ...] = dependence.acceptances(key)
        if key in self._without_origin:
            said = said, dependence.of_records_without_origin(key)
        return hash(said)


def _complete_until(rows: Rows) -> int | None:
    """Returns the time before which all buckets are complete or accepted; None if even the first
    bucket is neither complete nor accepted. Buckets of two sizes may overlap, so this time is at
    most the start of the first bucket that is neither complete nor accepted.
    """
    starts = rows["bucket"]
    bad = starts[rows["residue"] != Status.COMPLETE]
    complete = starts < bad[0] if len(bad) else np.ones(len(rows), np.bool_)
    if not complete.any():
        return None
    end = int((starts + rows["bucket_ms"])[complete].max())
    return min(end, int(bad[0])) if len(bad) else end


def _counted(statuses: npt.NDArray[np.uint8]) -> Counter[Status]:
    counts = np.bincount(statuses, minlength=len(Status)).tolist()
    return Counter({status: counts[status] for status in Status if counts[status]})
