"""Keeps sorted rows of the table `buckets` (bucket_spans) as numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.loader.state.layout import HOUR_MS

Int64s = npt.NDArray[np.int64]

BucketKey = tuple[int, int]
"""The agent, and the start of the bucket in ms since 1970."""

SCHEMA: Final = pa.schema([("agent", pa.int64()), ("bucket", pa.int64()), ("number", pa.int64())])


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the table `buckets`, in the order of (bucket, agent). No two rows have the same
    bucket and agent."""

    agent: Int64s
    bucket: Int64s
    number: Int64s

    def __len__(self) -> int:
        return len(self.number)

    @property
    def hours(self) -> Int64s:
        """Returns the hour of each bucket, as the number of hours since 1970."""
        return self.bucket // HOUR_MS

    def part(self, begin: int, end: int) -> Rows:
        """Returns the rows with the indices [begin, end)."""
        return Rows(self.agent[begin:end], self.bucket[begin:end], self.number[begin:end])


def rows_in(table: pa.Table) -> Rows:
    """Returns the rows of the table, which must be sorted by (bucket, agent)."""
    return Rows(*(table.column(name).to_numpy() for name in SCHEMA.names))


def rows_of(numbers: Mapping[BucketKey, int]) -> Rows:
    """Returns the entries of `numbers` as rows, sorted by (bucket, agent)."""
    agents, buckets = (np.array([key[at] for key in numbers], np.int64) for at in (0, 1))
    order = np.lexsort((agents, buckets))
    number = np.array(list(numbers.values()), np.int64)
    return Rows(agents[order], buckets[order], number[order])


def _found(rows: Rows, wanted: Rows) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Returns, for each wanted key, its index in `rows`, and whether `rows` has the key. If `rows`
    does not have the key, the index is the position at which the key would have to be inserted."""
    begins = np.searchsorted(rows.bucket, wanted.bucket, "left")
    ends = np.searchsorted(rows.bucket, wanted.bucket, "right")
    at = begins.astype(np.intp)
    changes = np.flatnonzero(np.diff(wanted.bucket)) + 1
    for first, end in zip([0, *changes], [*changes, len(wanted)], strict=True):
        if first < end:
            agents = rows.agent[begins[first] : ends[first]]
            at[first:end] += np.searchsorted(agents, wanted.agent[first:end])
    there = at < ends
    there[there] = rows.agent[at[there]] == wanted.agent[there]
    return at, there


def look_up(rows: Rows, wanted: Rows, numbers: Int64s) -> None:
    """Looks up the key (bucket and agent) of each row of `wanted` in `rows`. If `rows` has the key,
    copies the number from `rows` into `numbers`, at the index of the row in `wanted`."""
    at, there = _found(rows, wanted)
    numbers[there] = rows.number[at[there]]


def merged(rows: Rows, new: Rows) -> Rows:
    """Returns all rows of `rows` and `new`. If both have a row with the same key, the result has
    only the row of `new`."""
    at, there = _found(rows, new)
    number = rows.number.copy()
    number[at[there]] = new.number[there]
    more, before = ~there, at[~there]
    return Rows(
        np.insert(rows.agent, before, new.agent[more]),
        np.insert(rows.bucket, before, new.bucket[more]),
        np.insert(number, before, new.number[more]),
    )
