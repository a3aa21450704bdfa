"""The ledger stores all audit messages in SQLite, and returns the evidence for any window of
buckets.

Its rows contain sums per (source topic, bucket, agent, sender), and seals, losses, gaps, coverage
and files. For each message, a row contains the message's number and a digest of its content. The
same transaction writes a message and the position up to which its topic was read, so no message
counts twice. If a message arrives a second time, the ledger recognizes it by its number. The whole
ledger can be rebuilt from the audit topics.

A newer version of the program may have written a message whose schema this version does not have.
Such a message may concern any bucket. The ledger counts such a message as unread, under the
schema's fingerprint, and every verdict becomes unknown. A later version that has the schema reads
the topics again from the first unread message on, and stores the messages that were unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence import ledger_evidence, ledger_tables
from skidway.audit.evidence.evidence import (
    FOREVER,
    Evidence,
    Window,
)
from skidway.audit.evidence.hearing import Heard, Hearings
from skidway.audit.evidence.ledger_rows import Rows
from skidway.audit.topic.decisions import Acceptance, Retirement
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas import single_object

DATABASE = "audit.db"
"""The name of the ledger's file in the collector's store."""


class Position(NamedTuple):
    """The position up to which a partition was read. topic_id: the id of the topic that was read;
    "" if unknown."""

    next_offset: int
    topic_id: str = ""


class Ledger:
    """One connection to the database. The writer opens one `Ledger`, and each reader in another
    thread opens a `Ledger` of its own."""

    def __init__(self, path: Path | str = IN_MEMORY) -> None:
        self._connection = open_database(path, ledger_tables.SCHEMA, ledger_tables.FORMAT)
        self._rows = Rows(self._connection)

    def close(self) -> None:
        """Closes the database."""
        self._connection.close()

    # Writing.

    def take(
        self,
        values: Iterable[bytes],
        positions: Mapping[TopicPartition, Position] | None = None,
        now_ms: int = 0,
        places: Iterable[Heard] = (),
    ) -> None:
        """In one transaction, stores records of the audit topics, and the positions up to which the
        topics were read. places: for each record, where and when it was read; empty if unknown."""
        reached, hearings = positions or {}, Hearings()
        try:
            with transaction(self._connection):
                readable = [
                    self._rows.take(value, where, hearings)
                    for value, where in zip_longest(values, places)
                ]
                self._rows.write(hearings)
                if not all(readable):
                    self._connection.executemany(
                        "INSERT OR IGNORE INTO unread_from VALUES (?1, ?2, coalesce((SELECT"
                        " next_offset FROM positions WHERE (topic, partition, topic_id)"
                        " = (?1, ?2, ?3)), 0), ?3)",
                        ((tp.topic, tp.partition, at.topic_id) for tp, at in reached.items()),
                    )
                self._connection.execute("UPDATE meta SET taken = ?", (now_ms,))
                self._connection.executemany(
                    "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?)",
                    ((tp.topic, tp.partition, *at) for tp, at in reached.items()),
                )
        except BaseException:
            self._rows = Rows(self._connection)  # the old object has ids that were rolled back
            raise

    def positions(self) -> dict[TopicPartition, Position]:
        """The position up to which each partition of an audit topic was read."""
        rows = self._connection.execute(
            "SELECT topic, partition, next_offset, topic_id FROM positions"
        )
        return {TopicPartition(name, partition): Position(*at) for name, partition, *at in rows}

    def read_again(self) -> bool:
        """Whether this version of the program can read messages that an older version could not
        read. If so, sets the positions back to the first of these messages. The collector calls
        this method before it begins to read."""
        names = [name for (name,) in self._connection.execute("SELECT fingerprint FROM unread")]
        if not any(name == "" or single_object.is_known(bytes.fromhex(name)) for name in names):
            return False
        with transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO positions SELECT * FROM unread_from")
            self._connection.execute("DELETE FROM unread_from")
            self._connection.execute("DELETE FROM unread")
        return True

    def unread(self) -> dict[str, int]:
        """The number of messages of each schema that this version does not have, by the schema's
        fingerprint."""
        return self._rows.unread()

    @property
    def refused_count(self) -> int:
        """The number of records in audit topics that were not valid messages."""
        return int(self._connection.execute("SELECT refused FROM meta").fetchone()[0])

    @property
    def taken_ms(self) -> int:
        """The time, by the collector's clock, at which the collector last stored records; 0 if it
        never stored any."""
        return int(self._connection.execute("SELECT taken FROM meta").fetchone()[0])

    # Reading.

    def evidence(self, window: Window = FOREVER, topics: Sequence[str] | None = None) -> Evidence:
        """All evidence about these topics, for the buckets that start in [window[0], window[1]).
        topics: names of topics in the source cluster; None for all topics."""
        return ledger_evidence.read(self._connection, window, topics)

    def decisions(self) -> list[Acceptance | Retirement]:
        """The decisions of people that nobody took back."""
        return ledger_evidence.decisions(self._connection)

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
        given, only buckets of the topic with this name in the source cluster are returned."""
        given = (FOREVER[1] if until is None else until, count, topic)
        found: set[int] = set()
        for table, column in (("tallies", "bucket"), ("losses", "to_bucket")):
            rows = self._connection.execute(
                f"SELECT DISTINCT {column} FROM {table} WHERE {column} < ?1"  # noqa: S608 - ours
                " AND (?3 IS NULL OR source IN (SELECT id FROM sources WHERE topic = ?3))"
                f" ORDER BY {column} DESC LIMIT ?2",
                given,
            )
            found.update(bucket for (bucket,) in rows)
        return sorted(found, reverse=True)[:count]

    def blocks(self, size_ms: int) -> list[int]:
        """Divides time into blocks of this size. Returns the starts, oldest first, of the blocks in
        which at least one bucket begins that must be judged."""
        found: list[int] = []
        after = FOREVER[0]
        while True:
            (bucket,) = self._connection.execute(
                "SELECT min(bucket) FROM (SELECT min(bucket) AS bucket FROM tallies WHERE bucket"
                " BETWEEN ?1 AND ?2 UNION ALL SELECT min(to_bucket) FROM losses WHERE to_bucket"
                " BETWEEN ?1 AND ?2)",
                (after, FOREVER[1] - 1),
            ).fetchone()
            if bucket is None:
                return found
            found.append(bucket - bucket % size_ms)
            after = found[-1] + size_ms

    def bucket_ms(self) -> int:
        """The greatest bucket size in ms among the newest buckets; 0 if there are no buckets."""
        return ledger_evidence.bucket_ms(self._connection)


def ledger_of(values: Iterable[bytes]) -> Ledger:
    """Returns a ledger in memory that contains all these records."""
    ledger = Ledger()
    ledger.take(values)
    return ledger
