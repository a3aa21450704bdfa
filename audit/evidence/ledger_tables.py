"""The ledger's tables."""

from __future__ import annotations

FORMAT = 4
SCHEMA = """
CREATE TABLE senders (
    id INTEGER PRIMARY KEY, tier TEXT, producer TEXT, epoch INTEGER, cluster TEXT, host TEXT,
    first INTEGER, last INTEGER, known INTEGER, first_time INTEGER,
    claimed INTEGER, claimed_time INTEGER, cloned_at INTEGER,
    UNIQUE (tier, producer, epoch)
);
CREATE TABLE numbers (
    block INTEGER, sender INTEGER, newest INTEGER, digests BLOB, PRIMARY KEY (block, sender)
) WITHOUT ROWID;
CREATE TABLE settled (sender INTEGER PRIMARY KEY, below INTEGER, newest INTEGER);
CREATE TABLE clones (
    sender INTEGER, number INTEGER, digest BLOB, PRIMARY KEY (sender, number, digest)
) WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT,
    UNIQUE (cluster, cluster_id, topic, topic_id)
);
CREATE TABLE tallies (
    source INTEGER, bucket INTEGER, bucket_ms INTEGER, columns BLOB,
    PRIMARY KEY (source, bucket, bucket_ms)
);
CREATE TABLE tally_additions (
    source INTEGER, bucket INTEGER, bucket_ms INTEGER, columns BLOB
);
CREATE TABLE bucket_sizes (
    source INTEGER, size INTEGER, PRIMARY KEY (source, size)
) WITHOUT ROWID;
CREATE INDEX tally_additions_by_bucket ON tally_additions (source, bucket, bucket_ms);
CREATE TABLE agent_numbers (number INTEGER PRIMARY KEY, agent INTEGER UNIQUE);
CREATE TABLE number_bases (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hour INTEGER UNIQUE, base BLOB
);
CREATE TABLE seals (
    agent INTEGER, epoch INTEGER, topics INTEGER, block INTEGER,
    least INTEGER, newest INTEGER, packed BLOB,
    PRIMARY KEY (agent, epoch, topics, block)
) WITHOUT ROWID;
CREATE TABLE seal_ends (
    agent INTEGER, epoch INTEGER, topics INTEGER,
    first INTEGER, first_until INTEGER, first_at INTEGER, first_final INTEGER,
    last INTEGER, last_until INTEGER, last_at INTEGER, last_final INTEGER,
    PRIMARY KEY (agent, epoch, topics)
) WITHOUT ROWID;
CREATE TABLE seal_topics (id INTEGER PRIMARY KEY, sources TEXT UNIQUE);
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
CREATE TABLE counted_until (sender INTEGER PRIMARY KEY, others INTEGER, behind TEXT);
CREATE TABLE agents (source INTEGER, agent INTEGER, PRIMARY KEY (source, agent)) WITHOUT ROWID;
CREATE TABLE last_seen (
    tier TEXT, producer TEXT, time INTEGER, PRIMARY KEY (tier, producer)
) WITHOUT ROWID;
CREATE TABLE files (
    source INTEGER, host TEXT, device INTEGER, inode INTEGER, length INTEGER, fingerprint BLOB,
    agent INTEGER, file INTEGER, time INTEGER, path TEXT,
    PRIMARY KEY (source, host, device, inode, length, fingerprint, agent, file)
) WITHOUT ROWID;
CREATE TABLE positions (
    topic TEXT, partition INTEGER, next_offset INTEGER, topic_id TEXT NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE INDEX tallies_by_bucket ON tallies (bucket);
CREATE TABLE meta (one INTEGER PRIMARY KEY CHECK (one = 1), unproven INTEGER, taken INTEGER);
CREATE TABLE owners (
    agent INTEGER, epoch INTEGER, identity TEXT, PRIMARY KEY (agent, epoch)
) WITHOUT ROWID;
CREATE INDEX owners_by_identity ON owners (identity);
CREATE TABLE signers (identity TEXT PRIMARY KEY, key INTEGER);
CREATE TABLE refused (
    sender TEXT, kind TEXT, reason TEXT, detail TEXT, claimed TEXT, topic TEXT, count INTEGER,
    partition INTEGER, first INTEGER, last INTEGER, taken INTEGER, admitted INTEGER,
    PRIMARY KEY (sender, kind, reason, detail, claimed, topic)
) WITHOUT ROWID;
CREATE TABLE filtered (
    source INTEGER, bucket INTEGER, bucket_ms INTEGER, agent INTEGER, sender INTEGER, rule TEXT,
    records INTEGER, bytes INTEGER,
    PRIMARY KEY (source, bucket, bucket_ms, agent, sender, rule)
) WITHOUT ROWID;
CREATE TABLE beginnings (
    agent INTEGER, host TEXT, time INTEGER, PRIMARY KEY (agent, host)
) WITHOUT ROWID;
CREATE TABLE bounds (agent INTEGER PRIMARY KEY, lateness INTEGER, ahead INTEGER);
CREATE TABLE inodes (
    source INTEGER, host TEXT, inode INTEGER, agent INTEGER, file INTEGER, time INTEGER, path TEXT,
    born INTEGER, replaced INTEGER,
    PRIMARY KEY (source, host, inode, agent, file)
) WITHOUT ROWID;
CREATE INDEX inodes_by_birth ON inodes (source, host, inode, born, agent)
WHERE born IS NOT NULL;
CREATE INDEX inodes_by_file ON inodes (agent, file);
CREATE TABLE unread (
    fingerprint TEXT, identity TEXT, count INTEGER, PRIMARY KEY (fingerprint, identity)
) WITHOUT ROWID;
CREATE TABLE unread_from (
    topic TEXT, partition INTEGER, next_offset INTEGER, topic_id TEXT NOT NULL,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE pruned (
    source INTEGER, bucket_ms INTEGER, place INTEGER, buckets INTEGER,
    PRIMARY KEY (source, bucket_ms, place)
) WITHOUT ROWID;
CREATE TABLE rebuild (
    topic TEXT, partition INTEGER, end INTEGER, PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
CREATE TABLE heard (
    tier TEXT, producer TEXT, time INTEGER, PRIMARY KEY (tier, producer)
) WITHOUT ROWID;
CREATE TABLE readings (
    tier TEXT, producer TEXT, window INTEGER, least INTEGER, earlier INTEGER, earliest INTEGER,
    PRIMARY KEY (tier, producer)
) WITHOUT ROWID;
CREATE TABLE seals_ahead (
    agent INTEGER, epoch INTEGER, number INTEGER, taken INTEGER, PRIMARY KEY (agent, epoch, number)
) WITHOUT ROWID;
CREATE TABLE offsets (
    host TEXT, agent INTEGER, topic TEXT, topic_id TEXT, partition INTEGER,
    first INTEGER, last INTEGER, PRIMARY KEY (host, agent, topic, topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE host_names (
    agent INTEGER PRIMARY KEY, epoch INTEGER, number INTEGER, time INTEGER, host TEXT
);
CREATE INDEX host_names_by_name ON host_names (host);
CREATE TABLE resumed (
    agent INTEGER, epoch INTEGER, taken INTEGER, PRIMARY KEY (agent, epoch)
) WITHOUT ROWID;
CREATE TABLE overlaps (
    agent INTEGER, other INTEGER, PRIMARY KEY (agent, other)
) WITHOUT ROWID;
CREATE INDEX overlaps_by_other ON overlaps (other);
CREATE TABLE decisions (
    id INTEGER, value BLOB, revoked INTEGER, source INTEGER, bucket INTEGER, signed INTEGER,
    PRIMARY KEY (id, value)
) WITHOUT ROWID;
CREATE INDEX decisions_by_bucket ON decisions (source, bucket);
CREATE TABLE recounts (
    source INTEGER, output TEXT, loads INTEGER, time INTEGER, value BLOB,
    PRIMARY KEY (source, output)
) WITHOUT ROWID;
CREATE TABLE notes (
    kind TEXT, producer TEXT, slot INTEGER, epoch INTEGER, number INTEGER, time INTEGER,
    value BLOB, PRIMARY KEY (kind, producer, slot)
) WITHOUT ROWID;
INSERT INTO meta VALUES (1, 0, 0)
"""
"""The tables whose names do not say what they contain:

    numbers: the digests of messages (see module number_rows).
    settled: up to which number the digests of old messages were deleted.
    tallies, tally_additions: the counts of each bucket, packed (see module tally_rows).
    bucket_sizes: the sizes of all buckets of each topic that ever had counts.
    agent_numbers: small numbers for agents.
    number_bases: for each hour of buckets, the base numbers: a bucket stores the number of an
        agent's delta as its difference from a base number (see module number_bases). The id of a
        base is never used again.
    seals: the contents of seals for a set of topics; a row has the seals with 64 successive numbers
        (see module seal_blocks). An agent seals all of its topics together, and mostly with the
        same values.
    seal_ends: the first and the newest seal of each agent, epoch and set of topics.
    seal_topics: the sets of topics, each as a JSON array of ids of sources.
    counted_until: up to when counters have counted the records of each topic.
    beginnings: when agents were first heard, under each name of their hosts.
    bounds: the bounds for event times that agents announced.
    inodes: when the inode of each announced file was made, and the id of the file whose content the
        inode had before (see module rereading).
    meta: when the last record was read; whether signatures were required, but could not be
        verified (see module admission).
    owners: the identities to which agents' ids belong, and the epochs that they signed.
    signers: the number of the key with which each sender signed last.
    refused: refused messages (see modules admission and refused).
    unread: how many messages have a schema that this version of the program does not have, by the
        identity that has signed them; "" if nobody has verified it.
    unread_from: the positions from which a version that has these schemas reads the topics again.
    pruned: which buckets were deleted because they are old (see module pruning).
    rebuild: the offsets up to which partitions must be read before anything can be judged.
    heard: when each sender was last heard.
    readings: how the senders' clocks differ from the collector's clock.
    seals_ahead: seals whose `sealed_until` is later than their arrival, because the agent's clock
        was ahead.
    resumed: when agents continued in a new epoch.
    offsets: the least and the greatest offset of each agent's messages in each log, for each name
        of the agent's host.
    overlaps: agents that had one host name and were alive at the same time.
    host_names: the names of agents' hosts, from the agents' newest messages.
    decisions, recounts: decisions of people and results of recounts, as the bytes of their
        messages; signed: whether the audit has verified who decided.
    notes: the newest note of each kind, producer and slot, as the bytes of its message. The notes
        of loads have several slots, and all other notes have one slot.

The module hearing explains the tables heard, readings and offsets."""
