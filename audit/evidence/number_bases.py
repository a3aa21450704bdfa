"""Base numbers: the ledger stores the number of an agent's delta as a small difference from a base
number.

An agent numbers its messages in one sequence, and after some months the numbers have 20 bits or
more. For each agent, a bucket stores the number of the first delta in which the agent counted
records of the bucket. All topics of an agent have about the same number in a bucket, and an hour
later the number is only some hundreds greater. So for each hour of event time there is one *base*:
for each agent, a number near the agent's numbers in the buckets of this hour. The buckets store the
differences of the agents' numbers from the base. These differences are small and mostly equal.

The base of an hour is made from the numbers of the first bucket of the hour whose checksums become
narrow (see counts.checksum). A base never changes, and a packed bucket names its base, so the
bucket can always be read. A base is deleted with the last bucket of its hour.

Stored format: a CRC-32 of all that follows (see module guarded); then, compressed with zstd, the id
that the ledger gave each agent as a sender, and after all of these ids the numbers. Each value is
stored as the difference from the value of the previous agent.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from typing import Final

import cramjam
import numpy as np

from skidway.audit.evidence.guarded import damaged, guarded, unguarded
from skidway.audit.evidence.tallies import FIRST, SENDER, Int64s, TallyColumns
from skidway.dataclass import dataclass

HOUR_MS: Final = 3_600_000
AGENTS_LEAST: Final = 64
"""A bucket with fewer agents makes no base, because it would save no space."""

KEPT_BASES_MAX: Final = 32
"""Memory holds at most this many bases; each has 16 bytes for each agent."""

NO_SENDER: Final = -1
"""This id means that there is no sender. The ledger never gives this id to a sender."""

_LEVEL: Final = 9

_FORGET: Final = """
DELETE FROM number_bases WHERE hour = ?1 AND NOT EXISTS (
    SELECT 1 FROM tallies WHERE bucket >= ?1 AND bucket < ?1 + ?2
)
"""


@dataclass(frozen=True, slots=True)
class NumberBase:
    """The base of one hour. Both arrays have an element for each agent, at the index that is the
    agent's small number (see agent_numbers). senders: the agent's own sender, which counts only for
    this agent. numbers: a number near the numbers of this sender's deltas; the ledger stores their
    differences from this number. id: 0 if there is no base.
    """

    id: int
    senders: Int64s
    numbers: Int64s

    def own(self, agents: Int64s, senders: Int64s) -> Int64s:
        """The indexes of the tallies that an agent sent about its own records. agents, senders: for
        each tally, the small number of its agent, and its sender."""
        known = np.flatnonzero(agents < len(self.senders))
        found: Int64s = known[self.senders[agents[known]] == senders[known]]
        return found


NO_BASE: Final = NumberBase(0, np.empty(0, np.int64), np.empty(0, np.int64))


class NumberBases:
    """The bases in the ledger (see the module's docstring). If this object made a base in a
    transaction that failed, the caller must make a new object.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._kept: OrderedDict[int, NumberBase] = OrderedDict()

    def of_bucket(self, bucket: int) -> NumberBase:
        """The base of the hour in which the bucket starts; NO_BASE if there is none."""
        row = self._connection.execute(
            "SELECT id FROM number_bases WHERE hour = ?", (_hour(bucket),)
        ).fetchone()
        return NO_BASE if row is None else self.of(row[0])

    def of(self, number: int) -> NumberBase:
        """The base with this id; NO_BASE for the id 0. Raises StateRefused if there is no such
        base."""
        if not number:
            return NO_BASE
        found = self._kept.pop(number, None) or self._read(number)
        self._keep(found)
        return found

    def make(self, bucket: int, tallies: TallyColumns, agents: Int64s) -> NumberBase:
        """Makes the base of the hour in which the bucket starts, in the caller's transaction.
        Returns NO_BASE if the bucket has too few agents. agents: for each tally, the small number
        of its agent."""
        if len(tallies.begins) < AGENTS_LEAST:
            return NO_BASE
        own, place, count = np.unique(tallies.table[SENDER], return_index=True, return_counts=True)
        own, place = own[count == 1], place[count == 1]
        senders = np.full(int(agents.max()) + 1, NO_SENDER, np.int64)
        numbers = np.zeros_like(senders)
        senders[agents[place]], numbers[agents[place]] = own, tallies.table[FIRST, place]
        row = self._connection.execute(
            "INSERT INTO number_bases (hour, base) VALUES (?, ?) RETURNING id",
            (_hour(bucket), _packed(senders, numbers)),
        ).fetchone()
        found = NumberBase(row[0], senders, numbers)
        self._keep(found)
        return found

    def _read(self, number: int) -> NumberBase:
        row = self._connection.execute(
            "SELECT base FROM number_bases WHERE id = ?", (number,)
        ).fetchone()
        if row is None:
            raise damaged("a bucket names a base of numbers that is not there")
        return NumberBase(number, *_unpacked(row[0]))

    def _keep(self, base: NumberBase) -> None:
        self._kept[base.id] = base
        if len(self._kept) > KEPT_BASES_MAX:
            self._kept.popitem(last=False)


def forget(connection: sqlite3.Connection, bucket: int) -> None:
    """Deletes the base of the hour in which a deleted bucket started, if no other bucket of this
    hour is left."""
    connection.execute(_FORGET, (_hour(bucket), HOUR_MS))


def _hour(bucket: int) -> int:
    return bucket - bucket % HOUR_MS


def _packed(senders: Int64s, numbers: Int64s) -> bytes:
    table = np.diff(np.array([senders, numbers]), axis=1, prepend=0).astype("<i8")
    return guarded(bytes(cramjam.zstd.compress(table.tobytes(), _LEVEL)))


def _unpacked(base: bytes) -> Int64s:
    table = np.frombuffer(bytes(cramjam.zstd.decompress(unguarded(base))), "<i8")
    found: Int64s = np.cumsum(table.reshape(2, -1), axis=1)
    return found
