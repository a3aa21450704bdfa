"""The tallies: for each bucket of a source topic, what each sender counted of each agent.

The deltas of a bucket form a chain: each count names the number of the sender's previous delta that
touched the bucket. A tally contains the counts of one sender in a bucket. The tally also contains
the sum of link(number) - link(previous) over these deltas. If no delta is missing, this sum is
link(last) - link(0). Any other sum means that a delta of the bucket is missing, for example because
its record expired.

A bucket of a large fleet has a tally for each agent and tier, tens of thousands together. So the
ledger adds and stores tallies as columns (`TallyColumns`). `BucketTallies` makes values of them for
who asks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Tier
from skidway.errors import StateRefused

Int64s = npt.NDArray[np.int64]

BucketId = tuple[int, int]
"""The start and the size of a bucket in ms. The counts of tiers with buckets of different sizes are
never equal."""

AGENT, SENDER, COUNT, BYTES, CHECKSUM, REJECTS, REPEATS, FIRST, LAST, LINKS = range(10)
"""The rows of the table: the agent, the ledger's id of the sender, and the fields of a `Tally`."""

_WIDTH: Final = LINKS + 1
_SUMS: Final = [COUNT, BYTES, CHECKSUM, REJECTS, REPEATS, LINKS]
_LONG: Final = np.dtype("<i8")
_LEVEL: Final = 1
_SENDERS_MAX: Final = 16
_CRC_BYTES: Final = 4
_LINKS_KEPT: Final = 1 << 16


class SenderKey(NamedTuple):
    """A sender in one epoch. The numbers of its messages in an epoch begin with 1 and have no
    holes."""

    tier: Tier
    producer: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of one sender for one (source topic, agent, bucket).

    first, last: the least and the greatest number of the deltas that touched the bucket. links: the
    sum of the links of these deltas.
    """

    sums: Sums
    first: int
    last: int
    links: int

    @property
    def chained(self) -> bool:
        """Whether no delta of this bucket is missing."""
        return self.links == checksum.signed(link(self.last) - link(0))


@dataclass(frozen=True, slots=True)
class TallyColumns:
    """The tallies of one bucket, sorted by agent and sender; no two have the same agent and sender.

    table: an array of shape (10, n); each of its columns is a tally.
    """

    table: Int64s

    @classmethod
    def summed(cls, table: Int64s) -> TallyColumns:
        """Adds up all tallies with the same agent and sender. Sums wrap around at 64 bits."""
        if table.shape[1] < 2:
            return cls(table)
        table = table[:, np.lexsort((table[SENDER], table[AGENT]))]
        changed = (np.diff(table[AGENT]) != 0) | (np.diff(table[SENDER]) != 0)
        if changed.all():
            return cls(table)
        begins = np.concatenate(([0], np.flatnonzero(changed) + 1))
        found = table[:, begins]
        found[_SUMS] = np.add.reduceat(table[_SUMS], begins, axis=1)
        found[FIRST] = np.minimum.reduceat(table[FIRST], begins)
        found[LAST] = np.maximum.reduceat(table[LAST], begins)
        return cls(found)

    @classmethod
    def unpack(cls, value: bytes) -> TallyColumns:
        """Reads what `pack` wrote. Raises StateRefused if it is damaged."""
        checksum_, packed = value[:_CRC_BYTES], value[_CRC_BYTES:]
        if zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") != checksum_:
            raise StateRefused(
                "The audit's store is damaged: the counts of a bucket are not those that were"
                " written. Delete the store; the collector then reads the audit topics again."
            )
        numbers = np.frombuffer(bytes(cramjam.zstd.decompress(packed)), _LONG)
        table = np.cumsum(numbers.reshape(_WIDTH, -1), axis=1, dtype=_LONG)
        table[LAST] += table[FIRST]
        table[LINKS] += links_of_all(table[LAST], np.zeros_like(table[LAST]))
        return cls(table)

    def pack(self) -> bytes:
        """The columns as bytes, with a CRC-32 before them. SQLite notices no changed bytes in a
        value.

        The bytes have the difference of each number from the one before, because the tiers mostly
        count the same of an agent. Of the last delta, they have the difference from the first. Of
        the links, they have the difference from those of a chain without a hole, mostly 0.
        """
        data = np.array(self.table, _LONG, order="C")
        data[LINKS] -= links_of_all(data[LAST], np.zeros_like(data[LAST]))
        data[LAST] -= data[FIRST]
        data[:, 1:] -= data[:, :-1].copy()
        packed = bytes(cramjam.zstd.compress(data.tobytes(), _LEVEL))
        return zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") + packed

    def __add__(self, other: TallyColumns) -> TallyColumns:
        places = self._places(other)
        if places is not None:
            found = self.table.copy()
            for row in _SUMS:
                found[row, places] += other.table[row]
            found[FIRST, places] = np.minimum(found[FIRST, places], other.table[FIRST])
            found[LAST, places] = np.maximum(found[LAST, places], other.table[LAST])
            return TallyColumns(found)
        return TallyColumns.summed(np.concatenate((self.table, other.table), axis=1))

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def _places(self, other: TallyColumns) -> Int64s | None:
        """Where these columns have the agents and senders of the other columns. None if they lack
        one of them, or if an agent has so many senders that looking them up takes longer than
        sorting."""
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


class BucketTallies(Mapping[int, Mapping[SenderKey, Tally]]):
    """The tallies of one bucket as values: for each agent, the tally of each sender. The values are
    made when somebody asks for the first of them.

    columns: the same tallies as columns. senders: the key of each sender, by the ledger's id.
    filtered: what rules left out, sorted by rule, by agent and the ledger's id of the sender.
    """

    def __init__(
        self,
        columns: TallyColumns,
        senders: Mapping[int, SenderKey],
        filtered: Mapping[tuple[int, int], Sequence[Filtered]],
    ) -> None:
        self.columns = columns
        self.senders = senders
        self.filtered = filtered

    def __getitem__(self, agent: int) -> dict[SenderKey, Tally]:
        return self._by_agent[agent]

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_agent)

    def __len__(self) -> int:
        return len(self._by_agent)

    def __repr__(self) -> str:
        return repr(self._by_agent)

    @cached_property
    def _by_agent(self) -> dict[int, dict[SenderKey, Tally]]:
        found: dict[int, dict[SenderKey, Tally]] = {}
        for agent, sender, count, *sums, first, last, links in self.columns.table.T.tolist():
            rules = tuple(self.filtered.get((agent, sender), ()))
            size, checksum_, rejects, repeats = sums
            found.setdefault(agent, {})[self.senders[sender]] = Tally(
                Sums(count, size, checksum_, rejects, repeats, rules), first, last, links
            )
        return found


@lru_cache(_LINKS_KEPT)
def link(number: int) -> int:
    """Hashes a number to a signed 64-bit value, with the finalizer of splitmix64 (see checksum).
    The numbers asked for last are kept, because the agents of a fleet mostly have the same ones."""
    return checksum.signed(int(_links(np.array([number]))[0]))


def links_of(number: int, previous: int) -> int:
    """The value that one delta adds to the `links` of a bucket that it touches."""
    return checksum.signed(link(number) - link(previous))


def links_of_all(numbers: Int64s, previous: Int64s) -> Int64s:
    """The values of `links_of` for columns of numbers."""
    return (_links(numbers) - _links(previous)).view(np.int64)


def _links(numbers: Int64s) -> npt.NDArray[np.uint64]:
    return checksum.mixed(np.ascontiguousarray(numbers, np.int64).view(np.uint64))
