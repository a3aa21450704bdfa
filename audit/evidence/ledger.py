"""The ledger stores all audit messages in SQLite, and returns the evidence for any window of
buckets.

The rows of the ledger contain sums per (source topic, bucket, agent, sender), and seals, losses,
gaps, coverage (the ranges of offsets that senders have counted) and files. The ledger also has the
number of each message, with a digest of its content. If a message arrives a second time, the ledger
recognizes it by its number. The same transaction writes a message and the position up to which its
topic was read, so no message counts twice. The whole ledger can be rebuilt from the audit topics.

A newer version of the program may have written a message whose schema this version does not have.
Such a message may concern any bucket. The ledger counts such a message as unread, under the
schema's fingerprint, and every verdict becomes unknown. A later version that has the schema reads
the topics again, from the first offset at which an unread message may be, and stores the messages
that were unread. A person can disown the unread messages of a schema: they then hold up no verdict,
but a version that has the schema reads them all the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence import ledger_evidence, ledger_tables
from skidway.audit.evidence.admission import Signatures, signers
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.announced import Announced
from skidway.audit.evidence.evidence import (
    FOREVER,
    Evidence,
    Window,
)
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger_changes import LedgerChanges
from skidway.audit.evidence.ledger_rows import NOT_SIGNED, Rows
from skidway.audit.evidence.line_evidence import LineEvidence
from skidway.audit.evidence.loss_buckets import LOSS_BUCKET_MS, START_OF_LOSS
from skidway.audit.evidence.pruning import OldBucket, is_pruned
from skidway.audit.evidence.refused import Refused, refused, refused_by_reason
from skidway.audit.evidence.tallies import SENDER, BucketId, BucketTallies, SenderIds
from skidway.audit.topic import notes
from skidway.audit.topic.decisions import OTHERS, Lasting
from skidway.audit.topic.notes import Note
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas import single_object

DATABASE = "audit.db"
"""The name of the ledger's file in the collector's store."""

SENDERS_MAX = 200
"""Each call of `prune` handles this many senders."""


class Position(NamedTuple):
    """The position up to which a partition was read. topic_id: the id of the topic that was read;
    "" if unknown."""

    next_offset: int
    topic_id: str = ""


class Changed(NamedTuple):
    """Buckets by topic. changed: new buckets, and buckets whose counts have changed. gone: deleted
    buckets."""

    changed: Mapping[Source, set[BucketId]]
    gone: Mapping[Source, set[BucketId]]


_ACCEPTED: Final = """
(SELECT source, bucket FROM decisions WHERE source IN (SELECT source FROM losses))
"""
"""The buckets that somebody accepted in topics with losses: such a bucket may hold a loss."""


class Ledger:
    """One connection to the database. The writer opens one `Ledger`, and each reader in another
    thread opens a `Ledger` of its own."""

    def __init__(
        self,
        path: Path | str = IN_MEMORY,
        *,
        signatures: Signatures = NOT_SIGNED,
        only_read: bool = False,
    ) -> None:
        """only_read: for commands, which read a store that may be another user's."""
        self._connection = open_database(
            path, ledger_tables.SCHEMA, ledger_tables.FORMAT, only_read=only_read
        )
        self._signatures = signatures
        self._rows = Rows(self._connection, signatures)
        self._changes: LedgerChanges | None = None
        self._is_in_memory = path == IN_MEMORY
        self._senders = SenderIds()
        self._numbers: AgentNumbers | None = None
        self._announced: Announced | None = None
        self._pruned: int | None = None
        """The id of the last sender that `prune` handled."""

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    # Writing.

    def take(self, values: Iterable[bytes]) -> None:
        """Stores records of audit topics. values: the values of the records. The caller does not
        know where and when the records were read, so neither a time nor a position is stored.
        """
        self.take_records(((value, None) for value in values), {}, None)

    def take_records(
        self,
        records: Iterable[tuple[bytes, Heard | None]],
        reached: Mapping[TopicPartition, Position],
        now_ms: int | None,
    ) -> int:
        """In one transaction, stores records of the audit topics, and the positions up to which the
        topics were read. records: for each record, its value, and where and when it was read; None
        if this is not known. now_ms: the time now; None if the records were not read from a topic.
        Returns the number of records."""
        with self._writing():
            readable = [self._rows.take(value, where) for value, where in records]
            self._rows.write()
            if not all(readable):
                self._connection.executemany(
                    "INSERT OR IGNORE INTO unread_from VALUES (?1, ?2, coalesce((SELECT"
                    " next_offset FROM positions WHERE (topic, partition, topic_id)"
                    " = (?1, ?2, ?3)), 0), ?3)",
                    ((tp.topic, tp.partition, at.topic_id) for tp, at in reached.items()),
                )
            if now_ms is not None:
                self._connection.execute("UPDATE meta SET taken = ?", (now_ms,))
            self._connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
                ((tp.topic, tp.partition, *at) for tp, at in reached.items()),
            )
            self._connection.executemany(
                "DELETE FROM rebuild WHERE (topic, partition) = (?, ?) AND end <= ?",
                ((tp.topic, tp.partition, at.next_offset) for tp, at in reached.items()),
            )
        return len(readable)

    def prune(self, old: Iterable[OldBucket], before_ms: int, settled_ms: int | None = None) -> int:
        """Deletes those of the given old buckets whose counts have not changed since they were
        judged. Each call also handles the next SENDERS_MAX senders: it deletes their seals from
        before `before_ms` that no verdict needs (see pruning), and the digests of their messages
        from before `settled_ms` (by default `before_ms`). It also deletes all notes from before
        `before_ms`. Returns the number of deleted buckets."""
        if settled_ms is None:
            settled_ms = before_ms
        with self._writing():
            count = self._rows.prune(old)
            self._pruned = self._rows.settle(self._pruned or 0, SENDERS_MAX, before_ms, settled_ms)
        return count

    def narrow(self, balanced: Collection[tuple[Source, BucketId]]) -> None:
        """Keeps only the low 24 bits of these buckets' checksums, so that they take less space. The
        writer calls this after it judged the buckets, and before it takes further messages.
        balanced: buckets in which the checksums of nearly all agents agreed in all bits (see
        BucketColumns.is_balanced)."""
        if balanced:
            with self._writing():
                self._rows.narrow(balanced)

    def merge(self, scattered: Collection[tuple[Source, BucketId]]) -> None:
        """Puts all counts of each of these buckets into one row, so that they take less space. This
        changes no counts, so `changed_buckets` does not name these buckets."""
        unnoticed = contextlib.nullcontext() if self._changes is None else self._changes.unnoticed()
        if scattered:
            with self._writing(), unnoticed:
                self._rows.merge(scattered)

    @property
    def settled(self) -> int:
        """The number of senders with messages whose digests were deleted because the messages are
        old."""
        (count,) = self._connection.execute("SELECT count(*) FROM settled").fetchone()
        return int(count)

    def next_bucket(self, after: int, before: int) -> int | None:
        """Returns the start of the first bucket that has counts and begins between the times
        `after` and `before`; None if there is no such bucket.
        """
        (found,) = self._connection.execute(
            "SELECT min(bucket) FROM tallies WHERE bucket > ? AND bucket < ?", (after, before)
        ).fetchone()
        return None if found is None else int(found)

    def positions(self) -> dict[TopicPartition, Position]:
        """The position up to which each partition of an audit topic was read."""
        rows = self._connection.execute(
            "SELECT topic, partition, next_offset, topic_id FROM positions"
        )
        return {TopicPartition(name, partition): Position(*at) for name, partition, *at in rows}

    def read_again(self) -> bool:
        """Whether this version of the program can read messages that an older version could not
        read. If so, sets the positions back to the first offsets at which these messages may be.
        The collector calls this method before it begins to read. Of messages that were counted
        together with others, nobody knows the schema, so they alone are no reason."""
        names = {name for (name,) in self._connection.execute("SELECT fingerprint FROM unread")}
        if not any(single_object.is_known(bytes.fromhex(name)) for name in names - {OTHERS}):
            return False
        with transaction(self._connection):
            self._connection.execute(
                "INSERT INTO rebuild SELECT topic, partition, positions.next_offset FROM"
                " unread_from JOIN positions USING (topic, partition, topic_id)"
                " WHERE unread_from.next_offset < positions.next_offset"
                " ON CONFLICT DO UPDATE SET end = max(end, excluded.end)"
            )
            self._connection.execute("INSERT OR REPLACE INTO positions SELECT * FROM unread_from")
            self._connection.execute("DELETE FROM unread_from")
            self._connection.execute("DELETE FROM unread")
        return True

    def rebuild(self, ends: Mapping[TopicPartition, int]) -> None:
        """Stores the fact that the ledger is being rebuilt: the ledger reads these partitions from
        their beginnings. ends: the offset that the ledger must reach in each partition. Until then,
        the ledger has only a part of the evidence, and nothing is judged. The ledger does not wait
        for a partition whose offset in `ends` is 0.
        """
        with transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO rebuild VALUES (?, ?, ?)",
                ((tp.topic, tp.partition, end) for tp, end in ends.items()),
            )
            self._connection.execute("DELETE FROM rebuild WHERE end = 0")

    def partitions_to_rebuild(self) -> set[TopicPartition]:
        """The partitions that the ledger must still read before it is rebuilt."""
        rows = self._connection.execute("SELECT topic, partition FROM rebuild")
        return {TopicPartition(*row) for row in rows}

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Deletes the positions of these partitions, which were deleted in the cluster. The
        evidence from their messages stays.
        """
        keys = [(tp.topic, tp.partition) for tp in partitions]
        with transaction(self._connection):
            for table in ("rebuild", "positions"):
                self._connection.executemany(
                    f"DELETE FROM {table} WHERE (topic, partition) = (?, ?)",  # noqa: S608 - ours
                    keys,
                )

    @property
    def rebuilding(self) -> int:
        """How many messages the ledger must still read before it is rebuilt; 0 if it is
        complete."""
        return ledger_evidence.rebuilding(self._connection)

    def unread(self) -> dict[str, int]:
        """Returns how many messages this version cannot decode because it lacks their schema, by
        the schema's fingerprint, but for disowned messages.
        """
        return ledger_evidence.unread(self._connection)

    def refused_by_reason(self) -> dict[str, int]:
        """How many records in audit topics were refused (see module admission), by reason."""
        return refused_by_reason(self._connection)

    def signers(self) -> dict[str, int]:
        """For each sender that has signed a message, the number of the key that it used last."""
        return signers(self._connection)

    def refused(self) -> list[Refused]:
        """The refused records, those that were read last first."""
        return list(refused(self._connection))

    @property
    def taken_ms(self) -> int:
        """The time, by the collector's clock, at which the collector last stored records; 0 if it
        never stored any."""
        return int(self._connection.execute("SELECT taken FROM meta").fetchone()[0])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Runs the block as one transaction. If the transaction fails, replaces the `Rows` object
        by a new one, because the old object may have ids that were rolled back.
        """
        try:
            with transaction(self._connection):
                yield
        except BaseException:
            del self._rows  # nobody may use it, even if making a new object fails
            self._rows = Rows(self._connection, self._signatures)
            raise

    # Reading.

    def evidence(self, window: Window = FOREVER, topics: Sequence[str] | None = None) -> Evidence:
        """All evidence about these topics, for the buckets that start in [window[0], window[1]).
        topics: names of topics in the source cluster; None for all topics."""
        return ledger_evidence.read(self._connection, window, topics)

    def evidence_without_counts(self) -> Evidence:
        """Returns all evidence without the tallies of buckets. The caller must not change the
        evidence.
        """
        connection = self._connection
        if self._announced is None:
            self._announced = Announced(
                connection, lambda source: ledger_evidence.notes_of_files(connection, source)
            )
        self._announced.refresh()
        return ledger_evidence.read(
            connection, FOREVER, None, is_counted=False, announced=self._announced
        )

    def evidence_of(
        self, whole: Evidence, window: Window, topics: Sequence[str] | None = None
    ) -> Evidence:
        """Like `evidence`, but reads only the counts, and which buckets were deleted. Takes all
        other evidence from `whole`. whole: evidence without counts; it must come from the state of
        the store that this connection sees. The caller must change neither `whole` nor the result.
        """
        self._numbers = self._numbers or AgentNumbers(self._connection)
        (last,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM senders").fetchone()
        ids = self._sender_ids(last)
        return ledger_evidence.with_counts(
            self._connection, whole, window, topics, ids, self._numbers
        )

    def hold(self) -> None:
        """Until `let_go` is called, this connection sees the present state of the store, even if
        another connection writes. Does nothing if the store is in memory, because such a store has
        only one connection.
        """
        if not self._is_in_memory:
            self._connection.execute("BEGIN")
            self._connection.execute("SELECT taken FROM meta").fetchone()

    def let_go(self) -> None:
        """Ends what `hold` began: this connection sees the newest state of the store again. Does
        nothing if `hold` was not called."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def checkpoint(self) -> None:
        """Copies committed changes from SQLite's write-ahead log into the database file, up to the
        oldest state that another connection still reads. So the log does not grow without end.
        """
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def buckets(self) -> dict[Source, set[BucketId]]:
        """For each topic, the buckets in which anything was counted."""
        rows = self._connection.execute("SELECT source, bucket, bucket_ms FROM tallies")
        return _by_source(rows, self._sources())

    def changed_buckets(self) -> Changed | None:
        """Returns the buckets whose counts this connection changed or deleted since the last call.
        Returns None if any bucket may have changed, that is, at the first call and after another
        connection wrote.
        """
        if self._changes is None:
            self._changes = LedgerChanges(self._connection)
        found = self._changes.take()
        if found is None:
            return None
        sources = self._sources() if found.changed or found.gone else {}
        return Changed(_by_source(found.changed, sources), _by_source(found.gone, sources))

    def tallies(self, source: Source, bucket: BucketId) -> BucketTallies | None:
        """Returns the tallies of one bucket, or None if the bucket has no tallies. Only the writer
        may call this method, between two transactions.
        """
        columns = self._rows.tallies(source, *bucket)
        if columns is None:
            return None
        senders = self._sender_ids(int(columns.table[SENDER].max(initial=0)))
        window = bucket[0], bucket[0] + 1
        left_out = ledger_evidence.filtered(self._connection, self._rows.source_id(source), window)
        return BucketTallies(columns, senders, left_out.get(bucket, {}))

    def additions(self, source: Source, bucket: BucketId) -> int:
        """How many further rows the store has for this bucket beside its first row."""
        return self._rows.additions(source, bucket)

    def _sender_ids(self, last: int) -> SenderIds:
        """The key of each sender, by the sender's id in the ledger. If the cached keys lack the id
        `last`, reads all keys again."""
        if not self._senders or last not in self._senders:
            self._senders = ledger_evidence.sender_ids(self._connection)
        return self._senders

    def is_pruned(self, source: Source, bucket: BucketId) -> bool:
        """Whether the counts of this bucket were deleted because the bucket is old."""
        return is_pruned(self._connection, self._rows.source_id(source), bucket)

    def _sources(self) -> dict[int, Source]:
        rows = self._connection.execute("SELECT * FROM sources")
        return {number: Source(*parts) for number, *parts in rows}

    def decisions(self) -> list[Lasting]:
        """Returns the decisions that nobody took back."""
        return ledger_evidence.decisions(self._connection)

    def notes(self) -> list[Note]:
        """All notes in the ledger: for each kind and producer, the newest notes (see
        ledger_rows.NOTES)."""
        rows = self._connection.execute("SELECT value FROM notes")
        return [notes.decode(value) for (value,) in rows]

    @property
    def lines(self) -> LineEvidence:
        """What the ledger knows about single files and lines."""
        return LineEvidence(self._connection)

    def topics(self) -> list[Source]:
        """Every source topic that any message mentioned."""
        rows = self._connection.execute(
            "SELECT cluster, cluster_id, topic, topic_id FROM sources ORDER BY cluster, topic"
        )
        return [Source(*row) for row in rows]

    def newest_buckets(
        self, count: int, until: int | None = None, topic: str | None = None
    ) -> list[int]:
        """The starts of the newest buckets in which anything was counted or declared lost, newest
        first. until: if given, only buckets that begin before this time are returned. topic: if
        given, only buckets of the topic with this name in the source cluster are returned. Also
        returns the starts of accepted buckets, because they may hold losses (see loss_buckets).
        """
        given = (FOREVER[1] if until is None else until, count, topic)
        columns = [
            ("tallies", "bucket"), ("losses", START_OF_LOSS), (_ACCEPTED, "bucket"),
        ]  # fmt: skip
        found: set[int] = set()
        for table, column in columns:
            rows = self._connection.execute(
                f"SELECT DISTINCT {column} AS start FROM {table} WHERE start < ?1"  # noqa: S608 - ours
                " AND (?3 IS NULL OR source IN (SELECT id FROM sources WHERE topic = ?3))"
                " ORDER BY start DESC LIMIT ?2",
                given,
            )
            found.update(bucket for (bucket,) in rows)
        return sorted(found, reverse=True)[:count]

    def bucket_sizes(self, topics: Collection[str] | None = None) -> set[int]:
        """The sizes in ms of all buckets of the topics with these names, including deleted buckets.
        There are several sizes if somebody changed an agent's `audit.bucket.ms`."""
        rows = self._connection.execute(
            "SELECT DISTINCT topic, size FROM bucket_sizes JOIN sources ON id = source"
        )
        return {size for topic, size in rows if topics is None or topic in topics}

    def window_of(self, since: int, until: int) -> Window:
        """Returns a window (see `evidence`) with the starts of all buckets, also deleted ones, that
        overlap the span of time from `since` to `until` (ms)."""
        return since - max(self.bucket_sizes() | {LOSS_BUCKET_MS}) + 1, until

    def window_with_overlaps(self, time_ms: int) -> Window:
        """Returns a window with the starts of all buckets that contain this time. The window also
        has the starts of the buckets that contain the start of one of these buckets, because a
        command that accepts a bucket also accepts all buckets that contain its start.
        """
        return self.window_of(*self.window_of(time_ms, time_ms + 1))


def _by_source(
    keys: Iterable[tuple[int, int, int]], sources: Mapping[int, Source]
) -> dict[Source, set[BucketId]]:
    found: dict[Source, set[BucketId]] = {}
    for source, bucket, bucket_ms in keys:
        found.setdefault(sources[source], set()).add((bucket, bucket_ms))
    return found


def ledger_of(values: Iterable[bytes]) -> Ledger:
    """Returns a ledger in memory that has stored these records of audit topics. values: the values
    of the records."""
    ledger = Ledger()
    ledger.take(values)
    return ledger
