"""Caches what the ledger knows about the agents and files of each topic, because every step of
judging asks for it.

Announcements of files change rarely, but a search for the files that several agents announced must
read all announcements. So the results stay in the cache until they may have changed. Temporary
triggers of SQLite note the topics whose rows the connection changes (see ledger_changes).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from skidway.audit.evidence.rereading import FileNote

_TABLE: Final = "CREATE TEMP TABLE IF NOT EXISTS changed_sources (source INTEGER PRIMARY KEY)"
_COLUMNS: Final = {
    "agents": ("source", "agent"),
    "inodes": ("source", "host", "inode", "agent", "file", "time", "path", "born", "replaced"),
    "files": (
        "source", "host", "device", "inode", "length", "fingerprint", "agent", "file", "time",
        "path",
    ),
}  # fmt: skip

Notes = Sequence[Sequence[FileNote]]


class Announced:
    """Owns, for each topic, the set of its agents, and the announcements of those files that
    several agents announced (the topic's *notes*, rereading.FileNote). Also keeps the times of
    `counted_losses`. read_notes: a function that gets the id of a topic, and reads the topic's
    notes."""

    def __init__(self, connection: sqlite3.Connection, read_notes: Callable[[int], Notes]) -> None:
        self._connection = connection
        self._read_notes = read_notes
        self._version: int | None = None
        self._agents: dict[int, set[int]] = {}
        self._notes: dict[int, Notes] = {}
        self._counted_losses: dict[int, set[int]] = {}
        connection.execute(_TABLE)
        for table, columns in _COLUMNS.items():
            for event in ("INSERT", "UPDATE", "DELETE"):
                connection.execute(_trigger(table, columns, event))

    def refresh(self) -> None:
        """Removes from the cache the results that may have changed. If another connection wrote to
        the ledger, removes the agents and the notes of all topics. The times of `counted_losses`
        always stay.
        """
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        changed = self._connection.execute("DELETE FROM changed_sources RETURNING source")
        sources = [source for (source,) in changed]
        if version != self._version:
            self._version, sources = version, [*self._agents, *self._notes]
        for source in sources:
            self._agents.pop(source, None)
            self._notes.pop(source, None)

    def agents(self, source: int) -> set[int]:
        """Returns the agents of a topic. The caller must not change the set, because topics with
        the same agents share one set.
        """
        if source not in self._agents:
            rows = self._connection.execute("SELECT agent FROM agents WHERE source = ?", (source,))
            found = {agent for (agent,) in rows}
            same = next((x for x in self._agents.values() if x == found), found)
            self._agents[source] = same
        return self._agents[source]

    def notes(self, source: int) -> Notes:
        """Returns the notes of a topic: the announcements of those files that several agents
        announced."""
        if source not in self._notes:
            self._notes[source] = self._read_notes(source)
        return self._notes[source]

    def counted_losses(self, source: int) -> set[int]:
        """Returns the times of a topic's losses that are known to lie in a counted or deleted
        bucket. The caller adds further times to this set. A time stays in the cache, because its
        bucket stays counted or deleted (see loss_buckets).
        """
        return self._counted_losses.setdefault(source, set())


def _trigger(table: str, columns: Sequence[str], event: str) -> str:
    """Returns the statement that creates a trigger. The trigger ignores updates that change no
    value. Most updates are of this kind, because agents repeat their announcements.
    """
    row = "old" if event == "DELETE" else "new"
    condition = ""
    if event == "UPDATE":
        before, after = (", ".join(f"{x}.{name}" for name in columns) for x in ("old", "new"))
        condition = f"WHEN ({before}) IS NOT ({after})"
    noted = (
        f"INSERT INTO changed_sources SELECT {row}.source WHERE NOT EXISTS"  # noqa: S608 - ours
        f" (SELECT 1 FROM changed_sources WHERE source = {row}.source)"
    )
    name = f"{table}_{event.lower()}_of_source"
    return (
        f"CREATE TEMP TRIGGER IF NOT EXISTS {name} AFTER {event} ON main.{table} {condition}"
        f" BEGIN {noted}; END"
    )
