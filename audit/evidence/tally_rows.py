"""Adds the counts of deltas to the ledger's tallies, thousands of counts at a time.

The table `tallies` has a row for each bucket of each source topic, with packed tallies (see module
tally_packing). It would be slow to unpack and pack a large bucket again whenever a few counts
arrive. So new counts of a bucket that has a row are packed separately, into a row of the table
`tally_additions`. The tallies of a bucket are the sum of its row and of its additions. If a bucket
has ADDITIONS_MAX additions, the next counts and all rows of the bucket are added up into one row.
The collector also merges the rows of a bucket when it has judged the bucket and the bucket is due.
The columns of the buckets that changed last stay in memory.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.number_bases import NumberBase
from skidway.audit.evidence.tallies import (
    AGENT,
    COUNT,
    FIRST,
    LAST,
    LINKS,
    REPEATS,
    SENDER,
    Int64s,
    TallyColumns,
    links_of_all,
)
from skidway.audit.evidence.tally_packing import pack, unpack
from skidway.audit.topic.count_columns import COLUMNS, CountColumns

KEPT_TALLIES_MAX: Final = 250_000
KEPT_BUCKETS_MAX: Final = 20_000
"""Memory holds at most this many buckets, and at most KEPT_TALLIES_MAX tallies (of 80 bytes
each)."""

TOLD_MAX: Final = 1 << 16
"""The counts of a transaction's deltas become tallies in parts of about this many counts, so that
memory does not hold all counts twice."""

PENDING_MAX: Final = 1 << 20
"""When memory holds about this many counts of a transaction, they are written before the
transaction adds further counts."""

ADDITIONS_MAX: Final = 8
"""A bucket has at most this many rows in the table `tally_additions`. With more of them, writing
would take less time, but judging a changed bucket would take more."""

AGENTS_KEPT_MAX: Final = 1 << 20
"""For each topic, the ids of its agents (8 bytes each) are cached in memory. The caches of all
topics together have at most this many ids."""

_SOURCE, _BUCKET, _BUCKET_MS = 0, COLUMNS.index("bucket"), COLUMNS.index("bucket_ms")
_KEY_OF: Final = itemgetter(0)
_PREVIOUS = COLUMNS.index("previous")
_OF_DELTAS: Final = 3
_SUMS = slice(COLUMNS.index("count"), COLUMNS.index("repeats") + 1)

_FILTERED = """
INSERT INTO filtered VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET records = CAST(records + excluded.records AS INTEGER),
    bytes = CAST(bytes + excluded.bytes AS INTEGER)
"""

_SELECT = """
SELECT columns FROM tallies WHERE (source, bucket, bucket_ms) = (?1, ?2, ?3)
UNION ALL
SELECT columns FROM tally_additions WHERE (source, bucket, bucket_ms) = (?1, ?2, ?3)
"""
_ROW = "SELECT 1 FROM tallies WHERE (source, bucket, bucket_ms) = (?, ?, ?)"
_ADDITIONS = "SELECT count(*) FROM tally_additions WHERE (source, bucket, bucket_ms) = (?, ?, ?)"

_Key = tuple[int, int, int]
"""Source, start and size of a bucket: the primary key of the table of tallies."""


class _Told(NamedTuple):
    """The counts of one delta. sources: the ledger's ids of the source topics of the counts."""

    sender: int
    number: int
    counts: CountColumns
    sources: Sequence[int]
    is_clone: bool


class _Part(NamedTuple):
    """The counts of some deltas, as tallies.

    tallies: an array with a tally for each count, sorted by bucket. keys: an array with the key of
    each bucket, in ascending order. begins: for each bucket, the column of its first tally; one
    more element at the end is the number of tallies. (These are arrays, because there may be as
    many buckets as counts.)
    """

    tallies: Int64s
    keys: Int64s
    begins: Int64s


class TallyRows:
    """Changes the tallies in one transaction. The same object serves one transaction after the
    other; after a failed transaction, the object must not be used any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers = AgentNumbers(connection)
        self._told: list[_Told] = []
        self._told_count = 0
        self._parts: list[_Part] = []
        """The counts that the next call of `write` will add to the tallies in the store."""
        self._kept: OrderedDict[_Key, TallyColumns] = OrderedDict()
        self._kept_count = 0
        self._agents: dict[int, Int64s] = {}
        """For each source: the agents that the table `agents` is known to have, in ascending
        order."""
        self._sizes = set(connection.execute("SELECT source, size FROM bucket_sizes"))

    def add(
        self,
        sender: int,
        number: int,
        counts: CountColumns,
        sources: Sequence[int],
        *,
        is_clone: bool = False,
    ) -> None:
        """Adds the counts of a delta. sources: the ledger's ids of the source topics of the counts.
        is_clone: whether another delta with this number arrived before. The counts of a clone are
        not added, but the tallies show that the clone has counts of these buckets.
        """
        if len(counts):
            self._told.append(_Told(sender, number, counts, sources, is_clone))
            self._told_count += len(counts)
            if self._told_count >= TOLD_MAX:
                self._put_together()
                if sum(part.tallies.shape[1] for part in self._parts) >= PENDING_MAX:
                    self.write()

    def write(self) -> None:
        """Writes the counts that were added since the last call."""
        self._put_together()
        parts, self._parts = self._parts, []
        for key, tables in groupby(merge(*map(_by_bucket, parts), key=_KEY_OF), key=_KEY_OF):
            table = np.concatenate([table for _, table in tables], axis=1)
            self._write_bucket(key, TallyColumns.summed(table))

    def narrow(self, key: _Key) -> None:
        """Keeps only the low 24 bits of a bucket's checksums. (Such checksums are called narrow,
        see module checksum.) Puts all tallies of the bucket into one row."""
        known = self.of(key)
        if known is not None and not known.is_narrow:
            self._write_columns(key, known.narrowed())

    def merge(self, key: _Key) -> None:
        """Puts all tallies of a bucket into one row of the table `tallies`."""
        known = self.of(key)
        if known is not None and self.additions(key):
            self._write_columns(key, known)

    def forget(self, key: _Key) -> None:
        """Removes from memory a bucket whose rows were deleted."""
        self._kept_count -= len(self._kept.pop(key, ()))

    def additions(self, key: _Key) -> int:
        """How many rows a bucket has in the table `tally_additions`."""
        (count,) = self._connection.execute(_ADDITIONS, key).fetchone()
        return int(count)

    def _put_together(self) -> None:
        """Combines the counts of deltas that were added since the last call into one `_Part`."""
        told, self._told, self._told_count = self._told, [], 0
        if told:
            self._connection.executemany(_FILTERED, _filtered_rows(told))
            self._parts.append(_part_of(_table_of(told)))

    def _write_bucket(self, key: _Key, added: TallyColumns) -> None:
        self._write_agents(key[0], added.agents)
        self._write_size(key[0], key[2])
        if not self._has_row(key) or self.additions(key) >= ADDITIONS_MAX:
            known = self.of(key)
            self._write_columns(key, added if known is None else known + added)
            return
        self._connection.execute(
            "INSERT INTO tally_additions VALUES (?, ?, ?, ?)", (*key, pack(added, self._numbers))
        )
        if key in self._kept:
            self._keep(key, self._kept[key] + added)

    def _write_size(self, source: int, bucket_ms: int) -> None:
        if (source, bucket_ms) not in self._sizes:
            self._connection.execute("INSERT INTO bucket_sizes VALUES (?, ?)", (source, bucket_ms))
            self._sizes.add((source, bucket_ms))

    def _has_row(self, key: _Key) -> bool:
        return self._connection.execute(_ROW, key).fetchone() is not None

    def _write_columns(self, key: _Key, tallies: TallyColumns) -> None:
        """Replaces all rows of the bucket by one row, which contains these tallies."""
        self._connection.execute(
            "DELETE FROM tally_additions WHERE (source, bucket, bucket_ms) = (?, ?, ?)", key
        )
        self._connection.execute(
            "INSERT OR REPLACE INTO tallies VALUES (?, ?, ?, ?)",
            (*key, pack(tallies, self._numbers, self._base_of(key, tallies))),
        )
        self._keep(key, tallies)

    def _base_of(self, key: _Key, tallies: TallyColumns) -> NumberBase:
        """Returns the base of the bucket's row: the row stores numbers as differences from this
        base (see number_bases). If the bucket's hour has no base yet and the checksums are narrow,
        makes the base from these tallies, because they will hardly change any more.
        """
        bases, bucket = self._numbers.bases, key[1]
        found = bases.of_bucket(bucket)
        if found.id or not tallies.is_narrow:
            return found
        table = tallies.table
        return bases.make(bucket, tallies, self._numbers.of(table[AGENT], table[SENDER]))

    def _write_agents(self, source: int, agents: Int64s) -> None:
        """Adds to the table `agents` those of these agents of a source that the table does not have
        yet."""
        known = self._agents.pop(source, None)
        if known is None:
            rows = self._connection.execute("SELECT agent FROM agents WHERE source = ?", (source,))
            known = np.array(sorted(agent for (agent,) in rows), np.int64)
        places = np.searchsorted(known, agents)
        places[places == len(known)] = -1
        new = agents[known[places] != agents] if len(known) else agents
        if len(new):
            self._connection.executemany(
                "INSERT OR IGNORE INTO agents VALUES (?, ?)",
                ((source, agent) for agent in new.tolist() if agent != NO_AGENT),
            )
            known = np.union1d(known, new)
        if sum(map(len, self._agents.values())) + len(known) > AGENTS_KEPT_MAX:
            self._agents.clear()
        self._agents[source] = known

    def of(self, key: _Key) -> TallyColumns | None:
        """Returns the tallies that the ledger has for a bucket; None if it has none. Does not
        include counts that `write` will add later.
        """
        if key in self._kept:
            return self._kept[key]
        return read(self._connection, key, self._numbers)

    def _keep(self, key: _Key, tallies: TallyColumns) -> None:
        before = self._kept.pop(key, None)
        self._kept[key] = tallies
        self._kept_count += len(tallies) - (0 if before is None else len(before))
        while self._kept_count > KEPT_TALLIES_MAX or len(self._kept) > KEPT_BUCKETS_MAX:
            _, dropped = self._kept.popitem(last=False)
            self._kept_count -= len(dropped)


def read(
    connection: sqlite3.Connection, key: tuple[int, int, int], numbers: AgentNumbers
) -> TallyColumns | None:
    """The tallies of a bucket in the store; None if there are none. key: the ledger's id of the
    source, and the start and the size of the bucket. Raises StateRefused if the bytes are damaged.
    """
    rows = [unpack(packed, numbers) for (packed,) in connection.execute(_SELECT, key)]
    return TallyColumns.total(rows) if rows else None


def _table_of(told: Sequence[_Told]) -> Int64s:
    """Returns an array with a column for each count of these deltas. Its first rows are the fields
    of the counts; the row `source` has the ledger's ids of the topics. Three further rows say from
    which delta a count comes: the number of the delta, its sender, and whether its counts are added
    (1 or 0). The counts of a clone (a delta with the number of an earlier delta) are not added.
    """
    lengths = [len(x.counts) for x in told]
    table = np.empty((len(COLUMNS) + _OF_DELTAS, sum(lengths)), np.int64)
    np.concatenate([x.counts.table for x in told], axis=1, out=table[: len(COLUMNS)])
    begins = np.cumsum([0, *(len(x.sources) for x in told[:-1])])
    sources = np.array([source for x in told for source in x.sources], np.int64)
    table[_SOURCE] = sources[table[_SOURCE] + np.repeat(begins, lengths)]
    of_deltas = [(x.number, x.sender, not x.is_clone) for x in told]
    for row, column in enumerate(np.array(of_deltas, np.int64).T, start=len(COLUMNS)):
        table[row] = np.repeat(column, lengths)
    return table


def _part_of(counts: Int64s) -> _Part:
    """Makes tallies of these counts (see `_table_of`), and sorts them by bucket."""
    keys = counts[[_SOURCE, _BUCKET, _BUCKET_MS]]
    order = np.lexsort(keys[::-1])
    keys = keys[:, order]
    changed = (np.diff(keys) != 0).any(axis=0)
    begins = np.concatenate(([0], np.flatnonzero(changed) + 1, [len(order)]))
    return _Part(np.take(_tallies_of(counts), order, axis=1), keys[:, begins[:-1]], begins)


def _tallies_of(counts: Int64s) -> Int64s:
    """An array with a tally for each of these counts (see `_table_of`)."""
    numbers, senders, believed = counts[len(COLUMNS) :]
    tallies = np.empty((LINKS + 1, counts.shape[1]), np.int64)
    tallies[AGENT], tallies[SENDER] = counts[COLUMNS.index("agent")], senders
    tallies[COUNT : REPEATS + 1] = counts[_SUMS] * believed
    tallies[FIRST] = tallies[LAST] = numbers
    tallies[LINKS] = links_of_all(numbers, counts[_PREVIOUS]) * believed
    return tallies


def _by_bucket(part: _Part) -> Iterator[tuple[_Key, Int64s]]:
    """Yields the key and the tallies of each bucket, in ascending order of the keys."""
    for index, (begin, end) in enumerate(pairwise(map(int, part.begins))):
        source, bucket, bucket_ms = part.keys[:, index].tolist()
        yield (source, bucket, bucket_ms), part.tallies[:, begin:end]


def _filtered_rows(told: Sequence[_Told]) -> Iterator[tuple[object, ...]]:
    for each in told:
        for index, rules in each.counts.filtered.items() if not each.is_clone else ():
            source, agent, bucket, bucket_ms = each.counts.table[:4, index].tolist()
            key = each.sources[source], bucket, bucket_ms, agent, each.sender
            yield from ((*key, x.rule, x.records, x.bytes) for x in rules)
