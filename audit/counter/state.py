"""A counter's durable state, in one SQLite database.

    partitions   per source topic and partition: the next offset, the last batch before it, and up
                 to when all records are counted
    marks        per partition and (agent, file): the highest end of the counted records
    aborted      per partition: how many records of aborted transactions were left out
    touched      per (source topic, agent, bucket): the number of the bucket's last delta
    outbox       deltas that are not published yet
    meta         the epoch, the last message number that was used, and the size of the buckets

One transaction writes offsets, marks, numbers and deltas together, or none of them. After a crash,
the counter counts the records after the last transaction again. The first of their deltas gets the
number after the last stored number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skidway import invocation
from skidway.audit.counts.counts import BucketKey
from skidway.audit.counts.marks import FileKey
from skidway.audit.database import open_database, transaction
from skidway.audit.topic.messages import Delta, encode
from skidway.errors import ConfigurationRefused
from skidway.kafka.source import Source

FORMAT = 2

_SCHEMA = """
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1), epoch INTEGER, number INTEGER, bucket_ms INTEGER
);
INSERT INTO meta VALUES (1, 1, 0, NULL);
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT,
    UNIQUE (cluster, cluster_id, topic, topic_id)
);
CREATE TABLE partitions (
    source INTEGER, partition INTEGER, next_offset INTEGER,
    base_offset INTEGER, crc INTEGER, leader_epoch INTEGER,
    PRIMARY KEY (source, partition)
) WITHOUT ROWID;
CREATE TABLE marks (
    source INTEGER, partition INTEGER, agent INTEGER, file INTEGER, end INTEGER,
    PRIMARY KEY (source, partition, agent, file)
) WITHOUT ROWID;
CREATE TABLE aborted (
    source INTEGER, partition INTEGER, records INTEGER, PRIMARY KEY (source, partition)
) WITHOUT ROWID;
CREATE TABLE touched (
    source INTEGER, agent INTEGER, bucket INTEGER, number INTEGER,
    PRIMARY KEY (source, agent, bucket)
) WITHOUT ROWID;
CREATE TABLE outbox (sequence INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB)
"""

PartitionId = tuple[Source, int]


@dataclass(frozen=True, slots=True)
class BatchId:
    """The values that identify a batch in a log."""

    base_offset: int
    crc: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class Position:
    """The position up to which a partition was counted. below: the last counted batch, which ends
    at the position; None if no batch was counted yet, or if the offsets before the position expired
    before they were counted."""

    next_offset: int = 0
    below: BatchId | None = None


@dataclass(slots=True)
class Progress:
    """The positions, marks and numbers of aborted records that one transaction makes durable."""

    positions: dict[PartitionId, Position] = field(default_factory=dict)
    marks: dict[PartitionId, dict[FileKey, int]] = field(default_factory=dict)
    aborted: dict[PartitionId, int] = field(default_factory=dict)


class CounterState:
    """The state of one counter. Only one thread uses this object."""

    def __init__(self, path: Path | str) -> None:
        self._path = path
        self._connection = open_database(path, _SCHEMA, FORMAT)
        self._sources: dict[Source, int] = {}
        for number, *parts in self._connection.execute("SELECT * FROM sources"):
            self._sources[Source(*parts)] = number

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    @property
    def where(self) -> str:
        """Words for the state, with the path of its file, for error messages."""
        return f"The counter's state in {self._path}"

    @property
    def epoch(self) -> int:
        """The epoch to which the numbers of the messages belong."""
        return int(self._meta()[0])

    @property
    def number(self) -> int:
        """The last message number that was used in this epoch; 0 if none was used."""
        return int(self._meta()[1])

    @property
    def sources(self) -> Collection[Source]:
        """The source topics that the counter has counted."""
        return self._sources.keys()

    def settle_bucket(self, bucket_ms: int) -> None:
        """Stores the size of this epoch's buckets. Raises ConfigurationRefused if the epoch has
        buckets of another size already."""
        (known,) = self._connection.execute("SELECT bucket_ms FROM meta").fetchone()
        if known is None:
            with transaction(self._connection) as database:
                database.execute("UPDATE meta SET bucket_ms = ?", (bucket_ms,))
        elif known != bucket_ms:
            again = invocation.of_this_process().command("audit count", "--new-epoch")
            raise ConfigurationRefused(
                f"bucket.ms is {bucket_ms}, but {self._path} counts buckets of {known}, and buckets"
                " of two sizes are never complete. Set it to what it was, or count everything again"
                f" from the beginning of every log: `{again}`."
            )

    def position(self, partition: PartitionId) -> Position:
        """Returns the position up to which a partition was counted; offset 0 if it was never
        counted."""
        row = self._connection.execute(
            "SELECT next_offset, base_offset, crc, leader_epoch FROM partitions"
            " WHERE source = ? AND partition = ?",
            (self._source(partition[0]), partition[1]),
        ).fetchone()
        if row is None:
            return Position()
        return Position(row[0], None if row[1] is None else BatchId(*row[1:]))

    def marks(self, partition: PartitionId) -> dict[FileKey, int]:
        """Returns the marks of a partition, by (agent, file)."""
        rows = self._connection.execute(
            "SELECT agent, file, end FROM marks WHERE source = ? AND partition = ?",
            (self._source(partition[0]), partition[1]),
        )
        return {(agent, file): end for agent, file, end in rows}

    def aborted(self, partition: PartitionId) -> int:
        """Returns how many records of aborted transactions the counter has left out."""
        row = self._connection.execute(
            "SELECT records FROM aborted WHERE source = ? AND partition = ?",
            (self._source(partition[0]), partition[1]),
        ).fetchone()
        return 0 if row is None else int(row[0])

    def touched(self, keys: Iterable[BucketKey]) -> dict[BucketKey, int]:
        """Returns, for each of these buckets, the number of the last delta with counts of the
        bucket. Leaves out buckets of which no delta has counts.
        """
        found = {}
        for key in keys:
            row = self._connection.execute(
                "SELECT number FROM touched WHERE source = ? AND agent = ? AND bucket = ?",
                (self._source(key[0]), key[1], key[2]),
            ).fetchone()
            if row is not None:
                found[key] = row[0]
        return found

    def commit(
        self, progress: Progress, deltas: Sequence[Delta], touched: Mapping[BucketKey, int]
    ) -> None:
        """Makes progress durable, together with the deltas that contain the counts of the same
        records."""
        for source in {x[0] for x in progress.positions} | {x[0] for x in touched}:
            self._source(source)
        with transaction(self._connection) as database:
            self._save_progress(progress)
            database.executemany(
                "INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?)",
                ((self._sources[k[0]], k[1], k[2], number) for k, number in touched.items()),
            )
            database.executemany(
                "INSERT INTO outbox (message) VALUES (?)", ((encode(delta),) for delta in deltas)
            )
            if deltas:
                database.execute("UPDATE meta SET number = ?", (deltas[-1].number,))

    def begin_epoch(self, epoch: int) -> None:
        """Deletes positions, marks, numbers and outbox, and begins this epoch. The first message of
        the epoch has the number 1, and counting begins at the start of every log.
        """
        with transaction(self._connection) as database:
            for table in ("partitions", "marks", "aborted", "touched", "outbox"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 - `table` is a constant
            database.execute("UPDATE meta SET epoch = ?, number = 0, bucket_ms = NULL", (epoch,))

    # The outbox, for the publisher.

    def pending(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Returns at most `limit` messages with a sequence number above `after`, in order, each as
        (sequence number, message)."""
        return self._connection.execute(
            "SELECT sequence, message FROM outbox WHERE sequence > ? ORDER BY sequence LIMIT ?",
            (after, limit),
        ).fetchall()

    def published(self, up_to: int) -> None:
        """Deletes the messages up to this sequence number, because brokers have acknowledged
        them."""
        with transaction(self._connection) as database:
            database.execute("DELETE FROM outbox WHERE sequence <= ?", (up_to,))

    @property
    def outbox_size(self) -> int:
        """The number of messages that wait to be published."""
        return int(self._connection.execute("SELECT count(*) FROM outbox").fetchone()[0])

    def _meta(self) -> tuple[int, int]:
        row: tuple[int, int] = self._connection.execute("SELECT epoch, number FROM meta").fetchone()
        return row

    def _source(self, source: Source) -> int:
        if source not in self._sources:
            with transaction(self._connection) as database:
                cursor = database.execute(
                    "INSERT INTO sources (cluster, cluster_id, topic, topic_id)"
                    " VALUES (?, ?, ?, ?)",
                    (source.cluster, source.cluster_id, source.topic, source.topic_id),
                )
            assert cursor.lastrowid is not None
            self._sources[source] = cursor.lastrowid
        return self._sources[source]

    def _save_progress(self, progress: Progress) -> None:
        database: sqlite3.Connection = self._connection
        database.executemany(
            "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?, ?, ?, ?)",
            (
                (self._sources[key[0]], key[1], position.next_offset, *_batch_row(position))
                for key, position in progress.positions.items()
            ),
        )
        database.executemany(
            "INSERT OR REPLACE INTO aborted VALUES (?, ?, ?)",
            (
                (self._sources[source], partition, records)
                for (source, partition), records in progress.aborted.items()
            ),
        )
        database.executemany(
            "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?)",
            (
                (self._sources[source], partition, agent, file, end)
                for (source, partition), marks in progress.marks.items()
                for (agent, file), end in marks.items()
            ),
        )


def _batch_row(position: Position) -> tuple[int | None, int | None, int | None]:
    below = position.below
    return (
        (None, None, None) if below is None else (below.base_offset, below.crc, below.leader_epoch)
    )
