"""Adds the counts of deltas to the ledger's tallies, thousands of counts at a time.

A row of the table `tallies` has all tallies of one bucket of one source topic, packed (see module
tally_packing). The columns of the buckets that changed last stay in memory.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.agent_numbers import AgentNumbers
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
"""Memory holds at most this many buckets, and at most this many tallies (of 80 bytes each)."""

_SOURCE, _BUCKET, _BUCKET_MS = 0, COLUMNS.index("bucket"), COLUMNS.index("bucket_ms")
_PREVIOUS = COLUMNS.index("previous")
_OF_DELTAS: Final = 3
_SUMS = slice(COLUMNS.index("count"), COLUMNS.index("repeats") + 1)

_FILTERED = """
INSERT INTO filtered VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET records = CAST(records + excluded.records AS INTEGER),
    bytes = CAST(bytes + excluded.bytes AS INTEGER)
"""

_Key = tuple[int, int, int]
"""Source, start and size of a bucket: the primary key of the table of tallies."""


class _Told(NamedTuple):
    """The counts of one delta. sources: the ledger's ids of the sources of the counts."""

    sender: int
    number: int
    counts: CountColumns
    sources: Sequence[int]
    is_clone: bool


class TallyRows:
    """Changes the tallies in one transaction. The same object serves one transaction after the
    other; after a failed transaction, the object must not be used any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._numbers = AgentNumbers(connection)
        self._told: list[_Told] = []
        self._kept: OrderedDict[_Key, TallyColumns] = OrderedDict()
        self._kept_count = 0

    def add(
        self,
        sender: int,
        number: int,
        counts: CountColumns,
        sources: Sequence[int],
        *,
        is_clone: bool = False,
    ) -> None:
        """Adds the counts of a delta. sources: the ledger's ids of the sources of the counts.
        is_clone: whether another delta with this number arrived before. The counts of a clone are
        not added, but the tallies show that the clone touched its buckets."""
        if len(counts):
            self._told.append(_Told(sender, number, counts, sources, is_clone))

    def write(self) -> None:
        """Writes the tallies to which counts were added."""
        told, self._told = self._told, []
        if not told:
            return
        self._connection.executemany(_FILTERED, _filtered_rows(told))
        table = _table_of(told)
        del told  # `table` has the counts now, and `told` takes as much memory
        for key, counts in _by_bucket(table):
            self._write_bucket(key, TallyColumns.summed(_tallies_of(counts)))

    def narrow(self, key: _Key) -> None:
        """Makes the checksums of a bucket narrow (see module checksum), unless they are narrow
        already."""
        known = self.of(key)
        if known is not None and not known.is_narrow:
            self._write_columns(key, known.narrowed())

    def forget(self, key: _Key) -> None:
        """Forgets a bucket whose row was deleted."""
        self._kept_count -= len(self._kept.pop(key, ()))

    def _write_bucket(self, key: _Key, added: TallyColumns) -> None:
        known = self.of(key)
        agents = added.agents
        if known is not None:
            agents = agents[~known.has_agents(agents)]
            added = known + added
        self._connection.executemany(
            "INSERT OR IGNORE INTO agents VALUES (?, ?)",
            ((key[0], agent) for agent in agents.tolist() if agent != NO_AGENT),
        )
        self._write_columns(key, added)

    def _write_columns(self, key: _Key, tallies: TallyColumns) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO tallies VALUES (?, ?, ?, ?)",
            (*key, pack(tallies, self._numbers)),
        )
        self._keep(key, tallies)

    def of(self, key: _Key) -> TallyColumns | None:
        """The tallies of a bucket, as the last transaction left them; None if there are none."""
        if key in self._kept:
            return self._kept[key]
        row = self._connection.execute(
            "SELECT columns FROM tallies WHERE (source, bucket, bucket_ms) = (?, ?, ?)", key
        ).fetchone()
        return None if row is None else unpack(row[0], self._numbers)

    def _keep(self, key: _Key, tallies: TallyColumns) -> None:
        before = self._kept.pop(key, None)
        self._kept[key] = tallies
        self._kept_count += len(tallies) - (0 if before is None else len(before))
        while self._kept_count > KEPT_TALLIES_MAX or len(self._kept) > KEPT_BUCKETS_MAX:
            _, dropped = self._kept.popitem(last=False)
            self._kept_count -= len(dropped)


def _table_of(told: Sequence[_Told]) -> Int64s:
    """The columns of all counts, with the ledger's ids of sources, and three more rows: the number
    of the delta, its sender, and whether it is believed (1, or 0 for a clone)."""
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


def _tallies_of(counts: Int64s) -> Int64s:
    """An array with a tally for each of these counts."""
    numbers, senders, believed = counts[len(COLUMNS) :]
    tallies = np.empty((LINKS + 1, counts.shape[1]), np.int64)
    tallies[AGENT], tallies[SENDER] = counts[COLUMNS.index("agent")], senders
    tallies[COUNT : REPEATS + 1] = counts[_SUMS] * believed
    tallies[FIRST] = tallies[LAST] = numbers
    tallies[LINKS] = links_of_all(numbers, counts[_PREVIOUS]) * believed
    return tallies


def _by_bucket(table: Int64s) -> Iterator[tuple[_Key, Int64s]]:
    """Yields the counts of each bucket. To save memory, copies the counts of only one bucket at a
    time, because a transaction may have half a million counts."""
    order = np.lexsort((table[_BUCKET_MS], table[_BUCKET], table[_SOURCE]))
    changed = np.zeros(len(order) - 1, np.bool_)
    for row in (_SOURCE, _BUCKET, _BUCKET_MS):
        changed |= np.diff(table[row, order]) != 0
    begins = [0, *(np.flatnonzero(changed) + 1).tolist(), len(order)]
    for begin, end in pairwise(begins):
        counts = np.take(table, order[begin:end], axis=1)
        source, bucket, bucket_ms = counts[[_SOURCE, _BUCKET, _BUCKET_MS], 0].tolist()
        yield (source, bucket, bucket_ms), counts


def _filtered_rows(told: Sequence[_Told]) -> Iterator[tuple[object, ...]]:
    for each in told:
        for index, rules in each.counts.filtered.items() if not each.is_clone else ():
            source, agent, bucket, bucket_ms = each.counts.table[:4, index].tolist()
            key = each.sources[source], bucket, bucket_ms, agent, each.sender
            yield from ((*key, x.rule, x.records, x.bytes) for x in rules)
