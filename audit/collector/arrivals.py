"""Stores since when each place (for example a cluster of brokers) has had its present count of a
bucket, by the audit's clock. If the place has all records of the bucket, this is the time at which
the place first had all of them.

Module history_store calls this module when it stores verdicts. The module leaves out a bucket that
ended before the collector started, because the bucket's records may have arrived long before the
start. The module stores only counts of buckets of the newest days (NOTED_MS). When history_store
deletes old rows of verdicts, it also deletes the rows of this module that are as old.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Sequence

from skidway.audit.database import storable
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.latencies import Arrival
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

SCHEMA = """
CREATE TABLE arrivals (bucket INTEGER, source INTEGER, bucket_ms INTEGER, tier TEXT, place TEXT,
    count INTEGER, time_ms INTEGER, PRIMARY KEY (bucket, source, bucket_ms, tier, place)
) WITHOUT ROWID
"""
NOTED_MS = 3 * 86_400_000
KEPT_MAX = 20_000
"""Memory holds the counts of at most this many buckets, as they were last written. If a new verdict
on one of these buckets has the same counts, the module writes nothing.
"""

Key = tuple[Source, int, int]
Counts = tuple[tuple[str, str, int], ...]


class Arrivals:
    """Reads and writes the table `arrivals` over one connection. began_ms: when the collector
    started.
    """

    def __init__(self, database: sqlite3.Connection, began_ms: int) -> None:
        self._database = database
        self._began_ms = began_ms
        self._known: OrderedDict[Key, Counts] = OrderedDict()

    def changed(self, found: Sequence[BucketVerdict], now_ms: int) -> list[tuple[Key, Counts]]:
        """Returns the counts of each bucket whose counts differ from those that were last written.
        Leaves out buckets that begin more than NOTED_MS before now.
        """
        changed = []
        for verdict in found:
            key = (verdict.source, verdict.bucket, verdict.bucket_ms)
            counts = _counts(verdict)
            if verdict.bucket < now_ms - NOTED_MS or self._known.get(key) == counts:
                continue
            changed.append((key, counts))
        return changed

    def write(self, source: int, key: Key, counts: Counts, now_ms: int) -> None:
        """Writes the counts of a bucket, in the caller's transaction. source: the id of the topic.
        A count that has not changed keeps its earlier time; any other count gets the time `now_ms`.
        """
        _, bucket, bucket_ms = key
        if bucket + bucket_ms >= self._began_ms:
            self._database.executemany(
                "INSERT OR IGNORE INTO arrivals VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((bucket, source, bucket_ms, *each, now_ms) for each in counts),
            )
        self._database.executemany(
            "UPDATE arrivals SET count = ?, time_ms = ? WHERE (bucket, source, bucket_ms, tier,"
            " place) = (?, ?, ?, ?, ?) AND count != ?",
            (
                (count, now_ms, bucket, source, bucket_ms, tier, place, count)
                for tier, place, count in counts
            ),
        )
        self._known[key] = counts
        self._known.move_to_end(key)
        if len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)

    def read(self, source: int, bucket: int, bucket_ms: int) -> dict[tuple[Tier, str], Arrival]:
        """Returns, by tier and name of the place, each place's present count of a bucket, and since
        when the place has had it."""
        rows = self._database.execute(
            "SELECT tier, place, count, time_ms FROM arrivals"
            " WHERE (bucket, source, bucket_ms) = (?, ?, ?)",
            (bucket, source, bucket_ms),
        )
        return {(Tier(tier), place): Arrival(*rest) for tier, place, *rest in rows}

    def delete(self, oldest_ms: int, count_max: int) -> None:
        """Deletes at most `count_max` rows of buckets that begin before `oldest_ms`, in the
        caller's transaction."""
        self._database.execute(
            "DELETE FROM arrivals WHERE (bucket, source, bucket_ms, tier, place) IN (SELECT bucket,"
            " source, bucket_ms, tier, place FROM arrivals WHERE bucket < ? LIMIT ?)",
            (oldest_ms, count_max),
        )


def _counts(verdict: BucketVerdict) -> Counts:
    """Returns (tier, name, count) for each place that has records of the bucket. If a count is too
    great for SQLite, the greatest integer that SQLite can store is returned instead."""
    return tuple(
        (place.tier.value, place.name, storable(sums.count))
        for place, sums in verdict.places().items()
        if sums is not None and sums.count
    )
