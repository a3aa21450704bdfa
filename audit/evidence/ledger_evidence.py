"""Reads evidence from the ledger's tables, for a window of buckets.

This module reads sums only for the window, and only the seals that a judgement can use. It reads
all evidence that concerns every bucket: numbers, losses, gaps and coverage.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import (
    Coverage,
    Evidence,
    GapNote,
    LossNote,
    Numbers,
    TopicEvidence,
    Window,
    loss_note,
    only_claimed,
)
from skidway.audit.evidence.hearing import Log, Offsets, Reading
from skidway.audit.evidence.ledger_seals import Asked, LedgerSeals
from skidway.audit.evidence.number_rows import first_missing
from skidway.audit.evidence.rereading import FileNote, is_untold, rereadings
from skidway.audit.evidence.tallies import BucketId, BucketTallies, SenderKey, TallyColumns
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.decisions import Acceptance, Retirement
from skidway.audit.topic.messages import Bounds, Certainty, Gap, Loss, Tier
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source

NO_BUCKETS: Window = (0, 0)
"""A window without buckets. With this window, only the evidence about senders, hosts and topics is
read."""

HOSTS = """
SELECT agent, coalesce(host_names.host, hosts.host) AS host
FROM hosts LEFT JOIN host_names USING (agent)
"""
"""Selects the host name of each agent. Names that an older version wrote into the ledger are only
in the table `hosts`."""

_STANDING = """
SELECT value FROM decisions WHERE revoked IS NULL
    AND id NOT IN (SELECT revoked FROM decisions WHERE revoked IS NOT NULL)
"""
_REMAINING = f"{_STANDING} AND source IS NULL"
_OF_BUCKETS = f"{_STANDING} AND source = ? AND bucket >= ? AND bucket < ?"
"""Queries for decisions that nobody took back. `_REMAINING` selects the decisions that concern
every bucket, and `_OF_BUCKETS` selects the decisions about some buckets."""

_BUCKET_MS = """
SELECT coalesce(max(bucket_ms), 0) FROM tallies WHERE bucket = (SELECT max(bucket) FROM tallies)
"""

_REPLACED = """
SELECT time FROM inodes AS y WHERE (y.source, y.host, y.inode, y.agent, y.file)
    = (x.source, x.host, x.inode, x.agent, x.replaced) AND y.born IS x.born
"""

_PATH = """
SELECT path FROM inodes WHERE agent = ? AND file = ? AND source = ? ORDER BY time, path LIMIT 1
"""

_BY_BIRTH = f"""
SELECT host, inode, born, time, agent, file, path, born, ({_REPLACED})
FROM inodes AS x WHERE source = :source AND born IS NOT NULL AND (host, inode, born) IN (
    SELECT host, inode, born FROM inodes WHERE source = :source AND born IS NOT NULL
    GROUP BY host, inode, born HAVING min(agent) < max(agent)
)
"""  # noqa: S608 - our own text
"""Selects the agents and file ids of each file that several agents announced. Here two
announcements belong to one file if their host, inode and time of birth are equal."""

_BY_BEGINNING = f"""
SELECT host, device, inode, length, fingerprint, f.time, agent, file, f.path, x.born, ({_REPLACED})
FROM files AS f LEFT JOIN inodes AS x USING (source, host, inode, agent, file)
WHERE source = :source AND (host, device, inode, length, fingerprint) IN (
    SELECT host, device, inode, length, fingerprint FROM files WHERE source = :source
    GROUP BY host, device, inode, length, fingerprint HAVING min(agent) < max(agent)
)
"""  # noqa: S608 - our own text
"""Selects the agents and file ids of each file that several agents announced. Here two
announcements belong to one file if their host, device, inode and fingerprint of the first bytes are
equal. An announcement that an older version stored has no row in `inodes`, so here it has no time
of birth."""


def read(connection: sqlite3.Connection, window: Window, topics: Sequence[str] | None) -> Evidence:
    """Reads all evidence from one snapshot of the database, in a deferred transaction."""
    connection.execute("BEGIN")
    with connection:
        return _Reader(connection, window).evidence(topics)


def decisions(connection: sqlite3.Connection) -> list[Acceptance | Retirement]:
    """The decisions of people that nobody took back."""
    found = (messages.decode(value) for (value,) in connection.execute(_STANDING))
    return [each for each in found if isinstance(each, Acceptance | Retirement)]


def bucket_ms(connection: sqlite3.Connection) -> int:
    """The greatest bucket size in ms among the newest buckets; 0 if there are no buckets."""
    (size,) = connection.execute(_BUCKET_MS).fetchone()
    return int(size)


class _SenderRow(NamedTuple):
    """A row of the table `senders`. first: None if only heartbeats arrived."""

    id: int
    tier: str
    producer: str
    epoch: int
    cluster: str
    host: str
    first: int | None
    last: int
    known: int
    first_time: int
    claimed: int
    claimed_time: int
    cloned_at: int | None


class _Reader:
    def __init__(self, connection: sqlite3.Connection, window: Window) -> None:
        self._connection = connection
        self._window = window
        self._found = Evidence()
        self._keys: dict[int, SenderKey] = {}

    def evidence(self, topics: Sequence[str] | None) -> Evidence:
        found, select = self._found, self._connection.execute
        self._read_senders()
        found.hosts = dict(select(HOSTS))
        found.began = dict(select("SELECT agent, time FROM beginnings"))
        said = select("SELECT agent, lateness, ahead FROM bounds")
        found.bounds = {agent: Bounds(*bounds) for agent, *bounds in said}
        rows = select("SELECT tier, producer, time FROM last_seen")
        found.last_seen = {(Tier(tier), producer): time for tier, producer, time in rows}
        found.unread = dict(select("SELECT fingerprint, count FROM unread"))
        self._read_hearings()
        self._read_decisions(_REMAINING)
        found.asked = None if topics is None else frozenset(topics)
        found.window = self._window
        found.bucket_ms = bucket_ms(self._connection)
        wanted = _with_parents(topics)
        known = select("SELECT * FROM sources").fetchall()
        sources = {Source(*parts): number for number, *parts in known}
        read = {x: n for x, n in sources.items() if wanted is None or x.topic in wanted}
        for source, number in read.items():
            self._read_topic(source, number)
        losses = self._losses_by_name()
        seals = LedgerSeals(self._connection, found.senders, found.last_heard)
        seals.read(Asked(n, found.topic(x), losses[_name(x)]) for x, n in read.items())
        return found

    def _read_hearings(self) -> None:
        found, select = self._found, self._connection.execute
        rows = select("SELECT tier, producer, time FROM heard")
        found.heard = {(Tier(tier), producer): time for tier, producer, time in rows}
        rows = select("SELECT * FROM readings")
        found.readings = {(Tier(tier), producer): Reading(*x) for tier, producer, *x in rows}
        for agent, *log, first, last in select("SELECT * FROM offsets"):
            found.offsets.setdefault(agent, {})[Log(*log)] = Offsets(first, last)
        rows = select("SELECT agent, epoch, taken FROM resumed")
        found.resumed = {(agent, epoch): taken_ms for agent, epoch, taken_ms in rows}
        found.overlaps = set(select("SELECT agent, other FROM overlaps"))
        (found.taken_ms,) = select("SELECT taken FROM meta").fetchone()

    def _read_decisions(self, query: str, *values: int) -> None:
        found = (messages.decode(value) for (value,) in self._connection.execute(query, values))
        self._found.decided(x for x in found if isinstance(x, Acceptance | Retirement))

    def _read_senders(self) -> None:
        rows = self._connection.execute("SELECT * FROM senders ORDER BY id").fetchall()
        for row in map(_SenderRow._make, rows):
            key = self._keys[row.id] = SenderKey(Tier(row.tier), row.producer, row.epoch)
            numbers = self._numbers(row)
            if numbers is not None:
                self._found.senders[key] = numbers

    def _numbers(self, row: _SenderRow) -> Numbers | None:
        if row.first is None:
            if not row.claimed:
                return None
            return only_claimed(row.cluster, row.host, row.claimed, row.claimed_time)
        missing = None
        if row.known < row.last - row.first + 1:
            missing = first_missing(self._connection, row.id, row.first)
        elif row.claimed > row.last:
            missing = row.last + 1
        last = max(row.last, row.claimed)
        return Numbers(
            row.cluster, row.host, row.first, last, row.first_time, missing, row.cloned_at
        )

    def _read_topic(self, source: Source, number: int) -> None:
        topic = self._found.topic(source)
        self._read_tallies(topic, number)
        self._read_decisions(_OF_BUCKETS, number, *self._window)
        self._read_recounts(topic, number)
        rows = self._connection.execute("SELECT agent FROM agents WHERE source = ?", (number,))
        topic.agents = {agent for (agent,) in rows}
        self._read_losses(topic, source, number)
        self._read_gaps(topic, source, number)
        self._read_coverage(topic, number)
        self._read_rereadings(topic, number)

    def _read_tallies(self, topic: TopicEvidence, number: int) -> None:
        filtered = self._read_filtered(number)
        rows = self._connection.execute(
            "SELECT bucket, bucket_ms, columns FROM tallies"
            " WHERE source = ? AND bucket >= ? AND bucket < ?",
            (number, *self._window),
        )
        for bucket, bucket_ms, columns in rows:
            each = bucket, bucket_ms
            topic.tallies[each] = BucketTallies(
                TallyColumns.unpack(columns), self._keys, filtered.get(each, {})
            )

    def _read_filtered(self, number: int) -> dict[BucketId, dict[tuple[int, int], list[Filtered]]]:
        """What rules left out, by bucket, agent and sender; sorted by rule."""
        rows = self._connection.execute(
            "SELECT bucket, bucket_ms, agent, sender, rule, records, bytes FROM filtered"
            " WHERE source = ? AND bucket >= ? AND bucket < ? ORDER BY rule",
            (number, *self._window),
        )
        found: dict[BucketId, dict[tuple[int, int], list[Filtered]]] = {}
        for bucket, bucket_ms, agent, sender, *each in rows:
            by_tally = found.setdefault((bucket, bucket_ms), {})
            by_tally.setdefault((agent, sender), []).append(Filtered(*each))
        return found

    def _read_losses(self, topic: TopicEvidence, source: Source, number: int) -> None:
        rows = self._connection.execute(
            "SELECT sender, number, time, agent, file, first, end, certainty, reason,"
            " from_bucket, to_bucket FROM losses WHERE source = ?",
            (number,),
        )
        for sender, told, time, agent, file, first, end, certainty, reason, *span in rows:
            loss = Loss(source, agent, file, first, end, Certainty(certainty), reason, *span)
            note = loss_note(self._keys[sender], told, time, loss)
            topic.losses.setdefault(agent, []).append(note)
            if _may_be_in(self._window, loss):
                self._read_path(topic, number, agent, file)

    def _read_path(self, topic: TopicEvidence, number: int, agent: int, file: int) -> None:
        row = self._connection.execute(_PATH, (agent, file, number)).fetchone()
        if row is not None:
            topic.paths[agent, file] = row[0]

    def _read_recounts(self, topic: TopicEvidence, number: int) -> None:
        query = "SELECT value FROM recounts WHERE source = ? ORDER BY output"
        found = (messages.decode(value) for (value,) in self._connection.execute(query, (number,)))
        topic.recounts += [x for x in found if isinstance(x, RecountResult)]

    def _read_gaps(self, topic: TopicEvidence, source: Source, number: int) -> None:
        rows = self._connection.execute(
            "SELECT sender, time, partition, first, end, reason FROM gaps WHERE source = ?",
            (number,),
        )
        for sender, time, *gap in rows:
            topic.gaps.append(GapNote(self._keys[sender], time, Gap(source, *gap)))

    def _read_coverage(self, topic: TopicEvidence, number: int) -> None:
        rows = self._connection.execute(
            "SELECT sender, partition, first, end FROM coverage WHERE source = ?", (number,)
        )
        for sender, partition, first, end in rows:
            covered = topic.coverage.setdefault(self._keys[sender], {})
            covered[partition] = Coverage(first, end)

    def _read_rereadings(self, topic: TopicEvidence, number: int) -> None:
        by_birth = self._read_notes(_BY_BIRTH, number)
        by_beginning = self._read_notes(_BY_BEGINNING, number)
        files = [*by_birth, *filter(is_untold, by_beginning)]
        topic.rereadings = rereadings(files, self._found.first_heard, self._found.last_heard)

    def _read_notes(self, query: str, number: int) -> Iterable[list[FileNote]]:
        """The notes of each file that several agents announced. In a row, the first columns
        identify the file, and the last columns are one agent's note."""
        notes: dict[tuple[object, ...], list[FileNote]] = {}
        for row in self._connection.execute(query, {"source": number}):
            identity, note = row[: -len(FileNote._fields)], row[-len(FileNote._fields) :]
            notes.setdefault(identity, []).append(FileNote(*note))
        return notes.values()

    def _losses_by_name(self) -> dict[tuple[str, str], list[LossNote]]:
        """For each topic name, the losses of the topic, of the topic of its rejects, and of earlier
        topics with that name."""
        found: dict[tuple[str, str], list[LossNote]] = {}
        for source, topic in self._found.topics.items():
            found.setdefault(_name(source), []).extend(chain.from_iterable(topic.losses.values()))
        return found


def _name(source: Source) -> tuple[str, str]:
    return source.cluster, source.topic.removesuffix(REJECTED_SUFFIX)


def _may_be_in(window: Window, loss: Loss) -> bool:
    """Whether the loss may concern a bucket of the window. A loss without a known end, first bucket
    or last bucket may concern any bucket."""
    begin, end = window
    if begin >= end or None in (loss.end, loss.from_bucket, loss.to_bucket):
        return begin < end
    return loss.to_bucket is not None and loss.to_bucket >= begin


def _with_parents(topics: Sequence[str] | None) -> set[str] | None:
    """Returns the given topics and, for each topic of rejects among them, also the topic whose
    lines were rejected."""
    if topics is None:
        return None
    return set(topics) | {topic.removesuffix(REJECTED_SUFFIX) for topic in topics}
