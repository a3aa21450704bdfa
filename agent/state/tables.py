"""The tables of the agent's database. A position counts bytes, and an offset counts records. A time
is in ms since 1970; in a column whose name ends with `_ns`, it is in ns.
"""

from __future__ import annotations

from typing import Final

FORMAT: Final = 1
APPLICATION_ID: Final = 0x536B6964  # "Skid" in ASCII

TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
-- agent, machine, epoch, number (the last one used of deltas and seals), cluster, cluster_id,
-- bucket_ms (of the sums), last_words (JSON: topic -> W and `at` of its newest seal, where that is
-- a last word), adopted (JSON: epoch and number of the last message before it was adopted,
-- null once it was started since),
-- "since <topic>" (when it was started with first),
-- "match <topic> <hash>" (of a source; JSON: since when, epoch, whether a file has matched),
-- sources (JSON: the newest report about sources that cannot be read),
-- "looked <topic> <pattern>" (the agent has looked at the pattern; JSON: what all looks excluded)

CREATE TABLE topics (
    topic TEXT PRIMARY KEY, topic_id TEXT NOT NULL, sealed_until INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE offsets ( -- the last acknowledged one of each partition
    topic TEXT, partition INTEGER, last INTEGER NOT NULL, PRIMARY KEY (topic, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE floors ( -- below this offset of the partition lies no record of an intent
    topic TEXT, partition INTEGER, topic_id TEXT NOT NULL, floor INTEGER NOT NULL,
    PRIMARY KEY (topic, partition)
) STRICT, WITHOUT ROWID;

CREATE TABLE files ( -- one row per file id; crc over the columns before it
    file INTEGER PRIMARY KEY, serial INTEGER NOT NULL,
    topic TEXT NOT NULL, topic_id TEXT NOT NULL, host TEXT NOT NULL, path TEXT NOT NULL,
    device INTEGER NOT NULL, inode INTEGER NOT NULL,
    fingerprint_length INTEGER NOT NULL, fingerprint BLOB NOT NULL,
    begin INTEGER NOT NULL, predecessor INTEGER, predecessor_position INTEGER,
    born_ns INTEGER, location BLOB NOT NULL, meant BLOB NOT NULL,
    state TEXT NOT NULL, length INTEGER, changed_ns INTEGER, emptied INTEGER NOT NULL,
    announced INTEGER NOT NULL, announced_ms INTEGER NOT NULL,
    position INTEGER NOT NULL, prefix_crc INTEGER NOT NULL,
    guard_length INTEGER NOT NULL, guard_crc INTEGER NOT NULL, marks BLOB NOT NULL,
    acknowledged INTEGER NOT NULL, rejected INTEGER NOT NULL, filtered INTEGER NOT NULL,
    lost INTEGER NOT NULL, uncertain INTEGER NOT NULL,
    crc INTEGER NOT NULL
) STRICT;

CREATE TABLE unopened ( -- files that were found and could not be opened yet
    device INTEGER, inode INTEGER, size INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
    born_ns INTEGER, path BLOB NOT NULL, real_path BLOB NOT NULL,
    topic TEXT NOT NULL, topic_id TEXT NOT NULL, base BLOB, may_begin INTEGER NOT NULL,
    skip INTEGER, -- how many of its first bytes are skipped, -1: all of a compressed file
    PRIMARY KEY (device, inode)
) STRICT, WITHOUT ROWID;

CREATE TABLE recipes ( -- kept while an intent needs them
    fingerprint BLOB PRIMARY KEY, content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE intents ( -- promised, and not passed by the checkpoint yet; crc over all columns
    sequence INTEGER PRIMARY KEY,
    file INTEGER NOT NULL, first INTEGER NOT NULL, "end" INTEGER NOT NULL,
    bytes_crc INTEGER NOT NULL, read_ms INTEGER NOT NULL, recipe BLOB NOT NULL,
    crc INTEGER NOT NULL
) STRICT;

CREATE TABLE sums ( -- counted as the checkpoint passed, not yet in a delta
    cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT, bucket INTEGER,
    count INTEGER NOT NULL, bytes INTEGER NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, cluster_id, topic, topic_id, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE touched ( -- the last delta that touched a bucket
    cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT, bucket INTEGER,
    number INTEGER NOT NULL,
    PRIMARY KEY (cluster, cluster_id, topic, topic_id, bucket)
) STRICT, WITHOUT ROWID;

CREATE TABLE losses ( -- declared; number: of the delta that says so, NULL until there is one
    id INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL, cluster_id TEXT NOT NULL, topic TEXT NOT NULL, topic_id TEXT NOT NULL,
    file INTEGER NOT NULL, first INTEGER NOT NULL, "end" INTEGER,
    certainty TEXT NOT NULL, reason TEXT NOT NULL, from_bucket INTEGER, to_bucket INTEGER,
    declared_ms INTEGER NOT NULL, number INTEGER
) STRICT;

CREATE TABLE outbox ( -- messages for the audit topic, in the order of their ids
    id INTEGER PRIMARY KEY, number INTEGER, file INTEGER, value BLOB NOT NULL
) STRICT;

CREATE TABLE filtered_sums ( -- of the buckets of `sums`: what rules left out
    cluster TEXT, cluster_id TEXT, topic TEXT, topic_id TEXT, bucket INTEGER, rule TEXT,
    records INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (cluster, cluster_id, topic, topic_id, bucket, rule)
) STRICT, WITHOUT ROWID;

CREATE TABLE labels ( -- of files whose pods have labels; crc over the other columns
    file INTEGER PRIMARY KEY, content TEXT NOT NULL, -- JSON: [position, labels from there on] each
    crc INTEGER NOT NULL
) STRICT;

CREATE TABLE unbegun ( -- files without a file id: empty, or too old to be read
    path BLOB PRIMARY KEY, device INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL, born_ns INTEGER, real_path BLOB NOT NULL,
    base BLOB -- the path that a rotated file had before
) STRICT, WITHOUT ROWID;
"""
