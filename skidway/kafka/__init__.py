"""Kafka's protocol and its record batches, for our brokers and our clients alike.

Reading order, low to high:

    types, errors   topic-partitions, Kafka's error codes
    batch           the 61-byte header of a record batch; sealing, stamping, checking; no records
    origin          the header that says which bytes of which file a record came from
    compression     compresses, and decompresses within bounds; `batch` has the codecs' numbers
    columns         a batch's records to and from Arrow and NumPy columns, by
                    record_layout, record_encoding, record_decoding
    protocol/       requests and responses as data, frames
    client/         producer, fetcher, metadata: a core without I/O and two drivers
    source          which cluster and topic a record was first written to, across mirrors
    partitioning    the partition of a key, for columns of keys
    gaps            offsets that a mirror could not copy: the topic config `mirror.gaps`
    group_nodes     where groups and their offsets lie in ZooKeeper, for broker and consumers

A batch is opaque to the programs that carry it (broker, mirror): they use `batch` and nothing above
it, so they need neither NumPy nor Arrow. The programs that make or read records (agent, loader,
audit) have whole batches as columns; there is no object per record anywhere. The client moves
batches without looking inside, so it does not import `columns` either.

This package trusts no bytes from outside: damaged ones raise `CorruptBatch` or a protocol error,
and a length is compared with the bytes that are there before anything is allocated for it.

What applications import stands above this package: `skidway.producer` and `skidway.consumer`.
"""
