"""The counts of one delta, as columns.

All agents together send millions of counts in a minute. If the counts are in columns, one operation
of numpy handles thousands of them. `CountColumns` is also a sequence of `Count`, for code that
handles one count after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt

from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.source_names import names_of, sources_of
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

COLUMNS: Final = (
    "source", "agent", "bucket", "bucket_ms", "count", "bytes", "checksum", "rejects", "repeats",
    "previous",
)  # fmt: skip
"""The names of the columns, in the order in which a message has them. `source` is the index of the
source topic in the message's list of source topics."""

YEAR_10000_MS: Final = 253_402_300_800_000
"""The start of the year 10000 in ms since 1970."""

LONGEST_MS: Final = 86_400_000
"""No bucket is longer than a day. Nobody needs longer buckets: a bucket gets its final verdict only
after its end. Some answers of the collector need work for each hour of a bucket; the limit also
limits this work."""

CHECKED_BYTES_MAX: Final = 4_096
"""The results of `_check` and of seal_columns._are_places are remembered only for columns with at
most this many bytes."""

_LONG: Final = np.dtype("<i8")
_BUCKETS: Final = slice(COLUMNS.index("bucket"), COLUMNS.index("bucket_ms") + 1)
_EMPTY: Final = np.zeros((len(COLUMNS), 0), _LONG)


@dataclass(frozen=True, slots=True)
class Filtered:
    """How many records a rule of an agent's setting `shape` left out. bytes: the sum of the lengths
    in the origins of these records. Both numbers may be negative, like all counts of a delta: a
    delta can take back what an earlier delta counted."""

    rule: str
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Count:
    """The counts of one message for one (source topic, agent, bucket); see counts.counts.Sums.

    previous: the number of the producer's previous delta in this epoch with counts for the bucket.
    It is 0 if there is no such delta, and -1 if the producer no longer knows whether there is one.
    filtered: how many records each rule left out, sorted by rule; `count` does not include these
    records.
    """

    source: Source
    agent: int
    bucket: int
    bucket_ms: int
    count: int
    bytes: int
    checksum: int
    rejects: int = 0
    repeats: int = 0
    previous: int = 0
    filtered: tuple[Filtered, ...] = ()


class CountColumns(Sequence[Count]):
    """Counts in an array. The array has a row for each name in COLUMNS, and a column for each
    count.

    names: the source topics, in one text (see source_names). The row `source` of the array has
    indexes into these topics. filtered: by the index of a count, how many records each rule left
    out. A `CountColumns` is equal to any other sequence of equal counts.
    """

    __slots__ = ("filtered", "names", "table")

    def __init__(
        self,
        names: str,
        table: npt.NDArray[np.int64],
        filtered: Mapping[int, tuple[Filtered, ...]] | None = None,
    ) -> None:
        self.names = names
        self.table = table
        self.filtered = dict(filtered or {})

    @classmethod
    def of(cls, counts: Iterable[Count]) -> CountColumns:
        """Puts counts into columns. Raises ValueError if a bucket's size or start is not valid (see
        LONGEST_MS and FARTHEST_MS)."""
        if isinstance(counts, CountColumns):
            return counts
        found = list(counts)
        if not found:
            return NO_COUNTS
        indexes: dict[Source, int] = {}
        rows = [
            (
                indexes.setdefault(x.source, len(indexes)), x.agent, x.bucket, x.bucket_ms,
                x.count, x.bytes, x.checksum, x.rejects, x.repeats, x.previous,
            )
            for x in found
        ]  # fmt: skip
        filtered = {index: x.filtered for index, x in enumerate(found) if x.filtered}
        table = np.array(rows, _LONG).T
        _check(table[_BUCKETS].tobytes())
        return cls(names_of(indexes), table, filtered)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Reads the Avro record CountColumns. Raises ValueError if it is damaged."""
        found = cls.from_bytes(record["sources"], record["table"])
        filtered: dict[int, list[Filtered]] = {}
        for x in record["filtered"]:
            if not 0 <= x["index"] < len(found):
                raise ValueError(f"there is no count {x['index']}")
            rule = Filtered(x["rule"], x["records"], x["bytes"])
            filtered.setdefault(x["index"], []).append(rule)
        found.filtered = {index: tuple(rules) for index, rules in filtered.items()}
        return found

    @classmethod
    def from_bytes(cls, names: str, table: bytes) -> Self:
        """Reads the fields `sources` and `table` of the Avro record CountColumns. Raises ValueError
        if they are damaged."""
        numbers = np.frombuffer(table, _LONG)
        if len(numbers) % len(COLUMNS):
            raise ValueError(f"{len(numbers)} numbers do not fill {len(COLUMNS)} columns")
        found = cls(names, numbers.reshape(len(COLUMNS), -1))
        count = len(sources_of(names))
        indexes = table[: len(found) * _LONG.itemsize]
        if indexes != _ascending(count) and not _are_named(found.table[0], count):
            raise ValueError(f"the counts do not name the {count} sources")
        buckets = table[_BUCKETS.start * len(indexes) : _BUCKETS.stop * len(indexes)]
        check = _check_again if len(buckets) <= CHECKED_BYTES_MAX else _check
        check(buckets)
        return found

    def to_record(self) -> dict[str, Any]:
        """The counts as a value of the Avro record CountColumns."""
        return {
            "sources": self.names,
            "table": self.table.astype(_LONG, copy=False).tobytes(),
            "filtered": [
                {"index": index, "rule": x.rule, "records": x.records, "bytes": x.bytes}
                for index, rules in sorted(self.filtered.items())
                for x in rules
            ],
        }

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def __iter__(self) -> Iterator[Count]:
        sources = sources_of(self.names)
        for index, column in enumerate(zip(*self.table.tolist(), strict=True)):
            numbers = dict(zip(COLUMNS, column, strict=True))
            source = sources[numbers.pop("source")]
            yield Count(source, **numbers, filtered=self.filtered.get(index, ()))

    @overload
    def __getitem__(self, index: int) -> Count: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Count, ...]: ...
    def __getitem__(self, index: int | slice) -> Count | tuple[Count, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def _check(buckets: bytes) -> None:
    """Raises ValueError if a bucket has no length, is longer than LONGEST_MS, or begins more than
    FARTHEST_MS before or after 1970. No program of Skidway counts in such a bucket, and computing
    with its numbers could overflow. buckets: the bytes of the columns `bucket` and `bucket_ms`."""
    starts, sizes = np.frombuffer(buckets, _LONG).reshape(2, -1)
    if not len(starts):
        return
    if sizes.min() < 1 or sizes.max() > LONGEST_MS:
        raise ValueError("a bucket has no length, or is longer than a day")
    if starts.min() < -FARTHEST_MS or starts.max() > FARTHEST_MS:
        raise ValueError("a bucket begins too far from 1970")


_check_again = lru_cache(maxsize=1024)(_check)
"""Does the same as `_check`, but remembers bytes that were valid. In a minute, most agents count in
the same bucket, so the columns `bucket` and `bucket_ms` have the same bytes in most messages."""


@lru_cache(maxsize=1024)
def _ascending(count: int) -> bytes:
    """Returns the bytes of a column `source` with the values 0, 1, 2, ..., `count` - 1. Most
    messages have such a column, because no two of their counts belong to the same source topic.
    """
    return np.arange(count, dtype=_LONG).tobytes()


def _are_named(indexes: npt.NDArray[np.int64], count: int) -> bool:
    if not len(indexes):
        return count == 0
    if indexes.min() < 0 or indexes.max() != count - 1:
        return False
    return bool(np.bincount(indexes).all())


NO_COUNTS: Final = CountColumns("[]", _EMPTY)
