"""Stores the history of verdicts in a SQLite database, `history.db`.

Only the judging thread writes. Other threads read, each through its own connection. The history
cannot be rebuilt from the audit topics; if the file is lost, a new history begins, and `since_ms`
says when the new history began. Buckets older than `history.days` (in event time) get no rows, and
their rows are deleted. A bucket has at most REVISIONS_MAX rows: its first row, and its newest rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from skidway.audit.collector import arrivals
from skidway.audit.collector.arrivals import Arrivals
from skidway.audit.collector.history import Kept, Key, Row, counts_of, noted
from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence.evidence import Window
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports.latencies import ByPlace
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.kafka.source import Source

HISTORY = "history.db"
REVISIONS_MAX = 50
DELETED_MAX = 1_000  # at most this many old rows of each table are deleted at a time
HOSTS_MAX = 500
"""If a bucket has more than this many agents, the causes in its history name only tiers, because
comparing the counts of all hosts would take too long.
"""
DAY_MS = 86_400_000
_VERSION = 1
_SCHEMA = f"""{arrivals.SCHEMA};
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
    """The history of one bucket. rows: the stored verdicts, the oldest first."""

    source: Source
    bucket: int
    bucket_ms: int
    rows: tuple[Row, ...]

    @property
    def left_out(self) -> int:
        """How many rows of this history were deleted, because a history keeps at most REVISIONS_MAX
        rows. The first row is never deleted for this reason.
        """
        return self.rows[-1].revision - len(self.rows)


class Completion(NamedTuple):
    """When the audit first found a bucket complete. complete_ms: this time by the audit's clock;
    None if the audit never found the bucket complete.
    """

    source: Source
    bucket: int
    bucket_ms: int
    complete_ms: int | None


class HistoryStore:
    """Reads and writes the history over one connection, which one thread at a time may use."""

    def __init__(self, path: Path | str = IN_MEMORY, *, now_ms: int, days: int = 35) -> None:
        self._days_ms = days * DAY_MS
        self._kept = Kept()
        self._database = open_database(path, _SCHEMA, _VERSION)
        self._arrivals = Arrivals(self._database, now_ms)
        if self._database.execute("SELECT 1 FROM meta").fetchone() is None:
            with transaction(self._database):
                self._database.execute("INSERT OR IGNORE INTO meta VALUES (1, ?)", (now_ms,))

    def close(self) -> None:
        """Closes the connection."""
        self._database.close()

    @property
    def since_ms(self) -> int:
        """When the history began, by the audit's clock."""
        return int(self._database.execute("SELECT since_ms FROM meta").fetchone()[0])

    def note(self, found: Sequence[BucketVerdict], now_ms: int) -> None:
        """For each of these buckets whose verdict has changed, adds a row with the new verdict.
        Deletes some rows that are too old."""
        oldest = now_ms - self._days_ms
        ids = {source: id_ for id_, source in self._sources().items()} if found else {}
        added: list[tuple[Key, Row]] = []
        for verdict in found:
            if verdict.bucket < oldest:
                continue
            key = (verdict.source, verdict.bucket, verdict.bucket_ms)
            last = self._last(ids[verdict.source], *key[1:]) if verdict.source in ids else None
            row = noted(last, verdict, now_ms, self._kept.get(key))
            is_kept = verdict.status is Status.COMPLETE and len(verdict.agents) <= HOSTS_MAX
            self._kept.put(key, counts_of(verdict) if is_kept else None)
            if row is not None:
                added.append((key, row))
        old = self._database.execute("SELECT 1 FROM rows WHERE bucket < ? LIMIT 1", (oldest,))
        arrived = self._arrivals.changed([x for x in found if x.bucket >= oldest], now_ms)
        if added or arrived or old.fetchone():
            with transaction(self._database):
                self._write(added)
                ids = {source: id_ for id_, source in self._sources().items()}
                for key, counts in arrived:
                    if key[0] in ids:
                        self._arrivals.write(ids[key[0]], key, counts, now_ms)
                self._arrivals.delete(oldest, DELETED_MAX)
                self._database.execute(
                    "DELETE FROM rows WHERE (bucket, source, bucket_ms, revision) IN (SELECT"
                    " bucket, source, bucket_ms, revision FROM rows WHERE bucket < ? LIMIT ?)",
                    (oldest, DELETED_MAX),
                )

    def read(
        self, window: Window, is_meant: Callable[[Source], bool], count_max: int
    ) -> list[BucketHistory]:
        """Returns the histories of at most `count_max` buckets that begin in the window of time,
        the newest bucket first. is_meant: a function that says whether a topic's buckets are
        wanted."""
        return self._read(window, window[0], is_meant, count_max)

    def read_at(
        self, time_ms: int, is_meant: Callable[[Source], bool], count_max: int
    ) -> list[BucketHistory]:
        """Returns the histories of at most `count_max` buckets that contain a time, the newest
        bucket first. is_meant: as for `read`.
        """
        window = time_ms - LONGEST_MS + 1, time_ms + 1
        return self._read(window, time_ms, is_meant, count_max)

    def _read(
        self, window: Window, after_ms: int, is_meant: Callable[[Source], bool], count_max: int
    ) -> list[BucketHistory]:
        """Returns the histories of the buckets that begin in the window and end after `after_ms`,
        as `read` describes."""
        sources = {id_: x for id_, x in self._sources().items() if is_meant(x)}
        marks = ", ".join(map(str, sources))
        keys = self._database.execute(
            "SELECT DISTINCT bucket, source, bucket_ms FROM rows WHERE bucket >= ? AND bucket < ?"  # noqa: S608
            f" AND bucket + bucket_ms > ? AND source IN ({marks})"
            " ORDER BY bucket DESC, source LIMIT ?",
            (*window, after_ms, count_max),
        ).fetchall()
        return [
            BucketHistory(sources[source], bucket, size, self._rows(bucket, source, size))
            for bucket, source, size in keys
        ]

    def arrivals(self, of: BucketVerdict | BucketHistory) -> ByPlace:
        """Returns since when each place has had its present count of a bucket (see module
        arrivals)."""
        source = of.source
        found = self._database.execute(
            "SELECT id FROM sources WHERE (cluster, cluster_id, topic, topic_id) = (?, ?, ?, ?)",
            (source.cluster, source.cluster_id, source.topic, source.topic_id),
        ).fetchone()
        return {} if found is None else self._arrivals.read(found[0], of.bucket, of.bucket_ms)

    def completions(self, since_ms: int, count_max: int) -> list[Completion]:
        """Returns when each bucket that begins at `since_ms` or later was first complete. Returns
        at most `count_max` buckets, those with the latest begin first.
        """
        sources = self._sources()
        found = self._database.execute(
            "SELECT source, bucket, bucket_ms, min(CASE WHEN complete THEN time_ms END) FROM rows"
            " WHERE bucket >= ? GROUP BY bucket, source, bucket_ms"
            " ORDER BY bucket DESC, source DESC, bucket_ms DESC LIMIT ?",
            (since_ms, count_max),
        )
        return [Completion(sources[source], *rest) for source, *rest in found]

    def search(self, text: str, since_ms: int, count_max: int) -> list[BucketHistory]:
        """Returns histories whose reasons or causes contain the text, in upper or lower case.
        Searches buckets that begin at `since_ms` or later. Returns at most `count_max` buckets, the
        newest first."""
        sources = self._sources()
        keys = self._database.execute(
            "SELECT DISTINCT bucket, source, bucket_ms FROM rows WHERE bucket >= ?1"
            " AND (instr(lower(reasons), ?2) OR instr(lower(cause), ?2))"
            " ORDER BY bucket DESC, source LIMIT ?3",
            (since_ms, text.lower(), count_max),
        ).fetchall()
        return [
            BucketHistory(sources[x], at, size, self._rows(at, x, size)) for at, x, size in keys
        ]

    def _rows(self, *key: int) -> tuple[Row, ...]:
        found = self._database.execute(
            f"SELECT {_COLUMNS} FROM rows WHERE bucket = ? AND source = ? AND bucket_ms = ?"  # noqa: S608
            " ORDER BY revision",
            key,
        )
        return tuple(_row(x) for x in found)

    def _last(self, *key: int) -> Row | None:
        found = self._database.execute(
            f"SELECT {_COLUMNS} FROM rows WHERE source = ? AND bucket = ? AND bucket_ms = ?"  # noqa: S608
            " ORDER BY revision DESC LIMIT 1",
            key,
        ).fetchone()
        return None if found is None else _row(found)

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
