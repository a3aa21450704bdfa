"""Finds out which records the brokers have, for intents that cannot be sent again unchanged. Does
no I/O.

    intents -> reach   the partitions that can have records of the intents
    rows    -> Found   the records that these partitions have
    Found   -> divide  an intent's range into parts: arrived, missing, doubtful
    missing -> split   which bytes can be sent, and of which bytes readers would drop the records

A record is recognised by its origin. Records with equal origins in one partition are repeats: every
reader of the log keeps the first of them and drops the others. If records of a file overlap in any
other way, in one partition or in several, two different records contain the bytes of the overlap,
and readers count both records. Such bytes are doubtful.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from skidway.agent.batches import routing
from skidway.agent.recipe import Recipe
from skidway.agent.values.intents import Intent
from skidway.agent.values.tracked import ReadingOutcome
from skidway.audit.counts.counts import Counts
from skidway.dataclass import dataclass
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Columns = tuple[Int64s, Int64s, Int64s]
"""For each record: the position of its first byte, its end, and its time (ms)."""

ROWS_MIN = 100_000
"""When `Found` has more than this many records of a file in one partition, it drops those among
them that repeat the origin of an earlier record. It does so again each time the number of these
records has doubled.
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """Origins and times (ms) of records of one partition, in the order of their offsets."""

    tp: TopicPartition
    agent: Int64s
    file: Int64s
    first: Int64s
    length: Int64s
    times: Int64s


class Fate(Enum):
    """Whether the records of some bytes of an intent were found in the partitions."""

    ARRIVED = auto()
    MISSING = auto()
    DOUBTFUL = auto()


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes [first, end) of an intent. All of them have the same `Fate` (arrived, missing or
    doubtful)."""

    first: int
    end: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Records:
    """Records of one file in the order of its bytes. place: for each record, the index of its
    partition in `places`.

    tops: for each record, the highest end of this record and all records before it. So `tops` never
    decreases from one record to the next; `end` may decrease.
    """

    first: Int64s
    end: Int64s
    tops: Int64s
    times: Int64s
    place: npt.NDArray[np.int32]
    places: tuple[TopicPartition, ...]

    def of(self, part: Part) -> Records:
        """Returns those of the records that begin in the part's byte range."""
        begin, end = np.searchsorted(self.first, [part.first, part.end])
        return self._chosen(slice(int(begin), int(end)))

    def in_topic(self, topic: str) -> Records:
        """Returns those of the records that were found in partitions of the topic."""
        mine = [index for index, tp in enumerate(self.places) if tp.topic == topic]
        return self._chosen(np.isin(self.place, mine))

    def _chosen(self, rows: slice | Bools) -> Records:
        first, end, tops = self.first[rows], self.end[rows], self.tops[rows]
        return Records(first, end, tops, self.times[rows], self.place[rows], self.places)


def reach(recipe: Recipe, intent: Intent) -> set[TopicPartition]:
    """Returns the partitions that can have records of the intent, if the records were made by this
    recipe (settings and schemas)."""
    data, rejected = recipe.data, recipe.rejected
    found = {TopicPartition(rejected.name, routing.of_file(intent.file, rejected.partitions))}
    if recipe.partitioning == "spread":
        step = 1 << routing.SPREAD_BITS
        begin = intent.first >> routing.SPREAD_BITS << routing.SPREAD_BITS
        steps = np.arange(begin, intent.end, step, dtype=np.int64)
        for partition in routing.of_position(intent.file, steps, data.partitions).tolist():
            found.add(TopicPartition(data.name, partition))
    elif recipe.partitioning == "key":
        found |= {TopicPartition(data.name, partition) for partition in range(data.partitions)}
    else:
        found.add(TopicPartition(data.name, routing.of_file(intent.file, data.partitions)))
    return found


def reach_of_any(recipe: Recipe) -> set[TopicPartition]:
    """Returns all partitions of the topics to which a recipe sends. If nobody knows by which recipe
    records were made, the records can be in any of these partitions.
    """
    topics = (recipe.data, recipe.rejected)
    return {TopicPartition(t.name, partition) for t in topics for partition in range(t.partitions)}


class Marks:
    """Owns the marks. The mark of a file in a partition is the position in the file up to which
    readers of the partition have seen the file's records. Readers drop a record that does not end
    after the mark. After a gap (records that cannot be read), the mark is unknown: a record after
    the gap may repeat a record that is in the gap, and that readers may have kept.
    """

    def __init__(self) -> None:
        self._tops: dict[tuple[int, TopicPartition], int] = {}
        self._gaps: set[TopicPartition] = set()

    def gap(self, tp: TopicPartition) -> None:
        """Notes that some records of a partition cannot be read. Their offsets are below those of
        the records that will be added next.
        """
        self._gaps.add(tp)

    def top(self, file: int, tp: TopicPartition) -> int:
        """Returns the mark of a file in a partition: the highest end of the file's records that
        were read there; 0 if none were read."""
        return self._tops.get((file, tp), 0)

    def move(self, file: int, tp: TopicPartition, end: Int64s) -> Int64s:
        """Moves a file's mark (the highest end of its records so far) past records with these ends.
        Returns, for each of the records, where the mark was before it, or 0 if the partition has a
        gap.
        """
        tops = np.maximum.accumulate(np.concatenate(([self.top(file, tp)], end)))
        self._tops[file, tp] = int(tops[-1])
        return np.zeros_like(end) if tp in self._gaps else tops[:-1]


class Found:
    """Owns the records that the agent has found in the partitions so far. For each file, keeps only
    records with bytes between the beginning of the first wanted intent and the end of the last
    wanted intent. The memory that this object uses grows with the number of these records.
    """

    def __init__(self, agent: int, intents: Sequence[Intent]) -> None:
        """intents: those whose records are wanted."""
        self._agent = agent
        self._intents = list(intents)
        self._length = sum(intent.length for intent in intents)
        self._looked_at = -1
        self._wanted: dict[int, tuple[int, int]] = {}
        for intent in intents:
            first, end = self._wanted.get(intent.file, (intent.first, intent.end))
            self._wanted[intent.file] = min(first, intent.first), max(end, intent.end)
        self._files = np.array(sorted(self._wanted), np.int64)
        self._rows: dict[int, dict[TopicPartition, list[Columns]]] = {}
        self.marks = Marks()
        self.bytes = 0
        self.news: Counter[int] = Counter()
        """By file: how many calls of `add` contained records of the file."""

    def add(self, rows: Rows) -> None:
        """Adds the records that were read from a partition."""
        mine = (rows.agent == self._agent) & np.isin(rows.file, self._files)
        if not mine.any():
            return
        for file in np.unique(rows.file[mine]).tolist():
            chosen = mine & (rows.file == file)
            self.news[file] += 1
            first = rows.first[chosen]
            self._add(file, rows.tp, first, first + rows.length[chosen], rows.times[chosen])

    def gap(self, tp: TopicPartition) -> None:
        """Notes that the next records of a partition cannot be read. Consumers may have read these
        records earlier, and may therefore have dropped later records as repeats.
        """
        self.marks.gap(tp)

    def _add(self, file: int, tp: TopicPartition, first: Int64s, end: Int64s, at: Int64s) -> None:
        begin, limit = self._wanted[file]
        # Readers drop a record that does not end after all earlier records of its file, even if it
        # is a first copy that arrived late. In a partition with a gap (records that cannot be
        # read), the mark is unknown. So `Found` keeps all later records of this partition here;
        # `_distinct` drops those with the origin of an earlier record.
        wanted = (end > begin) & (first < limit) & (end > self.marks.move(file, tp, end))
        self.bytes += int((end - first)[wanted].sum())
        if not wanted.any():
            return
        rows = self._rows.setdefault(file, {}).setdefault(tp, [])
        rows.append((first[wanted], end[wanted], at[wanted]))
        if sum(len(piece[0]) for piece in rows) > max(ROWS_MIN, 2 * len(rows[0][0])):
            rows[:] = [_distinct(rows)]

    def has_all(self) -> bool:
        """Whether records were found for every byte of the intents. To save time, the method makes
        the full check only when the found records have at least as many bytes as the intents.
        """
        if self.bytes < self._length or self.bytes == self._looked_at:
            return False
        self._looked_at = self.bytes
        records = {file: self.records(file) for file in {each.file for each in self._intents}}
        return all(
            part.fate is Fate.ARRIVED
            for intent in self._intents
            for part in divide(intent, records[intent.file])
        )

    def records(self, file: int) -> Records:
        """Returns those records of a file that were found in the topics so far."""
        found = self._rows.get(file, {})
        places = tuple(found)
        pieces = [(index, _distinct(found[tp])) for index, tp in enumerate(places)]
        if not pieces:
            none = np.zeros(0, np.int64)
            return Records(none, none, none, none, np.zeros(0, np.int32), ())
        first, end, times = (np.concatenate([p[i] for _, p in pieces]) for i in range(3))
        place = np.repeat([i for i, _ in pieces], [len(p[0]) for _, p in pieces]).astype(np.int32)
        order = np.lexsort((end, first))
        first, end = first[order], end[order]
        tops = np.maximum.accumulate(end)
        return Records(first, end, tops, times[order], place[order], places)


def _distinct(pieces: Sequence[Columns]) -> Columns:
    first, end, times = (np.concatenate([piece[index] for piece in pieces]) for index in range(3))
    order = np.lexsort((end, first))  # stable: of equal records, the first copy stays first
    first, end, times = first[order], end[order], times[order]
    new = np.ones(len(first), np.bool_)
    new[1:] = (first[1:] != first[:-1]) | (end[1:] != end[:-1])
    return first[new], end[new], times[new]


def divide(intent: Intent, records: Records) -> list[Part]:
    """Divides an intent's byte range into parts, in order. All bytes of a part have the same
    `Fate`. records: the records of the intent's file in this range or in a longer range.
    """
    parts: list[Part] = []
    at = intent.first
    for begin, end, is_sound in _runs(records, intent.first, intent.end):
        if begin > at:
            parts.append(Part(at, begin, Fate.MISSING))
        parts.append(Part(begin, end, Fate.ARRIVED if is_sound else Fate.DOUBTFUL))
        at = end
    if at < intent.end:
        parts.append(Part(at, intent.end, Fate.MISSING))
    return parts


def outcome_of(
    records: Records, agent: int, file: int, sources: tuple[Source, Source], bucket_ms: int
) -> ReadingOutcome:
    """Returns the outcome (counts of records and bytes) of records that were found in the logs. It
    is the same outcome as if the brokers had acknowledged these records.

    sources: the data topic and the topic of its rejected lines.
    """
    counts = Counts(bucket_ms)
    sizes = [0, 0]
    for index, source in enumerate(sources):
        mine = records.in_topic(source.topic)
        length = mine.end - mine.first
        if not len(length):
            continue
        sizes[index] = int(length.sum())
        same = np.ones(len(length), np.int64)
        origins = Origins(agent=same * agent, file=same * file, first=mine.first, length=length)
        counts.add(source, mine.times, origins)
    return ReadingOutcome(sizes[0], sizes[1], counts)


def dropped(
    rows: Iterable[tuple[TopicPartition, Int64s]], tops: Mapping[TopicPartition, int]
) -> Iterator[int]:
    """Yields the position of each record that the agent would send, but that readers would drop as
    a repeat, or reject because it overlaps an earlier record.

    rows: for each batch that would be sent, its partition, and the positions at which its records
    begin. tops: the mark of each partition (see `Marks`).
    """
    for tp, first in rows:
        yield from first[first < tops.get(tp, 0)].tolist()


def split(part: Part, bounds: Int64s, is_dropped: Bools) -> Iterator[tuple[Part, bool]]:
    """Splits a part of an intent into smaller parts. Of each smaller part, readers would drop all
    records or none. Yields each smaller part, and whether readers would drop its records.

    bounds: where the records of the intent begin and end. is_dropped: one element for each record,
    so one element fewer than `bounds`.
    """
    low, high = np.searchsorted(bounds, [part.first, part.end]).tolist()
    changes = np.flatnonzero(np.diff(is_dropped[low:high])) + low + 1
    for begin, end in pairwise([low, *changes.tolist(), high]):
        piece = replace(part, first=int(bounds[begin]), end=int(bounds[end]))
        yield piece, bool(is_dropped[begin])


def _runs(records: Records, first: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yields (begin, end, is_sound) of each run of adjacent records inside [first, end). is_sound:
    whether no record of the run overlaps another record or leaves the range.
    """
    low = int(np.searchsorted(records.tops, first, side="right"))
    high = int(np.searchsorted(records.first, end))
    begins, ends = records.first[low:high], records.end[low:high]
    if not len(begins):
        return
    tops = np.maximum.accumulate(ends)
    apart = np.concatenate(([True], begins[1:] >= tops[:-1]))
    at = np.flatnonzero(apart)  # where each group of overlapping records begins
    cluster_begin, cluster_end = begins[at], np.append(tops[at[1:] - 1], tops[-1])
    sound = np.diff(np.append(at, len(begins))) == 1
    sound &= (cluster_begin >= first) & (cluster_end <= end)
    joined = sound[1:] & sound[:-1] & (cluster_begin[1:] == cluster_end[:-1])
    heads = np.flatnonzero(np.concatenate(([True], ~joined)))
    tails = np.append(heads[1:] - 1, len(at) - 1)
    for head, tail in zip(heads.tolist(), tails.tolist(), strict=True):
        yield (
            max(int(cluster_begin[head]), first),
            min(int(cluster_end[tail]), end),
            bool(sound[head]),
        )
