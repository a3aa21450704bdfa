"""Kafka's protocol and record batches, for Skidway's brokers and clients.

Reading order, low to high:

    types, errors   topic-partitions, Kafka's error codes
    topic_names     which names a topic may have
    acls/           access control lists: which principal may do what
    host_names      which hosts and ports a broker may have
    batch           makes, stamps and checks the 61-byte header of a record batch; reads no records
    origin          the record header that says which bytes of which file a record came from
    codecs/         compress, and decompress within bounds
    columns         turns a batch's records into Arrow and NumPy columns, and back; uses the modules
                    record_layout, record_encoding, batch_unpacking, zstd_frames, run_unpacking,
                    record_bounds, record_headers, record_decoding
    protocol/       requests and responses as data, and their frames
    client/         producer, fetcher, metadata: a core without I/O, and two drivers that do the I/O
    acls/           which principal may do what with which resource
    security        how a client and a broker know each other
    connection      how a program reaches a cluster; makes all clients
    settings        the settings for this connection
    source          which cluster and topic a record was first written to, across mirrors
    partitioning    computes the partition of each key in a column of keys
    gaps            offsets that a mirror could not copy: the topic config `mirror.gaps`
    compaction      whether Kafka deletes records of a topic that have newer ones with the same key
    group_nodes     where groups and their offsets are in ZooKeeper, for brokers and consumers

Brokers and mirrors store batches and pass them on without looking at the records. Of the modules
that handle batches, mirrors use only `batch`. Brokers use `batch`, and, to find the offset for a
time and to dump a log, `codecs`. So mirrors and brokers need neither NumPy nor Arrow. Programs
that make or read records (agent, loader, audit) handle whole batches as columns. None of these
programs makes an object for each record. The client sends and receives batches without looking at
the records, so it does not import `columns` either.

This package trusts no bytes from outside: damaged bytes raise `CorruptBatch` or a protocol error.
Before memory is allocated for a given length, the length is compared with the number of bytes that
are present.

The packages that applications import, `skidway.producer` and `skidway.consumer`, are built on this
package.
"""
