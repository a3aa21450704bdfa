"""Writes seals into the ledger.

An agent seals all of its topics together, mostly with the same values. So a row belongs to a set of
topics (`seal_topics`), not to a single topic. The table `seals` has all seals, packed in blocks
(see seal_blocks). The table `seal_ends` has the first and the newest seal of each agent, epoch and
set of topics, because every judgement needs these two.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from skidway.audit.evidence.seal_blocks import BLOCK, Block, Row
from skidway.audit.topic.seal_columns import NEVER_SEALED, SealColumns

_ENDS: Final = """
INSERT INTO seal_ends VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
ON CONFLICT DO UPDATE SET
    first_until = CASE WHEN ?4 < first THEN ?5 ELSE first_until END,
    first_at = CASE WHEN ?4 < first THEN ?6 ELSE first_at END,
    first_final = CASE WHEN ?4 < first THEN ?7 ELSE first_final END,
    first = min(first, ?4),
    last_until = CASE WHEN ?8 > last THEN ?9 ELSE last_until END,
    last_at = CASE WHEN ?8 > last THEN ?10 ELSE last_at END,
    last_final = CASE WHEN ?8 > last THEN ?11 ELSE last_final END,
    last = max(last, ?8)
"""

_WRITE: Final = "INSERT OR REPLACE INTO seals VALUES (?, ?, ?, ?, ?, ?, ?)"

KEPT_BLOCKS_MAX: Final = 40_000
"""At most this many blocks of seals, of about 300 bytes each, stay in memory between two
transactions."""

TOPIC_SETS_MAX: Final = 1_000
"""Once the table `seal_topics` has this many sets of topics, a seal of a new set is stored
separately for each topic of the set. So the table stays small even if the topics of agents change
all the time."""


class _Key(NamedTuple):
    """An epoch of an agent, and a set of topics. topics: the id of the set."""

    agent: int
    epoch: int
    topics: int


_Place = tuple[int, int, int, int]
"""Agent, epoch, set of topics and block: the primary key of the table of seals."""


class SealRows:
    """Writes the seals of one transaction. The same object serves one transaction after the other;
    after a failed transaction, the object must not be used any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: list[tuple[_Key, Row]] = []
        self._blocks: dict[_Place, Block] = {}
        """A cache of blocks. If it is full, the blocks at its beginning are dropped; those that
        were used last are at its end."""
        self._topics: dict[tuple[int, ...], int] = {
            tuple(json.loads(sources)): number
            for number, sources in connection.execute("SELECT id, sources FROM seal_topics")
        }

    def add(
        self, agent: int, epoch: int, number: int, seals: SealColumns, sources: Sequence[int]
    ) -> int:
        """Adds a seal. sources: the ledger's ids of the topics. Returns the greatest time in a
        `sealed_until` of the topics; NEVER_SEALED if there are no topics.
        """
        newest = NEVER_SEALED
        for values, sealed in _by_values(seals, sources).items():
            newest = max(newest, abs(values[0]))
            for topics in self._sets(tuple(sorted(sealed))):
                key = _Key(agent, epoch, self._topics_id(topics))
                self._rows.append((key, Row(number, *values)))
        return newest

    def write(self) -> None:
        """Writes the seals that were added since the last call."""
        rows, self._rows = self._rows, []
        changed = set()
        for key, row in rows:
            place = (*key, row.number // BLOCK)
            known = self._blocks.pop(place, None) or self._read(place)
            self._blocks[place] = Block.of([row]) if known is None else known.and_(row)
            changed.add(place)
        blocks = ((place, self._blocks[place]) for place in sorted(changed))
        self._connection.executemany(
            _WRITE,
            [(*place, x.least, x.newest, x.packed) for place, x in blocks],
        )
        while len(self._blocks) > KEPT_BLOCKS_MAX:
            del self._blocks[next(iter(self._blocks))]
        ends: dict[_Key, tuple[Row, Row]] = {}
        for key, row in rows:
            first, last = ends.get(key, (row, row))
            ends[key] = min(first, row), max(last, row)
        self._connection.executemany(
            _ENDS, ((*key, *first, *last) for key, (first, last) in ends.items())
        )

    def thin(self, agent: int, epoch: int, block: int) -> None:
        """Deletes all seals of a block (64 successive numbers of an agent) but the last."""
        rows = self._connection.execute(
            "SELECT topics, packed FROM seals WHERE (agent, epoch, block) = (?, ?, ?)",
            (agent, epoch, block),
        ).fetchall()
        for topics, packed in rows:
            place, found = (agent, epoch, topics, block), Block.read(block, packed).thinned()
            self._connection.execute(_WRITE, (*place, found.least, found.newest, found.packed))
            self._blocks.pop(place, None)

    def _read(self, place: _Place) -> Block | None:
        found = self._connection.execute(
            "SELECT packed FROM seals WHERE (agent, epoch, topics, block) = (?, ?, ?, ?)", place
        ).fetchone()
        return None if found is None else Block.read(place[3], found[0])

    def _sets(self, sources: tuple[int, ...]) -> list[tuple[int, ...]]:
        if sources in self._topics or len(self._topics) < TOPIC_SETS_MAX:
            return [sources]
        return [(source,) for source in sources]

    def _topics_id(self, sources: tuple[int, ...]) -> int:
        if sources not in self._topics:
            (self._topics[sources],) = self._connection.execute(
                "INSERT INTO seal_topics (sources) VALUES (?) RETURNING id", (json.dumps(sources),)
            ).fetchone()
        return self._topics[sources]


def _by_values(seals: SealColumns, sources: Sequence[int]) -> dict[tuple[int, ...], Sequence[int]]:
    """Groups the topics of a message of seals: topics whose seals have the same values are a group.
    sources: the ledger's ids of the topics."""
    columns = until, at, final = seals.table.tolist()
    count = len(sources)
    if count and until.count(until[0]) == at.count(at[0]) == final.count(final[0]) == count:
        return {(until[0], at[0], final[0]): sources}
    found: dict[tuple[int, ...], list[int]] = {}
    for source, values in zip(sources, zip(*columns, strict=True), strict=True):
        found.setdefault(values, []).append(source)
    return dict(found)
