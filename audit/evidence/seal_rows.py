"""Writes seals into the ledger.

An agent seals all of its topics every ten seconds, mostly with the same values. So a row is about a
set of topics (`seal_topics`), and not about one topic. The table `seals` has all seals. The table
`seal_ends` has the first and the newest seal of each agent, epoch and set of topics, because every
judgement needs these two.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final, NamedTuple

from skidway.audit.topic.seal_columns import SealColumns

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


TOPIC_SETS_MAX: Final = 1_000
"""The ledger makes at most this many sets of topics. From then on, a seal of another set has a row
for each of its topics. So agents that seal other topics each time make no more sets than topics."""


class _Key(NamedTuple):
    """topics: the id of a set of topics."""

    agent: int
    epoch: int
    topics: int


class _Row(NamedTuple):
    """What a seal says about a set of topics. final: 0 or 1."""

    number: int
    sealed_until: int
    at: int
    final: int


class SealRows:
    """The seals of one transaction. The same object is used for one transaction after the other;
    after a failed transaction, nobody may use it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: list[tuple[_Key, _Row]] = []
        self._topics: dict[tuple[int, ...], int] = {
            tuple(json.loads(sources)): number
            for number, sources in connection.execute("SELECT id, sources FROM seal_topics")
        }

    def add(
        self, agent: int, epoch: int, number: int, seals: SealColumns, sources: Sequence[int]
    ) -> None:
        """Adds a seal. sources: the ledger's ids of the topics."""
        for values, sealed in _by_values(seals, sources).items():
            for topics in self._sets(tuple(sorted(sealed))):
                key = _Key(agent, epoch, self._topics_id(topics))
                self._rows.append((key, _Row(number, *values)))

    def write(self) -> None:
        """Writes the seals that were added."""
        rows, self._rows = self._rows, []
        self._connection.executemany(
            "INSERT OR REPLACE INTO seals VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((*key, *row) for key, row in rows),
        )
        ends: dict[_Key, tuple[_Row, _Row]] = {}
        for key, row in rows:
            first, last = ends.get(key, (row, row))
            ends[key] = min(first, row), max(last, row)
        self._connection.executemany(
            _ENDS, ((*key, *first, *last) for key, (first, last) in ends.items())
        )

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
    """The topics that a message seals with the same values, by these values."""
    columns = seals.table.tolist()
    if sources and all(column.count(column[0]) == len(column) for column in columns):
        return {tuple(column[0] for column in columns): sources}
    found: dict[tuple[int, ...], list[int]] = {}
    for source, values in zip(sources, zip(*columns, strict=True), strict=True):
        found.setdefault(values, []).append(source)
    return dict(found)
