"""Notices in which buckets a connection to the ledger changed the counts.

Triggers of SQLite note the key of each bucket for which the connection writes or deletes a tally
(the sum of a sender's counts) or a count of filtered records (records that an agent's rules left
out). The triggers and their table are temporary, so they exist only in this connection, and a
transaction that is rolled back leaves no keys. If another connection changed the database, any
bucket may have changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

Key = tuple[int, int, int]
"""The ledger's id of a source topic, and the start and the size of a bucket."""

_TABLE: Final = """
CREATE TEMP TABLE IF NOT EXISTS changed_buckets (
    source INTEGER, bucket INTEGER, bucket_ms INTEGER, PRIMARY KEY (source, bucket, bucket_ms)
) WITHOUT ROWID
"""
_HOLDS: Final = "SELECT 1 FROM tallies WHERE (source, bucket, bucket_ms) = (?, ?, ?)"
_NOTE: Final = "INSERT INTO changed_buckets VALUES (?, ?, ?)"
_EVENTS: Final = ("INSERT", "UPDATE", "DELETE")


class Changes(NamedTuple):
    """Keys of buckets. changed: new buckets, and buckets whose counts have changed. gone: deleted
    buckets."""

    changed: set[Key]
    gone: set[Key]


class LedgerChanges:
    """Collects the buckets that changed since the last call of `take`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version: int | None = None
        connection.execute(_TABLE)
        for table in ("tallies", "tally_additions", "filtered"):
            for event in _EVENTS:
                connection.execute(_trigger(table, event))

    def take(self) -> Changes | None:
        """The buckets that changed since the last call. None if this is not known, so that any
        bucket may have changed."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        found = set(self._connection.execute("DELETE FROM changed_buckets RETURNING *").fetchall())
        is_ours, self._version = version == self._version, version
        if not is_ours:
            return None
        gone = {key for key in found if self._connection.execute(_HOLDS, key).fetchone() is None}
        return Changes(found - gone, gone)

    @contextmanager
    def unnoticed(self) -> Iterator[None]:
        """Runs a block of code within a transaction. The block stores the counts of buckets in
        another form, but does not change the counts. So `take` does not return these buckets."""
        before = self._connection.execute("SELECT * FROM changed_buckets").fetchall()
        yield
        self._connection.execute("DELETE FROM changed_buckets")
        self._connection.executemany(_NOTE, before)


def _trigger(table: str, event: str) -> str:
    """The statement that creates a trigger on `table`. The trigger inserts a bucket into
    `changed_buckets`, unless it is there already. `INSERT OR IGNORE` would not be enough, because
    SQLite replaces the conflict clause in a trigger with the conflict clause of the statement that
    fires the trigger."""
    row = "old" if event == "DELETE" else "new"
    columns = ", ".join(f"{row}.{name}" for name in ("source", "bucket", "bucket_ms"))
    noted = (
        f"INSERT INTO changed_buckets SELECT {columns} WHERE NOT EXISTS"  # noqa: S608 - ours
        f" (SELECT 1 FROM changed_buckets WHERE (source, bucket, bucket_ms) = ({columns}))"
    )
    name = f"{table}_{event.lower()}"
    return (
        f"CREATE TEMP TRIGGER IF NOT EXISTS {name} AFTER {event} ON main.{table} BEGIN {noted}; END"
    )
