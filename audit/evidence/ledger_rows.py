"""Turns one message into the ledger's rows. The rows depend neither on the order of messages nor on
repetitions, with these exceptions:

    clones     of several messages with one number and different contents, the ledger adds the
               counts and the seals of the message that it read first
    hearings   some rows depend on when and where messages were read (see the module hearing)

Most rows are a sum, a minimum or a maximum over distinct messages. Some rows change with nearly
every message. The changes of these rows are first added up in memory (see pending_rows). The caller
begins the transaction. If the transaction fails, the database no longer has the ids that `Rows`
assigned to sources and senders, so the caller must make a new `Rows`.

If a message with the same number is known already, this module compares the digests of the two
messages (see number_rows). The new message is a repetition if the digests are equal, and a clone if
they differ.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from skidway import log
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence import pruning
from skidway.audit.evidence.admission import Admission, Signatures
from skidway.audit.evidence.evidence import agent_named, agent_of, agents_in, sender_key
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.number_rows import NumberRows, digest_of
from skidway.audit.evidence.pending_rows import PendingRows
from skidway.audit.evidence.pruning import OldBucket
from skidway.audit.evidence.rereading import identity_of, replaced_by
from skidway.audit.evidence.seal_rows import SealRows
from skidway.audit.evidence.sender_rows import SenderRows
from skidway.audit.evidence.tallies import BucketId, SenderKey, TallyColumns
from skidway.audit.evidence.tally_rows import TallyRows
from skidway.audit.signing.verifier import Verified
from skidway.audit.topic import (
    backlog,
    fieldless_note,
    load_note,
    program_status,
    retention,
    source_report,
    transactions,
    usual_messages,
)
from skidway.audit.topic.count_columns import CountColumns
from skidway.audit.topic.decisions import OTHERS, Acceptance, Decision, Revocation
from skidway.audit.topic.messages import (
    Announcement,
    Delta,
    Heartbeat,
    MessageRefused,
    SchemaUnknown,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealColumns
from skidway.audit.topic.source_names import sources_of
from skidway.kafka.source import Source

NOTES = {
    backlog.KIND: 1, fieldless_note.KIND: 1, retention.KIND: 1, program_status.KIND: 1,
    source_report.KIND: 1, transactions.KIND: 1, load_note.KIND: load_note.KEPT,
}  # fmt: skip
"""For each kind of notes that the ledger keeps: how many notes of this kind it keeps for each
producer.
"""

_FINGERPRINTS_MAX = 64
"""For at most this many schemas of each signer, unread messages are counted separately, by
fingerprint. The unread messages of all its other schemas are counted together, under the name
OTHERS."""

_NAMED_MAX = 1_000
"""A message contains the names of its source topics as one text. Memory holds at most this many of
these texts, each with the ids of its topics, because most messages contain one of a few texts."""

_SENDERS_KNOWN_MAX = 1 << 16
"""Memory holds the ledger's ids of at most this many objects `Sender`."""

_SEALING_MAX = 1 << 16
"""When an agent first seals a list of topics, the ledger stores that the agent has these topics. It
need not store this again at later seals of the same list. So memory holds the pairs of an agent and
a list of topics that are stored already, at most this many pairs. When there are this many, all of
them are deleted from memory before the next pair is added."""

_NO_BEAT = (-1, 0)
"""Comes before number and time of every heartbeat."""

_NUMBERED = (Delta, Seal)

_log = log.get(__name__)

NOT_SIGNED = Signatures()

_INODE_UPSERT = """
INSERT INTO inodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    path = CASE WHEN (excluded.time, excluded.path) < (time, path) THEN excluded.path ELSE path END,
    time = min(time, excluded.time),
    born = min(coalesce(born, excluded.born), coalesce(excluded.born, born)),
    replaced = CASE WHEN replaced IS excluded.replaced THEN replaced END
"""


class Rows:
    """Writes messages into the tables, and assigns the numbers by which the tables name source
    topics and senders. A ledger has only one writer."""

    def __init__(self, connection: sqlite3.Connection, signatures: Signatures = NOT_SIGNED) -> None:
        self._connection = connection
        self._admission = Admission(connection, signatures)
        self._sources: dict[Source, int] = {}
        self._senders: dict[SenderKey, int] = {}
        self._known: dict[int, tuple[Sender, int]] = {}
        """For each object `Sender`, by Python's `id` of the object: the object, and the ledger's id
        of the sender. (See SenderRows.)"""
        self._heard = SenderRows(connection)
        self._beats: dict[int, tuple[int, int]] = {}
        """Number and time of the newest heartbeat of each sender, by the ledger's id."""
        self._pending = PendingRows()
        self._numbers = NumberRows(connection)
        self._tallies = TallyRows(connection)
        self._seals = SealRows(connection)
        self._named: dict[str, list[int]] = {}
        self._sealing: set[tuple[int, str]] = set()

    def take(self, value: bytes, where: Heard | None) -> bool:
        """Decodes a record of an audit topic, and writes some of its rows into the ledger; `write`
        writes its other rows. Returns False for a message that only a newer version can read.
        """
        proof = self._admission.verify(value, where)
        try:
            message = usual_messages.decode(value)
        except SchemaUnknown as error:
            if not self._admission.admits_unread(proof, where):
                return True
            self._take_unread(error, proof)
            return False
        except MessageRefused:
            self._admission.refuse(proof, where)
            return True
        if not self._admission.admits(proof, message, where):
            return True
        if isinstance(message, _NUMBERED):  # nearly all messages
            self._take_numbered(message, value, where)
        elif isinstance(message, Announcement):
            self._heard.announce(message)
            self._take_announcement(message)
        elif isinstance(message, Decision):
            is_signed = proof.identity is not None and proof.flaw is None
            self._take_decision(message, value, is_signed=is_signed)
        elif isinstance(message, RecountResult):
            self._take_result(message, value)
        elif isinstance(message, Heartbeat):
            self._take_heartbeat(message, where)
        else:
            self._take_note(message, value)
        return True

    def write(self) -> None:
        """Writes the rows of all records that were taken since the last call."""
        pending, self._pending = self._pending, PendingRows()
        pending.write(self._connection)
        self._heard.write()
        self._numbers.write()
        self._tallies.write()
        self._seals.write()

    def tallies(self, source: Source, bucket: int, bucket_ms: int) -> TallyColumns | None:
        """The tallies of a bucket; None if there are none."""
        return self._tallies.of((self.source_id(source), bucket, bucket_ms))

    def additions(self, source: Source, bucket: BucketId) -> int:
        """How many further rows the store has for this bucket beside its first row."""
        return self._tallies.additions((self.source_id(source), *bucket))

    def narrow(self, buckets: Iterable[tuple[Source, BucketId]]) -> None:
        """Keeps only the low 24 bits of the checksums of these buckets."""
        for source, bucket in buckets:
            self._tallies.narrow((self.source_id(source), *bucket))

    def merge(self, buckets: Iterable[tuple[Source, BucketId]]) -> None:
        """Puts all counts of each of these buckets into one row."""
        for source, bucket in buckets:
            self._tallies.merge((self.source_id(source), *bucket))

    def source_id(self, source: Source) -> int:
        """The ledger's id of a source topic. Some message must have mentioned the topic."""
        return self._sources.get(source) or self._source(source)

    def prune(self, old: Iterable[OldBucket]) -> int:
        """Deletes those of the buckets `old` whose counts have not changed since they were judged.
        Returns the number of deleted buckets.
        """
        deleted = pruning.delete_buckets(self._connection, old, self._source, self._tallies.of)
        for key in deleted:
            self._tallies.forget(key)
        return len(deleted)

    def settle(self, after: int, count: int, before_ms: int, settled_ms: int) -> int | None:
        """For the next `count` senders, deletes the digests of messages from before `settled_ms`,
        and the seals from before `before_ms` that no verdict needs (see pruning). If the message
        with the number 1 of a sender is missing, the limit for the sender's digests is `before_ms`,
        too. Also deletes all notes from before `before_ms`, and the counts of messages that were
        refused before then. after: the id of the last sender that the previous call handled.
        Returns the id of the last sender that this call handled; None if fewer than `count` senders
        were left."""
        rows = self._connection.execute(
            "SELECT id, tier, producer, epoch, first FROM senders WHERE id > ? ORDER BY id LIMIT ?",
            (after, count),
        ).fetchall()
        whole = [(sender, first) for sender, *_, first in rows if first == 1]
        cut = [(sender, first) for sender, *_, first in rows if first not in (None, 1)]
        epochs = {sender: x for sender, tier, *x, _ in rows if tier == Tier.AGENT.value}
        settled = [
            *self._numbers.settle(whole, settled_ms), *self._numbers.settle(cut, before_ms),
        ]  # fmt: skip
        for block, sender in settled:
            if sender in epochs and not pruning.is_special(self._connection, epochs[sender][0]):
                producer, epoch = epochs[sender]
                self._seals.thin(agent_named(producer), epoch, block)
        agents = [producer for producer, _ in epochs.values()]
        pruning.delete_seals(self._connection, agents, before_ms)
        self._connection.execute("DELETE FROM notes WHERE time < ?", (before_ms,))
        self._connection.execute("DELETE FROM refused WHERE taken < ?", (before_ms,))
        return rows[-1][0] if len(rows) == count else None

    def _take_unread(self, error: SchemaUnknown, proof: Verified) -> None:
        signed = "" if proof.identity is None or proof.flaw is not None else str(proof.identity)
        rows = self._connection.execute(
            "SELECT fingerprint FROM unread WHERE identity = ?", (signed,)
        )
        known, name = {fingerprint for (fingerprint,) in rows}, error.fingerprint
        if name not in known and len(known - {OTHERS}) >= _FINGERPRINTS_MAX:
            name = OTHERS
        if name not in known:
            _log.error("audit_schema_unknown", fingerprint=error.fingerprint, reason=str(error))
        self._connection.execute(
            "INSERT INTO unread VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (name, signed),
        )

    def _take_note(self, note: Note, value: bytes) -> None:
        """Stores a note, and so replaces an older note of the same kind, producer and slot. (The
        slot is the note's number modulo the number of notes of this kind that the ledger keeps.)
        Ignores notes that are older than the stored note, and notes of a kind that is not in NOTES.
        """
        if note.kind in NOTES:
            slot = note.number % NOTES[note.kind]
            self._connection.execute(
                "INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " (epoch, number, time, value) = (excluded.epoch, excluded.number, excluded.time,"
                " excluded.value) WHERE (excluded.epoch, excluded.number, excluded.time,"
                " excluded.value) > (epoch, number, time, value)",
                (note.kind, note.producer, slot, *note.rank, value),
            )

    def _take_announcement(self, message: Announcement) -> None:
        source = self._source(message.source)
        self._take_agent(source, message.agent)
        self._connection.execute(
            _INODE_UPSERT,
            (
                source, message.host, message.inode, message.agent, message.file,
                message.time_ms, message.path, message.born_ns, replaced_by(message),
            ),
        )  # fmt: skip
        identity = identity_of(message)
        if identity is None:
            return
        self._connection.execute(
            "INSERT INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " path = CASE WHEN (excluded.time, excluded.path) < (time, path)"
            " THEN excluded.path ELSE path END, time = min(time, excluded.time)",
            (source, *identity, message.agent, message.file, message.time_ms, message.path),
        )

    def _take_decision(self, message: Decision, value: bytes, *, is_signed: bool) -> None:
        revoked = message.revoked if isinstance(message, Revocation) else None
        source, bucket = None, None
        if isinstance(message, Acceptance):
            source, bucket = self._source(message.source), message.bucket
        self._connection.execute(
            "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET signed = max(signed, excluded.signed)",
            (message.id, value, revoked, source, bucket, is_signed),
        )

    def _take_result(self, message: RecountResult, value: bytes) -> None:
        """Stores the result of a recount in place of an older result with the same topic and
        output."""
        self._connection.execute(
            "INSERT INTO recounts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " (loads, time, value) = (excluded.loads, excluded.time, excluded.value)"
            " WHERE (excluded.loads, excluded.time, excluded.value) > (loads, time, value)",
            (
                self._source(message.source), message.output, message.loads, message.time_ms, value,
            ),
        )  # fmt: skip

    def _take_heartbeat(self, message: Heartbeat, where: Heard | None) -> None:
        sender = self._sender(message.sender)
        if where is None or self._is_newest(sender, message):
            self._heard.add(message, where)
        else:
            self._heard.repeat(message)
        self._pending.claim(sender, message, where)

    def _is_newest(self, sender: int, message: Heartbeat) -> bool:
        """Whether the sender sent no later heartbeat before this one, nor the same. Anybody can
        repeat a heartbeat, and a repeated one does not show that its sender is alive."""
        said, known = (message.number, message.time_ms), self._beats.get(sender)
        if known is None:
            if len(self._beats) >= _SENDERS_KNOWN_MAX:
                self._beats.clear()
            known = self._connection.execute(
                "SELECT claimed, claimed_time FROM senders WHERE id = ?", (sender,)
            ).fetchone()
            known = known if known != (0, 0) else _NO_BEAT
        self._beats[sender] = max(known, said)
        return said > known

    def _take_numbered(self, message: Delta | Seal, value: bytes, where: Heard | None) -> None:
        sender = self._sender(message.sender)
        digest = digest_of(value)
        known = self._numbers.add(sender, message.number, digest, message.time_ms)
        if known == digest:
            self._heard.repeat(message)
        else:
            self._heard.add(message, where)
        if known is None:
            self._pending.number(sender, message)
            if isinstance(message, Seal):
                self._add_seals(message, where)
            else:
                self._add_counts(sender, message, is_clone=False)
                self._add_progress(sender, message)
        elif known != digest and self._is_new_clone(sender, message.number, digest):
            self._add_clone(sender, message, digest)

    def _is_new_clone(self, sender: int, number: int, digest: bytes) -> bool:
        changed = self._connection.execute(
            "INSERT OR IGNORE INTO clones VALUES (?, ?, ?)", (sender, number, digest)
        ).rowcount
        self._connection.execute(
            "UPDATE senders SET cloned_at = min(coalesce(cloned_at, ?2), ?2) WHERE id = ?1",
            (sender, number),
        )
        return changed > 0

    def _add_clone(self, sender: int, message: Delta | Seal, digest: bytes) -> None:
        """Stores what a clone says, except its counts and seals. (A clone has the number of an
        earlier message, but other content.) The losses and gaps of both messages count, because
        either message may be the only one that declares them.
        """
        for source, agent in agents_in(message):
            self._take_agent(self._source(source), agent)
        if isinstance(message, Delta):
            self._add_counts(sender, message, is_clone=True)
            self._add_progress(sender, message, _place_of_clone(digest))

    def _add_counts(self, sender: int, message: Delta, *, is_clone: bool) -> None:
        counts = CountColumns.of(message.counts)
        sources = self._source_ids(counts.names)
        self._tallies.add(sender, message.number, counts, sources, is_clone=is_clone)

    def _add_progress(self, sender: int, message: Delta, first_place: int = 0) -> None:
        """Stores the losses, gaps and ranges of a message. first_place: the value of the column
        `place` for the first loss, and for the first gap. A clone's values differ from those of the
        earlier message with the same number.
        """
        number, time_ms = message.number, message.time_ms
        for place, loss in enumerate(message.losses, first_place):
            self._take_agent(self._source(loss.source), loss.agent)
            self._connection.execute(
                "INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._source(loss.source), sender, number, place, time_ms,
                    loss.agent, loss.file, loss.first, loss.end, loss.certainty.value,
                    loss.reason, loss.from_bucket, loss.to_bucket,
                ),
            )  # fmt: skip
        for place, gap in enumerate(message.gaps, first_place):
            self._connection.execute(
                "INSERT INTO gaps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._source(gap.source), sender, number, place, time_ms,
                    gap.partition, gap.first, gap.end, gap.reason,
                ),
            )  # fmt: skip
        for x in message.ranges:
            self._pending.cover((self._source(x.source), sender, x.partition), x.first, x.end)

    def _add_seals(self, message: Seal, where: Heard | None) -> None:
        agent, epoch = agent_of(message.sender), message.sender.epoch
        seals = SealColumns.of(message.topics)
        sources = self._source_ids(seals.names)
        if (agent, seals.names) not in self._sealing:
            if len(self._sealing) >= _SEALING_MAX:
                self._sealing.clear()
            self._sealing.add((agent, seals.names))
            for source in sources:
                self._take_agent(source, agent)
        newest_ms = self._seals.add(agent, epoch, message.number, seals, sources)
        if where is not None and newest_ms > where.arrived_ms:
            self._connection.execute(
                "INSERT OR IGNORE INTO seals_ahead VALUES (?, ?, ?, ?)",
                (agent, epoch, message.number, where.arrived_ms),
            )

    def _take_agent(self, source: int, agent: int) -> None:
        if agent != NO_AGENT:
            self._connection.execute("INSERT OR IGNORE INTO agents VALUES (?, ?)", (source, agent))

    def _source_ids(self, names: str) -> list[int]:
        """Returns the ids of the source topics that a message names in this text (see
        source_names).
        """
        if names not in self._named:
            if len(self._named) >= _NAMED_MAX:
                self._named.clear()
            self._named[names] = [self._source(source) for source in sources_of(names)]
        return self._named[names]

    def _source(self, source: Source) -> int:
        if source not in self._sources:
            parts = (source.cluster, source.cluster_id, source.topic, source.topic_id)
            self._connection.execute(
                "INSERT OR IGNORE INTO sources (cluster, cluster_id, topic, topic_id)"
                " VALUES (?, ?, ?, ?)",
                parts,
            )
            (self._sources[source],) = self._connection.execute(
                "SELECT id FROM sources WHERE (cluster, cluster_id, topic, topic_id)"
                " = (?, ?, ?, ?)",
                parts,
            ).fetchone()
        return self._sources[source]

    def _sender(self, sender: Sender) -> int:
        known = self._known.get(id(sender))
        if known is None:
            if len(self._known) >= _SENDERS_KNOWN_MAX:
                self._known.clear()
            known = self._known[id(sender)] = sender, self._sender_id(sender)
        return known[1]

    def _sender_id(self, sender: Sender) -> int:
        key = sender_key(sender)
        if key not in self._senders:
            parts = (sender.tier.value, sender.producer, sender.epoch)
            self._connection.execute(
                "INSERT OR IGNORE INTO senders (tier, producer, epoch, cluster, host, known,"
                " claimed, claimed_time) VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
                (*parts, sender.cluster, sender.host),
            )
            (self._senders[key],) = self._connection.execute(
                "SELECT id FROM senders WHERE (tier, producer, epoch) = (?, ?, ?)", parts
            ).fetchone()
        return self._senders[key]


def _place_of_clone(digest: bytes) -> int:
    """Returns the value of the column `place` for a clone's first loss, and for its first gap. (A
    clone has the number of an earlier message, but other content.) The values of different clones
    are so far apart that two clones never get the same value.
    """
    return (1 + int.from_bytes(digest[:5])) << 20
