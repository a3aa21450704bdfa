"""Adds up the rows of all messages of one transaction, so that the transaction writes each row only
once.

In a transaction, the ledger often writes many messages of one sender, which change the same rows.
All values of these rows are sums, minima or maxima. So it does not matter in which order the
messages are added, or whether they are added here or by the database. (Other modules handle
digests, tallies and seals.)

`PendingRows` belongs to one transaction. The object must not be used after `write`, or after the
transaction has failed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.hearing import Heard
from skidway.audit.topic.messages import Delta, Heartbeat, Seal, Tier

_SENDERS = """
UPDATE senders SET known = known + ?2, last = max(coalesce(last, ?3), ?3),
    first_time = CASE WHEN first IS NULL OR first > ?4 THEN ?5 ELSE first_time END,
    cluster = CASE WHEN first IS NULL OR first > ?4 THEN ?6 ELSE cluster END,
    host = CASE WHEN first IS NULL OR first > ?4 THEN ?7 ELSE host END,
    first = min(coalesce(first, ?4), ?4) WHERE id = ?1
"""

_CLAIMS = """
UPDATE senders SET claimed = ?2, claimed_time = ?3,
    cluster = CASE WHEN first IS NULL THEN ?4 ELSE cluster END,
    host = CASE WHEN first IS NULL THEN ?5 ELSE host END
    WHERE id = ?1 AND (claimed, claimed_time)
    < (?2, ?3)
"""

_COVERAGE = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET first = min(first, excluded.first), end = max(end, excluded.end)
"""


@dataclass(slots=True)
class _Arrived:
    """The new messages of one sender: how many there are, the message with the least number, and
    the greatest number."""

    count: int
    first: Delta | Seal
    last: int


class PendingRows:
    """The rows that the messages of one transaction add or change."""

    def __init__(self) -> None:
        self._senders: dict[int, _Arrived] = {}
        self._claims: dict[int, Heartbeat] = {}
        self._until: dict[int, CountedUntil] = {}
        self._coverage: dict[tuple[int, int, int], tuple[int, int]] = {}

    def number(self, sender: int, message: Delta | Seal) -> None:
        """Adds a message whose number has not arrived before."""
        arrived = self._senders.get(sender)
        if arrived is None:
            self._senders[sender] = _Arrived(1, message, message.number)
            return
        arrived.count += 1
        arrived.last = max(arrived.last, message.number)
        if message.number < arrived.first.number:
            arrived.first = message

    def claim(self, sender: int, message: Heartbeat, where: Heard | None) -> None:
        """Adds what a heartbeat says: the number of the sender's last numbered message and, if the
        sender is a counter, up to when it has counted."""
        known = self._claims.get(sender, message)
        self._claims[sender] = max(known, message, key=lambda x: (x.number, x.time_ms))
        if message.sender.tier in (Tier.BROKER, Tier.MIRROR):
            said = CountedUntil.of(message, where)
            self._until[sender] = said.joined(self._until.get(sender, said))

    def cover(self, key: tuple[int, int, int], first: int, end: int) -> None:
        """Adds offsets that a sender counted. key: source, sender and partition."""
        known = self._coverage.get(key, (first, end))
        self._coverage[key] = min(known[0], first), max(known[1], end)

    def write(self, connection: sqlite3.Connection) -> None:
        """Writes all rows."""
        for statement, rows in self._statements():
            connection.executemany(statement, rows)
        for sender, said in self._until.items():
            known = connection.execute(
                "SELECT others, behind FROM counted_until WHERE sender = ?", (sender,)
            ).fetchone()
            found = said if known is None else said.joined(CountedUntil.from_row(*known))
            connection.execute(
                "INSERT OR REPLACE INTO counted_until VALUES (?, ?, ?)", (sender, *found.to_row())
            )

    def _statements(self) -> Iterator[tuple[str, Iterator[tuple[object, ...]]]]:
        yield _SENDERS, self._sender_rows()
        yield (
            _CLAIMS,
            (
                (sender, x.number, x.time_ms, x.sender.cluster, x.sender.host)
                for sender, x in self._claims.items()
            ),
        )
        yield _COVERAGE, ((*key, *span) for key, span in self._coverage.items())

    def _sender_rows(self) -> Iterator[tuple[object, ...]]:
        for sender, x in self._senders.items():
            first, said = x.first, x.first.sender
            yield sender, x.count, x.last, first.number, first.time_ms, said.cluster, said.host
