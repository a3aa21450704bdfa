"""Stores the history of verdicts in a SQLite database, `history.db`.

The judging thread is the one writer. Other threads read through a connection of their own. The
history cannot be rebuilt from the audit topics; if the file is lost, the history begins anew, and
`since_ms` says when. Buckets older than `history.days` (event time) are neither noted nor kept. A
bucket has at most REVISIONS_MAX rows: the first, and the newest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway.audit.collector.history import Kept, Key, Row, counts_of, noted
from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence.evidence import Window
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.kafka.source import Source

HISTORY = "history.db"
REVISIONS_MAX = 50
DELETED_MAX = 1_000  # of one step
HOSTS_MAX = 500
"""The causes of buckets with more agents name the tier alone, because this is cheaper."""
DAY_MS = 86_400_000
_VERSION = 1
_SCHEMA = """
CREATE TABLE meta (only INTEGER PRIMARY KEY CHECK (only = 1), since_ms INTEGER NOT NULL);
CREATE TABLE sources (id INTEGER PRIMARY KEY, cluster TEXT, cluster_id TEXT, topic TEXT,
    topic_id TEXT, UNIQUE (cluster, cluster_id, topic, topic_id));
CREATE TABLE rows (bucket INTEGER, source INTEGER, bucket_ms INTEGER, revision INTEGER,
    time_ms INTEGER, word TEXT, complete INTEGER, reasons TEXT, cause TEXT, totals TEXT,
    PRIMARY KEY (bucket, source, bucket_ms, revision)) WITHOUT ROWID
"""
_COLUMNS = "source, bucket, bucket_ms, revision, time_ms, word, complete, reasons, cause, totals"


@dataclass(frozen=True, slots=True)
class BucketHistory:
    """The rows of one bucket, oldest first."""

    source: Source
    bucket: int
    bucket_ms: int
    rows: tuple[Row, ...]

    @property
    def left_out(self) -> int:
        """How many rows after the first are not kept."""
        return self.rows[-1].revision - len(self.rows)


class HistoryStore:
    """One connection to the history. Only one thread uses it at a time."""

    def __init__(self, path: Path | str = IN_MEMORY, *, now_ms: int, days: int = 35) -> None:
        self._days_ms = days * DAY_MS
        self._kept = Kept()
        self._database = open_database(path, _SCHEMA, _VERSION)
        if self._database.execute("SELECT 1 FROM meta").fetchone() is None:
            with transaction(self._database):
                self._database.execute("INSERT OR IGNORE INTO meta VALUES (1, ?)", (now_ms,))

    def close(self) -> None:
        """Closes the connection."""
        self._database.close()

    @property
    def since_ms(self) -> int:
        """Since when the history remembers."""
        return int(self._database.execute("SELECT since_ms FROM meta").fetchone()[0])

    def note(self, window: Window, found: Sequence[BucketVerdict], now_ms: int) -> None:
        """Notes those of the verdicts that changed. `found`: all buckets of the window. Deletes
        some rows that are too old."""
        oldest = now_ms - self._days_ms
        last = self._last(window)
        added: list[tuple[Key, Row]] = []
        for verdict in found:
            if verdict.bucket < oldest:
                continue
            key = (verdict.source, verdict.bucket, verdict.bucket_ms)
            row = noted(last.get(key), verdict, now_ms, self._kept.get(key))
            is_kept = verdict.status is Status.COMPLETE and len(verdict.agents) <= HOSTS_MAX
            self._kept.put(key, counts_of(verdict) if is_kept else None)
            if row is not None:
                added.append((key, row))
        old = self._database.execute("SELECT 1 FROM rows WHERE bucket < ? LIMIT 1", (oldest,))
        if added or old.fetchone():
            with transaction(self._database):
                self._write(added)
                self._database.execute(
                    "DELETE FROM rows WHERE (bucket, source, bucket_ms, revision) IN (SELECT"
                    " bucket, source, bucket_ms, revision FROM rows WHERE bucket < ? LIMIT ?)",
                    (oldest, DELETED_MAX),
                )

    def read(
        self, window: Window, is_meant: Callable[[Source], bool], count_max: int
    ) -> list[BucketHistory]:
        """The histories of at most count_max buckets of the window, the newest bucket first."""
        sources = {id_: x for id_, x in self._sources().items() if is_meant(x)}
        marks = ", ".join(map(str, sources))
        keys = self._database.execute(
            "SELECT DISTINCT bucket, source, bucket_ms FROM rows WHERE bucket >= ? AND bucket < ?"  # noqa: S608
            f" AND source IN ({marks}) ORDER BY bucket DESC, source LIMIT ?",
            (*window, count_max),
        ).fetchall()
        return [
            BucketHistory(sources[source], bucket, size, self._rows(bucket, source, size))
            for bucket, source, size in keys
        ]

    def _rows(self, *key: int) -> tuple[Row, ...]:
        found = self._database.execute(
            f"SELECT {_COLUMNS} FROM rows WHERE bucket = ? AND source = ? AND bucket_ms = ?"  # noqa: S608
            " ORDER BY revision",
            key,
        )
        return tuple(_row(x) for x in found)

    def _last(self, window: Window) -> dict[Key, Row]:
        sources = self._sources()
        found = self._database.execute(
            f"SELECT {_COLUMNS} FROM rows WHERE bucket >= ? AND bucket < ? ORDER BY revision",  # noqa: S608
            window,
        )
        return {(sources[x[0]], x[1], x[2]): _row(x) for x in found}

    def _sources(self) -> dict[int, Source]:
        found = self._database.execute("SELECT * FROM sources")
        return {x[0]: Source(*x[1:]) for x in found}

    def _write(self, added: Sequence[tuple[Key, Row]]) -> None:
        ids = {source: id_ for id_, source in self._sources().items()}
        for (source, bucket, size), row in added:
            if source not in ids:
                names = (source.cluster, source.cluster_id, source.topic, source.topic_id)
                made = self._database.execute(
                    "INSERT INTO sources VALUES (NULL, ?, ?, ?, ?)", names
                )
                ids[source] = made.lastrowid or 0
            said = (json.dumps(row.reasons), row.cause, json.dumps(row.totals))
            values = (ids[source], bucket, size, row.revision, row.time_ms, row.word)
            self._database.execute(
                f"INSERT INTO rows ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                (*values, row.is_complete, *said),
            )
            self._database.execute(
                "DELETE FROM rows WHERE source = ? AND bucket = ? AND bucket_ms = ?"
                " AND revision > 1 AND revision <= ?",
                (*values[:3], row.revision - REVISIONS_MAX + 1),
            )


def _row(found: tuple[Any, ...]) -> Row:
    _, _, _, revision, time_ms, word, complete, reasons, cause, totals = found
    return Row(
        revision, time_ms, word, bool(complete), tuple(json.loads(reasons)), cause,
        json.loads(totals),
    )  # fmt: skip
