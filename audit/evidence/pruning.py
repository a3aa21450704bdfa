"""Deletes what the ledger no longer needs, a little at a time.

The table `pruned` stores which buckets were deleted. A row stores this for 64 buckets of a topic.
If counts of a deleted bucket arrive later, the ledger stores them, although the bucket's other
counts are gone. So the judgement does not compare the later counts of the tiers with each other.

When a block of messages of an agent is settled (see number_rows), the ledger also deletes all seals
of the block but the last. A rule that needs a deleted seal uses the last seal of the block instead,
which is at most 64 messages away from the deleted seal.

The verdicts on an agent may need many seals if the agent has declared a loss, has sent two
different messages with one number, has begun a second epoch, or has the same host name as another
agent. The ledger keeps all seals of such an agent. For all other agents, the ledger deletes old
blocks of seals, but never the newest block of an epoch. So if one of these other agents declares a
loss later, the ledger still has the agent's last seal before the loss. If a different agent later
reads bytes that one of these agents has read already, a seal that the verdict needs may be missing.
In this case more buckets are in doubt, never fewer.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from skidway.audit.counts import checksum
from skidway.audit.evidence import number_bases
from skidway.audit.evidence.evidence import Window, agent_named
from skidway.audit.evidence.tallies import BucketId, TallyColumns
from skidway.kafka.source import Source

Key = tuple[int, int, int]
"""The ledger's id of a source topic, and the start and the size of a bucket."""

_ROW: Final = 64

_MARK: Final = """
INSERT INTO pruned VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET buckets = buckets | excluded.buckets
"""

_OLD_SEALS: Final = """
DELETE FROM seals WHERE agent = ?1 AND newest < ?2 AND block < (
    SELECT max(block) FROM seals AS later
    WHERE (later.agent, later.epoch, later.topics) = (seals.agent, seals.epoch, seals.topics)
)
"""

_SPECIAL: Final = """
SELECT EXISTS (SELECT 1 FROM losses WHERE agent = ?1)
    OR EXISTS (SELECT 1 FROM senders WHERE (tier, producer) = ('AGENT', ?2) AND cloned_at NOTNULL)
    OR EXISTS (SELECT 1 FROM senders WHERE (tier, producer) = ('AGENT', ?2) AND epoch > 1)
    OR EXISTS (
        SELECT 1 FROM host_names AS own JOIN host_names AS other USING (host)
        WHERE own.agent = ?1 AND other.agent != ?1
    )
"""


class OldBucket(NamedTuple):
    """A bucket that may be deleted. digest: the digest (see digest_of) of its counts when it was
    judged."""

    source: Source
    bucket: int
    bucket_ms: int
    digest: int


def digest_of(columns: TallyColumns) -> int:
    """A checksum of a bucket's counts, which shows whether the counts have changed."""
    return zlib.crc32(columns.table.tobytes())


def delete_buckets(
    connection: sqlite3.Connection,
    old: Iterable[OldBucket],
    source_of: Callable[[Source], int],
    tallies_of: Callable[[Key], TallyColumns | None],
) -> list[Key]:
    """Deletes those of the buckets `old` whose counts have not changed since they were judged.
    Returns the keys of the deleted buckets."""
    deleted = []
    for each in old:
        key = source_of(each.source), each.bucket, each.bucket_ms
        tallies = tallies_of(key)
        if tallies is None or digest_of(tallies) != each.digest:
            continue
        for table in ("tallies", "tally_additions", "filtered"):
            connection.execute(
                f"DELETE FROM {table} WHERE (source, bucket, bucket_ms) = (?, ?, ?)",  # noqa: S608
                key,
            )
        number_bases.forget(connection, each.bucket)
        connection.execute(_MARK, _mark(*key))
        deleted.append(key)
    return deleted


def delete_seals(connection: sqlite3.Connection, producers: Sequence[str], before_ms: int) -> int:
    """Deletes these agents' blocks of seals that are older than `before_ms`, except the newest
    block of each epoch. Keeps all seals of an agent for which `is_special` is true, because
    verdicts may need them. Returns the number of deleted blocks.
    """
    count = 0
    for producer in producers:
        if not is_special(connection, producer):
            count += connection.execute(_OLD_SEALS, (agent_named(producer), before_ms)).rowcount
    return count


def is_special(connection: sqlite3.Connection, producer: str) -> bool:
    """Whether verdicts may need all seals of this agent."""
    row = connection.execute(_SPECIAL, (agent_named(producer), producer)).fetchone()
    return bool(row[0])


def pruned(connection: sqlite3.Connection, source: int, window: Window) -> Iterator[BucketId]:
    """Yields the deleted buckets of a source topic in this window."""
    rows = connection.execute(
        "SELECT bucket_ms, place, buckets FROM pruned WHERE source = ?1"
        " AND place BETWEEN ?2 / bucket_ms / ?4 - 1 AND ?3 / bucket_ms / ?4 + 1",
        (source, *window, _ROW),
    )
    for size, place, buckets in rows:
        for index in range(_ROW):
            start = (place * _ROW + index) * size
            if buckets >> index & 1 and window[0] <= start < window[1]:
                yield start, size


def is_pruned(connection: sqlite3.Connection, source: int, bucket: BucketId) -> bool:
    """Whether a bucket of a source topic was deleted."""
    *key, bits = _mark(source, *bucket)
    row = connection.execute(
        "SELECT buckets FROM pruned WHERE (source, bucket_ms, place) = (?, ?, ?)", key
    ).fetchone()
    return row is not None and bool(row[0] & bits)


def _mark(source: int, bucket: int, bucket_ms: int) -> tuple[int, int, int, int]:
    place, index = divmod(bucket // bucket_ms, _ROW)
    return source, bucket_ms, place, checksum.signed(1 << index)
