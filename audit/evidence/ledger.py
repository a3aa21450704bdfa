"""The ledger: the fold of all messages, kept in SQLite, and evidence for any window out of it.

It holds as rows: sums per (source topic, bucket, agent, sender), numbers with a digest of their
content, seals, losses, gaps, coverage, files. A message and the position up to which its topic was
read are taken in one transaction, so nothing counts twice; and if it did come twice, its number is
known already. Everything can be rebuilt from the audit topics.

Numbers of messages and their digests tell a repetition (same content) from a clone (another one).
A digest is of the bytes, and the same message in the encoding of another version has other bytes:
it is compared in each encoding before it is called a clone.

A message of a schema that this version does not have (a newer one wrote it) may say anything of any
bucket. It is counted as unread, by the schema's fingerprint, and makes every verdict unknown; from
where it stood a version that has the schema reads the topics again, and takes what it says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from skidway import log
from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence import ledger_evidence
from skidway.audit.evidence.evidence import (
    FOREVER,
    Evidence,
    SenderKey,
    Window,
    agent_of,
    agents_in,
    hear,
    links_of,
    sender_key,
    sums_of,
)
from skidway.audit.evidence.hearing import Heard, Hearings, Log, Offsets, Reading, Spoken, then
from skidway.audit.evidence.overlaps import overlaps
from skidway.audit.evidence.rereading import identity_of, replaced_by
from skidway.audit.topic import messages
from skidway.audit.topic.decisions import Acceptance, Decision, Retirement, Revocation
from skidway.audit.topic.messages import (
    Announcement,
    Bounds,
    Count,
    Delta,
    Heartbeat,
    MessageRefused,
    SchemaUnknown,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas import single_object

FORMAT = 2
_UPGRADES = {1: "ALTER TABLE positions ADD COLUMN topic_id TEXT NOT NULL DEFAULT ''"}
_ADDITIONS = (
    """
CREATE TABLE IF NOT EXISTS finals (
    source INTEGER, agent INTEGER, epoch INTEGER, number INTEGER,
    PRIMARY KEY (source, agent, epoch, number)
) WITHOUT ROWID
""",
    "CREATE TABLE IF NOT EXISTS beginnings (agent INTEGER PRIMARY KEY, time INTEGER)",
    """
CREATE TABLE IF NOT EXISTS bounds (agent INTEGER PRIMARY KEY, lateness INTEGER, ahead INTEGER)
""",
    """
CREATE TABLE IF NOT EXISTS inodes (
    source INTEGER, host TEXT, inode INTEGER, agent INTEGER, file INTEGER, time INTEGER, path TEXT,
    born INTEGER, replaced INTEGER,
    PRIMARY KEY (source, host, inode, agent, file)
) WITHOUT ROWID
""",
    """
CREATE INDEX IF NOT EXISTS inodes_by_birth ON inodes (source, host, inode, born, agent)
WHERE born IS NOT NULL
""",
    "CREATE INDEX IF NOT EXISTS inodes_by_file ON inodes (agent, file)",
    "CREATE TABLE IF NOT EXISTS unread (fingerprint TEXT PRIMARY KEY, count INTEGER)",
    """
CREATE TABLE IF NOT EXISTS unread_from (
    topic TEXT, partition INTEGER, next_offset INTEGER, topic_id TEXT NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS heard (
    tier TEXT, producer TEXT, time INTEGER, PRIMARY KEY (tier, producer)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS readings (
    tier TEXT, producer TEXT, window INTEGER, least INTEGER, earlier INTEGER, earliest INTEGER,
    PRIMARY KEY (tier, producer)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS seals_ahead (
    agent INTEGER, epoch INTEGER, number INTEGER, taken INTEGER, PRIMARY KEY (agent, epoch, number)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS offsets (
    agent INTEGER, topic TEXT, topic_id TEXT, partition INTEGER, first INTEGER, last INTEGER,
    PRIMARY KEY (agent, topic, topic_id, partition)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS host_names (
    agent INTEGER PRIMARY KEY, epoch INTEGER, number INTEGER, time INTEGER, host TEXT
)
""",
    "CREATE INDEX IF NOT EXISTS host_names_by_name ON host_names (host)",
    """
CREATE TABLE IF NOT EXISTS resumed (
    agent INTEGER, epoch INTEGER, taken INTEGER, PRIMARY KEY (agent, epoch)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS overlaps (
    agent INTEGER, other INTEGER, PRIMARY KEY (agent, other)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER, value BLOB, revoked INTEGER, source INTEGER, bucket INTEGER, PRIMARY KEY (id, value)
) WITHOUT ROWID
""",
    "CREATE INDEX IF NOT EXISTS decisions_by_bucket ON decisions (source, bucket)",
    """
CREATE TABLE IF NOT EXISTS recounts (
    source INTEGER, output TEXT, value BLOB, PRIMARY KEY (source, output)
) WITHOUT ROWID
""",
)
"""Which seals are last words; when agents were heard first; what they take event times to be; when
the inodes of announced files were made, and whose content lay there before (see rereading);
messages of schemas that this version does not have, and from where the topics are to be read again
by one that has them; when senders were heard, their clocks, seals of clocks that were ahead, when
agents went on in a new epoch, and where agents' messages lie (see hearing), and which of them
were alive side by side (see overlaps); what their hosts are called, by the order of their
messages; what people decided and recounts found, as they said it. Tables that a program without
them does not miss: it opens the store all the same, so an upgrade of the collector can go back; so
they make no new format."""

_FINGERPRINTS_MAX = 64
"""Schemas counted by their fingerprints; the rest together, as ""."""

DATABASE = "audit.db"
"""Name of the file in the collector's store."""

_log = log.get(__name__)

_SCHEMA = """
CREATE TABLE senders (
    id INTEGER PRIMARY KEY, tier TEXT, producer TEXT, epoch INTEGER, cluster TEXT, host TEXT,
    first INTEGER, last INTEGER, known INTEGER, first_time INTEGER,
    claimed INTEGER, claimed_time INTEGER, cloned_at INTEGER,
    UNIQUE (tier, producer, epoch)
);
CREATE TABLE numbers (
    sender INTEGER, number INTEGER, digest BLOB, PRIMARY KEY (sender, number)
) WITHOUT ROWID;
CREATE TABLE clones (
    sender INTEGER, number INTEGER, digest BLOB, PRIMARY KEY (sender, number, digest)
) WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT,
    UNIQUE (cluster, cluster_id, topic, topic_id)
);
CREATE TABLE tallies (
    source INTEGER, bucket INTEGER, bucket_ms INTEGER, agent INTEGER, sender INTEGER,
    count INTEGER, bytes INTEGER, checksum INTEGER, rejects INTEGER, repeats INTEGER,
    first INTEGER, last INTEGER, links INTEGER,
    PRIMARY KEY (source, bucket, bucket_ms, agent, sender)
) WITHOUT ROWID;
CREATE TABLE seals (
    source INTEGER, agent INTEGER, epoch INTEGER, number INTEGER, sealed_until INTEGER, at INTEGER,
    PRIMARY KEY (source, agent, epoch, number)
) WITHOUT ROWID;
CREATE TABLE losses (
    source INTEGER, sender INTEGER, number INTEGER, place INTEGER, time INTEGER,
    agent INTEGER, file INTEGER, first INTEGER, end INTEGER, certainty TEXT, reason TEXT,
    from_bucket INTEGER, to_bucket INTEGER,
    PRIMARY KEY (source, sender, number, place)
) WITHOUT ROWID;
CREATE TABLE gaps (
    source INTEGER, sender INTEGER, number INTEGER, place INTEGER, time INTEGER,
    partition INTEGER, first INTEGER, end INTEGER, reason TEXT,
    PRIMARY KEY (source, sender, number, place)
) WITHOUT ROWID;
CREATE TABLE coverage (
    source INTEGER, sender INTEGER, partition INTEGER, first INTEGER, end INTEGER,
    PRIMARY KEY (source, sender, partition)
) WITHOUT ROWID;
CREATE TABLE agents (source INTEGER, agent INTEGER, PRIMARY KEY (source, agent)) WITHOUT ROWID;
CREATE TABLE hosts (agent INTEGER PRIMARY KEY, time INTEGER, host TEXT);
CREATE TABLE last_seen (
    tier TEXT, producer TEXT, time INTEGER, PRIMARY KEY (tier, producer)
) WITHOUT ROWID;
CREATE TABLE files (
    source INTEGER, host TEXT, device INTEGER, inode INTEGER, length INTEGER, fingerprint BLOB,
    agent INTEGER, file INTEGER, time INTEGER, path TEXT,
    PRIMARY KEY (source, host, device, inode, length, fingerprint, agent, file)
) WITHOUT ROWID;
CREATE TABLE positions (
    topic TEXT, partition INTEGER, next_offset INTEGER, topic_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE INDEX tallies_by_bucket ON tallies (bucket);
CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), refused INTEGER, taken INTEGER);
INSERT INTO meta VALUES (1, 0, 0)
"""

_TALLY_UPSERT = """
INSERT INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    count = count + excluded.count, bytes = bytes + excluded.bytes,
    checksum = add64(checksum, excluded.checksum),
    rejects = rejects + excluded.rejects, repeats = repeats + excluded.repeats,
    first = min(first, excluded.first), last = max(last, excluded.last),
    links = add64(links, excluded.links)
"""

_INODE_UPSERT = """
INSERT INTO inodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    path = CASE WHEN (excluded.time, excluded.path) < (time, path) THEN excluded.path ELSE path END,
    time = min(time, excluded.time),
    born = min(coalesce(born, excluded.born), coalesce(excluded.born, born)),
    replaced = CASE WHEN replaced IS excluded.replaced THEN replaced END
"""

_NAMESAKES = """
SELECT x.agent, y.agent FROM host_names AS x JOIN host_names AS y USING (host)
WHERE x.agent != y.agent AND x.agent IN (SELECT value FROM json_each(?))
"""

_COVERAGE_UPSERT = """
INSERT INTO coverage VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET first = min(first, excluded.first), end = max(end, excluded.end)
"""


class Position(NamedTuple):
    """How far a partition was read. topic_id: of the topic that was read, "" where not known."""

    next_offset: int
    topic_id: str = ""


class Ledger:
    """One database. A writer and readers in other threads each open their own."""

    def __init__(self, path: Path | str = IN_MEMORY) -> None:
        self._connection = open_database(path, _SCHEMA, FORMAT, _UPGRADES, _ADDITIONS)
        self._connection.create_function("add64", 2, checksum.add, deterministic=True)
        self._sources: dict[Source, int] = {}
        self._senders: dict[SenderKey, int] = {}

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
        places: where each of them lies, or nothing."""
        reached, hearings = positions or {}, Hearings()
        try:
            with transaction(self._connection):
                readable = [
                    self._take(value, where, hearings)
                    for value, where in zip_longest(values, places)
                ]
                self._take_hearings(hearings)
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
            self._sources, self._senders = {}, {}
            raise

    def positions(self) -> dict[TopicPartition, Position]:
        """How far each partition of an audit topic was read."""
        rows = self._connection.execute(
            "SELECT topic, partition, next_offset, topic_id FROM positions"
        )
        return {TopicPartition(name, partition): Position(*at) for name, partition, *at in rows}

    def read_again(self) -> bool:
        """Whether messages that an older version could not read can be read now: then the audit
        topics are to be read again from there on. For who collects, before it begins."""
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
        return dict(self._connection.execute("SELECT fingerprint, count FROM unread"))

    @property
    def refused_count(self) -> int:
        """Records of the audit topics that were no messages."""
        return int(self._connection.execute("SELECT refused FROM meta").fetchone()[0])

    @property
    def taken_ms(self) -> int:
        """When something was taken last, by the clock of who took it; 0 for never."""
        return int(self._connection.execute("SELECT taken FROM meta").fetchone()[0])

    def _take(self, value: bytes, where: Heard | None, hearings: Hearings) -> bool:
        """False for a message that a newer version can read."""
        try:
            message = messages.decode(value)
        except SchemaUnknown as error:
            self._take_unread(error)
            return False
        except MessageRefused as error:
            _log.warning("message_refused", reason=str(error))
            self._connection.execute("UPDATE meta SET refused = refused + 1")
            return True
        hear(hearings, message, where)
        if isinstance(message, Announcement):
            self._take_announcement(message)
        elif isinstance(message, Acceptance | Retirement | Revocation):
            self._take_decision(message, value)
        elif isinstance(message, RecountResult):
            self._connection.execute(
                "INSERT OR REPLACE INTO recounts VALUES (?, ?, ?)",
                (self._source(message.source), message.output, value),
            )
        elif isinstance(message, Heartbeat):
            self._take_heartbeat(message)
        else:
            self._take_numbered(message, value, where)
        return True

    def _take_unread(self, error: SchemaUnknown) -> None:
        known, name = self.unread(), error.fingerprint
        if name not in known:
            if len(known) >= _FINGERPRINTS_MAX:
                name = ""
            _log.error("audit_schema_unknown", fingerprint=error.fingerprint, reason=str(error))
        self._connection.execute(
            "INSERT INTO unread VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1", (name,)
        )

    def _take_announcement(self, message: Announcement) -> None:
        source = self._source(message.source)
        self._take_host(message.agent, (0, 0, message.time_ms), message.host)
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

    def _take_decision(self, message: Decision, value: bytes) -> None:
        revoked = message.revoked if isinstance(message, Revocation) else None
        source, bucket = None, None
        if isinstance(message, Acceptance):
            source, bucket = self._source(message.source), message.bucket
        self._connection.execute(
            "INSERT OR IGNORE INTO decisions VALUES (?, ?, ?, ?, ?)",
            (message.id, value, revoked, source, bucket),
        )

    def _take_heartbeat(self, message: Heartbeat) -> None:
        self._seen(message)
        self._connection.execute(
            "UPDATE senders SET claimed = ?2, claimed_time = ?3"
            " WHERE id = ?1 AND (claimed, claimed_time) < (?2, ?3)",
            (self._sender(message.sender), message.number, message.time_ms),
        )

    def _take_numbered(self, message: Delta | Seal, value: bytes, where: Heard | None) -> None:
        self._seen(message)
        sender = self._sender(message.sender)
        digest = _digest(value)
        known = self._connection.execute(
            "SELECT digest FROM numbers WHERE sender = ? AND number = ?", (sender, message.number)
        ).fetchone()
        if known is None:
            self._take_number(sender, message, digest)
            self._add(sender, message, counted=True)
            if isinstance(message, Seal) and where is not None:
                self._add_seal_ahead(message, where.arrived_ms)
        elif not _is_repetition(message, digest, known[0]) and self._is_new_clone(
            sender, message.number, digest
        ):
            self._add(sender, message, counted=False)

    def _take_number(self, sender: int, message: Delta | Seal, digest: bytes) -> None:
        database, number = self._connection, message.number
        database.execute("INSERT INTO numbers VALUES (?, ?, ?)", (sender, number, digest))
        database.execute(
            "UPDATE senders SET known = known + 1, last = max(coalesce(last, ?2), ?2),"
            " first_time = CASE WHEN first IS NULL OR first > ?2 THEN ?3 ELSE first_time END,"
            " cluster = CASE WHEN first IS NULL OR first > ?2 THEN ?4 ELSE cluster END,"
            " host = CASE WHEN first IS NULL OR first > ?2 THEN ?5 ELSE host END,"
            " first = min(coalesce(first, ?2), ?2) WHERE id = ?1",
            (sender, number, message.time_ms, message.sender.cluster, message.sender.host),
        )

    def _is_new_clone(self, sender: int, number: int, digest: bytes) -> bool:
        changed = self._connection.execute(
            "INSERT OR IGNORE INTO clones VALUES (?, ?, ?)", (sender, number, digest)
        ).rowcount
        self._connection.execute(
            "UPDATE senders SET cloned_at = min(coalesce(cloned_at, ?2), ?2) WHERE id = ?1",
            (sender, number),
        )
        return changed > 0

    def _add(self, sender: int, message: Delta | Seal, *, counted: bool) -> None:
        for source, agent in agents_in(message):
            self._take_agent(self._source(source), agent)
        if isinstance(message, Delta):
            for count in message.counts:
                self._add_count(sender, message.number, count, counted=counted)
            if counted:
                self._add_progress(sender, message)
        elif counted:
            self._add_seals(message)

    def _add_count(self, sender: int, number: int, count: Count, *, counted: bool) -> None:
        sums = sums_of(count) if counted else Sums()
        links = links_of(number, count.previous) if counted else 0
        self._connection.execute(
            _TALLY_UPSERT,
            (
                self._source(count.source), count.bucket, count.bucket_ms, count.agent, sender,
                sums.count, sums.bytes, sums.checksum, sums.rejects, sums.repeats,
                number, number, links,
            ),
        )  # fmt: skip

    def _add_progress(self, sender: int, message: Delta) -> None:
        number, time_ms = message.number, message.time_ms
        for place, loss in enumerate(message.losses):
            self._connection.execute(
                "INSERT INTO losses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._source(loss.source), sender, number, place, time_ms,
                    loss.agent, loss.file, loss.first, loss.end, loss.certainty.value,
                    loss.reason, loss.from_bucket, loss.to_bucket,
                ),
            )  # fmt: skip
        for place, gap in enumerate(message.gaps):
            self._connection.execute(
                "INSERT INTO gaps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._source(gap.source), sender, number, place, time_ms,
                    gap.partition, gap.first, gap.end, gap.reason,
                ),
            )  # fmt: skip
        self._connection.executemany(
            _COVERAGE_UPSERT,
            [(self._source(x.source), sender, x.partition, x.first, x.end) for x in message.ranges],
        )

    def _add_seals(self, message: Seal) -> None:
        agent, epoch = agent_of(message.sender), message.sender.epoch
        self._connection.executemany(
            "INSERT OR REPLACE INTO seals VALUES (?, ?, ?, ?, ?, ?)",
            [
                (self._source(x.source), agent, epoch, message.number, x.sealed_until, x.at)
                for x in message.topics
            ],
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO finals VALUES (?, ?, ?, ?)",
            [
                (self._source(x.source), agent, epoch, message.number)
                for x in message.topics
                if x.final
            ],
        )

    def _add_seal_ahead(self, message: Seal, taken_ms: int) -> None:
        if any(x.sealed_until > taken_ms for x in message.topics):
            self._connection.execute(
                "INSERT OR IGNORE INTO seals_ahead VALUES (?, ?, ?, ?)",
                (agent_of(message.sender), message.sender.epoch, message.number, taken_ms),
            )

    def _seen(self, message: Delta | Seal | Heartbeat) -> None:
        sender, number, time_ms = message.sender, message.number, message.time_ms
        self._connection.execute(
            "INSERT INTO last_seen VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET time = max(time, excluded.time)",
            (sender.tier.value, sender.producer, time_ms),
        )
        if sender.tier is Tier.AGENT:
            self._take_host(agent_of(sender), (sender.epoch, number, time_ms), sender.host)
            self._take_bounds(agent_of(sender), sender.bounds)

    def _take_host(self, agent: int, said: tuple[int, int, int], host: str) -> None:
        """said: epoch and number of the message, zeros for one without, and its clock."""
        *_, time_ms = said
        self._connection.execute(
            "INSERT INTO host_names VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " epoch = excluded.epoch, number = excluded.number, time = excluded.time,"
            " host = excluded.host WHERE (excluded.epoch, excluded.number, excluded.time,"
            " excluded.host) > (epoch, number, time, host)",
            (agent, *said, host),
        )
        self._connection.execute(
            "INSERT INTO hosts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
            " time = excluded.time, host = excluded.host"
            " WHERE (excluded.time, excluded.host) > (time, host)",
            (agent, time_ms, host),
        )
        self._connection.execute(
            "INSERT INTO beginnings VALUES (?, ?) ON CONFLICT DO UPDATE SET"
            " time = excluded.time WHERE excluded.time < time",
            (agent, time_ms),
        )

    def _take_bounds(self, agent: int, bounds: Bounds) -> None:
        self._connection.execute(
            "INSERT INTO bounds VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
            " lateness = max(lateness, excluded.lateness), ahead = max(ahead, excluded.ahead)"
            " WHERE excluded.lateness > lateness OR excluded.ahead > ahead",
            (agent, max(bounds.lateness_ms, 0), max(bounds.ahead_ms, 0)),
        )

    def _take_hearings(self, found: Hearings) -> None:
        self._connection.executemany(
            "INSERT INTO heard VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET time = max(time, excluded.time)",
            ((tier.value, producer, time) for (tier, producer), time in found.heard.items()),
        )
        for (tier, producer), new in found.readings.items():
            row = self._connection.execute(
                "SELECT window, least, earlier, earliest FROM readings"
                " WHERE (tier, producer) = (?, ?)",
                (tier.value, producer),
            ).fetchone()
            known = None if row is None else Reading(*row)
            self._connection.execute(
                "INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?, ?)",
                (tier.value, producer, *then(known, new)),
            )
        self._connection.executemany(
            "INSERT INTO resumed VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET taken = min(taken, excluded.taken)",
            ((*key, taken_ms) for key, taken_ms in found.sealed.items()),
        )
        self._take_overlaps(found.spoken)
        self._connection.executemany(
            "INSERT INTO offsets VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " first = min(first, excluded.first), last = max(last, excluded.last)",
            ((agent, *log, *offsets) for (agent, log), offsets in found.offsets.items()),
        )

    def _take_overlaps(self, spoken: Sequence[Spoken]) -> None:
        """Before the offsets of these messages are taken."""
        select = self._connection.execute
        namesakes: dict[int, list[int]] = {}
        agents = json.dumps(sorted({x.agent for x in spoken}))
        for agent, other in select(_NAMESAKES, (agents,)):
            namesakes.setdefault(agent, []).append(other)
        known = {}
        for each in {*namesakes, *chain.from_iterable(namesakes.values())}:
            for *where, first, last in select(
                "SELECT topic, topic_id, partition, first, last FROM offsets WHERE agent = ?",
                (each,),
            ):
                known[each, Log(*where)] = Offsets(first, last)
        self._connection.executemany(
            "INSERT OR IGNORE INTO overlaps VALUES (?, ?)", overlaps(known, spoken, namesakes)
        )

    def _take_agent(self, source: int, agent: int) -> None:
        self._connection.execute("INSERT OR IGNORE INTO agents VALUES (?, ?)", (source, agent))

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
        """Starts of the newest buckets in which anything was counted or declared lost (of a topic,
        by its name in the source cluster), newest first; with `until` those that begin below it."""
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
        """Beginnings of the blocks of that size in which a bucket begins that is judged, the oldest
        first."""
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


def _digest(value: bytes) -> bytes:
    return hashlib.blake2b(value, digest_size=8).digest()


def _is_repetition(message: Delta | Seal, digest: bytes, known: bytes) -> bool:
    """Whether a message with that digest says what the one with the known digest said."""
    return known == digest or known in map(_digest, messages.encodings(message))


def ledger_of(values: Iterable[bytes]) -> Ledger:
    """A ledger in memory of all these records."""
    ledger = Ledger()
    ledger.take(values)
    return ledger
