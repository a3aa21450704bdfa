"""The tallies: for each bucket of a source topic, the counts of each sender for each agent.

The deltas of a bucket form a chain: each count names the number of the sender's previous delta that
touched the bucket (has counts of the bucket). A tally contains the counts of one sender for one
agent in a bucket. The tally also contains the sum of link(number) - link(previous) over the deltas
of this chain, where `link` is a hash. If no delta is missing, this sum is link(last) - link(0). Any
other sum means that a delta of the bucket is missing, for example because its record expired.

A bucket of a large fleet has a tally for each agent and tier, tens of thousands in all. So the
ledger adds and stores tallies as columns (`TallyColumns`). `BucketTallies` turns columns into
values only when the values are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Tier

Int64s = npt.NDArray[np.int64]

BucketId = tuple[int, int]
"""The start and the size of a bucket in ms. If two tiers have buckets of different sizes, the audit
never finds their counts equal.
"""

AGENT, SENDER, COUNT, BYTES, CHECKSUM, REJECTS, REPEATS, FIRST, LAST, LINKS = range(10)
"""The rows of `TallyColumns.table`: the agent, the ledger's id of the sender, and the fields of a
`Tally`."""

_SUMS: Final = [COUNT, BYTES, CHECKSUM, REJECTS, REPEATS, LINKS]
_SENDERS_MAX: Final = 16
_LINKS_KEPT: Final = 1 << 16

NO_EPOCH: Final = -(1 << 63)


class SenderKey(NamedTuple):
    """A sender in one epoch. The numbers of its messages in an epoch begin with 1 and have no
    holes."""

    tier: Tier
    producer: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one sender for one (source topic, agent, bucket).

    first, last: the least and the greatest number of the deltas that touched the bucket (have
    counts of the bucket). links: a sum of hashes of the numbers of these deltas, which shows
    whether one of them is missing (see the module's docstring).
    """

    sums: Sums
    first: int
    last: int
    links: int

    @property
    def chained(self) -> bool:
        """Whether all deltas in which this sender counted records of the bucket have arrived, up to
        the delta with the number `last`."""
        return self.links == checksum.signed(link(self.last) - link(0))


@dataclass(frozen=True, slots=True)
class TallyColumns:
    """The tallies of one bucket, sorted by agent and sender; no two have the same agent and sender.

    table: an array of shape (10, n); each of its columns is a tally. is_narrow: whether all
    checksums are narrow (have only their low 24 bits, see module checksum). The sum of several
    `TallyColumns` is narrow if any of them is narrow.
    """

    table: Int64s
    is_narrow: bool = False

    @classmethod
    def summed(cls, table: Int64s, *, is_narrow: bool = False) -> TallyColumns:
        """Adds up all tallies with the same agent and sender. Sums wrap around at 64 bits."""
        if table.shape[1] < 2:
            return cls(table, is_narrow)
        table = table[:, np.lexsort((table[SENDER], table[AGENT]))]
        changed = (np.diff(table[AGENT]) != 0) | (np.diff(table[SENDER]) != 0)
        if changed.all():
            return cls(table, is_narrow)
        begins = np.concatenate(([0], np.flatnonzero(changed) + 1))
        found = table[:, begins]
        found[_SUMS] = np.add.reduceat(table[_SUMS], begins, axis=1)
        found[FIRST] = np.minimum.reduceat(table[FIRST], begins)
        found[LAST] = np.maximum.reduceat(table[LAST], begins)
        return cls(found, is_narrow)

    @classmethod
    def total(cls, summands: Sequence[TallyColumns]) -> TallyColumns:
        """The sum of one or more `TallyColumns`. It is computed fastest if the first of them is the
        largest."""
        first, *others = summands
        if len(others) < 2:
            return first + others[0] if others else first
        is_narrow = any(each.is_narrow for each in others)
        tables = [(each.narrowed() if is_narrow else each).table for each in others]
        return first + cls.summed(np.concatenate(tables, axis=1), is_narrow=is_narrow)

    @property
    def begins(self) -> Int64s:
        """For each agent, the column at which its tallies begin."""
        agents = self.table[AGENT]
        return np.flatnonzero(np.diff(agents, prepend=agents[:1] - 1))

    @property
    def agents(self) -> Int64s:
        """The agents, in ascending order."""
        agents: Int64s = self.table[AGENT, self.begins]
        return agents

    def narrowed(self) -> TallyColumns:
        """The same tallies, with only the low 24 bits of each checksum."""
        if self.is_narrow:
            return self
        found = self.table.copy()
        found[CHECKSUM] <<= 64 - checksum.NARROW_BITS
        return TallyColumns(found, is_narrow=True)

    def __add__(self, other: TallyColumns) -> TallyColumns:
        if self.is_narrow != other.is_narrow:
            return self.narrowed() + other.narrowed()
        places = self._places(other)
        if places is not None:
            found = self.table.copy()
            for row in _SUMS:
                found[row, places] += other.table[row]
            found[FIRST, places] = np.minimum(found[FIRST, places], other.table[FIRST])
            found[LAST, places] = np.maximum(found[LAST, places], other.table[LAST])
            return TallyColumns(found, self.is_narrow)
        table = np.concatenate((self.table, other.table), axis=1)
        return TallyColumns.summed(table, is_narrow=self.is_narrow)

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def _places(self, other: TallyColumns) -> Int64s | None:
        """For each tally of `other`, the index of the tally with the same agent and sender in these
        columns. Returns None if these columns lack such a tally, or if an agent has so many senders
        that sorting is faster than a search."""
        mine, wanted = self.table, other.table
        first = np.searchsorted(mine[AGENT], wanted[AGENT], "left")
        end = np.searchsorted(mine[AGENT], wanted[AGENT], "right")
        if not len(first) or (first == end).any() or (end - first).max() > _SENDERS_MAX:
            return None
        for _ in range(_SENDERS_MAX):
            behind = (mine[SENDER, first] < wanted[SENDER]) & (first + 1 < end)
            if not behind.any():
                break
            first += behind
        return first if (mine[SENDER, first] == wanted[SENDER]).all() else None


class SenderIds(dict[int, SenderKey]):
    """The key of each sender, by the ledger's id. The dictionary must not change after the first
    use of `ids` or `agent_epochs`, because their results are cached.
    """

    @cached_property
    def ids(self) -> dict[SenderKey, int]:
        """The ledger's id of each sender, by the sender's key."""
        return {key: number for number, key in self.items()}

    @cached_property
    def agent_epochs(self) -> Int64s:
        """For each id of a sender, the sender's epoch if the sender is an agent, and otherwise
        NO_EPOCH.
        """
        found = np.full(max(self, default=0) + 1, NO_EPOCH, np.int64)
        for number, key in self.items():
            if key.tier is Tier.AGENT:
                found[number] = key.epoch
        return found


class BucketTallies(Mapping[int, Mapping[SenderKey, Tally]]):
    """The tallies of one bucket as values: for each agent, the tally of each sender. The values of
    an agent are made only when they are read.

    columns: the same tallies as columns. senders: the key of each sender, by the ledger's id.
    filtered: for each agent and sender (the ledger's id), the records that rules left out, sorted
    by rule.
    """

    def __init__(
        self,
        columns: TallyColumns,
        senders: SenderIds,
        filtered: Mapping[tuple[int, int], Sequence[Filtered]],
    ) -> None:
        self.columns = columns
        self.senders = senders
        self.filtered = filtered

    @cached_property
    def agents(self) -> Int64s:
        """The agents, in ascending order."""
        agents: Int64s = self.columns.table[AGENT, self.begins]
        return agents

    @cached_property
    def begins(self) -> Int64s:
        """For each agent, the column at which its tallies begin."""
        return self.columns.begins

    def __getitem__(self, agent: int) -> dict[SenderKey, Tally]:
        agents = self.columns.table[AGENT]
        begin, end = np.searchsorted(agents, agent, "left"), np.searchsorted(agents, agent, "right")
        if begin == end:
            raise KeyError(agent)
        return dict(map(self._tally, self.columns.table[:, begin:end].T.tolist()))

    def __contains__(self, agent: object) -> bool:
        agents = self.columns.table[AGENT]
        at = np.searchsorted(agents, agent)  # type: ignore[call-overload]
        return bool(at < len(agents) and agents[at] == agent)

    def __iter__(self) -> Iterator[int]:
        return iter(self.agents.tolist())

    def __len__(self) -> int:
        return len(self.begins)

    def __repr__(self) -> str:
        return repr(dict(self))

    def counts_by_sender(self) -> dict[SenderKey, int]:
        """For each sender, the number of records that it counted for all agents together, including
        records that rules of agents left out."""
        ids, place = np.unique(self.columns.table[SENDER], return_inverse=True)
        counts = np.zeros(len(ids), np.object_)
        np.add.at(counts, place, self.columns.table[COUNT].astype(np.object_))
        found = {self.senders[x]: int(y) for x, y in zip(ids.tolist(), counts, strict=True)}
        for (_, sender), rules in self.filtered.items():
            if self.senders[sender].tier is Tier.AGENT:
                found[self.senders[sender]] += sum(x.records for x in rules)
        return found

    def _tally(self, column: Sequence[int]) -> tuple[SenderKey, Tally]:
        agent, sender, count, *sums, first, last, links = column
        rules = tuple(self.filtered.get((agent, sender), ()))
        size, checksum_, rejects, repeats = sums
        found = Sums(count, size, checksum_, rejects, repeats, rules)
        return self.senders[sender], Tally(found, first, last, links)


@lru_cache(_LINKS_KEPT)
def link(number: int) -> int:
    """Hashes a number to a signed 64-bit value, with the finalizer of splitmix64 (see checksum).
    Caches the results, because the agents of a fleet mostly have the same numbers."""
    return checksum.signed(int(_links(np.array([number]))[0]))


def links_of(number: int, previous: int) -> int:
    """The value that one delta adds to `Tally.links`, the sum that shows whether a delta of a
    bucket is missing."""
    return checksum.signed(link(number) - link(previous))


def links_of_all(numbers: Int64s, previous: Int64s) -> Int64s:
    """The value of `links_of` for each number in `numbers` and the number at the same index in
    `previous`."""
    return (_links(numbers) - _links(previous)).view(np.int64)


def _links(numbers: Int64s) -> npt.NDArray[np.uint64]:
    return checksum.mixed(np.ascontiguousarray(numbers, np.int64).view(np.uint64))
