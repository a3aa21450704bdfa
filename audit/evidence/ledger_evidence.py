"""Reads evidence from the ledger's tables, for a window of buckets.

This module reads sums only for the window, and only the seals that a judgement can use. It reads
all message numbers, losses, gaps and ranges of counted offsets, because they may concern any
bucket.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.database import storable
from skidway.audit.evidence import pruning, tally_rows
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.announced import Announced, Notes
from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.evidence import (
    Coverage,
    Evidence,
    GapNote,
    LossNote,
    Numbers,
    TopicEvidence,
    Window,
    agent_named,
    loss_note,
    only_claimed,
)
from skidway.audit.evidence.hearing import Log, Offsets, Reading
from skidway.audit.evidence.ledger_seals import Asked, LedgerSeals
from skidway.audit.evidence.loss_buckets import accepted_ends, loss_buckets
from skidway.audit.evidence.number_rows import first_missing
from skidway.audit.evidence.overlaps import partners
from skidway.audit.evidence.refused import refused
from skidway.audit.evidence.rereading import FileNote, is_untold, rereadings
from skidway.audit.evidence.statuses import Statuses
from skidway.audit.evidence.tallies import BucketId, BucketTallies, SenderIds, SenderKey
from skidway.audit.signing.identity import Identity, Role
from skidway.audit.topic import claims, messages, notes, source_report, transactions
from skidway.audit.topic.count_columns import LONGEST_MS, Filtered
from skidway.audit.topic.decisions import Acceptance, Disownment, Lasting
from skidway.audit.topic.messages import Bounds, Certainty, Gap, Loss, Tier
from skidway.audit.topic.program_status import KIND
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source

NO_BUCKETS: Window = (0, 0)
"""A window without buckets. With this window, neither counts nor other evidence about single
buckets is read."""

_TIERS = {tier.value: tier for tier in Tier}

_STANDING = """
SELECT value, signed FROM decisions WHERE revoked IS NULL
    AND id NOT IN (SELECT revoked FROM decisions WHERE revoked IS NOT NULL)
"""
_REMAINING = f"{_STANDING} AND source IS NULL"
_OF_BUCKETS = f"{_STANDING} AND source = ? AND bucket >= ? AND bucket < ?"
"""Queries for decisions that nobody took back. `_OF_BUCKETS` selects the decisions about the
buckets of one topic in a window. `_REMAINING` selects the decisions that name no bucket."""

_UNREAD = "SELECT fingerprint, sum(count) FROM unread GROUP BY fingerprint"

_REBUILDING = """
SELECT coalesce(sum(max(end - coalesce(next_offset, 0), 1)), 0)
FROM rebuild LEFT JOIN positions USING (topic, partition)
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
"""  # noqa: S608 - inserts only constants
"""Selects the agents and file ids of each file that several agents announced. In this query, two
announcements belong to one file if their host, inode and time of birth are equal."""

_BY_BEGINNING = f"""
SELECT host, device, inode, length, fingerprint, f.time, agent, file, f.path, x.born, ({_REPLACED})
FROM files AS f JOIN inodes AS x USING (source, host, inode, agent, file)
WHERE source = :source AND (host, device, inode, length, fingerprint) IN (
    SELECT host, device, inode, length, fingerprint FROM files WHERE source = :source
    GROUP BY host, device, inode, length, fingerprint HAVING min(agent) < max(agent)
)
"""  # noqa: S608 - inserts only constants
"""Selects the agents and file ids of each file that several agents announced. In this query, two
announcements belong to one file if their host, device, inode and fingerprint of the first bytes are
equal."""


def read(
    connection: sqlite3.Connection,
    window: Window,
    topics: Sequence[str] | None,
    *,
    is_counted: bool = True,
    announced: Announced | None = None,
) -> Evidence:
    """Reads all evidence from one snapshot of the database, in a deferred transaction. is_counted:
    whether the evidence includes the tallies of the window's buckets. announced: this connection's
    cache of agents and announced files; None if it has no cache."""
    connection.execute("BEGIN")
    with connection:
        return _Reader(connection, window, announced, is_counted=is_counted).evidence(topics)


def notes_of_files(connection: sqlite3.Connection, source: int) -> Notes:
    """Returns the announcements (rereading.FileNote) of a topic's files, but only of files that
    several agents announced.
    """
    by_birth = _read_notes(connection, _BY_BIRTH, source)
    by_beginning = _read_notes(connection, _BY_BEGINNING, source)
    return [*by_birth, *filter(is_untold, by_beginning)]


def _read_notes(
    connection: sqlite3.Connection, query: str, number: int
) -> Iterable[list[FileNote]]:
    """Returns, for each file, the notes of all agents that announced the file. In each row of the
    query, the first columns identify the file, and the last columns are one agent's note.
    """
    notes: dict[tuple[object, ...], list[FileNote]] = {}
    for row in connection.execute(query, {"source": number}):
        identity, note = row[: -len(FileNote._fields)], row[-len(FileNote._fields) :]
        notes.setdefault(identity, []).append(FileNote(*note))
    return notes.values()


def with_counts(
    connection: sqlite3.Connection,
    whole: Evidence,
    window: Window,
    topics: Sequence[str] | None,
    senders: SenderIds,
    numbers: AgentNumbers,
) -> Evidence:
    """Like `read`, but reads only the counts of the window's buckets, and which of them were
    deleted. Takes all other evidence from `whole`. whole: evidence without counts; it must come
    from the present state of the database. The result shares values with `whole`, so the caller
    must change neither of the two.
    """
    wanted, (begin, end) = _with_parents(topics), window
    known = connection.execute("SELECT * FROM sources").fetchall() if begin < end else []
    sources = {Source(*parts): number for number, *parts in known}
    found: dict[Source, TopicEvidence] = {}
    for source, topic in whole.topics.items():
        if wanted is None or source.topic in wanted:
            accepted = [x for x in topic.acceptances if begin <= x.bucket < end]
            later = accepted_ends(topic.acceptances, _losses_of(topic), end) if begin < end else []
            found[source] = each = replace(
                topic, acceptances=accepted, loss_acceptances=later, tallies={}, pruned=set()
            )
            if source in sources:
                number = sources[source]
                each.tallies = StoredTallies(connection, number, window, senders, numbers)
                each.pruned.update(pruning.pruned(connection, number, window))
    asked = None if topics is None else frozenset(topics)
    return replace(whole, topics=found, asked=asked, window=window)


class StoredTallies(Mapping[BucketId, BucketTallies]):
    """The tallies of those buckets of a topic that begin in a window of time. The tallies of a
    bucket are read only when they are needed. Memory holds only the tallies of the bucket that was
    read last.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        source: int,
        window: Window,
        senders: SenderIds,
        numbers: AgentNumbers,
    ) -> None:
        self._connection = connection
        self._source = source
        self._senders = senders
        self._numbers = numbers
        self._last: tuple[BucketId, BucketTallies] | None = None
        rows = connection.execute(
            "SELECT bucket, bucket_ms FROM tallies WHERE source = ? AND bucket >= ? AND bucket < ?",
            (source, *window),
        )
        self._keys = dict.fromkeys(rows)

    def __getitem__(self, bucket: BucketId) -> BucketTallies:
        if bucket not in self._keys:
            raise KeyError(bucket)
        if self._last is None or self._last[0] != bucket:
            columns = tally_rows.read(self._connection, (self._source, *bucket), self._numbers)
            if columns is None:  # deleted by the writer's connection
                raise KeyError(bucket)
            window = bucket[0], bucket[0] + 1
            left_out = filtered(self._connection, self._source, window).get(bucket, {})
            found = BucketTallies(columns, self._senders, left_out)
            self._last = bucket, found
        return self._last[1]

    def __contains__(self, bucket: object) -> bool:
        return bucket in self._keys

    def __iter__(self) -> Iterator[BucketId]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def sender_ids(connection: sqlite3.Connection) -> SenderIds:
    """Returns the key of each sender, by the id that the ledger gave the sender."""
    rows = connection.execute("SELECT id, tier, producer, epoch FROM senders")
    return SenderIds((id_, SenderKey(_TIERS[tier], *rest)) for id_, tier, *rest in rows)


def filtered(
    connection: sqlite3.Connection, source: int, window: Window
) -> dict[BucketId, dict[tuple[int, int], list[Filtered]]]:
    """How many records each rule of an agent left out, by bucket, agent and sender, sorted by
    rule."""
    rows = connection.execute(
        "SELECT bucket, bucket_ms, agent, sender, rule, records, bytes FROM filtered"
        " WHERE source = ? AND bucket >= ? AND bucket < ? ORDER BY rule",
        (source, *window),
    )
    found: dict[BucketId, dict[tuple[int, int], list[Filtered]]] = {}
    for bucket, bucket_ms, agent, sender, *each in rows:
        by_tally = found.setdefault((bucket, bucket_ms), {})
        by_tally.setdefault((agent, sender), []).append(Filtered(*each))
    return found


def decisions(connection: sqlite3.Connection) -> list[Lasting]:
    """Returns the decisions that nobody took back."""
    return list(_decisions(connection, _STANDING))


def unread(connection: sqlite3.Connection) -> dict[str, int]:
    """Returns how many messages this version cannot decode because it lacks their schema, by the
    schema's fingerprint; without those that somebody disowned."""
    found = dict(connection.execute(_UNREAD))
    if found:
        for each in _decisions(connection, _REMAINING):
            if isinstance(each, Disownment):
                found.pop(each.fingerprint, None)
    return found


def _decisions(connection: sqlite3.Connection, query: str, *values: int) -> Iterator[Lasting]:
    for value, signed in connection.execute(query, values):
        found = messages.decode(value)
        if isinstance(found, Lasting):
            yield replace(found, is_signed=bool(signed))


def rebuilding(connection: sqlite3.Connection) -> int:
    """How many messages the ledger must still read before it is rebuilt; 0 if it is complete."""
    (missing,) = connection.execute(_REBUILDING).fetchone()
    return int(missing)


class _SenderRow(NamedTuple):
    """A row of the table `senders`. first: the least number of the deltas and seals that arrived;
    None if only heartbeats arrived."""

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
    def __init__(
        self,
        connection: sqlite3.Connection,
        window: Window,
        announced: Announced | None = None,
        *,
        is_counted: bool = True,
    ) -> None:
        self._connection = connection
        self._announced = announced
        self._window = window
        self._is_counted = is_counted
        self._found = Evidence()
        self._keys = SenderIds()

    def evidence(self, topics: Sequence[str] | None) -> Evidence:
        found, select = self._found, self._connection.execute
        self._read_senders()
        found.hosts = dict(select("SELECT agent, host FROM host_names"))
        for agent, host, time in select("SELECT agent, host, time FROM beginnings"):
            found.began[agent] = min(found.began.get(agent, time), time)
            if host == found.hosts.get(agent):
                found.began_here[agent] = time
        said = select("SELECT agent, lateness, ahead FROM bounds")
        found.bounds = {agent: Bounds(*bounds) for agent, *bounds in said}
        rows = select("SELECT tier, producer, time FROM last_seen")
        found.last_seen = {(_TIERS[tier], producer): time for tier, producer, time in rows}
        self._read_decisions(_REMAINING)
        self._read_unread()
        found.refused = tuple(refused(self._connection))
        found.unproven = bool(select("SELECT unproven FROM meta").fetchone()[0])
        values = select("SELECT value FROM notes WHERE kind = ? ORDER BY producer", (KIND,))
        found.statuses = Statuses([value for (value,) in values])
        values = select("SELECT value FROM notes WHERE kind = ?", (source_report.KIND,))
        for note in (notes.decode(value) for (value,) in values):
            report = source_report.report_of(note.body)
            found.source_reports[agent_named(note.producer)] = report
        found.rebuilding = rebuilding(self._connection)
        self._read_hearings()
        found.asked = None if topics is None else frozenset(topics)
        found.window = self._window
        wanted = _with_parents(topics)
        known = select("SELECT * FROM sources").fetchall()
        sources = {Source(*parts): number for number, *parts in known}
        read = {x: n for x, n in sources.items() if wanted is None or x.topic in wanted}
        for source, number in read.items():
            self._read_topic(source, number)
        self._read_transactions(read.keys())
        losses = self._losses_by_name()
        seals = LedgerSeals(self._connection, found.senders, found.last_heard)
        seals.read(Asked(n, found.topic(x), losses[_name(x)]) for x, n in read.items())
        return found

    def _read_transactions(self, sources: Collection[Source]) -> None:
        query = "SELECT value FROM notes WHERE kind = ?"
        for (value,) in self._connection.execute(query, (transactions.KIND,)):
            note = notes.decode(value)
            for source, told in transactions.transactions_of(note).items():
                if source in sources:
                    self._found.topic(source).transactions[note.producer] = told

    def _read_hearings(self) -> None:
        found, select = self._found, self._connection.execute
        rows = select("SELECT tier, producer, time FROM heard")
        found.heard = {(_TIERS[tier], producer): time for tier, producer, time in rows}
        rows = select(
            "SELECT tier, producer, epoch, others, behind FROM counted_until"
            " JOIN senders ON id = sender"
        )
        for tier, producer, epoch, *said in rows:
            found.counted[SenderKey(_TIERS[tier], producer, epoch)] = CountedUntil.from_row(*said)
        rows = select("SELECT * FROM readings")
        found.readings = {(_TIERS[tier], producer): Reading(*x) for tier, producer, *x in rows}
        for host, agent, *log, first, last in select("SELECT * FROM offsets"):
            if host == found.hosts.get(agent):
                found.offsets.setdefault(agent, {})[Log(*log)] = Offsets(first, last)
        rows = select("SELECT agent, epoch, taken FROM resumed")
        found.resumed = {(agent, epoch): taken_ms for agent, epoch, taken_ms in rows}
        found.overlaps = partners(select("SELECT agent, other FROM overlaps"))
        (found.taken_ms,) = select("SELECT taken FROM meta").fetchone()

    def _read_decisions(self, query: str, *values: int) -> None:
        self._found.decided(_decisions(self._connection, query, *values))

    def _read_senders(self) -> None:
        rows = self._connection.execute("SELECT * FROM senders ORDER BY id").fetchall()
        for row in map(_SenderRow._make, rows):
            key = self._keys[row.id] = SenderKey(_TIERS[row.tier], row.producer, row.epoch)
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
        if self._is_counted:
            numbers = AgentNumbers(self._connection)
            stored = StoredTallies(self._connection, number, self._window, self._keys, numbers)
            topic.tallies = dict(stored)
            topic.pruned = set(pruning.pruned(self._connection, number, self._window))
        self._read_decisions(_OF_BUCKETS, number, *self._window)
        self._read_recounts(topic, number)
        if self._announced is None:
            rows = self._connection.execute("SELECT agent FROM agents WHERE source = ?", (number,))
            topic.agents = {agent for (agent,) in rows}
        else:
            topic.agents = self._announced.agents(number)
        self._read_losses(topic, source, number)
        self._read_gaps(topic, source, number)
        self._read_coverage(topic, number)
        self._read_rereadings(topic, number)

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
        topic.lossy = self._loss_buckets(topic, number)
        topic.loss_acceptances = self._loss_acceptances(topic, number)

    def _loss_acceptances(self, topic: TopicEvidence, number: int) -> list[Acceptance]:
        """Returns the acceptances of those buckets that begin after the window, and in which a loss
        of the topic ends."""
        (begin, end), losses = self._window, list(_losses_of(topic))
        last = max((x.to_bucket for x in losses if x.to_bucket is not None), default=end)
        if begin >= end or last < end:
            return []
        return accepted_ends(self._acceptances(number, end, storable(last + 1)), losses, end)

    def _acceptances(self, number: int, first: int, last: int) -> Iterator[Acceptance]:
        """Yields the acceptances of a topic's buckets that begin in [first, last)."""
        found = _decisions(self._connection, _OF_BUCKETS, number, first, last)
        yield from (each for each in found if isinstance(each, Acceptance))

    def _loss_buckets(self, topic: TopicEvidence, number: int) -> set[BucketId]:
        begin, end = self._window
        declared = (note.loss.to_bucket for notes in topic.losses.values() for note in notes)
        times = {x for x in declared if x is not None and begin <= x < end + LONGEST_MS}
        if begin >= end:
            return set()

        def accepted(first: int, last: int) -> Iterator[BucketId]:
            for found in self._acceptances(number, first, last):
                yield found.bucket, found.bucket_ms

        cached = self._announced
        counted = set[int]() if cached is None else cached.counted_losses(number)
        found = loss_buckets(self._connection, number, times, accepted, counted)
        return {x for x in found if begin <= x[0] < end}

    def _read_path(self, topic: TopicEvidence, number: int, agent: int, file: int) -> None:
        row = self._connection.execute(_PATH, (agent, file, number)).fetchone()
        if row is not None:
            topic.paths[agent, file] = row[0]

    def _read_unread(self) -> None:
        """Reads how many messages were not read, and what they may concern."""
        found, select = self._found, self._connection.execute
        disowned = {x.fingerprint for x in found.disownments}
        for fingerprint, name, count in select("SELECT fingerprint, identity, count FROM unread"):
            about = [found.disowned if fingerprint in disowned else found.unread]
            if name and fingerprint not in disowned:
                identity = Identity.parse(name)
                if identity.role is Role.AGENT:
                    own = select("SELECT DISTINCT agent FROM owners WHERE identity = ?", (name,))
                    about = [found.unread_of_agents.setdefault(agent, {}) for (agent,) in own]
                elif (cluster := claims.only_cluster(identity)) is not None:
                    about = [found.unread_of_clusters.setdefault(cluster, {})]
                elif identity.role is Role.RECOUNT:
                    about = []
            for each in about:
                each[fingerprint] = each.get(fingerprint, 0) + count

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
        known = self._announced
        files = notes_of_files(self._connection, number) if known is None else known.notes(number)
        topic.rereadings = rereadings(files, self._found.first_heard, self._found.last_heard)

    def _losses_by_name(self) -> dict[tuple[str, str], list[LossNote]]:
        """For each topic name, the losses of the topic, of the topic of its rejects, and of earlier
        topics with that name."""
        found: dict[tuple[str, str], list[LossNote]] = {}
        for source, topic in self._found.topics.items():
            found.setdefault(_name(source), []).extend(chain.from_iterable(topic.losses.values()))
        return found


def _name(source: Source) -> tuple[str, str]:
    return source.cluster, source.topic.removesuffix(REJECTED_SUFFIX)


def _losses_of(topic: TopicEvidence) -> Iterator[Loss]:
    return (note.loss for notes in topic.losses.values() for note in notes)


def _may_be_in(window: Window, loss: Loss) -> bool:
    """Whether the loss may concern a bucket of the window. A loss without a known end, first bucket
    or last bucket may concern any bucket."""
    begin, end = window
    if begin >= end or None in (loss.end, loss.from_bucket, loss.to_bucket):
        return begin < end
    return loss.to_bucket is not None and loss.to_bucket >= begin


def _with_parents(topics: Sequence[str] | None) -> set[str] | None:
    """Returns the given topics and, for each topic of rejects among them, also the topic whose
    lines were rejected. None stands for all topics."""
    if topics is None:
        return None
    return set(topics) | {topic.removesuffix(REJECTED_SUFFIX) for topic in topics}
