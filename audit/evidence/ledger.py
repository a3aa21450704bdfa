"""The ledger: the fold of all messages, kept in SQLite, and evidence for any window out of it.

Its rows are sums per (source topic, bucket, agent, sender), numbers with a digest of their content,
seals, losses, gaps, coverage and files. A message and the position up to which its topic was read
are taken in one transaction, so nothing counts twice; and if a message did come twice, its number
is known already. Everything can be rebuilt from the audit topics.

A message of a schema that this version does not have (a newer one wrote it) may say anything about
any bucket. It is counted as unread, by the schema's fingerprint, and makes every verdict unknown. A
version that has the schema reads the topics again from where it stood, and takes what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from skidway.audit.counts import checksum
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
"""Name of the file in the collector's store."""


class Position(NamedTuple):
    """How far a partition was read. topic_id: of the topic that was read, "" if not known."""

    next_offset: int
    topic_id: str = ""


class Ledger:
    """One connection to the database. The writer and readers in other threads open one each."""

    def __init__(self, path: Path | str = IN_MEMORY) -> None:
        self._connection = open_database(
            path,
            ledger_tables.SCHEMA,
            ledger_tables.FORMAT,
            ledger_tables.UPGRADES,
            ledger_tables.ADDITIONS,
        )
        self._connection.create_function("add64", 2, checksum.add, deterministic=True)
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
        """Takes records of the audit topics, and how far these were read, in one transaction.
        places: where each record lies, or nothing."""
        reached, hearings = positions or {}, Hearings()
        try:
            with transaction(self._connection):
                readable = [
                    self._rows.take(value, where, hearings)
                    for value, where in zip_longest(values, places)
                ]
                self._rows.take_hearings(hearings)
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
        except BaseException:  # ids given in the lost transaction do not exist
            self._rows = Rows(self._connection)
            raise

    def positions(self) -> dict[TopicPartition, Position]:
        """How far each partition of an audit topic was read."""
        rows = self._connection.execute(
            "SELECT topic, partition, next_offset, topic_id FROM positions"
        )
        return {TopicPartition(name, partition): Position(*at) for name, partition, *at in rows}

    def read_again(self) -> bool:
        """Whether messages that an older version could not read can be read now. If so, sets the
        positions back to where these began. The collector calls it before it begins."""
        names = [name for (name,) in self._connection.execute("SELECT fingerprint FROM unread")]
        if not any(name == "" or single_object.is_known(bytes.fromhex(name)) for name in names):
            return False
        with transaction(self._connection):
            self._connection.execute("INSERT OR REPLACE INTO positions SELECT * FROM unread_from")
            self._connection.execute("DELETE FROM unread_from")
            self._connection.execute("DELETE FROM unread")
        return True

    def unread(self) -> dict[str, int]:
        """How many messages have a schema that this version does not have, by fingerprint."""
        return self._rows.unread()

    @property
    def refused_count(self) -> int:
        """Records of the audit topics that were no messages."""
        return int(self._connection.execute("SELECT refused FROM meta").fetchone()[0])

    @property
    def taken_ms(self) -> int:
        """When something was last taken, by the taker's clock; 0 for never."""
        return int(self._connection.execute("SELECT taken FROM meta").fetchone()[0])

    # Reading.

    def evidence(self, window: Window = FOREVER, topics: Sequence[str] | None = None) -> Evidence:
        """All that bears on buckets whose start lies in [window[0], window[1]), of these topics
        (by their names in the source cluster; None: all)."""
        return ledger_evidence.read(self._connection, window, topics)

    def decisions(self) -> list[Acceptance | Retirement]:
        """What people decided and nobody took back."""
        return ledger_evidence.decisions(self._connection)

    def topics(self) -> list[Source]:
        """Every source topic that was ever spoken of."""
        rows = self._connection.execute(
            "SELECT cluster, cluster_id, topic, topic_id FROM sources ORDER BY cluster, topic"
        )
        return [Source(*row) for row in rows]

    def newest_buckets(
        self, count: int, until: int | None = None, topic: str | None = None
    ) -> list[int]:
        """Starts of the newest buckets in which anything was counted or declared lost, newest
        first. until: only buckets that begin before it; topic: only this one's buckets, by its name
        in the source cluster."""
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
        """The blocks of this size in which a judged bucket begins: their starts, oldest first."""
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
        """The greatest size of the newest buckets; 0 if there is none."""
        return ledger_evidence.bucket_ms(self._connection)


def ledger_of(values: Iterable[bytes]) -> Ledger:
    """A ledger in memory of all these records."""
    ledger = Ledger()
    ledger.take(values)
    return ledger
