"""Adds up the rows of all messages of one transaction, so that each row is written once.

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

from skidway.audit.topic.messages import Bounds, Delta, Seal

_SENDERS = """
UPDATE senders SET known = known + ?2, last = max(coalesce(last, ?3), ?3),
    first_time = CASE WHEN first IS NULL OR first > ?4 THEN ?5 ELSE first_time END,
    cluster = CASE WHEN first IS NULL OR first > ?4 THEN ?6 ELSE cluster END,
    host = CASE WHEN first IS NULL OR first > ?4 THEN ?7 ELSE host END,
    first = min(coalesce(first, ?4), ?4) WHERE id = ?1
"""

_CLAIMS = """
UPDATE senders SET claimed = ?2, claimed_time = ?3 WHERE id = ?1 AND (claimed, claimed_time)
    < (?2, ?3)
"""

_HOST_NAMES = """
INSERT INTO host_names VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    epoch = excluded.epoch, number = excluded.number, time = excluded.time, host = excluded.host
    WHERE (excluded.epoch, excluded.number, excluded.time, excluded.host)
    > (epoch, number, time, host)
"""

_HOSTS = """
INSERT INTO hosts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
    time = excluded.time, host = excluded.host WHERE (excluded.time, excluded.host) > (time, host)
"""

_BEGINNINGS = """
INSERT INTO beginnings VALUES (?, ?) ON CONFLICT DO UPDATE SET
    time = excluded.time WHERE excluded.time < time
"""

_BOUNDS = """
INSERT INTO bounds VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
    lateness = max(lateness, excluded.lateness), ahead = max(ahead, excluded.ahead)
    WHERE excluded.lateness > lateness OR excluded.ahead > ahead
"""

_LAST_SEEN = """
INSERT INTO last_seen VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = max(time, excluded.time)
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
    """The rows that the messages of one transaction add to or change."""

    def __init__(self) -> None:
        self._senders: dict[int, _Arrived] = {}
        self._claims: dict[int, tuple[int, int]] = {}
        self._names: dict[int, tuple[int, int, int, str]] = {}
        self._hosts: dict[int, tuple[int, str]] = {}
        self._beginnings: dict[int, int] = {}
        self._bounds: dict[int, Bounds] = {}
        self._last_seen: dict[tuple[str, str], int] = {}
        self._coverage: dict[tuple[int, int, int], tuple[int, int]] = {}

    def number(self, sender: int, message: Delta | Seal) -> None:
        """Adds a message whose number has not arrived before."""
        arrived = self._senders.setdefault(sender, _Arrived(0, message, message.number))
        arrived.count += 1
        arrived.last = max(arrived.last, message.number)
        if message.number < arrived.first.number:
            arrived.first = message

    def claim(self, sender: int, number: int, time_ms: int) -> None:
        """Adds the number of a sender's last numbered message, as a heartbeat names it."""
        said = number, time_ms
        self._claims[sender] = max(self._claims.get(sender, said), said)

    def host(self, agent: int, said: tuple[int, int, int], host: str) -> None:
        """Adds the name of an agent's host. said: epoch, number and sender's time of the message
        with the name. Epoch and number are zero if the message has neither."""
        time_ms = said[2]
        self._names[agent] = max(self._names.get(agent, (*said, host)), (*said, host))
        self._hosts[agent] = max(self._hosts.get(agent, (time_ms, host)), (time_ms, host))
        self._beginnings[agent] = min(self._beginnings.get(agent, time_ms), time_ms)

    def bounds(self, agent: int, bounds: Bounds) -> None:
        """Adds the bounds for event times that an agent announced."""
        least = Bounds(max(bounds.lateness_ms, 0), max(bounds.ahead_ms, 0))
        self._bounds[agent] = self._bounds.get(agent, least).or_wider(least)

    def seen(self, tier: str, producer: str, time_ms: int) -> None:
        """Adds the time of a message, by the sender's clock."""
        key = tier, producer
        self._last_seen[key] = max(self._last_seen.get(key, time_ms), time_ms)

    def cover(self, key: tuple[int, int, int], first: int, end: int) -> None:
        """Adds offsets that a sender counted. key: source, sender and partition."""
        known = self._coverage.get(key, (first, end))
        self._coverage[key] = min(known[0], first), max(known[1], end)

    def write(self, connection: sqlite3.Connection) -> None:
        """Writes all rows."""
        for statement, rows in self._statements():
            connection.executemany(statement, rows)

    def _statements(self) -> Iterator[tuple[str, Iterator[tuple[object, ...]]]]:
        yield _SENDERS, self._sender_rows()
        yield _CLAIMS, ((sender, *said) for sender, said in self._claims.items())
        yield _HOST_NAMES, ((agent, *said) for agent, said in self._names.items())
        yield _HOSTS, ((agent, *said) for agent, said in self._hosts.items())
        yield _BEGINNINGS, iter(self._beginnings.items())
        yield (
            _BOUNDS,
            ((agent, x.lateness_ms, x.ahead_ms) for agent, x in self._bounds.items()),
        )
        yield _LAST_SEEN, ((*key, time_ms) for key, time_ms in self._last_seen.items())
        yield _COVERAGE, ((*key, *span) for key, span in self._coverage.items())

    def _sender_rows(self) -> Iterator[tuple[object, ...]]:
        for sender, x in self._senders.items():
            first, said = x.first, x.first.sender
            yield sender, x.count, x.last, first.number, first.time_ms, said.cluster, said.host
