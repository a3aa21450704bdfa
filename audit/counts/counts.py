"""Counts records per (source topic, agent, bucket of event time).

Every tier counts with this module, so that equal records give equal counts. A record with an origin
counts for the agent in its origin. A record without an origin counts for agent 0; reports say that
such a record is "audited from the broker on". Partition and offset identify such a record, because
mirrors keep both. The record counts under the origin file = partition, first = offset, length = 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from skidway.audit.counts import bucket, checksum
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.dataclass import dataclass
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NO_AGENT = 0
"""The agent id under which records without an origin are counted."""

BucketKey = tuple[Source, int, int]
"""A source topic, an agent id, and the start of a bucket in ms."""

_POSITION_MAX = np.int64((1 << 63) - 1)
_RUNS_MAX = 256
"""If the records of one call have more runs of equal (agent, bucket) than this, `add` sorts and
merges the runs first."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The counts for one `BucketKey`. All numbers are signed: an agent takes counts back by adding
    negative ones.

    count: the number of unique records, including rejects.
    bytes: the sum of the lengths in the origins of these records.
    checksum: the checksum of these origins.
    rejects: how many of `count` the loader rejected.
    repeats: the number of records that were seen again; `count` does not include them.
    filtered: the records that rules of an agent left out, sorted by rule; `count` does not include
        them.
    """

    count: int = 0
    bytes: int = 0
    checksum: int = 0
    rejects: int = 0
    repeats: int = 0
    filtered: tuple[Filtered, ...] = ()

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.count + other.count,
            self.bytes + other.bytes,
            checksum.add(self.checksum, other.checksum),
            self.rejects + other.rejects,
            self.repeats + other.repeats,
            joined_by_rule(self.filtered, other.filtered),
        )

    def __neg__(self) -> Sums:
        return Sums(
            -self.count,
            -self.bytes,
            checksum.signed(-self.checksum),
            -self.rejects,
            -self.repeats,
            tuple(Filtered(x.rule, -x.records, -x.bytes) for x in self.filtered),
        )

    def narrowed(self) -> Sums:
        """Returns the same counts with a narrow checksum (see module checksum)."""
        return replace(self, checksum=checksum.narrow(self.checksum))


_NOTHING = Sums()


def total(parts: Sequence[Sums]) -> Sums:
    """Adds up the parts, and returns their sums."""
    if len(parts) < 2:  # a shortcut: most keys have only one part
        return parts[0] if parts else _NOTHING
    return Sums(
        sum([x.count for x in parts]),
        sum([x.bytes for x in parts]),
        checksum.signed(sum([x.checksum for x in parts])),
        sum([x.rejects for x in parts]),
        sum([x.repeats for x in parts]),
        reduce(joined_by_rule, (x.filtered for x in parts if x.filtered), ()),
    )


def joined_by_rule(left: tuple[Filtered, ...], right: tuple[Filtered, ...]) -> tuple[Filtered, ...]:
    """Returns the sums of both lists, rule by rule, sorted by rule."""
    if not (left and right):
        return left or right
    found = {x.rule: x for x in left}
    for x in right:
        known = found.get(x.rule, Filtered(x.rule, 0, 0))
        found[x.rule] = Filtered(x.rule, known.records + x.records, known.bytes + x.bytes)
    return tuple(found[rule] for rule in sorted(found))


def identify(
    origins: Origins | None, has_origin: Bools, partition: int, offsets: Int64s
) -> Origins:
    """Returns, for each offset, the origin under which its record is counted and compared with
    marks. This is the record's own origin, if the origin has no impossible number, such as a
    negative position. Any other record is counted under agent 0, by its partition and offset.
    """
    if origins is None:
        return _by_offset(partition, offsets)
    sound = has_origin & (origins.agent > 0) & (origins.file >= 0) & (origins.first >= 0)
    sound &= (origins.length > 0) & (origins.first <= _POSITION_MAX - origins.length)
    if sound.all():
        return origins
    plain = _by_offset(partition, offsets)
    return Origins(
        agent=np.where(sound, origins.agent, plain.agent),
        file=np.where(sound, origins.file, plain.file),
        first=np.where(sound, origins.first, plain.first),
        length=np.where(sound, origins.length, plain.length),
    )


class Counts:
    """The counts since the last `clear`. This class is not thread-safe."""

    def __init__(self, bucket_ms: int = bucket.DEFAULT_BUCKET_MS) -> None:
        self.bucket_ms = bucket_ms
        self._sums: dict[BucketKey, Sums] = {}

    def add(  # each argument is a column of the same records
        self,
        source: Source,
        timestamps: Int64s,
        origins: Origins,
        *,
        keep: Bools | None = None,
        straddle: Bools | None = None,
        repeat: Bools | None = None,
        rejected: Bools | None = None,
    ) -> None:
        """Counts the records for which `keep` or `straddle` is true. If neither is given, counts
        all records. Separately counts, as repeats, the records for which `repeat` is true.
        `marks.walk` makes these three columns. A straddle is a record that begins before its file's
        mark and ends after it.

        rejected: a column that is true for the counted records that the loader rejects. If
        `rejected` is given, straddles always count as rejects. If `rejected` is not given (agent,
        broker, mirror), straddles count as ordinary records. timestamps: event times in ms.
        """
        counted = _either(keep, straddle, len(timestamps))
        sums = self._columns(timestamps, origins, counted, rejected, straddle)
        if repeat is not None and repeat.any():
            chosen = np.flatnonzero(repeat)
            ones = np.ones(len(chosen), np.int64)
            self._add_runs(source, timestamps[chosen], origins.agent[chosen], {"repeats": ones})
        if sums is not None:
            self._add_runs(source, *sums)

    def add_filtered(
        self, source: Source, agent: int, timestamps: Int64s, lengths: Int64s, rule: str
    ) -> None:
        """Counts the records that one rule of an agent left out. lengths: the lengths in the
        records' origins. The bucket of such a record has an entry even if nothing else was counted
        in the bucket.
        """
        buckets = bucket.start(timestamps, self.bucket_ms)
        starts, where = np.unique(buckets, return_inverse=True)
        records = np.bincount(where, minlength=len(starts)).tolist()
        sizes = np.zeros(len(starts), np.int64)
        np.add.at(sizes, where, lengths)
        for start, count, size in zip(starts.tolist(), records, sizes.tolist(), strict=True):
            self.put((source, agent, start), Sums(filtered=(Filtered(rule, count, size),)))

    def put(self, key: BucketKey, sums: Sums) -> None:
        """Adds `sums` to the counts of `key`."""
        known = self._sums.get(key)
        self._sums[key] = sums if known is None else known + sums

    def items(self) -> Iterator[tuple[BucketKey, Sums]]:
        """Yields every key and its sums, in the order in which the keys first appeared."""
        return iter(self._sums.items())

    def __len__(self) -> int:
        return len(self._sums)

    def clear(self) -> None:
        """Forgets all counts. The caller must have made them durable before."""
        self._sums.clear()

    def to_messages(self, previous: Mapping[BucketKey, int]) -> tuple[Count, ...]:
        """Returns the counts as entries of deltas. previous: for each bucket of which an earlier
        delta of this sender has counts, the number of the last such delta. These numbers stay
        correct if deltas.number_deltas splits the entries into several deltas, because each bucket
        has only one entry."""
        return tuple(
            count_message(key, sums, self.bucket_ms, previous.get(key, 0))
            for key, sums in self._sums.items()
        )

    def _columns(
        self,
        timestamps: Int64s,
        origins: Origins,
        counted: Bools | None,
        rejected: Bools | None,
        straddle: Bools | None,
    ) -> tuple[Int64s, Int64s, dict[str, npt.NDArray[np.int64] | npt.NDArray[np.uint64]]] | None:
        if rejected is not None and straddle is not None:
            rejected = rejected | straddle
        agent, file, first, length = origins.agent, origins.file, origins.first, origins.length
        if counted is not None:
            agent, file, first, length = (x[counted] for x in (agent, file, first, length))
            timestamps = timestamps[counted]
            rejected = None if rejected is None else rejected[counted]
        if len(timestamps) == 0:
            return None
        columns: dict[str, npt.NDArray[np.int64] | npt.NDArray[np.uint64]] = {
            "count": np.ones(len(timestamps), np.int64),
            "bytes": length,
            "checksum": checksum.record_hash(agent, file, first, length),
        }
        if rejected is not None and rejected.any():
            columns["rejects"] = rejected.astype(np.int64)
        return timestamps, agent, columns

    def _add_runs(
        self,
        source: Source,
        timestamps: Int64s,
        agent: Int64s,
        columns: dict[str, npt.NDArray[np.int64] | npt.NDArray[np.uint64]],
    ) -> None:
        buckets = bucket.start(timestamps, self.bucket_ms)
        agent, buckets, columns = _sum_runs(agent, buckets, columns)
        if len(agent) > _RUNS_MAX:
            order = np.lexsort((buckets, agent))
            columns = {name: column[order] for name, column in columns.items()}
            agent, buckets, columns = _sum_runs(agent[order], buckets[order], columns)
        sums = {name: column.view(np.int64).tolist() for name, column in columns.items()}
        for index, (who, when) in enumerate(zip(agent.tolist(), buckets.tolist(), strict=True)):
            row = {name: values[index] for name, values in sums.items()}
            self.put((source, who, when), Sums(**row))


def count_message(key: BucketKey, sums: Sums, bucket_ms: int, previous: int) -> Count:
    """Returns the counts of one bucket as an entry of a delta."""
    source, agent, start = key
    return Count(
        source=source,
        agent=agent,
        bucket=start,
        bucket_ms=bucket_ms,
        count=sums.count,
        bytes=sums.bytes,
        checksum=sums.checksum,
        rejects=sums.rejects,
        repeats=sums.repeats,
        previous=previous,
        filtered=sums.filtered,
    )


def _either(keep: Bools | None, straddle: Bools | None, count: int) -> Bools | None:
    """Returns an array that is true for each record that is counted; None if all records are
    counted."""
    if keep is None:
        return None
    counted = keep if straddle is None else keep | straddle
    return None if counted.all() and len(counted) == count else counted


def _sum_runs(
    agent: Int64s,
    buckets: Int64s,
    columns: dict[str, npt.NDArray[np.int64] | npt.NDArray[np.uint64]],
) -> tuple[Int64s, Int64s, dict[str, npt.NDArray[np.int64] | npt.NDArray[np.uint64]]]:
    changed = np.flatnonzero((agent[1:] != agent[:-1]) | (buckets[1:] != buckets[:-1])) + 1
    begins = np.concatenate(([0], changed))
    sums = {name: np.add.reduceat(column, begins) for name, column in columns.items()}
    return agent[begins], buckets[begins], sums


def _by_offset(partition: int, offsets: Int64s) -> Origins:
    count = len(offsets)
    return Origins(
        agent=np.full(count, NO_AGENT, np.int64),
        file=np.full(count, partition, np.int64),
        first=np.asarray(offsets, np.int64),
        length=np.zeros(count, np.int64),
    )
