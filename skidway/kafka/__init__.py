"""Kafka's protocol and its record batches, for our brokers and our clients alike.

Reading order, low to high:

    types, errors   topic-partitions, Kafka's error codes
    batch           the 61-byte header of a record batch; sealing, stamping, checking; no records
    origin          the header that says which bytes of which file a record is
    compression     codecs, bounded on the way back
    columns         records of a batch as Arrow and NumPy columns, there and back; on
                    record_layout, record_encoding, record_decoding
    protocol/       requests and responses as data, frames
    client/         producer, fetcher, metadata: a core without I/O and two drivers
    source          which cluster and topic a record was first written to, across mirrors
    partitioning    the partition of a key, for columns of keys
    gaps            offsets that a mirror could not have: the topic config `mirror.gaps`
    group_nodes     where groups and their offsets lie in ZooKeeper, for broker and consumers

A batch is opaque to whoever carries it (broker, mirror): they read `batch` and nothing above it,
and so need neither NumPy nor Arrow. Who makes or reads records (agent, loader, audit) has whole
batches as columns; there is no object per record anywhere. The client moves batches without looking
inside, so it does not import `columns` either.

Nothing in this package trusts bytes from outside: what is damaged raises `CorruptBatch` or a
protocol error, and no length is allocated before it is compared with what is there.

What applications import stands above this package: `skidway.producer` and `skidway.consumer`.
"""
