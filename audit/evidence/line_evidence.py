"""Reads what the ledger knows about single files and lines. Reads no tallies.

The commands that follow one line use this module. An answer takes milliseconds even if the ledger
has the buckets of a year.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from skidway.kafka.source import Source


class AnnouncedFile(NamedTuple):
    """A file id and its file, from the agent's earliest announcement of the id. If the agent
    announced the id with several host names or inodes, only one of these is used. time_ms: the time
    of that announcement, by the agent's clock."""

    source: Source
    agent: int
    file: int
    host: str
    path: str
    time_ms: int


class DeclaredRange(NamedTuple):
    """Bytes [first, end) of a file that an agent declared lost or uncertain. end: None if the agent
    does not know where these bytes end. certainty: LOST or UNCERTAIN. time_ms: when the agent
    declared the range."""

    first: int
    end: int | None
    certainty: str
    reason: str
    time_ms: int

    def has(self, position: int) -> bool:
        """Whether the byte at this position is in the range."""
        return self.first <= position and (self.end is None or position < self.end)


class LineEvidence:
    """Reads the ledger's tables of announcements, losses and filtered records."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def files_of(self, host: str) -> list[AnnouncedFile]:
        """The files that agents of a host have announced, the newest announcement first."""
        return self._files("host = ?", host)

    def files_with(self, file: int) -> list[AnnouncedFile]:
        """The files with this file id. File ids are random, so there is almost never more than one
        file."""
        return self._files("file = ?", file)

    def declared(self, agent: int, file: int) -> list[DeclaredRange]:
        """The ranges of a file that its agent declared lost or uncertain."""
        rows = self._connection.execute(
            "SELECT DISTINCT first, end, certainty, reason, time FROM losses"
            " WHERE agent = ? AND file = ? ORDER BY first, time",
            (agent, file),
        )
        return [DeclaredRange(*row) for row in rows]

    def filtered(self, agent: int, source: Source) -> dict[str, int]:
        """How many records of a topic each rule of an agent has left out."""
        rows = self._connection.execute(
            "SELECT rule, sum(records) FROM filtered JOIN sources ON sources.id = filtered.source"
            " WHERE agent = ? AND (cluster, cluster_id, topic, topic_id) = (?, ?, ?, ?)"
            " GROUP BY rule ORDER BY rule",
            (agent, source.cluster, source.cluster_id, source.topic, source.topic_id),
        )
        return {rule: int(records) for rule, records in rows}

    def _files(self, condition: str, value: object) -> list[AnnouncedFile]:
        """The announced files for which an SQL condition is true, the newest announcement first.
        value: the parameter of the condition."""
        rows = self._connection.execute(
            "SELECT cluster, cluster_id, topic, topic_id, agent, file, host, path, time"  # noqa: S608
            f" FROM inodes JOIN sources ON sources.id = source WHERE {condition}",
            (value,),
        )
        found: dict[tuple[Source, int, int], AnnouncedFile] = {}
        for *source, agent, file, host, path, time_ms in rows:
            each = AnnouncedFile(Source(*source), agent, file, host, path, time_ms)
            known = found.setdefault((each.source, agent, file), each)
            if time_ms < known.time_ms:
                found[each.source, agent, file] = each
        return sorted(found.values(), key=lambda each: each.time_ms, reverse=True)
