"""The broker: takes record batches, keeps them in segment logs, and hands them out again.

It speaks the Kafka protocol, so stock clients work unmodified. It treats a batch as opaque: it
checks header, CRC and limits, stamps base offset and leader epoch (both outside the CRC), and sends
the same bytes out with sendfile. It keeps no cache of its own, because the kernel's page cache
serves as one. It imports neither numpy nor pyarrow.

Packages, low to high::

    log            batches in files: append, flush, read, recover, expire
    catalog        the cluster's brokers and topics: an immutable snapshot of ZooKeeper
    counts         what the broker counts
    kept_answers   encoded answers, kept because many clients ask the same
    coordination   ZooKeeper, on a thread of its own
    network        the epoll loop, connections, timers
    purgatory      requests that cannot be answered yet
    partitions     the partitions led here: high watermarks, flushes
    groups         consumer groups of stock clients, and their committed offsets
    settings       all settings of the program
    topics         creating, deleting and hosting topics
    expiry         applies retention, and asks which groups hold segments back
    broker         all of it together, as handlers see it
    handover       moving a partition to another broker or disk while nobody serves it
    metrics        the counts, as Prometheus reads them
    api            one file per Kafka API
    mirror         follows topics of other clusters, and copies them
    program, cli   `skidway broker run|validate|dump-log|hand-over|take-over`

Who owns which state:

    ======================================  =============================  =====================
    state                                   owner                          truth
    ======================================  =============================  =====================
    batches                                 loop                           `.log` files
    indexes, producers, offsets, watermark  loop                           made from the log
    parked requests, connections            loop                           memory
    answers that are kept (Metadata,        loop                           made from topics, and
    ApiVersions)                                                           from what is registered
    topics, their ids and settings          whoever serves the request,    ZooKeeper
                                            by conditional writes
    who leads a partition                   the leader                     ZooKeeper
    blocks of producer ids                  the broker that took it        ZooKeeper
    members, generations of groups          loop                           stored in ZooKeeper
    committed offsets                       loop, or consumers themselves  ZooKeeper
    ======================================  =============================  =====================

Threads: the loop has one thread. The flusher's threads wait for the disk, the threads of the
session and of kazoo wait for ZooKeeper, and the resolver's threads look up the names of mirrors'
sources. The metrics endpoint's thread only reads numbers. The flusher, the session and the resolver
hand their results to the loop with `Loop.post`; no other state is shared.

What is promised (the tests that check it are in tests/crash/broker and tests/conformance/broker):

1. A batch with acks=all is answered when it is on disk, a batch with acks=1 when it is in the file.
2. Consumers see only what is on disk. What they saw never changes, and only retention removes it.
3. A batch that an idempotent producer retries is stored once, also across a crash. The retry gets
   the offset of the stored batch only if both batches are equal, and the stored batch is on disk.
4. After any crash a log is a prefix of what was appended and holds everything that was flushed.
   Recovery cuts off all other bytes that it finds in the files, and keeps a copy of them. If good
   data follows bytes that must be cut off, the partition is stopped, and reported.
5. While ZooKeeper is away, produce and fetch go on. Groups that have their assignment go on, too.
6. A commit is answered when its offset is in ZooKeeper. A commit of an older generation of the
   group never replaces this offset.
"""
